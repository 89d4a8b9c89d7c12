"""Section 3.4 of TR1669: its worked examples, and α ⇒ ψ' against Pre on random states."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.pre_alpha import disjoint, pre_alpha
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term

MEM = t.memory("mem", 32)
EAX, EBP = t.var("eax", 32), t.var("ebp", 32)
X, Y = t.sub(EBP, t.const(8, 32)), t.sub(EBP, t.const(12, 32))


def word(memory: Term, address: Term) -> Term:
    return t.load(memory, address, 4, False)


def valid(formula: Term) -> bool:
    solver = make_solver("bitwuzla")
    solver.add(t.bnot(formula))
    return solver.check((), 20) == "unsat"


def pre_of_the_paper() -> Term:
    """Pre(mov [eax], 5, x + y = 10) with x at ebp-8 and y at ebp-12."""
    after = t.store(MEM, EAX, t.const(5, 32), False)
    return t.eq(t.add(word(after, X), word(after, Y)), t.const(10, 32))


def at_witness(values: dict[str, int]) -> Evaluator:
    return Evaluator(lambda variable: values[str(variable.data)], lambda *_: 0)


def test_equation_2_eax_holds_the_address_of_x() -> None:
    evaluator = at_witness({"eax": 0x1000 - 8, "ebp": 0x1000})
    (psi,), alpha = pre_alpha((pre_of_the_paper(),), evaluator.value)
    assert psi is t.eq(t.add(t.const(5, 32), word(MEM, Y)), t.const(10, 32))
    assert t.eq(X, EAX) in alpha
    # α of Eqn. (2): eax = ebp-8 and eax ≠ ebp-12; with bytes, y must not overlap the store at all.
    assert valid(t.implies(t.conj(alpha), t.conj([t.eq(EAX, X), t.ne(EAX, Y)])))
    assert valid(t.implies(t.eq(EAX, X), t.conj(alpha)))


def test_figure_8_bytes_no_overlap() -> None:
    """With eax elsewhere, α is the conjunction of all sixteen byte disequalities for x and for y."""
    evaluator = at_witness({"eax": 0x5000, "ebp": 0x1000})
    (psi,), alpha = pre_alpha((pre_of_the_paper(),), evaluator.value)
    assert psi is t.eq(t.add(word(MEM, X), word(MEM, Y)), t.const(10, 32))
    byte_disequalities = [
        t.ne(t.add(base, t.const(i, 32)), t.add(EAX, t.const(j, 32)))
        for base in (X, Y)
        for i in range(4)
        for j in range(4)
    ]
    both = t.eq(t.conj(alpha), t.conj(byte_disequalities))
    assert valid(both)


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from([1, 2, 4]), st.integers(0, 2**32 - 1)), min_size=1, max_size=3
    ),
    st.tuples(st.integers(0, 12), st.sampled_from([1, 2, 4, 8])),
    st.booleans(),
    st.integers(0, 14),
    st.integers(0, 14),
)
@settings(max_examples=300, deadline=None)
def test_under_alpha_the_simplified_predicate_is_pre(
    stores: list[tuple[int, int, int]], read: tuple[int, int], big_endian: bool, p: int, q: int
) -> None:
    pointer, other = t.var("p", 32), t.var("q", 32)
    memory = MEM
    for number, (offset, size, value) in enumerate(stores):
        where = t.add(pointer if number % 2 else other, t.const(offset, 32))
        memory = t.store(memory, where, t.const(value, 8 * size), big_endian)
    loaded = t.load(memory, t.add(pointer, t.const(read[0], 32)), read[1], big_endian)
    predicate = t.ult(loaded, t.const(1 << (8 * read[1] - 1), 8 * read[1]))
    evaluator = Evaluator(lambda variable: {"p": p, "q": q}[str(variable.data)], lambda _, address: address & 0xFF)
    (simplified,), alpha = pre_alpha((predicate,), evaluator.value)
    assert all(evaluator.value(condition) == 1 for condition in alpha), "the witness satisfies α"
    assert evaluator.value(simplified) == evaluator.value(predicate)
    solver = make_solver("bitwuzla")
    for condition in alpha:
        solver.add(condition)
    solver.add(t.ne(simplified, predicate))
    assert solver.check((), 20) == "unsat"


@given(st.integers(0, 15), st.integers(1, 4), st.integers(0, 15), st.integers(1, 4))
def test_disjoint_means_no_byte_in_common(a: int, a_size: int, b: int, b_size: int) -> None:
    bytes_of_a = {(a + i) % 16 for i in range(a_size)}
    bytes_of_b = {(b + i) % 16 for i in range(b_size)}
    condition = disjoint(t.const(a, 4), a_size, t.const(b, 4), b_size)
    assert (condition is t.TRUE) == bytes_of_a.isdisjoint(bytes_of_b)
