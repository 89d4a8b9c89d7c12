"""What is asked of an entry of a table, said of its index; comparisons that bounds decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.cegar.bounds import decided, limits
from mcveto.engines.cegar.table_index import about_index
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.machine.address_space import AddressSpace
from mcveto.program.program import load_program
from mcveto.program.spec import RegionPermissions, Spec

BASE = 0x1000
ENTRIES = (7, 9, 7, 300)
X = t.var("EBX", 32)
MEMORY = t.memory("mem", 32)
ENTRY = t.load(MEMORY, t.add(t.mul(X, t.const(4, 32)), t.const(BASE, 32)), 4, False)


def space(folder: Path, permissions: str = "rx") -> AddressSpace:
    file = folder / "blob"
    file.write_bytes(b"".join(entry.to_bytes(4, "little") for entry in ENTRIES))
    region = RegionPermissions(BASE, 4 * len(ENTRIES), permissions)
    return load_program(str(file), Spec(arch="x86-32", base=BASE, entry=BASE, regions=(region,))).space


@pytest.mark.parametrize(
    ("condition", "indices"),
    [
        (t.eq(ENTRY, t.const(7, 32)), [0, 2]),
        (t.eq(ENTRY, t.const(8, 32)), []),
        (t.ult(t.const(8, 32), ENTRY), [1, 3]),
        (t.eq(t.add(ENTRY, t.const(1, 32)), t.const(10, 32)), [1]),
    ],
)
def test_of_entries(tmp_path: Path, condition: t.Term, indices: list[int]) -> None:
    bounded = limits([t.ult(X, t.const(4, 32))])
    assert about_index(condition, bounded, space(tmp_path)) == [t.eq(X, t.const(n, 32)) for n in indices]


def test_what_is_left_as_it_is(tmp_path: Path) -> None:
    condition = t.eq(ENTRY, t.const(7, 32))
    bounded = limits([t.ult(X, t.const(4, 32))])
    assert about_index(condition, {}, space(tmp_path)) is None
    assert about_index(condition, limits([t.ult(X, t.const(5, 32))]), space(tmp_path)) is None  # not in the table
    assert about_index(condition, bounded, space(tmp_path, "rwx")) is None
    assert about_index(t.eq(ENTRY, X), bounded, space(tmp_path)) is None


TERMS = st.recursive(
    st.one_of(st.just(t.var("x", 4)), st.integers(0, 15).map(lambda number: t.const(number, 4))),
    lambda inner: st.one_of(
        st.builds(t.add, inner, inner),
        st.builds(t.mul, inner, st.integers(0, 3).map(lambda number: t.const(number, 4))),
        st.builds(lambda one, other: t.zext(t.eq(one, other), 4), inner, inner),
        st.builds(lambda one: t.zext(t.extract(one, 1, 0), 4), inner),
        st.builds(t.urem, inner, st.just(t.const(3, 4))),
    ),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([t.ult, t.eq]), TERMS, TERMS, st.booleans())
def test_decided_comparisons(compare: object, one: t.Term, other: t.Term, negated: bool) -> None:
    literal = compare(one, other)  # type: ignore[operator]
    literal = t.bnot(literal) if negated else literal
    found = decided(literal)
    truths = {substitute(literal, {t.var("x", 4): t.const(number, 4)}) for number in range(16)}
    assert found is None or truths == {t.TRUE if found else t.FALSE}


def test_what_is_decided() -> None:
    flag = t.zext(t.eq(X, t.const(5, 32)), 32)
    assert decided(t.ult(t.const(5, 32), t.mul(flag, t.const(2, 32)))) is False
    assert decided(t.bnot(t.ult(t.const(5, 32), t.mul(flag, t.const(3, 32))))) is True
    assert decided(t.ult(t.const(5, 32), X)) is None
