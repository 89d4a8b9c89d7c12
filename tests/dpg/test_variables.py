"""Aggregate-structure identification against a naive oracle, byte by byte, and on runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.dpg.runs import Choices, Runner
from mcveto.dpg.variables import Accesses, Copy, RankedVariable, choose, identify, observe
from mcveto.machine.tracked_cells import MemoryCell

from ..machine.along_runs import example

cells = st.builds(MemoryCell, st.integers(0, 20), st.sampled_from([1, 2, 4, 8]))
accesses = st.lists(st.tuples(cells, st.integers(1, 5)), max_size=8)


def naive(made: list[tuple[MemoryCell, int]], copies: list[Copy]) -> list[RankedVariable]:
    """Bytes belong together unless some access, or one it is carried over to by copies, separates them."""
    covered = {byte for cell, _ in made for byte in range(cell.address, cell.address + cell.size)}
    cuts = {end for cell, _ in made for end in (cell.address, cell.address + cell.size)}
    for _ in range(200):
        for copy in copies:
            for offset in range(1, copy.size):
                if copy.source + offset in cuts or copy.target + offset in cuts:
                    cuts |= {copy.source + offset, copy.target + offset}
    atoms: list[list[int]] = []
    for byte in sorted(covered):
        if atoms and atoms[-1][-1] == byte - 1 and byte not in cuts:
            atoms[-1].append(byte)
        else:
            atoms.append([byte])
    ranked = [
        RankedVariable(
            MemoryCell(atom[0], len(atom)),
            sum(count for cell, count in made if cell.address <= atom[0] < cell.address + cell.size),
        )
        for atom in atoms
    ]
    return sorted(ranked, key=lambda variable: (-variable.accesses, variable.cell))


@given(accesses)
def test_atoms_without_copies(made: list[tuple[MemoryCell, int]]) -> None:
    assert identify(made) == naive(made, [])


@given(accesses, st.lists(st.builds(Copy, st.integers(0, 20), st.integers(0, 20), st.sampled_from([2, 4])), max_size=4))
def test_copied_ranges_are_cut_alike(made: list[tuple[MemoryCell, int]], copies: list[Copy]) -> None:
    # A copy is also two accesses.
    made = [*made, *((MemoryCell(at, copy.size), 1) for copy in copies for at in (copy.source, copy.target))]
    assert identify(made, copies) == naive(made, copies)


def test_choice_is_by_rank_and_size() -> None:
    found = identify([(MemoryCell(0, 4), 1), (MemoryCell(8, 4), 9), (MemoryCell(16, 1), 5)])
    assert choose(found, 2) == [MemoryCell(8, 4), MemoryCell(16, 1)]
    assert choose(found, 2, sizes=[4]) == [MemoryCell(8, 4), MemoryCell(0, 4)]


def test_a_run_is_observed_as_it_was_made() -> None:
    program = example("x86-32/overview")
    blocks = Blocks(program)
    run = Runner(program, blocks, 20_000, 0).run(Choices())
    seen = Accesses()
    observe(program, run, seen)
    assert set(seen.needed) == {visit.location for visit in run.visits}
    variables = identify(seen.counts.items(), seen.copies)
    # x, y and the pointers to them are used in every turn of the loop, nothing else is.
    turns = max(sum(visit.location == location for visit in run.visits) for location in seen.needed)
    assert turns > 200
    assert [variable.accesses >= 2 * (turns - 1) for variable in variables[:5]] == [True] * 4 + [False]
    assert all(variable.cell.size == 4 for variable in variables)
    for location in seen.needed:
        assert not seen.needed[location] & seen.overwritten[location]
