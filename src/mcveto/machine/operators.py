"""P-code operators on Python integers, as expression templates.

Written once as text: `concrete.py` compiles each template into a function, `compiled/` pastes them into the source of
whole blocks. Arguments `{0}`, `{1}`, `{2}` are in range for their width; `{m}` is the output mask, `{im}` the mask,
`{s}` the sign bit and `{b}` the width of the first input. Results are in range.
"""

from __future__ import annotations

from collections.abc import Callable

TEMPLATES: dict[str, str] = {
    "INT_ADD": "({0} + {1}) & {m}",
    "INT_SUB": "({0} - {1}) & {m}",
    "INT_MULT": "({0} * {1}) & {m}",
    "INT_DIV": "({0} // {1} if {1} else {m})",
    "INT_REM": "({0} % {1} if {1} else {0})",
    "INT_SDIV": "signed_divide({0}, {1}, {s}, {m})",
    "INT_SREM": "signed_remainder({0}, {1}, {s}, {m})",
    "INT_AND": "{0} & {1}",
    "INT_OR": "{0} | {1}",
    "INT_XOR": "{0} ^ {1}",
    "INT_NEGATE": "{0} ^ {m}",
    "INT_2COMP": "-{0} & {m}",
    "INT_EQUAL": "1 if {0} == {1} else 0",
    "INT_NOTEQUAL": "1 if {0} != {1} else 0",
    "INT_LESS": "1 if {0} < {1} else 0",
    "INT_LESSEQUAL": "1 if {0} <= {1} else 0",
    "INT_SLESS": "1 if ({0} ^ {s}) < ({1} ^ {s}) else 0",
    "INT_SLESSEQUAL": "1 if ({0} ^ {s}) <= ({1} ^ {s}) else 0",
    "INT_CARRY": "1 if {0} + {1} > {im} else 0",
    "INT_SCARRY": "1 if ({0} ^ ({0} + {1})) & ({1} ^ ({0} + {1})) & {s} else 0",
    "INT_SBORROW": "1 if ({0} ^ {1}) & ({0} ^ ({0} - {1})) & {s} else 0",
    "BOOL_NEGATE": "{0} ^ 1",
    "BOOL_AND": "{0} & {1}",
    "BOOL_OR": "{0} | {1}",
    "BOOL_XOR": "{0} ^ {1}",
    "INT_ZEXT": "{0}",
    "INT_SEXT": "(({0} ^ {s}) - {s}) & {m}",
    "POPCOUNT": "({0}).bit_count()",
    "LZCOUNT": "{b} - ({0}).bit_length()",
    "SELECT": "{1} if {0} else {2}",
    "INT_LEFT": "(({0} << {1}) & {im} if {1} < {b} else 0)",
    "INT_RIGHT": "({0} >> {1} if {1} < {b} else 0)",
    "INT_SRIGHT": "((({0} ^ {s}) - {s}) >> ({1} if {1} < {b} else {b})) & {im}",
}


def signed_divide(a: int, b: int, sign: int, mask: int) -> int:
    """Truncating signed division; SMT-LIB's value for a zero divisor."""
    if b == 0:
        return 1 if a & sign else mask
    x, y = (a ^ sign) - sign, (b ^ sign) - sign
    quotient = abs(x) // abs(y)
    return (quotient if (x < 0) == (y < 0) else -quotient) & mask


def signed_remainder(a: int, b: int, sign: int, mask: int) -> int:
    """Remainder with the sign of the dividend; the dividend for a zero divisor."""
    if b == 0:
        return a
    x, y = (a ^ sign) - sign, (b ^ sign) - sign
    remainder = abs(x) % abs(y)
    return (remainder if x >= 0 else -remainder) & mask


HELPERS: dict[str, Callable[..., int]] = {
    "signed_divide": signed_divide,
    "signed_remainder": signed_remainder,
}


def expression(opcode: str, arguments: tuple[str, ...], input_bits: int, output_bits: int) -> str:
    """The Python expression of an operator applied to argument texts."""
    return TEMPLATES[opcode].format(
        *arguments,
        m=(1 << output_bits) - 1,
        im=(1 << input_bits) - 1,
        s=1 << (input_bits - 1),
        b=input_bits,
    )


def _function(opcode: str) -> Callable[[tuple[int, ...], int, int, int, int], int]:
    text = TEMPLATES[opcode].format("a[0]", "a[1]", "a[2]", m="m", im="im", s="s", b="b")
    namespace: dict[str, object] = dict(HELPERS)
    exec(f"def operator(a, m, im, s, b): return {text}", namespace)
    result: Callable[[tuple[int, ...], int, int, int, int], int] = namespace["operator"]  # type: ignore[assignment]
    return result


FUNCTIONS = {opcode: _function(opcode) for opcode in TEMPLATES}
