"""mcveto beside angr (and BINSEC) on the same binaries, under the same limits, in one run.

    python bench/peers/compare.py [SPEC...] [--engine NAME]... [--timeout S] [--memory MB] [--binsec EXECUTABLE]

The first run installs angr into an environment of its own (`.peers/angr` in the checkout). Every program is given to
every tool in turn, each in a process of its own that is ended at the limit. Times are wall-clock seconds from loading
the binary to the answer, everything imported before, and in brackets processor time, which depends less on what else
the machine does; `ratio` is the least processor time of mcveto's engines divided by angr's where both are right. With
`--whole` the default command of mcveto is run once more, and `whole` is the processor time of all of it, from the start
of Python to the answer with its checks, and of all that angr's script takes: what somebody waits for. Verdicts are
compared with `expected` of the spec.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcveto.program.image.model import Permission
from mcveto.program.program import Program, load_program
from mcveto.program.spec import Spec, load_spec

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".peers" / "angr"
# What angr 9.2 needs besides what it asks for itself.
REQUIREMENTS = ("angr", "bitstring<5", "pycparser==3.0")
Ask = Callable[[Path, Spec, Program], "Answer"]


@dataclass(frozen=True)
class Answer:
    verdict: str
    seconds: float
    reason: str = ""
    cpu: float = 0.0
    whole: float = 0.0
    """Processor seconds of the whole process, with all that it imports."""

    def grade(self, expected: str | None) -> str:
        if self.verdict == "unknown":
            return "unknown"
        verdict = "proved" if self.verdict == "exhausted" else self.verdict
        return "right" if verdict == expected else "WRONG"


@dataclass(frozen=True)
class Limits:
    seconds: float
    megabytes: int


def install_angr() -> Path:
    """The Python of an environment that has angr."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "ready").exists():
        print(f"installing angr into {ENVIRONMENT.relative_to(ROOT)} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        (ENVIRONMENT / "ready").touch()
    return python


def run(command: list[str], limits: Limits, text: str = "", environment: dict[str, str] | None = None) -> str | None:
    """What a command prints within the limits, or None."""

    def limit_memory() -> None:
        size = limits.megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), size + (1 << 30)))

    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            timeout=limits.seconds,
            preexec_fn=limit_memory,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout


def _with_start_up(limits: Limits) -> Limits:
    """Starting Python and importing libraries does not count; the tools watch the limit themselves."""
    return Limits(limits.seconds + 120, limits.megabytes)


def ask_angr(python: Path, limits: Limits) -> Ask:
    task_file = Path(__file__).with_name("angr_task.py")

    def ask(path: Path, spec: Spec, program: Program) -> Answer:
        writable = any(
            segment.permissions & Permission.WRITE and segment.permissions & Permission.EXECUTE
            for segment in program.image.segments
        )
        task = {
            "binary": str(spec.binary_path()),
            "entry": program.entry,
            "targets": sorted(program.targets),
            "halts": sorted(program.halts),
            "calls": [[program.address(call.at), call.bits, call.signed] for call in spec.input_calls],
            "assume": [program.address(address) for address in spec.assume],
            "memory": [[start, end - start] for start, end in program.input_memory],
            "writable_code": writable,
            "limit": limits.seconds,
        }
        before = _children()
        found = _answer(run([str(python), str(task_file)], _with_start_up(limits), json.dumps(task)), limits)
        return replace(found, whole=_children() - before)

    return ask


def ask_mcveto(engine: str, limits: Limits) -> Ask:
    task_file = Path(__file__).with_name("mcveto_task.py")

    def ask(path: Path, spec: Spec, program: Program) -> Answer:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(task_file), str(path), engine, str(limits.seconds), str(limits.megabytes)]
        return _answer(run(command, _with_start_up(limits), environment=environment), limits)

    return ask


def _children() -> float:
    """Processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole_command(path: Path, limits: Limits) -> Answer:
    """The default command, as somebody types it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [
        sys.executable,
        "-m",
        "mcveto",
        "verify",
        "--spec",
        str(path),
        "--quiet",
        "--timeout",
        str(limits.seconds),
    ]
    before, started = _children(), time.monotonic()
    output = run(command, _with_start_up(limits), environment=environment) or ""
    verdict = output.partition("\n")[0].partition("(")[0].lower()
    return Answer(verdict or "unknown", time.monotonic() - started, whole=_children() - before)


def _answer(output: str | None, limits: Limits) -> Answer:
    """What a task printed."""
    try:
        found: dict[str, Any] = json.loads((output or "").splitlines()[-1])
    except (IndexError, ValueError):
        return Answer("unknown", limits.seconds, "limit" if output is None else "no answer")
    return Answer(found["verdict"], found["seconds"], found["reason"], found["cpu"])


