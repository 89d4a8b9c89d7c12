"""Writes a large driver-like C program, deterministic by its seed, for the lock discipline of `examples/air`.

    python tools/large_driver.py --lines 60000 --seed 1 --kind dispatch --version fix -O1 -o DIR

A driver is many handlers between a few shared helpers. Each handler takes and releases the lock under a condition
that depends on its data and is evaluated twice (bits, comparisons, tables, remembered flags), on ways with loops,
error exits and switches. `--kind chain` calls every handler once, `dispatch` serves requests in a loop without end
through a switch, `tree` goes through functions that call functions; `driver_shapes` has the other kinds. The version
`bug` has one mistake, in one handler, which only some inputs show. `--lines` counts the lines of PowerPC assembly,
approximately. Writes NAME.c, NAME.elf,
NAME.sym.elf and NAME.yaml, built like the other examples (with their `locks.c`), and prints the number of instructions.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import driver_shapes
from build_examples import ROOT, Build, make, read_targets
from elftools.elf.elffile import ELFFile

KINDS = ("chain", "dispatch", "tree", *driver_shapes.KINDS)
VERSIONS = ("fix", "bug")
LOCKS = (("spin_lock();", "spin_unlock();"), ("spin_lock_irq();", "spin_unlock_irq();"),
         ("saved = spin_lock_irqsave();", "spin_unlock_irqrestore(saved);"))  # fmt: skip
# Lines of assembly per statement of the filling, by level of optimisation; measured on what the generator writes.
LINES_PER_STATEMENT = {"O0": 12.5, "O1": 5.5, "O2": 5.5}


class Handler:
    """The text of one handler; with a mistake, one of its releases is decided by something else."""

    def __init__(self, number: int, draw: random.Random, statements: int, is_wrong: bool) -> None:
        self.number = number
        self.draw = draw
        self.statements = statements
        self.is_wrong = is_wrong
        self.lock, self.unlock = draw.choice(LOCKS)

    def text(self) -> str:
        shapes: list[Callable[[], list[str]]] = [
            self._same_bit, self._same_comparison, self._remembered, self._error_exits, self._polling, self._cases,
            self._table, self._counted,
        ]  # fmt: skip
        body = self.draw.choice(shapes)()
        lines = [f"OPAQUE word handler_{self.number}(word request, word argument) {{"]
        lines += ["  word saved = 0, status = request ^ 0x5au, i;"]
        lines += [f"  {line}" for line in body]
        lines += ["  (void)saved, (void)i;", "  return status;", "}"]
        return "\n".join(lines)

    def _fill(self, share: float = 1.0) -> list[str]:
        """Statements that compute something and leave the lock alone."""
        draw, lines = self.draw, []
        for _ in range(max(int(self.statements * share), 1)):
            kind = draw.randrange(9)
            constant = draw.randrange(1, 1 << 16)
            shift = draw.randrange(1, 31)
            if kind == 0:
                lines.append(f"status = status * {constant | 1}u + argument;")
            elif kind == 1:
                lines.append(f"status ^= (argument << {shift}) | (argument >> {32 - shift});")
            elif kind == 2:
                lines.append(f"registers[{draw.randrange(64)}] = status + {constant}u;")
            elif kind == 3:
                lines.append(f"if (status > {constant}u) status -= argument; else status += {constant}u;")
            elif kind == 4:
                lines.append(f"buffer[(status + {constant}u) & 255u] = (byte)argument;")
            elif kind == 5:
                lines.append(f"status += registers[argument & 63u] & {constant}u;")
            elif kind == 6:
                lines.append(f"status = helper_{draw.randrange(8)}(status, argument);")
            elif kind == 7:
                lines.append(f"statistics[{draw.randrange(32)}]++;")
            else:
                lines.append(f"if ((status & {1 << shift}u) && argument != {constant}u) status = ~status;")
        return lines

    def _guarded(self, first: str, second: str, wrong: str) -> list[str]:
        second = wrong if self.is_wrong else second
        return [
            *self._fill(0.3), f"if ({first}) {{ {self.lock} }}", *self._fill(0.4),
            f"if ({second}) {{ {self.unlock} }}", *self._fill(0.3),
        ]  # fmt: skip

    def _same_bit(self) -> list[str]:
        bit = self.draw.randrange(1, 30)
        return self._guarded(f"request & {1 << bit}u", f"request >> {bit} & 1u", f"request & {1 << bit + 1}u")

    def _same_comparison(self) -> list[str]:
        bound = self.draw.randrange(100, 1 << 20)
        first = f"request > {bound}u && argument != 0"
        return self._guarded(first, f"!(request <= {bound}u || !argument)", f"(int)request > {bound} && argument != 0")

    def _remembered(self) -> list[str]:
        bound = self.draw.randrange(2, 200)
        lines = [*self._fill(0.4), "word taken = 0;", f"if (argument % {bound}u == 1u) {{ {self.lock} taken = 1; }}"]
        lines += self._fill(0.3)
        if self.is_wrong:
            lines.append(f"if ((request & 255u) == {self.draw.randrange(256)}u && taken) taken = 2;")
        return [*lines, f"if (taken == 1) {{ {self.unlock} }}", *self._fill(0.3)]

    def _error_exits(self) -> list[str]:
        bound, magic = self.draw.randrange(8, 64), self.draw.randrange(1 << 12)
        lines = [self.lock, *self._fill(0.3), f"if (argument >= {bound}u) {{", "  status = 22u;", "  goto out;", "}"]
        lines += [*self._fill(0.4), f"if ((request & 4095u) == {magic}u) {{", "  status = 5u;"]
        lines += ["  return status;" if self.is_wrong else "  goto out;", "}", *self._fill(0.3), "out:", self.unlock]
        return lines

    def _polling(self) -> list[str]:
        """A loop as long as the device likes; the lock is given up in between."""
        lines = [*self._fill(0.3), self.lock, "for (i = 0; choice() & 1; i++) {", *self._fill(0.3)]
        return [*lines, f"  {self.unlock}", *self._fill(0.1), f"  {self.lock}", "}", *self._broken(), self.unlock,
                *self._fill(0.3)]  # fmt: skip

    def _broken(self) -> list[str]:
        return ["if (i == 3u && argument == 77u) { " + self.unlock + " }"] if self.is_wrong else []

    def _cases(self) -> list[str]:
        lines = [*self._fill(0.2), "switch (argument & 7u) {"]
        wrong = self.draw.randrange(8)
        for case in range(8):
            lines += [f"case {case}u:", f"  {self.lock}", *self._fill(0.1)]
            if not (self.is_wrong and case == wrong):
                lines.append(f"  {self.unlock}")
            lines.append("  break;")
        return [*lines, "}"]

    def _table(self) -> list[str]:
        """A constant table says which requests need the lock."""
        table = [self.draw.randrange(2) for _ in range(16)]
        content = ", ".join(map(str, table))
        wrong = "needs[(request + 1u) & 15u]"
        lines = [f"static const byte needs[16] = {{{content}}};"]
        return [*lines, *self._guarded("needs[request & 15u]", "needs[request & 15u] != 0", wrong)]

    def _counted(self) -> list[str]:
        """A loop with a known bound, locked in every turn under a condition."""
        turns = self.draw.randrange(2, 6)
        second = "argument + 1u > i" if self.is_wrong else "argument > i"
        return [*self._fill(0.3), f"for (i = 0; i < {turns}u; i++) {{", f"  if (argument > i) {{ {self.lock} }}",
                *self._fill(0.3), f"  if ({second}) {{ {self.unlock} }}", "}", *self._fill(0.3)]  # fmt: skip


def program(seed: int, statements: int, kind: str, is_wrong: bool) -> str:
    """The C text of a driver with about so many statements."""
    if kind in driver_shapes.KINDS:
        return driver_shapes.program(seed, statements, kind, is_wrong)
    draw = random.Random(f"driver {seed} {kind}")
    size = draw.choice([20, 40, 80])
    count = max(statements // size, 4)
    wrong = draw.randrange(count // 2, count)
    lines = [
        '#include "air.h"', "#define OPAQUE __attribute__((noinline))", "",
        "word registers[64], statistics[32];", "byte buffer[256];",
    ]  # fmt: skip
    for number in range(8):
        first, second = draw.randrange(1 << 16), draw.randrange(1, 31)
        lines.append(
            f"OPAQUE word helper_{number}(word a, word b) {{ return a + {first}u > b ? a ^ b : (a >> {second}) + b; }}"
        )
    for number in range(count):
        # The mistake must not change what else is drawn.
        own = random.Random(f"handler {seed} {kind} {number}")
        lines += ["", Handler(number, own, size, is_wrong and number == wrong).text()]
    lines += ["", *_callers(kind, count)]
    return "\n".join(lines) + "\n"


def _callers(kind: str, count: int) -> list[str]:
    def call(number: int) -> str:
        return f"handler_{number}((word)choice(), (word)choice());"

    if kind == "chain":
        return ["void program(void) {", *(f"  {call(number)}" for number in range(count)), "}"]
    if kind == "dispatch":
        cases = [f"    case {number}: {call(number)} break;" for number in range(count)]
        return ["void program(void) {", "  while (choice()) {", "    switch (choice()) {", *cases,
                "    default: break;", "    }", "  }", "}"]  # fmt: skip
    lines: list[str] = []
    names = [call(number) for number in range(count)]
    level = 0
    while len(names) > 1:
        groups = [names[start : start + 6] for start in range(0, len(names), 6)]
        names = []
        for number, group in enumerate(groups):
            lines += [f"static OPAQUE void group_{level}_{number}(word which) {{"]
            lines += [f"  if (which & {1 << place}u) {item}" for place, item in enumerate(group)] + ["}"]
            names.append(f"group_{level}_{number}((word)choice());")
        level += 1
    return [*lines, "void program(void) {", f"  {names[0]}", "}"]


def build(folder: Path, seed: int, lines: int, kind: str, version: str, level: str = "O1") -> Path:
    """Writes and compiles one driver; gives its spec file."""
    text = program(seed, int(lines / LINES_PER_STATEMENT[level]), kind, version == "bug")
    expected: dict[str, dict[str, object]] = {
        "fix": {"expected": "proved"},
        "bug": {"expected": "violated", "expected_properties": ["reach"]},
    }
    return compile_driver(folder, f"{kind}-{lines}-{seed}-{version}-{level}", text, level, expected[version])


def compile_driver(folder: Path, name: str, text: str, level: str, expected: dict[str, object]) -> Path:
    """Writes and compiles the text of a driver; gives its spec file, with what is expected of it."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.c"
    source.write_text(text)
    air = ROOT / "air"
    frame = tomllib.loads((air / "build.toml").read_text())["spec"]
    order = Build(
        folder=folder.resolve(),
        name=name,
        sources=(source.name, str(air / "locks.c")),
        target=read_targets(ROOT / "targets.toml")["ppc32-be"],
        flags=("-I", str(air), f"-{level}", "-Wno-unused-value", "-Wno-unused-but-set-variable"),
        layout="wx",
        spec={**frame, **expected},
        comment="",
    )
    with tempfile.TemporaryDirectory() as scratch:
        for path, content in make(order, Path(scratch)).items():
            path.write_bytes(content)
    return folder / f"{name}.yaml"


def instructions(spec: Path) -> int:
    """How many instructions the code has; all are four bytes long."""
    with spec.with_suffix(".elf").open("rb") as file:
        flags = [(segment["p_flags"], segment["p_filesz"]) for segment in ELFFile(file).iter_segments()]
    return sum(int(size) for rights, size in flags if rights & 1) // 4


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="write and compile a large driver")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, default="dispatch")
    parser.add_argument("--version", choices=VERSIONS, default="fix")
    parser.add_argument("-O", dest="level", choices=["0", "1", "2"], default="1")
    parser.add_argument("-o", dest="folder", type=Path, required=True)
    options = parser.parse_args(arguments)
    spec = build(options.folder, options.seed, options.lines, options.kind, options.version, f"O{options.level}")
    print(f"{spec}: {instructions(spec)} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
