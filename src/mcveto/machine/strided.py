"""Strided intervals: sets {low, low + stride, …, high} of w-bit numbers read as signed, and arithmetic on them.

After Reps, Balakrishnan and Lim, "Intermediate-representation recovery from low-level code" (PEPM 2006), §4, and
Balakrishnan's thesis; bounds of bitwise operators after Warren, "Hacker's Delight", §4-3. Every operator is sound: its
result contains what the P-code operator gives on any members of its arguments.

Where we differ: an operator first gives a range of unbounded integers and `wrapped` brings it back to w bits. A range
that crosses the end of the number circle becomes the whole congruence class that survives: modulo the largest power of
two in the stride. Unsigned operators work on the two halves of an interval, negative and not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from math import gcd
from typing import NamedTuple

from mcveto.late_methods import dataclass


class Range(NamedTuple):
    """{low, low + stride, …, high} of unbounded integers; stride 0 for one number."""

    low: int
    high: int
    stride: int


@dataclass(frozen=True, slots=True)
class StridedInterval:
    """Made by the functions below, never directly: low ≤ high in signed range, stride divides high - low and is 0
    exactly if they are equal."""

    bits: int
    low: int
    high: int
    stride: int

    def __contains__(self, value: int) -> bool:
        number = signed(value, self.bits)
        return self.low <= number <= self.high and (number - self.low) % (self.stride or 1) == 0

    def __str__(self) -> str:
        return f"{self.stride}[{self.low},{self.high}]"

    @property
    def constant(self) -> int | None:
        """The number, unsigned, if it is only one."""
        return self.low & ((1 << self.bits) - 1) if self.low == self.high else None

    @property
    def is_top(self) -> bool:
        return self.stride == 1 and self.high - self.low == (1 << self.bits) - 1

    @property
    def count(self) -> int:
        return (self.high - self.low) // (self.stride or 1) + 1

    def unsigned(self) -> list[Range]:
        """The members as unsigned numbers: of the half that is not negative, then of the other."""
        result = []
        step = self.stride or 1
        if self.high >= 0:
            low = self.low if self.low >= 0 else self.low % step
            result.append(Range(low, self.high, self.stride if low < self.high else 0))
        if self.low < 0:
            high = self.high if self.high < 0 else self.low + (-1 - self.low) // step * step
            around = 1 << self.bits
            result.append(Range(self.low + around, high + around, self.stride if self.low < high else 0))
        return result

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest member, unsigned."""
        halves = self.unsigned()
        return min(half.low for half in halves), max(half.high for half in halves)


def signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def singleton(value: int, bits: int) -> StridedInterval:
    number = signed(value, bits)
    return StridedInterval(bits, number, number, 0)


def top(bits: int) -> StridedInterval:
    half = 1 << (bits - 1)
    return StridedInterval(bits, -half, half - 1, 1)


def wrapped(bits: int, low: int, high: int, stride: int) -> StridedInterval:
    """The least strided interval we know of that contains {low, low + stride, …} up to `high`, modulo 2^bits."""
    assert low <= high
    if stride == 0 or high - low < stride:
        return singleton(low, bits)
    high = low + (high - low) // stride * stride
    half = 1 << (bits - 1)
    turns = (low + half) >> bits
    if (high + half) >> bits == turns:
        around = turns << bits
        return StridedInterval(bits, low - around, high - around, stride)
    modulus = gcd(stride, 1 << bits)
    if modulus == 1 << bits:
        return singleton(low, bits)
    least = -half + (low + half) % modulus
    return StridedInterval(bits, least, least + (1 << bits) - modulus, modulus)


def join(first: StridedInterval, second: StridedInterval) -> StridedInterval:
    low, high = min(first.low, second.low), max(first.high, second.high)
    stride = gcd(first.stride, second.stride, abs(first.low - second.low))
    return StridedInterval(first.bits, low, high, stride)


def join_all(intervals: Iterable[StridedInterval]) -> StridedInterval:
    """The join of at least one interval."""
    result: StridedInterval | None = None
    for interval in intervals:
        result = interval if result is None else join(result, interval)
    assert result is not None
    return result


def meet(first: StridedInterval, second: StridedInterval) -> StridedInterval | None:
    """The intersection, exactly; None if it is empty."""
    if first.stride == 0 or second.stride == 0:
        one, other = (first, second) if first.stride == 0 else (second, first)
        return one if one.low in other else None
    common = gcd(first.stride, second.stride)
    distance = second.low - first.low
    if distance % common:
        return None
    # The x = first.low + k · first.stride that are second.low modulo second.stride.
    modulus = second.stride // common
    k = distance // common * pow(first.stride // common, -1, modulus) % modulus
    stride = first.stride * modulus
    start = first.low + k * first.stride
    low = max(first.low, second.low)
    low += (start - low) % stride
    high = min(first.high, second.high)
    return wrapped(first.bits, low, high, stride) if low <= high else None


def widen(old: StridedInterval, new: StridedInterval, thresholds: Sequence[int] = ()) -> StridedInterval:
    """At least the join; a bound that moved goes on to the next threshold (ascending numbers), after the last one to
    the end of the number range. No chain of widenings is endless."""
    joined = join(old, new)
    low, high, stride = joined.low, joined.high, joined.stride
    half = 1 << (old.bits - 1)
    if low < old.low:
        at = bisect_right(thresholds, low)
        limit = max(thresholds[at - 1] if at else -half, -half)
        low = limit + (low - limit) % stride
    if high > old.high:
        at = bisect_left(thresholds, high)
        limit = min(thresholds[at] if at < len(thresholds) else half - 1, half - 1)
        high = limit - (limit - high) % stride
    return wrapped(old.bits, low, high, stride)


