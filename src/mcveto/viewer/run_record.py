"""A run as the pages show it: every instruction with what it changed, the calls that are open, the automaton's state.

The run is made again on the reference emulator, from values that were confirmed before. Of long runs the beginning and
the end are kept.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from mcveto.check.reference_run import SteppedMachine
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import Transfer
from mcveto.machine.trace import Access
from mcveto.program.program import Program
from mcveto.viewer.code import Jumps

MAX_STEPS = 200_000
KEPT_FIRST = 2_000
KEPT_LAST = 2_000
MAX_ACCESSES = 6

Automata = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""State and variables of each automaton."""


@dataclass(frozen=True, slots=True)
class Watching:
    """The ghost registers of an automaton, and how its states are called."""

    state_cell: int
    states: tuple[str, ...]
    variables: tuple[tuple[str, int], ...]
    """Names with the numbers of their cells."""


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    pc: int
    text: str
    code: bytes
    frames: tuple[int, ...]
    """The program counters behind the calls that are open, innermost last."""
    changes: tuple[tuple[str, int], ...]
    accesses: tuple[Access, ...]
    transfer: Transfer
    input: int | None
    """The number of the input that this step read."""
    automata: Automata
    """State and variables of each automaton, after the step."""


@dataclass(slots=True)
class RecordedRun:
    steps: list[Step] = field(default_factory=list)
    total: int = 0
    left_out: int = 0
    """Steps in the middle that were not kept, after the first KEPT_FIRST."""
    end: int = 0
    """The program counter at which the run ended."""
    executed: set[int] = field(default_factory=set)
    jumps: Jumps = field(default_factory=Jumps)
    automata: Automata = ()
    """Before the first step."""
    first: dict[str, int] = field(default_factory=dict)
    """General registers at the start."""


def watching(program: Program, states: tuple[str, ...], variables: tuple[str, ...], number: int) -> Watching:
    by_name = program.decoder.layout.by_name
    cells = tuple((name, by_name[f"ghost{number}_{name}"].number) for name in variables)
    return Watching(by_name[f"ghost{number}_state"].number, states, cells)


def recorded_run(
    program: Program, machine: SteppedMachine, limit: int, watched: tuple[Watching, ...] = (), consumed: int = 0
) -> RecordedRun:
    """Runs a machine that logs accesses until it stops, or for `limit` steps; `consumed` inputs were read at entry."""
    row = program.decoder.row
    names = (*row.general, *row.flags)
    before = {name: machine.read(name) for name in names}
    run = RecordedRun(automata=tuple(_automaton(machine, item) for item in watched), first=dict(before))
    last: deque[Step] = deque(maxlen=KEPT_LAST)
    frames: tuple[int, ...] = ()
    for number in range(min(limit, MAX_STEPS)):
        pc = machine.pc
        if machine.step() is not None:
            break
        done = machine.last_step()
        instruction = program.hooks.get(pc) or program.decoder.decode(pc, done.bytes)
        after = {name: machine.read(name) for name in names}
        changes = tuple((name, value) for name, value in after.items() if before[name] != value)
        before = after
        took = None
        if pc in program.hooks and instruction.mnemonic == "input":
            took, consumed = consumed, consumed + 1
        automata = tuple(_automaton(machine, item) for item in watched)
        accesses = machine.trace.accesses(number)[:MAX_ACCESSES]
        step = Step(number, pc, instruction.text, done.bytes, frames, changes, accesses, done.transfer, took, automata)
        (run.steps if number < KEPT_FIRST else last).append(step)
        run.executed.add(pc)
        run.total += 1
        following = (pc + instruction.size) & row.address_mask
        if done.transfer is Transfer.CALL:
            frames = (*frames, following)
            run.jumps.calls.setdefault(pc, set()).add(done.next_pc)
        elif done.transfer is Transfer.RETURN:
            frames = frames[:-1]
        elif done.transfer is Transfer.JUMP and done.next_pc != following:
            run.jumps.jumps.setdefault(pc, set()).add(done.next_pc)
    run.left_out = run.total - len(run.steps) - len(last)
    run.steps += last
    run.end = machine.pc
    return run


def _automaton(machine: Machine, watched: Watching) -> tuple[str, tuple[tuple[str, int], ...]]:
    number = machine.registers.get(watched.state_cell, 0)
    state = watched.states[number] if number < len(watched.states) else str(number)
    return state, tuple((name, machine.registers.get(cell, 0)) for name, cell in watched.variables)


def run_record(program: Program, run: RecordedRun, title: str) -> dict[str, Any]:
    """The run for the pages. Numbers that may be long are texts."""
    address = program.decoder.row.code_address
    return {
        "title": title,
        "total": run.total,
        "left_out": run.left_out,
        "left_out_after": KEPT_FIRST,
        "end": f"{address(run.end):#x}",
        "registers": {name: f"{value:#x}" for name, value in run.first.items()},
        "steps": [
            {
                "n": step.number,
                "at": f"{address(step.pc):#x}",
                "text": step.text,
                "depth": len(step.frames),
                "set": [[name, f"{value:#x}"] for name, value in step.changes],
                "mem": [
                    ["write" if item.is_write else "read", f"{item.address:#x}", item.size, f"{item.value:#x}"]
                    for item in step.accesses
                ],
                "input": step.input,
            }
            for step in run.steps
        ],
    }
