"""Random drivers in C that take and release a lock, and all their violations by running every input.

A driver is straight code with nested branches, switches, early returns and calls; it has no loops, so that "all
distinct violations" has one meaning: the set of instruction traces that end in one. Inputs count by two bits,
and how many a run reads depends on the run; the emulator is given every sequence. The truth shares the instruction
semantics with what is tested, but neither the model, nor its traces, nor any solver.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tomllib
from pathlib import Path

from mcveto.machine.pcode import Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, Spec

ROOT = Path(__file__).parents[2]
INPUT_VALUES = 4
MOST_RUNS = 3000
MOST_STEPS = 20_000
HEAD = """
__attribute__((noinline, weak)) int choice(void) { return 0; }
__attribute__((noinline, weak)) void halt(void) { for (;;) __asm__ volatile(""); }
static volatile int held;
static int g;
__attribute__((noinline)) void lock(void) { held = 1; }
__attribute__((noinline)) void unlock(void) { held = 0; }
"""
TAIL = "void _start(void) { main(); halt(); }\n"
FLAGS = (
    *("-g0", "-w", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-fno-pie", "-fno-sanitize=undefined"),
    *("-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none"),
    *("-Wl,-e,_start", "-Wl,--no-gc-sections"),
)


class _Function:
    """One function's statements: mostly right, now and then a lock or an unlock is forgotten."""

    def __init__(self, generator: random.Random, inputs: int, callees: list[str], first: int) -> None:
        self._random = generator
        self._inputs = inputs
        self._callees = callees
        self._names = first
        self._is_held = False

    def block(self, depth: int, variables: list[str]) -> str:
        lines = [self._statement(depth, variables) for _ in range(self._random.randrange(1, 4))]
        return "\n".join(line for line in lines if line)

    def _statement(self, depth: int, variables: list[str]) -> str:
        choose = self._random
        kind = choose.random()
        if kind < 0.4:
            return "" if self._is_held else self._locked(depth, variables)
        if kind < 0.5 and self._inputs:
            self._inputs -= 1
            self._names += 1
            variables.append(f"v{self._names}")
            return f"int v{self._names} = choice() & {INPUT_VALUES - 1};"
        if kind < 0.6 and self._callees and not self._is_held:
            return f"{choose.choice(self._callees)}({choose.choice(variables)});"
        if kind < 0.65 and depth:
            return "{ unlock(); return g; }" if self._is_held and choose.random() < 0.7 else "return g;"
        if kind < 0.72:
            return f"g = {choose.choice(variables)} + {choose.randrange(4)};"
        if kind < 0.92 and depth < 3:
            text = f"if ({self._condition(variables)}) {{\n{self.block(depth + 1, [*variables])}\n}}"
            return text + (f" else {{\n{self.block(depth + 1, [*variables])}\n}}" if choose.random() < 0.4 else "")
        if depth < 2:
            cases = (f"case {n}: {{\n{self.block(depth + 1, [*variables])}\n}} break;" for n in range(4))
            return f"switch ({choose.choice(variables)}) {{\n" + "\n".join(cases) + "\n}"
        return ""

    def _locked(self, depth: int, variables: list[str]) -> str:
        self._is_held = True
        body = self.block(depth + 1, [*variables])
        self._is_held = False
        forgotten = self._random.random()
        first = "" if forgotten < 0.04 else "lock();"
        last = "" if forgotten > 0.9 else "unlock();"
        return f"{first}\n{{\n{body}\n}}\n{last}"

    def _condition(self, variables: list[str]) -> str:
        one, number = self._random.choice([*variables, "g"]), self._random.randrange(4)
        return self._random.choice([f"{one} == {number}", f"{one} & 1", f"{one} > {number}", f"!({one} & 2)"])


def random_driver(seed: int) -> str:
    generator = random.Random(seed)
    functions: list[str] = []
    text = HEAD
    for number in range(generator.randrange(4)):
        body = _Function(generator, 1, functions, 10 * number).block(1, ["a"])
        text += f"__attribute__((noinline)) int f{number}(int a) {{\n{body}\nreturn g;\n}}\n"
        functions = [*functions, f"f{number}"]
    variables = ["a"]
    main = _Function(generator, generator.randrange(1, 4), functions, 50)
    body = main.block(0, variables) + "\n" + main.block(0, variables)
    return f"{text}int main(void) {{\nint a = choice() & {INPUT_VALUES - 1};\n{body}\nreturn 0;\n}}\n{TAIL}"


def compiled(source: str, target: str, level: str, folder: Path) -> Program:
    row = tomllib.loads((ROOT / "examples" / "targets.toml").read_text())[target]
    (folder / "driver.c").write_text(source)
    path = folder / "driver.elf"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", row["triple"], *FLAGS, *row.get("flags", []), level]
    subprocess.run([*command, str(folder / "driver.c"), "-o", str(path)], check=True, capture_output=True)
    symbols = load_program(str(path)).image.symbols
    calls = (InputCall(symbols["choice"], 32),)
    return load_program(str(path), Spec(entry=symbols["_start"], input_calls=calls, halt=(symbols["halt"],)))


def violating_traces(program: Program) -> set[tuple[int, ...]] | None:
    """The addresses executed up to each violation of the lock's discipline; None if there are too many runs."""
    found: set[tuple[int, ...]] = set()
    waiting: list[tuple[int, ...]] = [()]
    runs = 0
    while waiting:
        given = waiting.pop()
        runs += 1
        if runs > MOST_RUNS:
            return None
        source = InputSource(list(given), 0)
        machine = program.machine(source, 0)
        machine.run(MOST_STEPS)
        if len(source.consumed) > len(given):
            waiting += [(*given, value) for value in range(INPUT_VALUES)]
            continue
        trace = _until_violation(program, [(step.pc, step.next_pc, step.transfer) for step in machine.trace])
        if trace is not None:
            found.add(trace)
    return found


def _until_violation(program: Program, steps: list[tuple[int, int, Transfer]]) -> tuple[int, ...] | None:
    symbols = program.image.symbols
    is_held = False
    depth = in_main = 0
    for number, (_, following, transfer) in enumerate(steps):
        is_wrong = False
        if transfer is Transfer.CALL:
            depth += 1
            in_main = depth if following == symbols["main"] else in_main
            if following in (symbols["lock"], symbols["unlock"]):
                is_wrong = is_held == (following == symbols["lock"])
                is_held = following == symbols["lock"]
        elif transfer is Transfer.RETURN:
            is_wrong = is_held and depth == in_main
            depth -= 1
        if is_wrong:
            return tuple(pc for pc, _, _ in steps[: number + 1])
        if transfer is Transfer.RETURN and depth < in_main:
            return None
    return None
