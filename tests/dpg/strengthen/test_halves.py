"""Relations modulo 2^32 between registers of 64 bits."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.runs import Choices
from mcveto.dpg.strengthen import stages
from mcveto.dpg.strengthen.halves import as_numbers, lower_halves
from mcveto.dpg.strengthen.stages import Stages
from mcveto.logic import terms as t
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec
from tests.dpg.strengthen.test_explicit_values import explored_part

# call input; mov r14d, eax; mov ecx, eax; test ecx, ecx; je end; xor ebx, ebx; xor esi, esi;
# again: call input; test eax, eax; je other; inc ebx; jmp next; other: inc esi; next: dec ecx; jne again;
# add ebx, esi; cmp ebx, r14d; je end; target: nop; end: ret; input: ret
SPLIT = (
    "e829000000 4189c6 89c1 85c9 741f 31db 31f6 e817000000 85c0 7404 ffc3 eb02 ffc6 ffc9 75ed 01f3 4439f3 7401 90 c3 c3"
)
TARGET, INPUT = 0x102C, 0x102E


# call input; mov ecx, eax; mov edx, 5; again: inc ecx; inc edx; cmp ecx, 3; jl again; nop; ret; target: nop; input: ret
COUNTED = "e816000000 89c1 ba05000000 ffc1 ffc2 83f903 7cf7 90 c3 90909090 c3"


def split(folder: Path) -> Program:
    return program_of(folder, SPLIT, TARGET, INPUT)


def program_of(folder: Path, code: str, target: int, input_function: int) -> Program:
    content = bytes.fromhex(code.replace(" ", ""))
    file = folder / "blob"
    file.write_bytes(content)
    spec = Spec(
        arch="x86-64",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(input_function),),
        regions=(RegionPermissions(0x1000, len(content), "rx"),),
        properties=(PropertySpec("reach", (target,)),),
    )
    return load_program(str(file), spec)


def related(folder: Path) -> Stages:
    """What relations are found from a few runs."""
    counts = [Choices(fresh={0: count}, seed=seed) for count in range(5) for seed in range(2)]
    more = [*counts, *(Choices(fresh={**dict.fromkeys(range(20), same), 0: 3}) for same in (0, 1))]
    system, _ = explored_part(split(folder), more, seeds=2)
    found = Stages(system, {}, lambda what: None)
    found.relations()
    return found


def test_a_sum_that_wraps_around_in_half_a_register(tmp_path: Path) -> None:
    found = related(tmp_path)
    assert found.is_safe()
    for cut, invariants in found.system.invariants.items():
        assert all(found.system.samples.holds(cut, invariant) for invariant in invariants)


def test_it_is_the_halves_that_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "lower_halves", lambda system, places: [])
    assert not related(tmp_path).is_safe()


def verdict_of_strategy(folder: Path) -> tuple[str, str]:
    verdict = AutoDriver(split(folder), Limits(seconds=120.0)).run()
    return verdict.kind, verdict.reason


def test_the_strategy_proves_it(tmp_path: Path) -> None:
    """In a process of its own, as by a command: terms are ordered by when they were made first, and with the order that
    other tests leave behind, the solver takes between 8 and more than 100 seconds for the same questions."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        assert fresh.submit(verdict_of_strategy, tmp_path).result() == ("proved", "")


@pytest.mark.parametrize(("first", "is_negative"), [(-4, True), (0, False)])
def test_negative_numbers_are_those_of_half_a_register(tmp_path: Path, first: int, is_negative: bool) -> None:
    program = program_of(tmp_path, COUNTED, 0x1017, 0x101B)
    system, _ = explored_part(program, [Choices(fresh={0: first & 0xFFFFFFFF})], seeds=0)
    (cut,) = system.cuts
    whole = [t.var("RCX", 64), t.var("RDX", 64)]
    halves = lower_halves(system, whole)
    assert halves == [t.extract(place, 31, 0) for place in whole]
    assert as_numbers(system, cut, whole, halves) == (halves if is_negative else whole)
    assert as_numbers(system, cut, whole, []) == whole
