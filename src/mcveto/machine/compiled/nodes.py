"""Value graph of compiled execution: hash-consed P-code expressions, simplified when they are built.

Nodes denote integers; `width` bounds them (value < 2**width), so extensions are free and masks appear only where a
result can leave its range. The simplifications are identities between P-code operators: constant folding, sums with
constants, compare flags read back as comparisons (borrow ≠ sign becomes signed <), single bits of packed condition
fields. What an operator computes is `operators.TEMPLATES` and nothing else.
"""

from __future__ import annotations

from ..operators import FUNCTIONS

_COMPARISONS = frozenset(
    {"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"}
    | {"INT_CARRY", "INT_SCARRY", "INT_SBORROW"}
)
_NEGATED = {"INT_EQUAL": "INT_NOTEQUAL", "INT_NOTEQUAL": "INT_EQUAL"}
_NEGATED_SWAPPED = {
    "INT_LESS": "INT_LESSEQUAL",
    "INT_LESSEQUAL": "INT_LESS",
    "INT_SLESS": "INT_SLESSEQUAL",
    "INT_SLESSEQUAL": "INT_SLESS",
}
_STRICT_OF = {"INT_LESSEQUAL": "INT_LESS", "INT_SLESSEQUAL": "INT_SLESS"}
_LOOSE_OF = {"INT_LESS": "INT_LESSEQUAL", "INT_SLESS": "INT_SLESSEQUAL"}
_COMMUTATIVE = frozenset(
    {"INT_ADD", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "INT_EQUAL", "INT_NOTEQUAL"}
    | {"BOOL_AND", "BOOL_OR", "BOOL_XOR", "INT_CARRY", "INT_SCARRY"}
)
_BITWISE = {
    "BOOL_AND": "INT_AND",
    "BOOL_OR": "INT_OR",
    "BOOL_XOR": "INT_XOR",
}


class Node:
    """`op` is a P-code operator, or CONST (value), CELL (value = cell number), LOAD (value = serial number)."""

    __slots__ = ("args", "depth", "in_bits", "names", "op", "out_bits", "serial", "value", "width")

    def __init__(
        self, op: str, args: tuple[Node, ...], in_bits: int, out_bits: int, width: int, value: int, serial: int
    ) -> None:
        self.op = op
        self.args = args
        self.in_bits = in_bits
        self.out_bits = out_bits
        self.width = width
        self.value = value
        self.serial = serial
        self.depth = 1 + max([arg.depth for arg in args], default=0)
        # (scope, sequence number, local name) of every statement that computes this node
        self.names: list[tuple[int, int, str]] = []

    def __repr__(self) -> str:
        if not self.args:
            return f"{self.op.lower()}({self.value:#x})"
        return f"{self.op}({', '.join(map(repr, self.args))})"


