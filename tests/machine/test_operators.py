"""P-code operators on integers and on terms, against definitions written down independently here."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.operators import TEMPLATES
from mcveto.machine.symbolic import SymbolicDomain

from .programs import address_space

SPACE = address_space("x86-32", b"\x90")
CONCRETE = ConcreteDomain(SPACE.memory())


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def truncated_quotient(a: int, b: int) -> int:
    """Division that rounds towards zero."""
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


ORACLE: dict[str, Callable[[int, int, int], int]] = {
    "INT_ADD": lambda a, b, n: (a + b) % 2**n,
    "INT_SUB": lambda a, b, n: (a - b) % 2**n,
    "INT_MULT": lambda a, b, n: (a * b) % 2**n,
    "INT_DIV": lambda a, b, n: a // b if b else 2**n - 1,
    "INT_REM": lambda a, b, n: a % b if b else a,
    "INT_SDIV": lambda a, b, n: (
        truncated_quotient(signed(a, n), signed(b, n)) % 2**n if b else (1 if signed(a, n) < 0 else 2**n - 1)
    ),
    "INT_SREM": lambda a, b, n: (
        (signed(a, n) - signed(b, n) * truncated_quotient(signed(a, n), signed(b, n))) % 2**n if b else a
    ),
    "INT_AND": lambda a, b, n: a & b,
    "INT_OR": lambda a, b, n: a | b,
    "INT_XOR": lambda a, b, n: a ^ b,
    "INT_EQUAL": lambda a, b, n: int(a == b),
    "INT_NOTEQUAL": lambda a, b, n: int(a != b),
    "INT_LESS": lambda a, b, n: int(a < b),
    "INT_LESSEQUAL": lambda a, b, n: int(a <= b),
    "INT_SLESS": lambda a, b, n: int(signed(a, n) < signed(b, n)),
    "INT_SLESSEQUAL": lambda a, b, n: int(signed(a, n) <= signed(b, n)),
    "INT_CARRY": lambda a, b, n: int(a + b >= 2**n),
    "INT_SCARRY": lambda a, b, n: int(not -(2 ** (n - 1)) <= signed(a, n) + signed(b, n) < 2 ** (n - 1)),
    "INT_SBORROW": lambda a, b, n: int(not -(2 ** (n - 1)) <= signed(a, n) - signed(b, n) < 2 ** (n - 1)),
    "INT_LEFT": lambda a, b, n: (a << b) % 2**n if b < 200 else 0,
    "INT_RIGHT": lambda a, b, n: a >> b if b < 200 else 0,
    "INT_SRIGHT": lambda a, b, n: (signed(a, n) >> min(b, 200)) % 2**n,
}
UNARY: dict[str, Callable[[int, int], int]] = {
    "INT_NEGATE": lambda a, n: 2**n - 1 - a,
    "INT_2COMP": lambda a, n: -a % 2**n,
    "POPCOUNT": lambda a, n: bin(a).count("1"),
    "LZCOUNT": lambda a, n: n - len(bin(a)) + 2 if a else n,
}
ONE_BYTE_RESULTS = {name for name in ORACLE if name.startswith(("INT_EQ", "INT_NOT", "INT_LESS", "INT_SLESS"))} | {
    "INT_CARRY",
    "INT_SCARRY",
    "INT_SBORROW",
}
SHIFTS = {"INT_LEFT", "INT_RIGHT", "INT_SRIGHT"}


def symbolic_value(make: Callable[[SymbolicDomain, t.Term, t.Term], t.Term], a: int, b: int, n: int, m: int) -> int:
    """The operator on variables, evaluated where they are a and b."""
    values = {"a": a, "b": b}
    domain = SymbolicDomain(None, SPACE, lambda _: True, lambda *_: t.TRUE)  # type: ignore[arg-type]
    term = make(domain, t.var("a", n), t.var("b", m))
    return Evaluator(lambda variable: values[str(variable.data)], lambda *_: 0).value(term)


@st.composite
def operands(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """(bits, amount bits, a, b) with a preference for the edges."""
    n = draw(st.sampled_from([8, 16, 32, 64]))
    m = draw(st.sampled_from([8, 16, 32, 64]))

    def edge(bits: int) -> st.SearchStrategy[int]:
        top = 1 << bits
        return st.one_of(
            st.integers(0, top - 1), st.sampled_from([0, 1, top - 1, top >> 1, (top >> 1) - 1, bits % top])
        )

    return n, m, draw(edge(n)), draw(edge(m))


@given(operands(), st.sampled_from(sorted(set(ORACLE) - SHIFTS)))
@settings(max_examples=800, deadline=None)
def test_binary(case: tuple[int, int, int, int], name: str) -> None:
    n, _, a, b = case
    b %= 2**n
    out = 8 if name in ONE_BYTE_RESULTS else n
    expected = ORACLE[name](a, b, n)
    assert CONCRETE.apply(name, (a, b), n, out) == expected
    assert symbolic_value(lambda domain, x, y: domain.apply(name, (x, y), n, out), a, b, n, n) == expected


@given(operands(), st.sampled_from(sorted(SHIFTS)))
@settings(max_examples=500, deadline=None)
def test_shifts_with_amounts_of_another_width(case: tuple[int, int, int, int], name: str) -> None:
    n, m, a, b = case
    expected = ORACLE[name](a, b, n)
    assert CONCRETE.shift(name, a, b, n, m) == expected
    assert symbolic_value(lambda domain, x, y: domain.shift(name, x, y, n, m), a, b, n, m) == expected


@given(operands(), st.sampled_from(sorted(UNARY)))
@settings(max_examples=300, deadline=None)
def test_unary(case: tuple[int, int, int, int], name: str) -> None:
    n, _, a, _ = case
    expected = UNARY[name](a, n)
    assert CONCRETE.apply(name, (a,), n, n) == expected
    assert symbolic_value(lambda domain, x, _: domain.apply(name, (x,), n, n), a, 0, n, n) == expected


@given(operands())
@settings(max_examples=200, deadline=None)
def test_extensions_and_pieces(case: tuple[int, int, int, int]) -> None:
    n, _, a, b = case
    b %= 2**n
    wide = 2 * n
    for name, expected in (("INT_ZEXT", a), ("INT_SEXT", signed(a, n) % 2**wide)):
        assert CONCRETE.apply(name, (a,), n, wide) == expected
        assert symbolic_value(lambda d, x, _, k=name: d.apply(k, (x,), n, wide), a, 0, n, n) == expected  # type: ignore[misc]
    joined = a << n | b
    assert CONCRETE.concatenate(a, b, n, n) == joined
    assert symbolic_value(lambda d, x, y: d.concatenate(x, y, n, n), a, b, n, n) == joined
    half = n // 2
    inserted = a & ~(((1 << half) - 1) << half) | (b & ((1 << half) - 1)) << half
    small = b & ((1 << half) - 1)
    assert CONCRETE.insert(a, small, half, half, n) == inserted
    assert symbolic_value(lambda d, x, y: d.insert(x, y, half, half, n), a, small, n, half) == inserted


@given(st.sampled_from(["BOOL_AND", "BOOL_OR", "BOOL_XOR"]), st.booleans(), st.booleans())
def test_truth_values(name: str, a: bool, b: bool) -> None:
    expected = int({"BOOL_AND": a and b, "BOOL_OR": a or b, "BOOL_XOR": a != b}[name])
    assert CONCRETE.apply(name, (int(a), int(b)), 8, 8) == expected
    assert symbolic_value(lambda d, x, y: d.apply(name, (x, y), 8, 8), int(a), int(b), 8, 8) == expected
    assert CONCRETE.apply("BOOL_NEGATE", (int(a),), 8, 8) == int(not a)
    assert symbolic_value(lambda d, x, _: d.apply("BOOL_NEGATE", (x,), 8, 8), int(a), 0, 8, 8) == int(not a)
    assert CONCRETE.apply("SELECT", (int(a), 5, 9), 8, 8) == (5 if a else 9)


def test_every_operator_has_an_oracle() -> None:
    others = {"INT_ZEXT", "INT_SEXT", "BOOL_AND", "BOOL_OR", "BOOL_XOR", "BOOL_NEGATE", "SELECT"}
    assert set(TEMPLATES) == set(ORACLE) | set(UNARY) | others
