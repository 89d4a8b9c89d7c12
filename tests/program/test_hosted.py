"""Programs of a C library need no spec: imports are bound to models, `main` is found and called with arguments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcveto.errors import UsageError
from mcveto.machine.emulator import Outcome
from mcveto.program.exits import run_to_end
from mcveto.program.image import load_image
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program, make_program
from mcveto.program.spec import Argv, InputCall, PropertySpec, Spec, parse_spec
from mcveto.search import Question, search

from .fixtures import IMAGES

ISAS = ("x86-32", "x86-64", "arm", "aarch64", "riscv64", "mips32-be")
LINE = [ord("H"), ord("i"), 10]


def hosted(isa: str, **spec: object) -> Program:
    return load_program(str(IMAGES / f"{isa}-hosted.elf"), Spec(**spec))  # type: ignore[arg-type]


def run(program: Program, inputs: list[int]) -> Outcome:
    return run_to_end(program, program.machine(InputSource(inputs)), 5000)


@pytest.mark.parametrize("isa", ISAS)
def test_main_runs_without_a_spec(isa: str) -> None:
    program = hosted(isa)
    assert program.image.entry != program.entry
    assert {name for _, name in program.spec.models} >= {"malloc", "free", "fgets", "strcpy", "printf"}
    assert run(program, LINE).kind == "halted"
    assert any("main is called as main(1, argv, envp)" in item for item in program.assumptions)
    assert any("library models stand for" in item for item in program.assumptions)


@pytest.mark.parametrize("isa", ISAS)
def test_arguments_are_inputs(isa: str) -> None:
    """The block has eight bytes; an argument of seven letters fits, one of eight does not."""
    program = hosted(isa, argv=Argv(1, 12), properties=(PropertySpec("memory-safety"),))
    letters = [ord("x")] * 11
    machine = program.machine(InputSource([*letters[:7], 0, 0, 0, 0, *LINE]))
    assert run_to_end(program, machine, 5000).kind == "halted"
    from mcveto.check.counterexample import sorted_inputs
    from mcveto.check.replay import replay
    from mcveto.verdict import VerdictInput

    for length, is_violated in ((7, False), (8, True)):
        values = [*letters[:length], *[0] * (11 - length), *LINE, 0]
        given = [VerdictInput(value, 8 if at < 11 else 16, "input") for at, value in enumerate(values)]
        found = replay(program, sorted_inputs("memory-safety", given), followers=())
        assert found.confirmed == is_violated, found.problem


def test_the_answer() -> None:
    found = search(
        lambda: hosted("x86-64", argv=Argv(1, 12), properties=(PropertySpec("memory-safety"),)),
        Question(engine="symex", timeout=120),
    ).verdict
    assert (found.kind, found.about) == ("violated", "memory-safety"), found.reason
    assert "strcpy, called at" in found.reason and "1 byte past the end of the heap block" in found.reason


def test_what_the_spec_says_comes_first() -> None:
    program = hosted("x86-64", input_calls=(InputCall("fgets", 64),))
    assert "fgets" not in {name for _, name in program.spec.models}
    assert run(program, [0]).kind == "halted"
    target = hosted("x86-64", properties=(PropertySpec("reach", ("printf",)),))
    assert "printf" not in {name for _, name in target.spec.models}
    assert run_to_end(target, target.machine(InputSource(LINE)), 5000).kind == "target"
    elsewhere = hosted("x86-64", entry=hosted("x86-64").image.entry)
    assert elsewhere.entry == elsewhere.image.entry


def test_models_can_be_turned_off() -> None:
    assert not parse_spec({"models": "none"}).models_imports
    program = hosted("x86-64", models_imports=False)
    assert not program.spec.models and program.entry == program.image.entry
    outcome = run(program, LINE)
    assert (outcome.kind, outcome.detail) == ("unsupported", "jump to import __libc_start_main")


def test_imports_that_are_not_known_stay_unsupported() -> None:
    program = hosted("x86-64", models_imports=False)
    imports = {("getpwnam" if name == "fgets" else name): at for name, at in program.image.imports.items()}
    image = replace(load_image(IMAGES / "x86-64-hosted.elf"), imports=imports)
    outcome = run(make_program(image, Spec()), LINE)
    assert outcome.kind == "unsupported" and "getpwnam" in outcome.detail


def test_what_a_stream_points_to_is_not_guessed() -> None:
    """`stdin` can be passed on; its inside belongs to another module."""
    program = hosted("x86-64")
    (region,) = [item for item in program.space.regions if item.name == "standard streams"]
    pointer = int.from_bytes(region.content[:8], "little")
    assert program.undetermined.is_foreign(pointer) and program.space.region_at(pointer) is None


def test_argv_of_a_spec() -> None:
    assert parse_spec({"inputs": {"argv": {"count": 2}}}).argv == Argv(2, 16)
    for wrong in ({"count": 65}, {"size": 4}, {"count": 1, "size": 0}, 7, {"count": -1}):
        with pytest.raises(UsageError):
            parse_spec({"inputs": {"argv": wrong}})
