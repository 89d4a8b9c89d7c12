"""Accesses that leave the variable of a frame they were made for: found, never taken for granted, never invented."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.check.counterexample import Counterexample
from mcveto.check.object_crossings import CERTAIN, Crossings
from mcveto.check.safety_monitor import SafetyViolation, find_violation
from mcveto.crossings import Crossed
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.property.attach import attach
from mcveto.search import Question, search
from mcveto.verdict import Verdict, VerdictInput

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
TARGETS = {
    "x86-32": ("x86-freestanding", "-mcpu=pentiumpro", "-mno-sse", "-mno-mmx", "-mno-80387"),
    "x86-64": ("x86_64-freestanding", "-mno-sse", "-mno-mmx", "-mno-80387", "-mno-red-zone", "-mcmodel=small"),
    "ppc32-be": ("powerpc-freestanding", "-mcpu=ppc-hard_float-altivec"),
}
FLAGS = (
    *("-g0", "-s", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-fno-pie", "-fno-sanitize=undefined", "-w"),
    *("-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fno-builtin"),
    *("-fno-vectorize", "-fno-slp-vectorize", "-Wl,--build-id=none", "-Wl,-e,_start", "-Wl,--no-gc-sections"),
)
GOOD, BAD = range(10), range(20, 23)
STRUCTURES = range(28)
MODELS = ("memset", "memcpy", "strlen", "strcpy", "strncpy")


def compiled(case: int, target: str, level: str, folder: Path, source: str = "objects.c") -> Program:
    pytest.importorskip("ziglang")
    path = folder / "program.elf"
    triple, *flags = TARGETS[target]
    sources = [str(HERE / source), str(EXAMPLES / "frame" / "start.c"), "-I", str(EXAMPLES / "frame")]
    options = ["-target", triple, *flags, *FLAGS, level, f"-DCASE={case}", "-T", str(EXAMPLES / "layouts" / "wx.ld")]
    named = [option for option in options if option != "-s"]
    command = [sys.executable, "-m", "ziglang", "cc"]
    subprocess.run([*command, *named, *sources, "-o", str(path)], check=True, capture_output=True)
    symbols = load_program(str(path)).image.symbols
    subprocess.run([*command, *options, *sources, "-o", str(path)], check=True, capture_output=True)
    spec = Spec(
        entry=symbols["_start"],
        input_calls=(InputCall(symbols["input"], 32),),
        halt=(symbols["halt"],),
        models=tuple((symbols[name], name) for name in MODELS if name in symbols),
        properties=(PropertySpec("memory-safety"),),
    )
    return load_program(str(path), spec)


def verdict(program: Program, objects: str | None = None, seconds: float = 120.0) -> Verdict:
    spec = replace(program.spec, objects=objects)
    question = Question(engine="symex", timeout=seconds, self_check=False)
    return search(lambda: load_program(program.image.path, spec), question).verdict


def test_a_byte_of_a_number_is_another_variable(tmp_path: Path) -> None:
    program = compiled(20, "x86-32", "-O0", tmp_path)
    found = verdict(program)
    assert (found.kind, found.about) == ("violated", "memory-safety"), found.reason
    region = found.violation["region"]
    assert isinstance(region, dict)
    assert (region["kind"], region["size"], found.violation["distance"]) == ("variable", 8, 1)
    assert found.confirmed_by[:2] == ("emulator", "monitor") and "unicorn" in found.confirmed_by
    # Whoever does not believe that the two are separate is told.
    assert any("this run tell apart" in line for line in found.assumptions)
    separate = verdict(program, "separate")
    assert separate.kind == "violated" and not any("this run tell apart" in line for line in separate.assumptions)
    assert verdict(program, "together").kind == "proved"


def test_an_array_among_arrays_stays_inside(tmp_path: Path) -> None:
    assert verdict(compiled(3, "x86-64", "-O0", tmp_path)).kind == "proved"


def test_a_structure_that_is_cleared_as_a_whole_is_not_told_from_an_overflow(tmp_path: Path) -> None:
    program = compiled(0, "ppc32-be", "-O0", tmp_path)
    found = verdict(program)
    assert found.kind == "unknown"
    assert "past the end of the variable" in found.reason and "objects: separate" in found.reason
    assert verdict(program, "together").kind == "proved"


def blamed(program: Program, value: int) -> list[str]:
    """What a run with this input violates."""
    example = Counterexample("memory-safety", (VerdictInput(value, 32, "input"),) * 3)
    crossings = Crossings(program).of(example, (), 20_000)
    found = find_violation(program, example, ("memory-safety",), max_steps=20_000)
    certain = [str(item) for item in crossings if item.meaning == CERTAIN]
    return certain + ([found.reason] if isinstance(found, SafetyViolation) else [])


@pytest.mark.parametrize(("case", "target", "level"), [(6, "x86-32", "-O0"), (3, "ppc32-be", "-O0")])
def test_some_correct_programs_are_not_blamed(case: int, target: str, level: str, tmp_path: Path) -> None:
    """Structures by value, whose address the callee takes off the stack; pointers from both ends of an array."""
    program = compiled(case, target, level, tmp_path)
    assert [blamed(program, value) for value in (5, 11)] == [[], []]


@pytest.mark.parametrize("case", [0, 2, 6, 7])
def test_some_structures_are_not_blamed(case: int, tmp_path: Path) -> None:
    """Filled to a length that the input gives; cleared after use; indices with a constant folded in; unions."""
    program = compiled(case, "x86-32", "-O0", tmp_path, "structures.c")
    assert blamed(program, 1_000_015) == []


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", STRUCTURES)
def test_structures_are_not_blamed(case: int, target: str, level: str, tmp_path: Path) -> None:
    program = compiled(case, target, level, tmp_path, "structures.c")
    for value in (9, 15, 1_000_003):
        assert blamed(program, value) == []


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", GOOD)
def test_correct_programs_are_not_blamed(case: int, target: str, level: str, tmp_path: Path) -> None:
    program = compiled(case, target, level, tmp_path)
    for value in (0, 1, 5, 11, 1_000_003, 0xFFFFFFFF):
        assert blamed(program, value) == []


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", BAD)
def test_wrong_programs_are_not_proved(case: int, target: str, tmp_path: Path) -> None:
    assert verdict(compiled(case, target, "-O0", tmp_path)).kind != "proved"


def test_what_leaves_its_object_is_no_violation_before_it_is_judged_one(tmp_path: Path) -> None:
    """As when the time is over before the search can go on without it."""
    attached = attach(compiled(20, "x86-32", "-O0", tmp_path))
    assert attached.guarded is not None and attached.guarded.crossed is not None
    crossing = Verdict("violated", "memory-safety", at=attached.guarded.crossed)
    assert Crossed().considered(attached, crossing).kind == "unknown"
    other = replace(crossing, at=attached.guarded.crossed - 32)
    assert Crossed().considered(attached, other) == other
