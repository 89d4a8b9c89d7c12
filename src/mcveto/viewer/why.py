"""Why a run goes where it goes: its decisions as conditions on the inputs, by symbolic execution along it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from mcveto.logic.infix import pretty
from mcveto.logic.terms import free_variables
from mcveto.machine.concolic import Assignment
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.symbolic import ConstraintKind
from mcveto.program.program import Program

MAX_STEPS = 30_000
MAX_SECONDS = 10.0
MAX_CONDITIONS = 400
MAX_TEXT = 300
# Widening an input as an unsigned number does not change it; to a reader it is noise.
_WIDENED = re.compile(r"\bzext\d+\((in\d+)\)")


@dataclass(frozen=True, slots=True)
class Condition:
    step: int
    pc: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Given:
    """All that a run depends on: register cells by name, bytes at entry, and fresh values one after the other."""

    registers: dict[str, int]
    byte: Callable[[int], int]
    fresh: Callable[[int, FreshOrigin, int], int]


def conditions(program: Program, given: Given, steps: int) -> tuple[list[Condition], str]:
    """The decisions of a run of so many steps that depend on its inputs; and what was left out, if anything."""
    execution = program.concolic_with(Assignment(given.registers, given.byte, given.fresh))
    deadline = time.monotonic() + MAX_SECONDS
    left_out = ""
    while execution.steps < steps:
        if execution.steps >= MAX_STEPS or time.monotonic() > deadline:
            left_out = f"decisions after step {execution.steps} are not shown"
            break
        try:
            if execution.step() is None:
                break
        except (Fault, Unsupported):
            break
    found: list[Condition] = []
    kinds = (ConstraintKind.BRANCH, ConstraintKind.TARGET)
    for item in execution.path:
        if item.kind not in kinds or not free_variables([item.term]):
            continue
        text = _WIDENED.sub(r"\1", pretty(item.term))
        if len(text) > MAX_TEXT:
            text = f"{text[:MAX_TEXT]} … ({len(text)} characters)"
        found.append(Condition(item.step, item.pc, item.kind.value, text))
    if len(found) > MAX_CONDITIONS:
        left_out = f"{len(found) - MAX_CONDITIONS} decisions in the middle are not shown"
        half = MAX_CONDITIONS // 2
        found = found[:half] + found[-half:]
    return found, left_out
