"""Rows of a table follow by putting numbers in; what does not hold never does, and other goals are not decided so."""

from __future__ import annotations

import itertools
from pathlib import Path

from mcveto.certify import certificate_of
from mcveto.check.discharge import Effort, check
from mcveto.dpg.summaries.at_sight import follows
from mcveto.dpg.summaries.prove import verdict_by_summaries
from mcveto.dpg.summaries.summary import ProcedureProof
from mcveto.logic import terms as t
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[2] / "examples" / "recursion"
BITS = 8
N, A, B, TOTAL = (t.var(name, BITS) for name in ("n", "call 0 result", "call 1 result", "sum"))


def number(value: int) -> t.Term:
    return t.const(value, BITS)


def row(argument: t.Term, value: int, result: t.Term, makes: t.Term) -> t.Term:
    return t.implies(t.eq(argument, number(value)), t.eq(result, makes))


FIBONACCI = [0, 1, 1, 2, 3, 5, 8, 13]


def test_a_row_follows_from_those_before() -> None:
    facts = [row(t.sub(N, number(1)), i, A, number(value)) for i, value in enumerate(FIBONACCI)]
    facts += [row(t.sub(N, number(2)), i, B, t.add(TOTAL, number(value))) for i, value in enumerate(FIBONACCI)]
    for n, wanted in itertools.product(range(2, 8), range(20)):
        goal = row(N, n, t.sub(t.add(A, B), TOTAL), number(wanted))
        assert follows(goal, facts, 4) == (wanted == FIBONACCI[n])


def test_what_contradicts_itself_has_all_rows() -> None:
    assert follows(row(N, 3, A, number(7)), [t.ult(N, number(3))], 2)
    assert follows(row(N, 3, A, number(7)), [t.eq(A, N), t.eq(A, number(4))], 3)
    assert not follows(row(N, 3, A, number(7)), [t.ult(number(2), N)], 2)


def test_goals_of_another_kind_are_left_to_a_solver() -> None:
    assert not follows(t.eq(A, number(1)), [t.eq(A, number(1))], 2)
    assert not follows(t.ult(A, number(1)), [t.FALSE], 2)


def test_a_table_of_the_low_half_of_a_register_is_proved_with_few_questions() -> None:
    """x86-64: the sum so far and the result are 32 bits of 64, and the loop begins behind the first call."""
    program = load_program(None, load_spec(str(EXAMPLES / "x86-64" / "tribonacci-safe-O1.yaml")))
    verdict = verdict_by_summaries(program, 100.0)
    assert verdict is not None and verdict.kind == "proved" and isinstance(verdict.proof, ProcedureProof)
    assert verdict.statistics["solver_calls"] < 700  # 857 without
    # All rows of a procedure at once took 62 s.
    certificate = certificate_of(program, verdict.proof, "test")
    assert check(certificate, program.image, Effort(timeout=5.0)).problem == ""