class Graph:
    """Makes nodes; equal nodes are identical."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Node] = {}
        self._serial = 0

    def _make(self, op: str, args: tuple[Node, ...], in_bits: int, out_bits: int, width: int, value: int = 0) -> Node:
        key = (op, in_bits, out_bits, value, *[arg.serial for arg in args])
        node = self._known.get(key)
        if node is None:
            self._serial += 1
            node = self._known[key] = Node(op, args, in_bits, out_bits, width, value, self._serial)
        return node

    def const(self, value: int) -> Node:
        return self._make("CONST", (), 0, 0, value.bit_length(), value)

    def cell(self, number: int, width: int) -> Node:
        return self._make("CELL", (), 0, 0, width, number)

    def load(self, bits: int) -> Node:
        """A new node for a value read from memory."""
        self._serial += 1
        return Node("LOAD", (), 0, bits, bits, self._serial, self._serial)

    def apply(self, op: str, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node:
        if all(arg.op == "CONST" for arg in args):
            values = tuple(arg.value for arg in args)
            mask_in = (1 << in_bits) - 1
            return self.const(FUNCTIONS[op](values, (1 << out_bits) - 1, mask_in, 1 << (in_bits - 1), in_bits))
        if op == "INT_ZEXT":
            return args[0]
        op = _BITWISE.get(op, op)
        if op == "INT_SUB" and args[1].op == "CONST":
            op, args = "INT_ADD", (args[0], self.const(-args[1].value & ((1 << out_bits) - 1)))
        if op in _COMMUTATIVE:
            a, b = args
            if a.op == "CONST" or (b.op != "CONST" and a.serial > b.serial):
                args = (b, a)
        handler = getattr(self, "_" + op.lower(), None)
        if handler is not None:
            found: Node | None = handler(args, in_bits, out_bits)
            if found is not None:
                return found
        width = 1 if op in _COMPARISONS else out_bits
        return self._make(op, args, in_bits, out_bits, width)

    def negate(self, condition: Node) -> Node:
        return self.apply("BOOL_NEGATE", (condition,), 8, 8)

    def extract(self, value: Node, low: int, bits: int) -> Node:
        if value.op == "INSERT":
            old, new = value.args
            start, size = value.value >> 16, value.value & 0xFFFF
            if start <= low and low + bits <= start + size:
                return self.extract(new, low - start, bits)
            if low + bits <= start or start + size <= low:
                return self.extract(old, low, bits)
        if value.op == "PIECE":
            if low + bits <= value.value:
                return self.extract(value.args[1], low, bits)
            if low >= value.value:
                return self.extract(value.args[0], low - value.value, bits)
        if low:
            value = self.shift("INT_RIGHT", value, self.const(low), max(value.width, low + bits))
        if value.width <= bits:
            return value
        return self.apply("INT_AND", (value, self.const((1 << bits) - 1)), value.width, value.width)

    def insert(self, old: Node, value: Node, low: int, bits: int, total: int) -> Node:
        if low == 0 and bits == total:
            return value
        if old.op == "CONST" and value.op == "CONST":
            return self.const(old.value & ~(((1 << bits) - 1) << low) | value.value << low)
        if old.op == "INSERT" and old.value == low << 16 | bits:
            old = old.args[0]
        width = max(old.width, value.width + low)
        return self._make("INSERT", (old, value), total, total, width, low << 16 | bits)

    def concatenate(self, high: Node, low: Node, low_bits: int) -> Node:
        if high.op == "CONST" and high.value == 0:
            return low
        if high.op == "CONST" and low.op == "CONST":
            return self.const(high.value << low_bits | low.value)
        return self._make("PIECE", (high, low), 0, 0, high.width + low_bits, low_bits)

    def shift(self, op: str, value: Node, amount: Node, bits: int) -> Node:
        if amount.op == "CONST":
            if value.op == "CONST":
                folded = FUNCTIONS[op](
                    (value.value, amount.value), (1 << bits) - 1, (1 << bits) - 1, 1 << (bits - 1), bits
                )
                return self.const(folded)
            if amount.value == 0:
                return value
            if op != "INT_SRIGHT" and amount.value >= bits:
                return self.const(0)
            if op == "INT_SRIGHT" and value.width < bits:
                op = "INT_RIGHT"
            if op == "INT_RIGHT":
                if value.width <= amount.value:
                    return self.const(0)
                if value.op == "INT_RIGHT" and value.args[1].op == "CONST":
                    return self.shift(
                        op, value.args[0], self.const(value.args[1].value + amount.value), bits + amount.value
                    )
                return self._make(op, (value, amount), bits, bits, value.width - amount.value)
            if op == "INT_LEFT":
                return self._make(op, (value, amount), bits, bits, min(bits, value.width + amount.value))
        return self._make(op, (value, amount), bits, bits, value.width if op == "INT_RIGHT" else bits)

    def linear(self, node: Node, bits: int) -> tuple[Node | None, int]:
        """`node` as base + constant modulo 2**bits; the constant is signed. No base: the constant itself."""
        if node.op == "CONST":
            return None, node.value
        if node.op == "INT_ADD" and node.out_bits == bits and node.args[1].op == "CONST":
            constant = node.args[1].value
            return node.args[0], constant - (1 << bits) if constant >> (bits - 1) else constant
        return node, 0

    def bit(self, node: Node, index: int, budget: int = 12) -> Node | None:
        """Bit `index` of a node, where it is simpler than shifting and masking."""
        if budget == 0:
            return None
        if node.width <= index:
            return self.const(0)
        if node.op == "CONST":
            return self.const(node.value >> index & 1)
        if node.width == 1:
            return node
        if node.op in ("INT_LEFT", "INT_RIGHT") and node.args[1].op == "CONST":
            amount = node.args[1].value
            if node.op == "INT_RIGHT":
                return self.bit(node.args[0], index + amount, budget - 1)
            return self.const(0) if index < amount else self.bit(node.args[0], index - amount, budget - 1)
        if node.op in ("INT_AND", "INT_OR", "INT_XOR"):
            first = self.bit(node.args[0], index, budget - 1)
            second = self.bit(node.args[1], index, budget - 1)
            if node.op == "INT_AND":
                for one, other in ((first, node.args[1]), (second, node.args[0])):
                    if one is not None and one.op == "CONST" and one.value == 0:
                        return one
                    if one is not None and one.op == "CONST" and one.value == 1:
                        return self.bit(other, index, budget - 1)
            if first is not None and second is not None:
                return self.apply(node.op, (first, second), 8, 8)
        return None

    # One method per operator, given canonical arguments: the simpler node, or None.

    def _int_add(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if b.op == "CONST":
            if b.value == 0:
                return a
            if a.op == "INT_ADD" and a.out_bits == out_bits and a.args[1].op == "CONST":
                total = (a.args[1].value + b.value) & ((1 << out_bits) - 1)
                return self.apply("INT_ADD", (a.args[0], self.const(total)), in_bits, out_bits)
        elif a.op == "INT_ADD" and a.out_bits == out_bits and a.args[1].op == "CONST":
            return self.apply(
                "INT_ADD", (self.apply("INT_ADD", (a.args[0], b), in_bits, out_bits), a.args[1]), in_bits, out_bits
            )
        elif b.op == "INT_ADD" and b.out_bits == out_bits and b.args[1].op == "CONST":
            return self.apply(
                "INT_ADD", (self.apply("INT_ADD", (a, b.args[0]), in_bits, out_bits), b.args[1]), in_bits, out_bits
            )
        return self._make("INT_ADD", (a, b), in_bits, out_bits, min(out_bits, max(a.width, b.width) + 1))

    def _int_sub(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        return self.const(0) if args[0] is args[1] else None

    def _int_mult(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if b.op == "CONST":
            if b.value == 0:
                return b
            if b.value == 1:
                return a
            if b.value & (b.value - 1) == 0:
                return self.shift("INT_LEFT", a, self.const(b.value.bit_length() - 1), out_bits)
        return self._make("INT_MULT", (a, b), in_bits, out_bits, min(out_bits, a.width + b.width))

    def _int_and(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b:
            return a
        if b.op == "CONST":
            if b.value == 0:
                return b
            if (b.value + 1) & ((1 << a.width) - 1) == 0:
                return a
            if a.op == "INT_AND" and a.args[1].op == "CONST":
                both = self.const(a.args[1].value & b.value)
                return self.apply("INT_AND", (a.args[0], both), in_bits, out_bits)
            if b.value == 1:
                found = self.bit(a, 0)
                if found is not None:
                    return found
            if a.op == "INSERT":
                start = a.value >> 16
                if b.value < 1 << start:
                    return self.apply("INT_AND", (a.args[0], b), in_bits, out_bits)
                if start == 0 and b.value < 1 << (a.value & 0xFFFF):
                    return self.apply("INT_AND", (a.args[1], b), in_bits, out_bits)
        if a.width == 1 and b.width == 1:
            merged = self._conjunction(a, b) or self._conjunction(b, a)
            if merged is not None:
                return merged
        return self._make("INT_AND", (a, b), in_bits, out_bits, min(a.width, b.width))

    def _int_or(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b or (b.op == "CONST" and b.value == 0):
            return a
        if b.op == "CONST" and b.value == 1 and a.width == 1:
            return b
        if a.width == 1 and b.width == 1:
            merged = self._disjunction(a, b) or self._disjunction(b, a)
            if merged is not None:
                return merged
        return self._make("INT_OR", (a, b), in_bits, out_bits, max(a.width, b.width))

    def _int_xor(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b:
            return self.const(0)
        if b.op == "CONST" and b.value == 0:
            return a
        if a.width == 1 and b.width == 1:
            return self.apply("INT_NOTEQUAL", (a, b), 8, 8)
        return self._make("INT_XOR", (a, b), in_bits, out_bits, max(a.width, b.width))

    def _bool_negate(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a = args[0]
        if a.op in _NEGATED:
            return self.apply(_NEGATED[a.op], a.args, a.in_bits, a.out_bits)
        if a.op in _NEGATED_SWAPPED:
            return self.apply(_NEGATED_SWAPPED[a.op], (a.args[1], a.args[0]), a.in_bits, a.out_bits)
        if a.op == "BOOL_NEGATE":
            return a.args[0]
        if a.width == 1:
            if a.op in ("INT_AND", "INT_OR"):
                dual = "INT_OR" if a.op == "INT_AND" else "INT_AND"
                if all(arg.width == 1 for arg in a.args):
                    return self.apply(dual, (self.negate(a.args[0]), self.negate(a.args[1])), 8, 8)
            return self._make("BOOL_NEGATE", args, in_bits, out_bits, 1)
        return None

    def _int_equal(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b:
            return self.const(1)
        if b.op == "CONST":
            if b.value >> a.width:
                return self.const(0)
            if a.width == 1:
                return a if b.value else self.negate(a)
            if a.op == "INT_ADD" and a.args[1].op == "CONST" and a.out_bits == in_bits:
                moved = self.const((b.value - a.args[1].value) & ((1 << in_bits) - 1))
                return self.apply("INT_EQUAL", (a.args[0], moved), in_bits, out_bits)
            if a.op == "INT_SUB" and b.value == 0 and a.out_bits == in_bits:
                return self.apply("INT_EQUAL", a.args, in_bits, out_bits)
        for borrow, sign in ((a, b), (b, a)):
            if self._is_signed_less(borrow, sign):
                return self.apply("INT_SLESSEQUAL", (borrow.args[1], borrow.args[0]), borrow.in_bits, 8)
        return None

    def _int_notequal(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        equal = self.apply("INT_EQUAL", args, in_bits, out_bits)
        if equal.op == "INT_EQUAL":
            return self._make("INT_NOTEQUAL", equal.args, equal.in_bits, equal.out_bits, 1)
        return self.negate(equal)

    def _is_signed_less(self, borrow: Node, sign: Node) -> bool:
        """Whether the two are the overflow and the sign of one subtraction."""
        if borrow.op != "INT_SBORROW" or sign.op != "INT_LESSEQUAL" or sign.args[0].op != "CONST":
            return False
        bits = borrow.in_bits
        if sign.in_bits != bits or sign.args[0].value != 1 << (bits - 1):
            return False
        return sign.args[1] is self.apply("INT_SUB", borrow.args, bits, bits)

    def _int_less(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b or (b.op == "CONST" and b.value == 0):
            return self.const(0)
        if b.op == "CONST" and b.value == 1:
            return self.apply("INT_EQUAL", (a, self.const(0)), in_bits, out_bits)
        if b.op == "CONST" and b.value >> a.width:
            return self.const(1)
        return None

    def _int_lessequal(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b or (a.op == "CONST" and a.value == 0):
            return self.const(1)
        if a.op == "CONST" and a.value >> b.width:
            return self.const(0)
        if a.op == "CONST" and a.value == 1:
            return self.apply("INT_NOTEQUAL", (b, self.const(0)), in_bits, out_bits)
        return None

    def _int_sless(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b:
            return self.const(0)
        sign = 1 << (in_bits - 1)
        if b.op == "CONST" and b.value == 0:
            return self.apply("INT_LESSEQUAL", (self.const(sign), a), in_bits, out_bits)
        if a.width < in_bits and b.width < in_bits:
            return self.apply("INT_LESS", args, in_bits, out_bits)
        return None

    def _int_slessequal(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        a, b = args
        if a is b:
            return self.const(1)
        if a.op == "CONST" and a.value == 0:
            return self.apply("INT_LESS", (b, self.const(1 << (in_bits - 1))), in_bits, out_bits)
        if a.width < in_bits and b.width < in_bits:
            return self.apply("INT_LESSEQUAL", args, in_bits, out_bits)
        return None

    def _conjunction(self, a: Node, b: Node) -> Node | None:
        """a ≠ b and a ≤ b: a < b."""
        if a.op == "INT_NOTEQUAL" and b.op in _STRICT_OF and _same_pair(a, b):
            return self.apply(_STRICT_OF[b.op], b.args, b.in_bits, b.out_bits)
        return None

    def _disjunction(self, a: Node, b: Node) -> Node | None:
        """a = b or a < b: a ≤ b."""
        if a.op == "INT_EQUAL" and b.op in _LOOSE_OF and _same_pair(a, b):
            return self.apply(_LOOSE_OF[b.op], b.args, b.in_bits, b.out_bits)
        return None

    def _int_carry(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        if max(args[0].width, args[1].width) < in_bits:
            return self.const(0)
        return None

    def _int_scarry(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        return self.const(0) if args[1].op == "CONST" and args[1].value == 0 else None

    def _int_sborrow(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        return self.const(0) if args[1].op == "CONST" and args[1].value == 0 else None

    def _int_sext(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        return args[0] if args[0].width < in_bits else None

    def _popcount(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        return self._make("POPCOUNT", args, in_bits, out_bits, args[0].width.bit_length())

    def _select(self, args: tuple[Node, ...], in_bits: int, out_bits: int) -> Node | None:
        condition, a, b = args
        if condition.op == "CONST":
            return a if condition.value else b
        if a is b:
            return a
        return self._make("SELECT", args, in_bits, out_bits, max(a.width, b.width))


def _same_pair(a: Node, b: Node) -> bool:
    return a.in_bits == b.in_bits and (
        (a.args[0] is b.args[0] and a.args[1] is b.args[1]) or (a.args[0] is b.args[1] and a.args[1] is b.args[0])
    )
