"""The checker's operators against the emulator's, and its memory against concrete memory."""

from __future__ import annotations

from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.check.formulas import Later, vector
from mcveto.check.values import CheckerDomain, Vocabulary
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.faults import Fault
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import READ, WRITE, RegionSpec
from mcveto.machine.operators import FUNCTIONS

SHIFTS = ("INT_LEFT", "INT_RIGHT", "INT_SRIGHT")
ONE = ("INT_NEGATE", "INT_2COMP", "POPCOUNT", "LZCOUNT")
COMPARE = (
    *("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"),
    *("INT_CARRY", "INT_SCARRY", "INT_SBORROW"),
)
BOOLEAN = ("BOOL_AND", "BOOL_OR", "BOOL_XOR", "BOOL_NEGATE")
EXTEND = ("INT_ZEXT", "INT_SEXT")
TWO = tuple(sorted(set(FUNCTIONS) - {*SHIFTS, *ONE, *COMPARE, *BOOLEAN, *EXTEND, "SELECT"}))
REGIONS = (
    RegionSpec("code", 0x1000, 0x10, 5, bytes(range(0x10))),
    RegionSpec("data", 0x2000, 0x100, READ | WRITE, bytes(0x100), ((0, 0x100),)),
)


def domain(big_endian: bool = False) -> CheckerDomain:
    decoder = decoder_for("x86-32")
    space = AddressSpace(REGIONS, 32, big_endian)
    return CheckerDomain(Vocabulary(decoder.layout, 32), space, ())


def hidden(value: int, bits: int) -> tuple[Any, tuple[Any, Any]]:
    """A variable that stands for a constant, so that the domain must build an expression."""
    variable = z3.FreshConst(z3.BitVecSort(bits))
    return variable, (variable, z3.BitVecVal(value, bits))


def value_of(expression: Any, *bindings: tuple[Any, Any]) -> int:
    result = z3.simplify(z3.substitute(vector(expression, 0), *bindings))
    assert z3.is_bv_value(result)
    value = int(result.as_long())
    assert not isinstance(expression, Later) or expression.span[0] <= value <= expression.span[1]
    return value


def edgy(bits: int) -> st.SearchStrategy[int]:
    top = (1 << bits) - 1
    return st.one_of(st.sampled_from([0, 1, top, top >> 1, (top >> 1) + 1]), st.integers(0, top))


@pytest.mark.parametrize("opcode", [*TWO, *COMPARE])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), bits=st.sampled_from([8, 16, 32, 64]))
def test_operators_of_two(opcode: str, data: st.DataObject, bits: int) -> None:
    a, b = data.draw(edgy(bits)), data.draw(edgy(bits))
    output = 8 if opcode in COMPARE else bits
    (x, bind_x), (y, bind_y) = hidden(a, bits), hidden(b, bits)
    expected = FUNCTIONS[opcode]((a, b), (1 << output) - 1, (1 << bits) - 1, 1 << (bits - 1), bits)
    for arguments in ((x, y), (x, b), (a, y)):
        assert value_of(domain().apply(opcode, arguments, bits, output), bind_x, bind_y) == expected
    assert domain().apply(opcode, (a, b), bits, output) == expected


@pytest.mark.parametrize("opcode", [*ONE, *EXTEND, *BOOLEAN, "SELECT"])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), bits=st.sampled_from([8, 16, 32, 64]))
def test_other_operators(opcode: str, data: st.DataObject, bits: int) -> None:
    wide = {"SELECT": 64}.get(opcode, 2 * bits if opcode in EXTEND else bits)
    if opcode in BOOLEAN:
        bits = wide = 8
        values = [data.draw(st.integers(0, 1)) for _ in range(1 if opcode == "BOOL_NEGATE" else 2)]
        widths = [8, 8]
    elif opcode == "SELECT":
        bits, values, widths = 8, [data.draw(edgy(8)), data.draw(edgy(64)), data.draw(edgy(64))], [8, 64, 64]
    else:
        values, widths = [data.draw(edgy(bits))], [bits]
    made = [hidden(value, width) for value, width in zip(values, widths, strict=False)]
    expected = FUNCTIONS[opcode](tuple(values), (1 << wide) - 1, (1 << bits) - 1, 1 << (bits - 1), bits)
    result = domain().apply(opcode, tuple(item for item, _ in made), bits, wide)
    assert value_of(result, *(binding for _, binding in made)) == expected


@pytest.mark.parametrize("opcode", SHIFTS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), bits=st.sampled_from([8, 16, 32, 64]), amount_bits=st.sampled_from([8, 32, 64]))
def test_shifts(opcode: str, data: st.DataObject, bits: int, amount_bits: int) -> None:
    value = data.draw(edgy(bits))
    amount = data.draw(st.one_of(st.integers(0, min(2 * bits, (1 << amount_bits) - 1)), edgy(amount_bits)))
    (x, bind_x), (y, bind_y) = hidden(value, bits), hidden(amount, amount_bits)
    mask = (1 << bits) - 1
    expected = FUNCTIONS[opcode]((value, amount), mask, mask, 1 << (bits - 1), bits)
    assert value_of(domain().shift(opcode, x, y, bits, amount_bits), bind_x, bind_y) == expected
    assert domain().shift(opcode, value, amount, bits, amount_bits) == expected