def clip(interval: StridedInterval, low: int | None = None, high: int | None = None) -> StridedInterval | None:
    """The members between two signed bounds."""
    step = interval.stride or 1
    least, greatest = interval.low, interval.high
    if low is not None and low > least:
        least = low + (least - low) % step
    if high is not None and high < greatest:
        greatest = high
    return wrapped(interval.bits, least, greatest, interval.stride) if least <= greatest else None


def clip_unsigned(interval: StridedInterval, low: int, high: int) -> StridedInterval | None:
    """The members between two unsigned bounds."""
    result: StridedInterval | None = None
    for half in interval.unsigned():
        around = 1 << interval.bits if half.low >> (interval.bits - 1) else 0
        part = clip(interval, max(low, half.low) - around, min(high, half.high) - around)
        if part is not None:
            result = part if result is None else join(result, part)
    return result


def add(x: StridedInterval, y: StridedInterval) -> StridedInterval:
    return wrapped(x.bits, x.low + y.low, x.high + y.high, gcd(x.stride, y.stride))


def negate(x: StridedInterval) -> StridedInterval:
    return wrapped(x.bits, -x.high, -x.low, x.stride)


def complement(x: StridedInterval) -> StridedInterval:
    return wrapped(x.bits, -1 - x.high, -1 - x.low, x.stride)


def subtract(x: StridedInterval, y: StridedInterval) -> StridedInterval:
    return wrapped(x.bits, x.low - y.high, x.high - y.low, gcd(x.stride, y.stride))


def multiply(x: StridedInterval, y: StridedInterval) -> StridedInterval:
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    stride = gcd(x.low * y.stride, y.low * x.stride, x.stride * y.stride)
    low, high = min(corners), max(corners)
    return wrapped(x.bits, low, high, stride)


def extend(x: StridedInterval, bits: int, is_signed: bool) -> StridedInterval:
    if is_signed:
        return StridedInterval(bits, x.low, x.high, x.stride)
    return join_all(wrapped(bits, *half) for half in x.unsigned())


def extract(x: StridedInterval, low: int, bits: int) -> StridedInterval:
    """Bits [low, low + bits)."""
    if low:
        x = shift_right(x, low, arithmetic=False)
    return wrapped(bits, x.low, x.high, x.stride)


def concatenate(high: StridedInterval, low: StridedInterval) -> StridedInterval:
    bits = high.bits + low.bits
    factor = 1 << low.bits
    above = wrapped(bits, high.low * factor, high.high * factor, high.stride * factor)
    return add(above, extend(low, bits, is_signed=False))


def shift_right(x: StridedInterval, amount: int, arithmetic: bool) -> StridedInterval:
    """By a constant of at most the width."""
    parts = [Range(x.low, x.high, x.stride)] if arithmetic else x.unsigned()
    shifted = []
    for low, high, stride in parts:
        step = stride >> amount if stride % (1 << amount) == 0 else 1
        shifted.append(wrapped(x.bits, low >> amount, high >> amount, step))
    return join_all(shifted)


def shift(opcode: str, x: StridedInterval, amount: StridedInterval) -> StridedInterval:
    least, greatest = amount.bounds()
    results = []
    for number in range(min(least, x.bits), min(greatest, x.bits) + 1):
        if number < x.bits and number not in amount:
            continue
        if opcode == "INT_LEFT":
            factor = 1 << number
            results.append(wrapped(x.bits, x.low * factor, x.high * factor, x.stride * factor))
        else:
            results.append(shift_right(x, number, arithmetic=opcode == "INT_SRIGHT"))
    return join_all(results)


def compare(opcode: str, x: StridedInterval, y: StridedInterval) -> bool | None:
    """The outcome of a comparison or overflow test if it is the same for all members."""
    half, mask = 1 << (x.bits - 1), (1 << x.bits) - 1
    (x_least, x_greatest), (y_least, y_greatest) = x.bounds(), y.bounds()
    match opcode:
        case "INT_EQUAL" | "INT_NOTEQUAL":
            if x.stride == 0 == y.stride and x.low == y.low:
                return opcode == "INT_EQUAL"
            return opcode == "INT_NOTEQUAL" if meet(x, y) is None else None
        case "INT_LESS":
            return _between(y_least - x_greatest, y_greatest - x_least, 1)
        case "INT_LESSEQUAL":
            return _between(y_least - x_greatest, y_greatest - x_least, 0)
        case "INT_SLESS":
            return _between(y.low - x.high, y.high - x.low, 1)
        case "INT_SLESSEQUAL":
            return _between(y.low - x.high, y.high - x.low, 0)
        case "INT_CARRY":
            return _between(x_least + y_least, x_greatest + y_greatest, mask + 1)
        case "INT_SCARRY":
            return _outside(x.low + y.low, x.high + y.high, half)
        case "INT_SBORROW":
            return _outside(x.low - y.high, x.high - y.low, half)
    raise AssertionError(f"not a comparison: {opcode}")


def _between(least: int, greatest: int, limit: int) -> bool | None:
    """Whether every number from `least` to `greatest` is at least `limit`."""
    return True if least >= limit else False if greatest < limit else None


def _outside(least: int, greatest: int, half: int) -> bool | None:
    """Whether every number from `least` to `greatest` is outside [-half, half)."""
    if greatest < -half or least >= half:
        return True
    return False if -half <= least and greatest < half else None


COMPARISONS = frozenset(
    {
        "INT_EQUAL",
        "INT_NOTEQUAL",
        "INT_LESS",
        "INT_LESSEQUAL",
        "INT_SLESS",
        "INT_SLESSEQUAL",
        "INT_CARRY",
        "INT_SCARRY",
        "INT_SBORROW",
    }
)
