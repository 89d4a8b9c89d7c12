"""P-code operators on strided intervals: which arithmetic each of them is."""

from __future__ import annotations

from math import gcd

from .operators import FUNCTIONS
from .strided import (
    COMPARISONS,
    StridedInterval,
    add,
    compare,
    complement,
    extend,
    join,
    join_all,
    multiply,
    negate,
    singleton,
    subtract,
    top,
    wrapped,
)
from .strided_bits import bitwise

_BITWISE = {"INT_AND": "and", "INT_OR": "or", "INT_XOR": "xor", "BOOL_AND": "and", "BOOL_OR": "or", "BOOL_XOR": "xor"}


def apply(opcode: str, arguments: tuple[StridedInterval, ...], input_bits: int, output_bits: int) -> StridedInterval:
    """A P-code operator other than a shift."""
    constants = [number for argument in arguments if (number := argument.constant) is not None]
    if len(constants) == len(arguments):
        masks = ((1 << output_bits) - 1, (1 << input_bits) - 1, 1 << (input_bits - 1))
        return singleton(FUNCTIONS[opcode](tuple(constants), *masks, input_bits), output_bits)
    x = arguments[0]
    y = arguments[1] if len(arguments) > 1 else x
    if opcode in COMPARISONS:
        known = compare(opcode, x, y)
        return wrapped(output_bits, 0, 1, 1) if known is None else singleton(int(known), output_bits)
    if opcode in _BITWISE:
        return bitwise(_BITWISE[opcode], x, y)
    match opcode:
        case "INT_ADD":
            return add(x, y)
        case "INT_SUB":
            return subtract(x, y)
        case "INT_MULT":
            return multiply(x, y)
        case "INT_2COMP":
            return negate(x)
        case "INT_NEGATE":
            return complement(x)
        case "INT_ZEXT" | "INT_SEXT":
            return extend(x, output_bits, opcode == "INT_SEXT")
        case "INT_DIV" | "INT_REM" | "INT_SDIV" | "INT_SREM":
            return _divide(opcode, x, y)
        case "BOOL_NEGATE":
            return bitwise("xor", x, singleton(1, input_bits))
        case "POPCOUNT" | "LZCOUNT":
            return wrapped(output_bits, 0, input_bits, 1)
        case "SELECT":
            condition = compare("INT_NOTEQUAL", x, singleton(0, input_bits))
            if condition is None:
                return join(arguments[1], arguments[2])
            return arguments[1] if condition else arguments[2]
    raise AssertionError(f"an operator without a meaning: {opcode}")


def _divide(opcode: str, x: StridedInterval, y: StridedInterval) -> StridedInterval:
    """Division by a positive constant; nothing is known of other quotients and remainders."""
    divisor = y.constant
    if divisor is None or y.low <= 0:
        return top(x.bits)
    if opcode == "INT_DIV":
        return join_all(wrapped(x.bits, half.low // divisor, half.high // divisor, 1) for half in x.unsigned())
    if opcode == "INT_SDIV":
        return wrapped(x.bits, _truncated(x.low, divisor), _truncated(x.high, divisor), 1)
    if opcode == "INT_SREM":
        if -divisor < x.low and x.high < divisor:
            return x
        return wrapped(x.bits, 1 - divisor if x.low < 0 else 0, divisor - 1 if x.high > 0 else 0, 1)
    results = []
    for low, high, stride in x.unsigned():
        if high < divisor:
            results.append(wrapped(x.bits, low, high, stride))
        else:
            kept = gcd(divisor, stride)
            results.append(wrapped(x.bits, low % kept, divisor - kept + low % kept, kept))
    return join_all(results)


def _truncated(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)