def ask_binsec(executable: str, limits: Limits) -> Ask:
    """BINSEC's symbolic execution; it says so when it found a target or had no path left."""

    def ask(path: Path, spec: Spec, program: Program) -> Answer:
        lines = [f"starting from {program.entry:#x}"]
        result = {"x86-32": "eax<32>", "x86-64": "rax<64>", "ppc32-be": "r3<32>"}.get(program.image.isa)
        back = {"x86-32": "@[esp, 4]", "x86-64": "@[rsp, 8]"}.get(program.image.isa)
        if result is None or back is None:
            return Answer("unknown", 0.0, "not supported by this script")
        stack, word = ("esp", 4) if program.image.isa == "x86-32" else ("rsp", 8)
        for call in spec.input_calls:
            extend = "sext" if call.signed else "uext"
            width = 8 * word
            lines += [
                f"replace {program.address(call.at):#x} by",
                f"  input<{call.bits}> := nondet",
                f"  {result} := {extend}{width}(input<{call.bits}>)"
                if call.bits < width
                else f"  {result} := input<{width}>",
                f"  target<{width}> := {back}",
                f"  {stack}<{width}> := {stack}<{width}> + {word}",
                f"  jump at target<{width}>",
                "end",
            ]
        lines += [f"halt at {halt:#x}" for halt in sorted(program.halts)]
        lines += [f"reach {target:#x}" for target in sorted(program.targets)]
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as script:
            script.write("\n".join(lines) + "\n")
            script.flush()
            started = time.monotonic()
            command = [executable, "-sse", "-sse-script", script.name, "-sse-depth", "1000000", str(spec.binary_path())]
            output = run(command, limits)
            seconds = time.monotonic() - started
        if output is None:
            return Answer("unknown", limits.seconds, "limit")
        if "[sse:result]" in output and "Path" in output and "reached" in output:
            return Answer("violated", seconds)
        complete = "exploration is incomplete" not in output.lower() and "unreachable" in output.lower()
        return Answer("exhausted" if complete else "unknown", seconds)

    return ask


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="mcveto beside its peers")
    parser.add_argument("spec", nargs="*", type=Path, help="spec files (default: examples/fig10/x86-32)")
    parser.add_argument("--engine", action="append", help="engines of mcveto (default: dpg, symex, portfolio)")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--memory", type=int, default=4096)
    parser.add_argument("--binsec", help="a BINSEC executable")
    parser.add_argument("--without-angr", action="store_true")
    parser.add_argument("--whole", action="store_true", help="compare whole commands, too")
    options = parser.parse_args(arguments)
    limits = Limits(options.timeout, options.memory)
    tools: dict[str, Ask] = {}
    if not options.without_angr:
        tools["angr"] = ask_angr(install_angr(), limits)
    if options.binsec:
        tools["binsec"] = ask_binsec(options.binsec, limits)
    engines = options.engine or ["dpg", "symex", "portfolio"]
    for engine in engines:
        tools[engine] = ask_mcveto(engine, limits)
    paths = options.spec or sorted((ROOT / "examples" / "fig10" / "x86-32").glob("*.yaml"))
    print(
        f"{'program':32}"
        + "".join(f"{name:>24}" for name in tools)
        + f"{'ratio':>8}"
        + f"{'whole':>22}" * options.whole
    )
    table: dict[str, list[str]] = {name: [] for name in tools}
    ratios: list[float] = []
    whole: list[float] = []
    for path in paths:
        spec = load_spec(str(path))
        program = load_program(None, spec)
        answers = {name: ask(path, spec, program) for name, ask in tools.items()}
        cells = []
        for name, answer in answers.items():
            grade = answer.grade(spec.expected)
            table[name].append(grade)
            cells.append(f"{grade + f' {answer.seconds:.2f} ({answer.cpu:.2f}) s':>24}")
        ratio = _ratio(answers, engines, spec.expected)
        if ratio is not None:
            ratios.append(ratio)
        shown = path.relative_to(ROOT / "examples") if path.is_relative_to(ROOT / "examples") else path
        line = f"{shown.with_suffix('')!s:32}" + "".join(cells) + (f"{ratio:8.2f}" if ratio is not None else " " * 8)
        if options.whole:
            command = whole_command(path, limits)
            table.setdefault("command", []).append(command.grade(spec.expected))
            peer = answers.get("angr")
            if peer is not None:
                line += f"{command.whole:8.2f}/{peer.whole:.2f}"
                if peer.grade(spec.expected) == command.grade(spec.expected) == "right":
                    whole.append(command.whole / peer.whole)
                    line += f"{whole[-1]:8.2f}"
        print(line, flush=True)
    for name, grades in table.items():
        counts = ", ".join(f"{grades.count(kind)} {kind}" for kind in ("right", "unknown", "WRONG"))
        print(f"{name}: {counts} of {len(grades)}")
    for what, found in (("best engine", ratios), ("whole command", whole)):
        if found:
            faster, worst = sum(ratio < 1 for ratio in found), max(found)
            print(f"mcveto's {what} against angr: faster on {faster} of {len(found)}, worst ratio {worst:.2f}")
    wrong = any("WRONG" in table[engine] for engine in engines)
    return 70 if wrong else 0


def _ratio(answers: dict[str, Answer], engines: list[str], expected: str | None) -> float | None:
    peer = answers.get("angr")
    ours = [answers[engine].cpu for engine in engines if answers[engine].grade(expected) == "right"]
    if peer is None or peer.grade(expected) != "right" or not ours:
        return None
    return min(ours) / max(peer.cpu, 0.001)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
