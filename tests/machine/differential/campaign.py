"""Runs encodings against an oracle: the loop shared by the families' tests.

Each few hundred encodings are run in a child process: Unicorn aborts on some of them. What a child had to do when it
died is counted as skipped.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

from mcveto.machine.faults import Unsupported

from .harness import Case, Emulator, Excuse, Oracle, States, Tally, judge, steered

_AT_ONCE = 200
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
    everything = list(codes)
    tally = Tally()
    for number in range(0, len(everything), _AT_ONCE):
        chunk = everything[number : number + _AT_ONCE]
        arguments = (emulator, oracle, chunk, states_per_code, pc, seed + number, address_registers, excuse)
        part = _in_child(*arguments)
        if part is None:
            tally.counts["skipped"] += len(chunk) * states_per_code
        else:
            tally.add(part)
    return tally


def _in_child(*arguments: Any) -> Tally | None:
    """The tally of a chunk, run in a child process; None if the child died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(_run(*arguments), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("the campaign failed in its child process")
    return pickle.loads(answer) if os.WIFEXITED(status) else None


def _run(
    emulator: Emulator,
    oracle: Oracle,
    codes: list[bytes],
    states_per_code: int,
    pc: int,
    seed: int,
    address_registers: tuple[str, ...],
    excuse: Excuse | None,
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
