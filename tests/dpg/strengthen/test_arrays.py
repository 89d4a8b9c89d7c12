"""Where arrays are: what an address that varies says, words that an unrolled loop passes, what comes back from runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.location import Location
from mcveto.dpg.strengthen import phases
from mcveto.dpg.strengthen.arrays import Access, Array, Arrays, _access, _is_next
from mcveto.dpg.strengthen.cells import _inside
from mcveto.dpg.strengthen.places import value_at
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.infix import pretty
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[3] / "examples" / "arrays"
INDEX = t.var("ECX", 32)


def address(base: int, factor: int) -> t.Term:
    return t.add(t.const(base, 32), t.mul(t.const(factor, 32), INDEX))


@pytest.mark.parametrize(
    ("base", "factor", "size", "stride", "is_pointer"),
    [
        (0x8049210, 4, 4, 4, False),  # an index
        (0x8049210, 8, 4, 8, False),  # a field of a record
        (0x8049210, 1, 4, 4, False),  # an offset in bytes
        (0, 1, 4, 4, True),
        (8, 1, 4, 4, True),
        (0xFFFFFFF8, 1, 4, 4, True),
        (0x8049210, 1, 1, 1, False),  # a text
        (0x8049210, 4, 16, 4, False),  # four words at once
    ],
)
def test_addresses_say_what_an_array_is_like(base: int, factor: int, size: int, stride: int, is_pointer: bool) -> None:
    found = _access(address(base, factor), size, False)
    assert found is not None and (found.stride, found.is_pointer) == (stride, is_pointer)
    assert found.address is address(base, factor)


def test_addresses_that_no_array_has() -> None:
    assert _access(t.const(0x8049210, 32), 4, False) is None
    assert _access(address(0x8049210, 12), 4, False) is None
    assert _access(t.add(INDEX, t.var("EDX", 32)), 3, False) is None
    assert _access(address(0x8049210, 4), 4, False) is not None


def test_later_words_of_an_unrolled_loop() -> None:
    def access(base: int, factor: int = 4) -> Access:
        return Access(base, factor, INDEX, 4, False)

    assert _is_next(access(0x1004), access(0x1000)) and not _is_next(access(0x1000), access(0x1004))
    assert not _is_next(access(0x1000), access(0x1000))
    assert not _is_next(access(0x1002), access(0x1000))  # another field
    assert not _is_next(access(0x9000), access(0x1000))  # another array
    assert _is_next(access(4, 1), access(0xFFFFFFFC, 1))  # words before and behind a pointer


@pytest.mark.timeout(300)
def test_an_array_that_an_unrolled_loop_fills_begins_with_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled by -O1 for PowerPC: two words a turn through a pointer, of which the first turn is at fixed addresses,
    and a loop through another pointer that counts down."""
    found: list[tuple[list[int], list[str]]] = []

    class Seen(Exception):
        pass

    def stop(system: System) -> None:
        arrays = Arrays(system)
        last = system.cuts[-1]
        places = [t.var("r30", 32)]
        ends = [str(end) for array in arrays.written for end in arrays.ends(array, last, places)]
        found.append(([array.first for array in arrays.written], ends))
        raise Seen

    monkeypatch.setattr(phases, "accelerated", stop)
    program = load_program(None, load_spec(str(EXAMPLES / "ppc32-be" / "all-affine-safe-O1.yaml")))
    with pytest.raises(Seen):
        AutoDriver(program, Limits(seconds=120)).run()
    firsts, ends = found[0]
    assert min(firsts) == 0x8049280
    assert any("r29" in end and "4*r30" in end for end in ends)


@pytest.mark.timeout(300)
def test_words_that_are_copied_together_are_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled by -O1 for PowerPC: two words a turn are stored side by side, as one of eight bytes, and compared one by
    one. The pointer is at the pair that was copied last; the loop that compares counts down what is left."""
    found: list[tuple[set[tuple[int, int, int]], list[str]]] = []

    class Seen(Exception):
        pass

    def stop(system: System) -> None:
        arrays = Arrays(system)
        copying, comparing = system.cuts[-2:]
        ends = [
            *(claim for array in arrays.written for claim in _claims(system, arrays, array, copying)),
            *(claim for array in arrays.written for claim in _claims(system, arrays, array, comparing)),
        ]
        found.append(({(array.first, array.stride, array.size) for array in arrays.written}, ends))
        raise Seen

    def _claims(system: System, arrays: Arrays, array: Array, cut: Location) -> list[str]:
        samples = system.samples.visits[cut]
        ends = arrays.ends(array, cut, [t.var("r30", 32)])
        claims = [claim for end in ends for claim in _inside(arrays, array, end, cut, samples)]
        assert all(value_at(claim, witness) for claim in claims for witness in samples)
        return [pretty(claim) for claim in claims]

    monkeypatch.setattr(phases, "accelerated", stop)
    program = load_program(None, load_spec(str(EXAMPLES / "ppc32-be" / "all-copied-safe-O1.yaml")))
    with pytest.raises(Seen):
        AutoDriver(program, Limits(seconds=120)).run()
    arrays, claims = found[0]
    assert (0x8049A64, 4, 4) in arrays
    assert "r29 + 4*r30 + 0xf7fb65a0 <u 2005" in claims  # no more than 501 words
    assert "r29 + 0xf7fb65a0 <=u r29 + 4*r30 + 0xf7fb65a0" in claims  # the next word is not behind all of them