@settings(max_examples=60, deadline=None)
@given(data=st.data(), symbolic=st.booleans())
def test_pieces(data: st.DataObject, symbolic: bool) -> None:
    total = data.draw(st.sampled_from([16, 32, 64]))
    low = 8 * data.draw(st.integers(0, total // 8 - 1))
    bits = 8 * data.draw(st.integers(1, (total - low) // 8))
    old, new = data.draw(edgy(total)), data.draw(edgy(bits))
    (x, bind_x), (y, bind_y) = (hidden(old, total), hidden(new, bits)) if symbolic else ((old, None), (new, None))
    mask = (1 << bits) - 1
    results = [
        (domain().extract(x, low, bits, total), old >> low & mask, bits),
        (domain().insert(x, y, low, bits, total), old & ~(mask << low) | new << low, total),
        (domain().concatenate(x, y, total, bits), old << bits | new, total + bits),
    ]
    for found, expected, width in results:
        bindings = [binding for binding in (bind_x, bind_y) if binding is not None]
        assert value_of(found if symbolic else vector(found, width), *bindings) == expected


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_bits_that_cannot_be_set(data: st.DataObject) -> None:
    """What operators know of the width of their results, through several of them."""
    checker, mask = domain(), (1 << 16) - 1
    x, binding = hidden(data.draw(edgy(16)), 16)
    values: list[tuple[Any, int]] = [(x, int(binding[1].as_long())), (1, 1), (0x0F0, 0x0F0)]
    for _ in range(data.draw(st.integers(1, 6))):
        (a, left), (b, right) = data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))
        opcode = data.draw(
            st.sampled_from(["INT_AND", "INT_OR", "INT_XOR", "INT_LESS", "INT_ADD", "INT_MULT", "INT_LEFT", "piece"])
        )
        if opcode == "piece":
            low, bits = data.draw(st.integers(0, 15)), data.draw(st.integers(1, 8))
            bits = min(bits, 16 - low)
            part = checker.extract(a, low, bits, 16)
            made = checker.apply("INT_ZEXT", (part,), bits, 16), left >> low & ((1 << bits) - 1)
        elif opcode == "INT_LEFT":
            expected = FUNCTIONS[opcode]((left, right), mask, mask, 1 << 15, 16)
            made = checker.shift(opcode, a, b, 16, 16), expected
        else:
            expected = FUNCTIONS[opcode]((left, right), mask, mask, 1 << 15, 16)
            made = checker.apply(opcode, (a, b), 16, 16), expected
        values.append(made)
    for found, expected in values:
        assert value_of(found if not isinstance(found, int) else vector(found, 16), binding) == expected


def test_long_chains_are_made_on_the_way() -> None:
    checker, (x, binding) = domain(), hidden(3, 32)
    value: Any = x
    for _ in range(20_000):
        value = checker.apply("INT_ADD", (value, 1), 32, 32)
    assert value_of(value, binding) == 20_003


@pytest.mark.parametrize("big_endian", [False, True])
@settings(max_examples=30, deadline=None)
@given(
    writes=st.lists(st.tuples(st.integers(0x2000, 0x2008), st.integers(0, 0xFFFFFFFF), st.integers(0, 2)), max_size=6),
    at=st.integers(0x2000, 0x2008),
    hide=st.booleans(),
)
def test_memory(big_endian: bool, writes: list[tuple[int, int, int]], at: int, hide: bool) -> None:
    """Stores and loads, through certain and symbolic addresses, against concrete memory."""
    checker = domain(big_endian)
    memory = AddressSpace(REGIONS, 32, big_endian).memory()
    bindings = [(checker.memory, z3.K(z3.BitVecSort(32), z3.BitVecVal(0, 8)))]
    for address, value, symbolic in writes:
        where, binding = hidden(address, 32) if symbolic else (address, None)
        if symbolic == 2:
            # A table and an index of which the lowest bit is open.
            index, binding = hidden(address & 1, 32)
            where = checker.apply("INT_AND", (index, 1), 32, 32)
            where = checker.apply("INT_ADD", (address & ~1, where), 32, 32)
            assert where.span == (address & ~1, address | 1)
        bindings += [binding] if binding is not None else []
        checker.store(where, value, 4)
        memory.store(address, value, 4)
    where, binding = hidden(at, 32) if hide else (at, None)
    bindings += [binding] if binding is not None else []
    assert value_of(vector(checker.load(where, 4), 32), *bindings) == memory.load(at, 4)
    guards = z3.simplify(z3.substitute(z3.And(*checker.guard, True), *bindings))
    assert z3.is_true(guards)


def test_access_rights() -> None:
    checker = domain()
    assert checker.load(0x1004, 4) == 0x07060504
    for access in (
        lambda: checker.store(0x1000, 1, 4),
        lambda: checker.load(0x3000, 1),
        lambda: checker.load(0x20FE, 4),
    ):
        with pytest.raises(Fault):
            access()
    variable = z3.BitVec("somewhere", 32)
    checker.store(variable, 1, 4)
    for address, allowed in ((0x2000, True), (0x20FC, True), (0x20FD, False), (0x1000, False), (0x1FFF, False)):
        guard = z3.simplify(z3.substitute(z3.And(*checker.guard), (variable, z3.BitVecVal(address, 32))))
        assert z3.is_true(guard) == allowed


def test_bitwuzla_reads_what_z3_writes_after_simplification() -> None:
    from mcveto.check.discharge import _bitwuzla

    x, y = z3.BitVecs("x y", 32)
    solver = z3.Solver()
    for operator in (z3.UDiv, z3.URem, lambda a, b: a / b, z3.SRem):
        solver.add(z3.simplify(operator(x, y), hi_div0=True) == 3)
    assert "bvurem_i" in solver.to_smt2()
    solver.add(y == 7, z3.ULT(x, 21))
    assert _bitwuzla(solver.to_smt2(), 10.0) == "unsat"
    assert _bitwuzla("(assert (no-such-operator 1))", 10.0) == "unknown"
