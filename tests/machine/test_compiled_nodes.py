"""The value graph and the text it becomes, against the operators applied one by one."""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.machine.compiled.emit import Emitter
from mcveto.machine.compiled.nodes import Graph, Node
from mcveto.machine.compiled.tree import Goto, Guard, Leave, Site
from mcveto.machine.compiled.unit import _operate
from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.memory import Memory
from mcveto.machine.operators import HELPERS
from mcveto.machine.trace import Trace

SAME = ("INT_ADD", "INT_SUB", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "INT_DIV", "INT_REM", "INT_SDIV", "INT_SREM")
COMPARE = ("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL")
CARRY = ("INT_CARRY", "INT_SCARRY", "INT_SBORROW")
SHIFTS = ("INT_LEFT", "INT_RIGHT", "INT_SRIGHT")
UNARY = ("INT_NEGATE", "INT_2COMP", "POPCOUNT", "LZCOUNT")
BOOLEAN = ("BOOL_AND", "BOOL_OR", "BOOL_XOR")
WIDTHS = (8, 16, 32, 64)
# Significant bits of the cells; cells of width 1 are flags in bytes.
CELLS = (1, 1, 1, 4, 8, 16, 32, 32, 64, 64)

Value = tuple[Node, int, int]


def mask(bits: int) -> int:
    return (1 << bits) - 1


