"""Words read behind writes, counted against a walk along every chain of writes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.reads_behind_writes import ReadsBehindWrites
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MEMORY = t.memory("mem", 16)
INDEX, X = t.var("i", 16), t.var("x", 8)


def chain(length: int) -> Term:
    """Writes of which none can be seen to miss another."""
    memory = MEMORY
    for at in range(length):
        memory = t.store(memory, t.mul(t.const(2 * at + 3, 16), INDEX), X, False)
    return memory


def naive(formula: list[Term]) -> int:
    found = 0
    for load in {term for root in formula for term in t.postorder([root]) if term.op == "load"}:
        memory = load.args[0]
        while memory.op == "store":
            found, memory = found + 1, memory.args[0]
    return found


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=8))
def test_every_read_is_paired_with_every_write_before_it(reads: list[tuple[int, int]]) -> None:
    counting = ReadsBehindWrites()
    formula = [t.eq(t.load(chain(length), t.const(at, 16), 1, False), X) for length, at in reads]
    assert counting.pairs(formula) == naive(formula)
    assert counting.pairs(formula) == naive(formula)  # what was counted is remembered
