"""Inputs that were read at the beginning, and decide at the end, are known from the start of a search."""

from __future__ import annotations

from pathlib import Path as FilePath

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable, Path
from mcveto.engines.queries import Queries
from mcveto.engines.simulation.positions import LOST, Positions
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.state import Drawn, Log, PathState
from mcveto.logic import terms as t
from mcveto.machine.pcode import FreshOrigin

from .driver_text import needs_assembler, reaching
from .random_programs import RandomProgram


def read(positions: Positions, log: Log, name: str) -> Log:
    variable = t.var(name, 32)
    return positions.note(log, Drawn(log, variable, FreshOrigin.INPUT, 0, 0))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 3))
def test_a_position_is_known_if_all_ways_have_read_as_many(counts: list[int], more: int) -> None:
    """Ways that read so many inputs each, meet, and read some more."""
    positions, logs = Positions(), []
    for way, count in enumerate(counts):
        log: Log = None
        for number in range(count):
            log = read(positions, log, f"in!{way}{number}")
        logs.append(log)
    joined = logs[0]
    for other in logs[1:]:
        joined = positions.joined(joined, other)
    for number in range(more):
        joined = read(positions, joined, f"in!9{number}")
        known = positions._of.get(t.var(f"in!9{number}", 32))
        assert known == (counts[0] + number if len({*counts}) == 1 else None)
    assert (joined is LOST) == (len({*counts}) > 1)


def test_inputs_agree_with_what_is_said_of_them() -> None:
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    queries = Queries(program, float("inf"), 1.0)
    table: KeyTable = queries.table
    positions = Positions()
    log = read(positions, read(positions, None, "in!70"), "in!71")
    unknown = t.var("any!5", 32)
    path = Path(table)
    path.add(t.eq(t.band(t.var("in!71", 32), t.const(0x80, 32)), t.const(0x80, 32)))
    path.add(t.ult(t.var("in!70", 32), unknown))
    state = PathState(0, {}, None, path, None, None, log)  # type: ignore[arg-type]
    found = positions.agreeing(state, table, queries, lambda name: None)
    assert found is not None
    assert found.value(t.var("in!1", 32)) & 0x80, "the second input, as a real path calls it"
    assert t.var("in!0", 32) not in found.values, "what is said of it speaks of other things, too"
    silent = PathState(0, {}, None, Path(table), None, None, log)  # type: ignore[arg-type]
    assert positions.agreeing(silent, table, queries, lambda name: None) is None


def test_what_was_made_of_inputs_tells_about_them() -> None:
    """An entry of a table was read, and the rest of a division."""
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    queries = Queries(program, float("inf"), 1.0)
    positions = Positions()
    log = read(positions, read(positions, None, "in!70"), "in!71")
    entry, rest, other = (t.var(f"any!{number}", 32) for number in range(3))
    index, divided = t.var("in!70", 32), t.var("in!71", 32)
    meanings = {
        entry: t.disj([t.conj([t.eq(index, t.const(i, 32)), t.eq(entry, t.const(100 + i * i, 32))]) for i in range(9)]),
        rest: t.eq(rest, t.urem(divided, t.const(10, 32))),
        other: t.eq(other, t.add(index, t.var("any!9", 32))),
    }
    path = Path(queries.table)
    for name, value in ((entry, 149), (rest, 6), (other, 3)):
        path.add(t.eq(name, t.const(value, 32)))
    state = PathState(0, {}, None, path, None, None, log)  # type: ignore[arg-type]
    found = positions.agreeing(state, queries.table, queries, meanings.get)
    assert found is not None
    assert found.value(t.var("in!0", 32)) == 7
    assert found.value(t.var("in!1", 32)) % 10 == 6


ROWS = 90
DRIVER = """
	.text
	.globl main
main:
	bl choice
	mr 31,3
{rows}
	andi. 0,31,128
	beq 0,done
reached:
	nop
done:
	b done
compare:
	mflr 30
	bl choice
	xor 4,3,31
	mulli 4,4,77
	cmplw 0,4,3
	bgt 0,.Lover
	addi 5,5,1
.Lover:
	mtlr 30
	blr
"""


@needs_assembler
def test_a_bit_of_the_configuration(tmp_path: FilePath) -> None:
    """Behind so many comparisons with it, the configuration of a real path is fixed."""
    text = DRIVER.format(rows="\n".join(["\tbl compare"] * ROWS))
    verdict = simulate(reaching(tmp_path, text, "ppc32-be", "main", ("done",)), 20)
    assert verdict.kind == "violated", verdict.reason
