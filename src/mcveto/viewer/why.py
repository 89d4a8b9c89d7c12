"""Why a run goes where it goes: its decisions as conditions on the inputs, by symbolic execution along it.

Addresses that depend on the inputs are given the values they have in this run, so that reads find what was written;
`where` says which ones these are. The condition is then true of this run, not of every run along the same path.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from mcveto.logic import terms as t
from mcveto.logic.infix import pretty
from mcveto.logic.substitute import rebuild
from mcveto.logic.terms import Term, free_variables, postorder
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.symbolic import ConstraintKind
from mcveto.program.program import Program

MAX_STEPS = 30_000
MAX_SECONDS = 10.0
MAX_CONDITIONS = 400
MAX_TEXT = 300
MAX_ADDRESSES = 2
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
    reader = _Reader(program, execution)
    skipped = 0
    said: set[str] = set()
    kinds = (ConstraintKind.BRANCH, ConstraintKind.TARGET)
    for item in execution.path:
        if item.kind not in kinds or not free_variables([item.term]):
            continue
        if time.monotonic() > deadline:
            left_out = f"decisions after step {item.step} are not shown"
            break
        term, addresses = reader.read(item.term)
        if term.op == "const":
            # What is looked up, as in the table of a switch, is decided by where it is looked up.
            text = " and ".join(pretty(condition) for condition, _ in addresses)
            if not text or text in said:
                skipped += 1
                continue
            said.add(text)
        else:
            where = " and ".join(equation for _, equation in addresses)
            text = pretty(term) + (f", where {where}" if where else "")
        text = _WIDENED.sub(r"\1", text)
        if len(text) > MAX_TEXT:
            text = f"{text[:MAX_TEXT]} … ({len(text)} characters)"
        found.append(Condition(item.step, item.pc, item.kind.value, text))
    if skipped and not left_out:
        left_out = f"{skipped} more depend only on which addresses are read and written"
    if len(found) > MAX_CONDITIONS:
        left_out = f"{len(found) - MAX_CONDITIONS} decisions in the middle are not shown"
        half = MAX_CONDITIONS // 2
        found = found[:half] + found[-half:]
    return found, left_out


class _Reader:
    """Rewrites terms with the addresses that they have in a run; what is shared is rewritten once."""

    def __init__(self, program: Program, execution: ConcolicExecution) -> None:
        self._space = program.space
        self._value = execution.evaluator.value
        self._done: dict[Term, Term] = {}
        self._addresses: dict[Term, tuple[Term, str]] = {}

    def read(self, term: Term) -> tuple[Term, list[tuple[Term, str]]]:
        """The term, and those addresses in it that depend on the inputs: that they are what they are, as a condition
        and as an equation."""
        order = [item for item in postorder([term]) if item not in self._done]
        for item in order:
            self._done[item] = self._rewritten(item)
        used = [self._addresses[item] for item in order if item in self._addresses]
        return self._done[term], used[:MAX_ADDRESSES]

    def _rewritten(self, item: Term) -> Term:
        arguments = tuple([self._done[argument] for argument in item.args])
        if item.op in ("load", "store"):
            address = item.args[1]
            if address.op != "const":
                where = self._value(address)
                if free_variables([arguments[1]]):
                    self._addresses[item] = (
                        t.eq(arguments[1], t.const(where, address.width)),
                        (f"{pretty(arguments[1])} = {where:#x}"),
                    )
                arguments = (arguments[0], t.const(where, address.width), *arguments[2:])
        found = item if arguments == item.args else rebuild(item, arguments)
        return self._initial(found) if found.op == "load" else found

    def _initial(self, load: Term) -> Term:
        """What the file holds where nothing was written."""
        memory, address = load.args
        if memory.op != "memory" or address.op != "const":
            return load
        size, is_big = load.data
        known = [self._space.initial_byte(int(address.data) + offset) for offset in range(size)]
        if any(byte is None for byte in known):
            return load
        content = bytes(byte or 0 for byte in known)
        return t.const(int.from_bytes(content, "big" if is_big else "little"), load.width)
