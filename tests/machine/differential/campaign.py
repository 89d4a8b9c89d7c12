"""Runs encodings against an oracle: the loop shared by the families' tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from random import Random

from mcveto.machine.faults import Unsupported

from .harness import Case, Emulator, Excuse, Oracle, States, Tally, judge, steered

# What follows the instruction: literals that pc-relative loads read, the same on both sides.
_FILLER = Random(2024).randbytes(512)


def campaign(
    emulator: Emulator,
    oracle: Oracle,
    codes: Iterable[bytes],
    states_per_code: int,
    pc: int,
    seed: int,
    address_registers: tuple[str, ...],
    excuse: Excuse | None = None,
) -> Tally:
    rng = Random(seed)
    states = States(rng, emulator.bits)
    tally = Tally()
    for code in codes:
        for _ in range(states_per_code):
            registers, memory = states.state()
            case = Case(pc, code + _FILLER[len(code) :], registers, memory)
            used = _named(case, emulator, address_registers)
            if used:
                with suppress(Unsupported):
                    case = steered(case, emulator, rng, used, tries=3)
            judge(case, emulator, oracle, tally, excuse)
    return tally


def _named(case: Case, emulator: Emulator, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the candidates the instruction names as operands."""
    try:
        words = set(re.findall(r"\w+", emulator.decode(case).text))
    except Unsupported:
        return ()
    return tuple(name for name in candidates if name in words)
