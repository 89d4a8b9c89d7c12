"""A counterexample by itself: the values of its inputs, sorted by what they are values of.

A verdict lists inputs in the order consumed, then what else the run depends on, and says in words what each value is
(`where`). This is the reverse: from that list to values for the entry state, for the calls of input functions, and for
the values that the manual leaves undefined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.verdict import Verdict, VerdictInput

PROPERTIES = ("reach", "return-address")
SAFETY = ("memory-safety", "no-fault")
REPLAYABLE = (*PROPERTIES, *SAFETY)
_REGISTER = re.compile(r"unspecified register (\S+) at entry")
_MEMORY = re.compile(r"unspecified memory (0x[0-9a-f]+) at entry")
_UNDEFINED = re.compile(r"undefined value at (0x[0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class UndefinedValue:
    """A value of `bits` bits that the manual leaves open, made by the instruction at `pc`; not the usual one."""

    pc: int
    bits: int
    value: int


@dataclass(frozen=True, slots=True)
class Counterexample:
    about: str
    """The property violated, one of REPLAYABLE."""
    inputs: tuple[VerdictInput, ...] = ()
    """What the spec calls inputs, in the order consumed."""
    registers: tuple[tuple[str, int], ...] = ()
    memory: tuple[tuple[int, int], ...] = ()
    undefined: tuple[UndefinedValue, ...] = ()

    @property
    def values(self) -> list[int]:
        return [item.value for item in self.inputs]


def counterexample(about: str, listed: Iterable[VerdictInput]) -> Counterexample:
    """Sorts the inputs of a verdict; raises UsageError for a property that cannot be replayed."""
    if about not in REPLAYABLE:
        raise UsageError(f"a violation of '{about[:40]}' cannot be replayed", f"known: {', '.join(REPLAYABLE)}")
    return sorted_inputs(about, listed)


def sorted_inputs(about: str, listed: Iterable[VerdictInput]) -> Counterexample:
    """The inputs of a verdict by what they are values of."""
    inputs: list[VerdictInput] = []
    registers: list[tuple[str, int]] = []
    memory: list[tuple[int, int]] = []
    undefined: list[UndefinedValue] = []
    for item in listed:
        if match := _REGISTER.fullmatch(item.where):
            registers.append((match[1], item.value))
        elif match := _MEMORY.fullmatch(item.where):
            memory.append((int(match[1], 16), item.value & 0xFF))
        elif match := _UNDEFINED.fullmatch(item.where):
            undefined.append(UndefinedValue(int(match[1], 16), item.bits, item.value))
        else:
            inputs.append(item)
    return Counterexample(about, tuple(inputs), tuple(registers), tuple(memory), tuple(undefined))


def counterexample_of(verdict: Verdict) -> Counterexample:
    return counterexample(verdict.about, verdict.inputs)
