"""Bitwise and, or, exclusive or of strided intervals.

Bounds come from Warren, "Hacker's Delight", §4-3, applied to the halves of the arguments as unsigned ranges. The
stride comes from the low bits: those that both arguments fix (or one, where it decides the result) are fixed in the
result.
"""

from __future__ import annotations

from .strided import Range, StridedInterval, join_all, wrapped


def bitwise(operator: str, x: StridedInterval, y: StridedInterval) -> StridedInterval:
    """`operator` is "and", "or" or "xor"."""
    return join_all(_ranges(operator, a, b, x.bits) for a in x.unsigned() for b in y.unsigned())


def _ranges(operator: str, x: Range, y: Range, bits: int) -> StridedInterval:
    mask = (1 << bits) - 1
    match operator:
        case "and":
            value = x.low & y.low
            low = mask ^ _max_or(mask ^ x.high, mask ^ x.low, mask ^ y.high, mask ^ y.low, bits)
            high = mask ^ _min_or(mask ^ x.high, mask ^ x.low, mask ^ y.high, mask ^ y.low, bits)
        case "or":
            value = x.low | y.low
            low, high = _min_or(*x[:2], *y[:2], bits), _max_or(*x[:2], *y[:2], bits)
        case _:
            value = x.low ^ y.low
            low, high = _min_xor(*x[:2], *y[:2], bits), _max_xor(*x[:2], *y[:2], bits)
    stride = 1 << _fixed_low_bits(operator, x, y, bits)
    low += (value - low) % stride
    high -= (high - value) % stride
    return wrapped(bits, low, high, stride)


def _fixed_low_bits(operator: str, x: Range, y: Range, bits: int) -> int:
    """How many of the lowest bits of the result are the same for all members."""
    x_fixed, y_fixed = _trailing_zeros(x.stride, bits), _trailing_zeros(y.stride, bits)
    deciding = {"and": 0, "or": 1}.get(operator)
    for position in range(bits):
        in_x, in_y = position < x_fixed, position < y_fixed
        if in_x and in_y:
            continue
        if in_x and deciding == x.low >> position & 1:
            continue
        if in_y and deciding == y.low >> position & 1:
            continue
        return position
    return bits


def _trailing_zeros(stride: int, bits: int) -> int:
    return bits if stride == 0 else (stride & -stride).bit_length() - 1


def _min_or(a: int, b: int, c: int, d: int, bits: int) -> int:
    """The least x | y with a ≤ x ≤ b and c ≤ y ≤ d."""
    for position in reversed(range(bits)):
        bit = 1 << position
        if ~a & c & bit:
            raised = (a | bit) & -bit
            if raised <= b:
                a = raised
                break
        elif a & ~c & bit:
            raised = (c | bit) & -bit
            if raised <= d:
                c = raised
                break
    return a | c


def _max_or(a: int, b: int, c: int, d: int, bits: int) -> int:
    """The greatest x | y."""
    for position in reversed(range(bits)):
        bit = 1 << position
        if b & d & bit:
            lowered = (b - bit) | (bit - 1)
            if lowered >= a:
                b = lowered
                break
            lowered = (d - bit) | (bit - 1)
            if lowered >= c:
                d = lowered
                break
    return b | d


def _min_xor(a: int, b: int, c: int, d: int, bits: int) -> int:
    for position in reversed(range(bits)):
        bit = 1 << position
        if ~a & c & bit:
            raised = (a | bit) & -bit
            if raised <= b:
                a = raised
        elif a & ~c & bit:
            raised = (c | bit) & -bit
            if raised <= d:
                c = raised
    return a ^ c


def _max_xor(a: int, b: int, c: int, d: int, bits: int) -> int:
    for position in reversed(range(bits)):
        bit = 1 << position
        if b & d & bit:
            lowered = (b - bit) | (bit - 1)
            if lowered >= a:
                b = lowered
            else:
                lowered = (d - bit) | (bit - 1)
                if lowered >= c:
                    d = lowered
    return b ^ d
