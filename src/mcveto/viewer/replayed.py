"""The run of a confirmed violation, made once more to be looked at: what `verify` found, or `counterexamples`.

Whoever found it had it confirmed; here a run that does not come out is only left out of the pages, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcveto.check.counterexample import PROPERTIES, Counterexample, counterexample
from mcveto.check.reference_run import ReferenceRun, SteppedMachine, Turns, turns_of
from mcveto.counterexamples.entry_values import Confirmed
from mcveto.errors import McvetoError
from mcveto.machine.concrete import FreshSource
from mcveto.machine.pcode import FreshOrigin
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.property.typestate import Typestate
from mcveto.verdict import VerdictInput
from mcveto.viewer.run_record import MAX_STEPS, RecordedRun, Watching, recorded_run, watching
from mcveto.viewer.why import Condition, Given, conditions

_CHOICE = re.compile(r"choice of property .* at (0x[0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Replayed:
    run: RecordedRun
    why: list[Condition]
    why_left_out: str


class _Logged(ReferenceRun):
    """Remembers the fresh values in the order they were made."""

    def __init__(self, program: Program, example: Counterexample, turns: Turns) -> None:
        self.made: list[int] = []
        super().__init__(program, example, turns, log_accesses=True)

    def _fresh(self, source: FreshSource, bits: int, origin: FreshOrigin, usual: int) -> int:
        value = super()._fresh(source, bits, origin, usual)
        self.made.append(value)
        return value


def replayed_violation(
    program: Program, about: str, inputs: Sequence[VerdictInput], automata: Sequence[Typestate]
) -> Replayed | str:
    """The run of a verdict, or why there is none. `program` has its typestate properties attached."""
    about = about if about in PROPERTIES else "reach"  # errors of automata are targets
    listed = [
        VerdictInput(item.value, item.bits, f"undefined value at {match[1]}")
        if (match := _CHOICE.fullmatch(item.where))
        else item
        for item in inputs
    ]
    try:
        example = counterexample(about, listed)
        turns, violation = turns_of(program, example, MAX_STEPS)
        if isinstance(violation, str):
            return violation
        reference = _Logged(program, example, turns)
        machine = reference.machine
        assert isinstance(machine, SteppedMachine)
        registers = _registers(program, machine)
        at_entry = len(program.input_registers) + sum(end - start for start, end in program.input_memory)
        run = recorded_run(program, machine, violation.steps, _watched(program, automata), at_entry)
    except McvetoError as error:
        return str(error)
    base = program.choices(InputSource(example.values), 0)
    memory = dict(example.memory)
    return _explained(program, run, registers, memory, base.byte, reference.made)


def replayed_trace(program: Program, confirmed: Confirmed, automaton: Typestate) -> Replayed | str:
    """The run of a counterexample of a binary. `program` has the automaton attached."""
    base = program.machine(InputSource((), 0), 0)
    by_name = program.decoder.layout.by_name
    registers = dict(base.registers)
    for name, value in confirmed.entry.registers.items():
        registers[by_name[name].number] = value
    for address, byte in confirmed.entry.memory.items():
        base.memory.poke(address, bytes([byte]))
    machine = SteppedMachine(
        program.decoder,
        base.memory,
        registers,
        program.entry,
        hooks=program.hooks,
        halts=base.halts,
        targets=program.targets,
        fresh=_sequence(confirmed.entry.fresh),
        log_accesses=True,
    )
    given = _registers(program, machine)
    run = recorded_run(program, machine, MAX_STEPS, _watched(program, [automaton]))
    if program.decoder.row.code_address(run.end) != confirmed.error:
        return "the run did not come out a second time"
    usual = program.choices(InputSource((), 0), 0).byte
    return _explained(program, run, given, dict(confirmed.entry.memory), usual, confirmed.entry.fresh)


def _watched(program: Program, automata: Sequence[Typestate]) -> tuple[Watching, ...]:
    return tuple(
        watching(program, tuple(automaton.states), tuple(automaton.variables), number)
        for number, automaton in enumerate(automata)
    )


def _registers(program: Program, machine: SteppedMachine) -> dict[str, int]:
    return {cell.name: machine.registers.get(cell.number, 0) for cell in program.decoder.layout.cells}


def _sequence(values: Sequence[int]) -> FreshSource:
    position = [0]

    def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
        number = position[0]
        position[0] += 1
        return values[number] if number < len(values) else usual

    return fresh


def _explained(
    program: Program,
    run: RecordedRun,
    registers: dict[str, int],
    memory: dict[int, int],
    usual: Callable[[int], int],
    fresh: Sequence[int],
) -> Replayed:
    def byte(address: int) -> int:
        found = memory.get(address)
        return usual(address) if found is None else found

    why, left_out = conditions(program, Given(registers, byte, _sequence(fresh)), run.total)
    return Replayed(run, why, left_out)