@st.composite
def values(draw: st.DrawFn) -> tuple[list[Value], list[int]]:
    """Random expressions: (node, its value computed one operator at a time, bits), and the cells' values."""
    graph = Graph()
    concrete = ConcreteDomain(Memory([], 64, False))
    cells = [draw(st.one_of(st.sampled_from((0, mask(bits))), st.integers(0, mask(bits)))) for bits in CELLS]
    pool: list[Value] = [
        (graph.cell(number, bits), cells[number], max(bits, 8) if bits != 4 else 8) for number, bits in enumerate(CELLS)
    ]
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 10))
        a, x, bits = draw(st.sampled_from(pool[-8:] if draw(st.booleans()) else pool))
        same = [value for value in pool if value[2] == bits]
        if draw(st.integers(0, 2)) == 0:
            constant = draw(
                st.one_of(st.sampled_from((0, 1, 2, 4, mask(bits), 1 << (bits - 1))), st.integers(0, mask(bits)))
            )
            constant &= mask(bits)
            b, y = graph.const(constant), constant
        else:
            b, y, _ = draw(st.sampled_from(same))
        if kind <= 2:
            op = draw(st.sampled_from(SAME))
            pool.append((graph.apply(op, (a, b), bits, bits), concrete.apply(op, (x, y), bits, bits), bits))
        elif kind == 3:
            # All flags of one subtraction, and what the branches make of them.
            difference = graph.apply("INT_SUB", (a, b), bits, bits)
            rest = concrete.apply("INT_SUB", (x, y), bits, bits)
            zero = graph.const(0)
            for op, left, right in (("INT_SBORROW", (a, b), (x, y)), ("INT_LESS", (a, b), (x, y))):
                pool.append((graph.apply(op, left, bits, 8), concrete.apply(op, right, bits, 8), 8))
            for op in ("INT_SLESS", "INT_EQUAL"):
                pool.append((graph.apply(op, (difference, zero), bits, 8), concrete.apply(op, (rest, 0), bits, 8), 8))
        elif kind == 4:
            op = draw(st.sampled_from(COMPARE + CARRY))
            pool.append((graph.apply(op, (a, b), bits, 8), concrete.apply(op, (x, y), bits, 8), 8))
        elif kind == 5:
            op = draw(st.sampled_from(SHIFTS))
            if draw(st.booleans()):
                amount = draw(st.integers(0, bits + 2))
                b, y = graph.const(amount), amount
            pool.append((graph.shift(op, a, b, bits), concrete.shift(op, x, y, bits, bits), bits))
        elif kind == 6:
            op = draw(st.sampled_from(UNARY))
            pool.append((graph.apply(op, (a,), bits, bits), concrete.apply(op, (x,), bits, bits), bits))
        elif kind == 7:
            wider = draw(st.sampled_from([width for width in (*WIDTHS, 128) if width >= bits]))
            op = draw(st.sampled_from(("INT_ZEXT", "INT_SEXT")))
            pool.append((graph.apply(op, (a,), bits, wider), concrete.apply(op, (x,), bits, wider), wider))
        elif kind == 8:
            size = draw(st.sampled_from([width for width in WIDTHS if width <= bits]))
            low = 8 * draw(st.integers(0, (bits - size) // 8))
            pool.append((graph.extract(a, low, size), concrete.extract(x, low, size, bits), size))
            inner, z, _ = draw(st.sampled_from([value for value in pool if value[2] == size]))
            pool.append((graph.insert(a, inner, low, size, bits), concrete.insert(x, z, low, size, bits), bits))
        elif kind == 9:
            pool.append((graph.concatenate(a, b, bits), concrete.concatenate(x, y, bits, bits), 2 * bits))
            if bits > 32:
                pool.pop()
        else:
            flags = [value for value in pool if value[1] < 2 and value[0].width == 1]
            f, p, _ = draw(st.sampled_from(flags))
            g, q, _ = draw(st.sampled_from(flags))
            op = draw(st.sampled_from(BOOLEAN))
            pool.append((graph.apply(op, (f, g), 8, 8), concrete.apply(op, (p, q), 8, 8), 8))
            pool.append((graph.apply("BOOL_NEGATE", (f,), 8, 8), concrete.apply("BOOL_NEGATE", (p,), 8, 8), 8))
            chosen = concrete.apply("SELECT", (p, x, y), 8, bits)
            pool.append((graph.apply("SELECT", (f, a, b), 8, bits), chosen, bits))
    return pool[len(CELLS) :], cells


def evaluate(node: Node, cells: list[int]) -> int:
    if node.op == "CONST":
        return node.value
    if node.op == "CELL":
        return cells[node.value]
    return _operate(node, [evaluate(argument, cells) for argument in node.args])


@settings(max_examples=600, deadline=None)
@given(values())
def test_simplified_nodes_have_the_value_of_the_operators(drawn: tuple[list[Value], list[int]]) -> None:
    expressions, cells = drawn
    for node, expected, bits in expressions:
        assert evaluate(node, cells) == expected, node
        assert expected <= mask(node.width), node
        assert expected <= mask(bits)


@settings(max_examples=300, deadline=None)
@given(values(), st.integers(1, 3))
def test_compiled_text_has_the_value_of_the_operators(drawn: tuple[list[Value], list[int]], stride: int) -> None:
    expressions, cells = drawn
    chosen = expressions[::stride]
    first = 100
    graph = Graph()
    after = {first + number: node for number, (node, _, _) in enumerate(chosen)}
    # A path that assigns the expressions to registers, to a head that reads them all.
    site = Site({}, (), 1)
    reading = [Guard(graph.cell(cell, 128), site) for cell in after]
    trees = {0: [Goto(1, after, ())], 1: [*reading, Leave(site)]}
    forest: Any = SimpleNamespace(trees=trees, dynamic=set(), address_bits=32)
    emitter = Emitter(forest, Trace(0))
    namespace: dict[str, Any] = dict(HELPERS)
    exec(emitter.source(), namespace)
    start = [cells[cell] if cell < first else 0 for cell in emitter.cells]
    _, final = namespace["unit"](0, repeat(None, 2), [].append, {}, {}, (), *start)
    for cell, (node, expected, _) in zip(after, chosen, strict=True):
        assert final[f"r{cell}"] == expected, node


def test_slices_of_slices_and_shifts_of_shifts() -> None:
    # Exhaustive over what random expressions rarely line up: a slice, then two shifts by constants, then a slice.
    graph = Graph()
    concrete = ConcreteDomain(Memory([], 64, False))
    cells = [0xFEDCBA9876543211]
    whole = graph.cell(0, 64)
    for low, size in ((0, 64), (0, 32), (32, 32), (8, 16), (48, 16), (56, 8)):
        sliced, value = graph.extract(whole, low, size), concrete.extract(cells[0], low, size, 64)
        for first in SHIFTS:
            for second in SHIFTS:
                for near in (0, 1, 3, size // 2, size - 1, size):
                    for far in (0, 1, 5, size // 2, size - 1, size):
                        node = graph.shift(first, sliced, graph.const(near), size)
                        node = graph.shift(second, node, graph.const(far), size)
                        expected = concrete.shift(first, value, near, size, 8)
                        expected = concrete.shift(second, expected, far, size, 8)
                        assert evaluate(node, cells) == expected <= mask(node.width), (
                            low,
                            size,
                            first,
                            second,
                            near,
                            far,
                        )
                        bit = graph.apply("INT_AND", (node, graph.const(1)), size, size)
                        assert evaluate(bit, cells) == expected & 1, (low, size, first, second, near, far)
                        top = graph.extract(node, size - 8, 8)
                        assert evaluate(top, cells) == expected >> (size - 8), (low, size, first, second, near, far)
