"""Value nodes as C expressions.

Every expression has one of three types, `u32`, `u64`, `u128` (never a type that C would promote to a signed one), and
the value of its node, which is in range for the node's width. `TEMPLATES` says for each P-code operator what C computes
it; the oracle is `machine/operators`, against which the tests run the compiled C.

Nodes used more than once become local variables, so the size of the C is linear in the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcveto.machine.compiled.nodes import Node
from mcveto.machine.faults import Unsupported

WIDEST = 128
_LONGEST = 100

# {0} {1} {2}: arguments in the type the operator works in; {m} mask of the result, {im} mask, {s} sign bit and {b}
# width of the input, {t} the width of that type. A template that ends in `&` is masked where the type is wider than the
# result, one that ends in `?` is a truth value.
TEMPLATES: dict[str, str] = {
    "INT_ADD": "({0} + {1})&",
    "INT_SUB": "({0} - {1})&",
    "INT_MULT": "({0} * {1})&",
    "INT_DIV": "mc_div{t}({0}, {1}, {m})",
    "INT_REM": "mc_rem{t}({0}, {1})",
    "INT_SDIV": "mc_sdiv{t}({0}, {1}, {s}, {m})",
    "INT_SREM": "mc_srem{t}({0}, {1}, {s}, {m})",
    "INT_AND": "({0} & {1})",
    "INT_OR": "({0} | {1})",
    "INT_XOR": "({0} ^ {1})",
    "INT_NEGATE": "({0} ^ {m})",
    "INT_2COMP": "({zero} - {0})&",
    "INT_EQUAL": "({0} == {1})?",
    "INT_NOTEQUAL": "({0} != {1})?",
    "INT_LESS": "({0} < {1})?",
    "INT_LESSEQUAL": "({0} <= {1})?",
    "INT_SLESS": "mc_sless{t}({0}, {1}, {s})",
    "INT_SLESSEQUAL": "mc_slessequal{t}({0}, {1}, {s})",
    "INT_CARRY": "mc_carry{t}({0}, {1}, {im})",
    "INT_SCARRY": "mc_scarry{t}({0}, {1}, {s})",
    "INT_SBORROW": "mc_sborrow{t}({0}, {1}, {s})",
    "BOOL_NEGATE": "({0} ^ {one})",
    "INT_SEXT": "(({0} ^ {s}) - {s})&",
    "POPCOUNT": "mc_popcount{t}({0})",
    "LZCOUNT": "mc_lzcount{t}({0}, {b})",
}
_TRUTHS = frozenset(op for op, template in TEMPLATES.items() if template.endswith("?"))
_SHIFTS = {"INT_LEFT": "mc_left", "INT_RIGHT": "mc_right", "INT_SRIGHT": "mc_sright"}
# Helpers that return u32 whatever they work on.
_COUNTS = frozenset({"INT_SLESS", "INT_SLESSEQUAL", "INT_CARRY", "INT_SCARRY", "INT_SBORROW", "POPCOUNT", "LZCOUNT"})
_SMALL_RESULT = _TRUTHS | _COUNTS | {"BOOL_NEGATE"}


def type_bits(width: int) -> int:
    """The width of the type that holds values of `width` bits."""
    if width > WIDEST:
        raise Unsupported(f"value of {width} bits")
    return 32 if width <= 32 else 64 if width <= 64 else 128


def constant(value: int, bits: int) -> str:
    if bits == 32:
        return f"0x{value:x}u" if value > 9 else f"{value}u"
    if bits == 64:
        return f"0x{value:x}ull" if value > 9 else f"{value}ull"
    return f"mc_u128(0x{value >> 64:x}ull, 0x{value & (1 << 64) - 1:x}ull)"


class Expressions:
    """Text of nodes within one instruction; `line` takes the declarations of local variables."""

    def __init__(self, cell_text: Callable[[int], tuple[str, int]], line: Callable[[str], None]) -> None:
        self._cell_text = cell_text
        self._line = line
        self._uses: dict[int, int] = {}
        self.names: dict[int, tuple[str, int]] = {}
        self._count = 0
        self.cells: set[int] = set()
        self.widest = 0

    def count(self, roots: Iterable[Node]) -> None:
        """Counts the uses of every node below `roots`."""
        for root in roots:
            self._use(root)

    def _use(self, node: Node) -> None:
        self._uses[node.serial] = self._uses.get(node.serial, 0) + 1
        if self._uses[node.serial] == 1:
            for argument in node.args:
                self._use(argument)

    def used(self, node: Node) -> bool:
        return node.serial in self._uses

    def reads(self, node: Node) -> set[int]:
        """The cells that the text of a node mentions, as long as they are not in local variables."""
        if node.serial in self.names:
            return set()
        if node.op == "CELL":
            return {node.value}
        return set().union(*map(self.reads, node.args))

    def declare(self, node: Node, text: str, bits: int) -> str:
        """A local variable for a node, holding `text` of type u<bits>."""
        self._count += 1
        name = f"mc{self._count}"
        self._line(f"u{bits} {name} = {text};")
        self.names[node.serial] = (name, bits)
        self.widest = max(self.widest, bits)
        return name

    def keep(self, node: Node) -> None:
        """Puts a node into a local variable, so that its text no longer depends on registers."""
        if node.op != "CONST" and node.serial not in self.names:
            text, bits = self._text(node)
            self.declare(node, text, bits)

    def text(self, node: Node, bits: int | None = None) -> str:
        """The node as an expression of type u<bits> (by default the one of its width)."""
        if node.op == "CONST":
            return constant(node.value, bits or type_bits(node.width))
        if node.serial not in self.names:
            text, own = self._text(node)
            shared = self._uses.get(node.serial, 0) > 1 and node.op != "CELL"
            if shared or len(text) > _LONGEST:
                text = self.declare(node, text, own)
        else:
            text, own = self.names[node.serial]
        return text if bits is None or bits == own else f"(u{bits}){text}"

    def condition(self, node: Node) -> str:
        """The node as the condition of an `if`."""
        if node.serial not in self.names and node.op in _TRUTHS and self._uses.get(node.serial, 0) <= 1:
            return self._operator(node)[0].removeprefix("(u32)").removeprefix("(").removesuffix(")")
        return self.text(node)

    def _text(self, node: Node) -> tuple[str, int]:
        text, bits = self._unnamed(node)
        self.widest = max(self.widest, bits)
        return text, bits

    def _unnamed(self, node: Node) -> tuple[str, int]:
        if node.op == "CELL":
            self.cells.add(node.value)
            name, bits = self._cell_text(node.value)
            held = type_bits(bits)
            return (name if bits == held else f"(u{held}){name}"), held
        if node.op in _SHIFTS:
            return self._shift(node)
        if node.op == "INT_AND" and node.width <= WIDEST < max(argument.width for argument in node.args):
            part = self._part_of_pair(node)
            if part is not None:
                return part
        if node.op == "INSERT":
            bits = type_bits(max(node.out_bits, node.width))
            low, size = node.value >> 16, node.value & 0xFFFF
            kept = ((1 << node.out_bits) - 1) & ~(((1 << size) - 1) << low)
            old, new = self.text(node.args[0], bits), self.text(node.args[1], bits)
            moved = f"({new} << {low})" if low else new
            return f"(({old} & {constant(kept, bits)}) | {moved})", bits
        if node.op == "PIECE":
            bits = type_bits(node.width)
            return f"(({self.text(node.args[0], bits)} << {node.value}) | {self.text(node.args[1], bits)})", bits
        if node.op == "SELECT":
            bits = type_bits(max(node.args[1].width, node.args[2].width))
            condition = self.condition(node.args[0])
            return f"({condition} ? {self.text(node.args[1], bits)} : {self.text(node.args[2], bits)})", bits
        if node.op not in TEMPLATES:
            raise Unsupported(f"operation {node.op}")
        return self._operator(node)

    def _part_of_pair(self, node: Node) -> tuple[str, int] | None:
        """Bits out of the middle of two values side by side (vectors); the pair itself is too wide for C."""
        pair, mask = node.args
        shift = 0
        if pair.op == "INT_RIGHT" and pair.args[1].op == "CONST":
            pair, shift = pair.args[0], pair.args[1].value
        if pair.op != "PIECE" or mask.op != "CONST" or mask.value & (mask.value + 1):
            return None
        (high, low), low_bits, count = pair.args, pair.value, mask.value.bit_length()
        if max(high.width, low.width, count) > WIDEST:
            return None
        if shift >= low_bits:
            text = self._right(high, shift - low_bits)
        elif shift + count <= low_bits:
            text = self._right(low, shift)
        else:
            text = f"({self._right(low, shift)} | ({self.text(high, WIDEST)} << {low_bits - shift}))"
        return f"({text} & {constant(mask.value, WIDEST)})", WIDEST

    def _right(self, value: Node, amount: int) -> str:
        text = self.text(value, WIDEST)
        if amount >= WIDEST:
            return constant(0, WIDEST)
        return f"({text} >> {amount})" if amount else text

    def _operator(self, node: Node) -> tuple[str, int]:
        template = TEMPLATES[node.op]
        needed = max([argument.width for argument in node.args])
        if node.op not in ("INT_AND", "INT_OR", "INT_XOR"):
            needed = max(needed, node.in_bits)
        if node.op not in _SMALL_RESULT:
            needed = max(needed, node.out_bits if node.op not in ("INT_AND", "INT_OR", "INT_XOR") else node.width)
        bits = type_bits(needed)
        self.widest = max(self.widest, bits)
        mask = (1 << node.out_bits) - 1
        text = template.rstrip("&?").format(
            *(self.text(argument, bits) for argument in node.args),
            m=constant(mask, bits),
            im=constant((1 << node.in_bits) - 1, bits),
            s=constant(1 << (node.in_bits - 1), bits),
            zero=constant(0, bits),
            one=constant(1, bits),
            b=node.in_bits,
            t=bits,
        )
        if node.op in _TRUTHS:
            return f"(u32){text}", 32
        if node.op in _COUNTS:
            return text, 32
        if template.endswith("&") and node.out_bits < bits:
            text = f"({text} & {constant(mask, bits)})"
        return text, bits

    def _shift(self, node: Node) -> tuple[str, int]:
        value, amount = node.args
        width = node.in_bits
        bits = type_bits(max(width, value.width))
        text = self.text(value, bits)
        masked = node.op == "INT_LEFT" and width < bits
        if amount.op == "CONST" and amount.value < width and node.op != "INT_SRIGHT":
            sign = "<<" if node.op == "INT_LEFT" else ">>"
            moved = f"({text} {sign} {amount.value})"
            masked = masked and value.width + amount.value > width
            return (f"({moved} & {constant((1 << width) - 1, bits)})" if masked else moved), bits
        # Amounts beyond 64 bits only matter in that they are too large.
        if amount.width > 64:
            wide = self.text(amount, 128)
            count = f"({wide} > {constant(WIDEST, 128)} ? {constant(WIDEST, 64)} : (u64){wide})"
        else:
            count = self.text(amount, 64)
        return f"{_SHIFTS[node.op]}{bits}({text}, {count}, {width}, {constant((1 << width) - 1, bits)})", bits
