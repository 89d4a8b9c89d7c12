"""The exact truth about a random program: every input is run, in Unicorn, and the properties are judged here.

Nothing of mcveto takes part but the loaded memory, the names of registers, and the decoder's word on which
instructions are calls and returns. Two engines that are built on different foundations must agree for a wrong truth
to go unnoticed; a share of all runs is repeated in the reference emulator as well (see `judge`).

Stores into code stop the engine and drop its translations: instructions are fetched from the memory as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import unicorn
from unicorn import UcError, arm_const

from mcveto.check.unicorn_follower import new_engine
from mcveto.check.unicorn_registers import UnicornIsa, unicorn_isa
from mcveto.machine.faults import Unsupported
from mcveto.program.program import Program

from .items import CODE, CODE_SIZE, DATA, DATA_SIZE, END_ADDRESSES

MAX_STEPS = 3000
MAX_RUNS = 1 << 12
MAX_CALLS = 4
MAX_CODE_STORES = 500
_FETCH_ERRORS = (unicorn.UC_ERR_FETCH_UNMAPPED, unicorn.UC_ERR_FETCH_PROT)
_CALLS = {"CALL": "call", "CALLIND": "call", "RETURN": "return"}


@dataclass(frozen=True)
class RunResult:
    """How one run ended: reach, return-address, halt, fault, limit or input (a value is missing)."""

    kind: str
    steps: int
    first_register: int


@dataclass
class Truth:
    violations: dict[str, list[int]] = field(default_factory=dict)
    """For each property that some input violates, the first such input."""
    runs: int = 0
    longest: int = 0
    complete: bool = True
    """Whether every input was run to its end."""

    @property
    def is_violated(self) -> bool:
        return bool(self.violations)


class Executor:
    """Runs one program on input after input."""

    def __init__(self, program: Program, stop_at: int | None = None) -> None:
        self._program = program
        row = program.decoder.row
        found = unicorn_isa(program.image.isa, row.general, False)
        assert found is not None
        self._isa: UnicornIsa = found
        self._row = row
        self._word = row.address_bytes
        self._order: Any = "big" if row.big_endian else "little"
        self._stop_at = stop_at
        self._special = {stop_at, program.return_sentinel, *END_ADDRESSES.values()}
        (first,) = (name for name in (row.return_registers[0],))
        self._first = found.registers[first].register
        self._stack = next(r for r in program.space.regions if r.name == "stack")
        engine = new_engine(found)
        for region in program.space.regions:
            engine.mem_map(region.start, region.size, _protection(region.permissions))
        engine.hook_add(unicorn.UC_HOOK_CODE, self._on_instruction)
        engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt)
        engine.hook_add(unicorn.UC_HOOK_MEM_WRITE, self._on_code_write, None, CODE, CODE + CODE_SIZE - 1)
        self._engine: Any = engine
        self._code = program.space.regions[0].content
        self._kinds: dict[tuple[int, bytes], tuple[str, int]] = {}
        self._kinds_now: dict[int, tuple[str, int] | None] = {}
        """What is known of addresses of the code as long as nothing stores there."""
        self._code_changed = True
        self._initial = self._initial_registers()
        self._context: Any = None

    def _initial_registers(self) -> list[tuple[int, int]]:
        machine_registers = {bits.register: bits.fixed for bits in self._isa.registers.values()}
        cells = self._program.decoder.layout.cells
        by_name = {cells[number].name: value for number, value in self._program.registers.items()}
        for name, bits in self._isa.registers.items():
            machine_registers[bits.register] |= by_name.get(name, 0) << bits.low
        if self._row.overlay == "arm":
            machine_registers[arm_const.UC_ARM_REG_CPSR] |= 0x10
        return list(machine_registers.items())

    def run(self, inputs: list[int]) -> RunResult:
        """One run: input bytes first, then one value for every call of the input function."""
        engine = self._engine
        count = sum(end - start for start, end in self._program.input_memory)
        engine.mem_write(DATA, bytes(inputs[:count]).ljust(DATA_SIZE, b"\0"))
        self._inputs = inputs[count:]
        content = self._stack.content
        engine.mem_write(self._stack.start, content.ljust(self._stack.size, b"\0"))
        if self._code_changed:
            engine.mem_write(CODE, self._code)
            engine.ctl_remove_cache(CODE, CODE + CODE_SIZE)
            self._code_changed = False
            self._kinds_now.clear()
        if self._context is None:
            engine.reg_write_batch(self._initial)
            self._context = engine.context_save()
        else:
            engine.context_restore(self._context)
        self._frames = [self._program.return_sentinel]
        self._previous: tuple[str, int] | None = None
        self._result = ""
        self._dirty = self._interrupted = False
        self._again: int | None = None
        self._steps = self._stores = self._last = self._last_size = 0
        pc: int | None = CODE
        while pc is not None:
            pc = self._go(pc)
        return RunResult(self._result, self._steps, int(engine.reg_read(self._first)))

    def _go(self, pc: int) -> int | None:
        """Runs from `pc` until the end or until something must be done outside; where to go on."""
        engine = self._engine
        self._resume = False
        # A store that hits the block it is in makes Unicorn start over: that instruction then runs by itself.
        alone = pc == self._again
        self._again = None
        error: int | None = None
        try:
            if alone:
                engine.emu_start(pc, pc + self._last_size, count=1)
            else:
                engine.emu_start(pc, self._row.address_mask & ~0xF)
        except UcError as failure:
            error = int(failure.errno)
        now = int(engine.reg_read(self._isa.program_counter))
        if self._result:
            return None
        if self._interrupted or (error is not None and error not in _FETCH_ERRORS):
            self._result = "fault"
            return None
        if self._dirty:
            engine.ctl_remove_cache(CODE, CODE + CODE_SIZE)
            self._dirty = False
            self._stores += 1
            if self._stores > MAX_CODE_STORES:
                self._result = "limit"
                return None
            if now == self._last and not alone:
                self._again = now
                return now
        if error is not None:
            self._arrive(now)
            self._result = self._result or "fault"
            return None
        if now == END_ADDRESSES["input"] and self._resume and self._program.spec.input_calls:
            return self._input_function()
        if self._resume or alone:
            return now
        self._result = "fault"
        return None

    def _on_interrupt(self, engine: Any, number: int, _: object) -> None:
        self._interrupted = True
        engine.emu_stop()

    def _on_code_write(self, engine: Any, access: int, address: int, size: int, *_: object) -> None:
        self._code_changed = self._dirty = True
        self._kinds_now.clear()

    def _on_instruction(self, engine: Any, address: int, size: int, _: object) -> None:
        if self._dirty:
            # What follows may have been translated before it was overwritten.
            self._resume = True
            engine.emu_stop()
            return
        if self._previous is not None or address in self._special or self._steps >= MAX_STEPS:
            self._arrive(address)
            if self._result:
                engine.emu_stop()
                return
            if address == END_ADDRESSES["input"] and self._program.spec.input_calls:
                self._resume = True
                engine.emu_stop()
                return
        self._steps += 1
        self._last, self._last_size = address, size
        try:
            self._previous = self._kinds_now[address]
        except KeyError:
            self._previous = self._kind(address)
            if CODE <= address < CODE + CODE_SIZE and not self._code_changed:
                self._kinds_now[address] = self._previous

    def _arrive(self, address: int) -> None:
        """Control has come to `address`: settles the call or return that led here, and looks for an end."""
        if self._previous is not None:
            kind, after = self._previous
            self._previous = None
            if (kind == "call" and address != after) or kind == "call always":
                self._frames.append(after)
            elif ((kind == "return" and address != after) or kind == "return always") and not self._returns_to(address):
                return
        if address == self._stop_at:
            self._result = "stop"
        elif address == END_ADDRESSES["target"]:
            self._result = "reach"
        elif address in (END_ADDRESSES["halt"], self._program.return_sentinel):
            self._result = "halt"
        elif self._steps >= MAX_STEPS:
            self._result = "limit"

    def _returns_to(self, address: int) -> bool:
        if not self._frames or self._frames.pop() != address:
            self._result = "return-address"
            return False
        return True

    def _kind(self, address: int) -> tuple[str, int] | None:
        """(call or return, the address behind it), with `always` where it is unconditional."""
        code = bytes(self._engine.mem_read(address, min(self._row.max_instruction, CODE + CODE_SIZE - address)))
        key = (address, code)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._decoded_kind(address, code)
        return found if found[0] else None

    def _decoded_kind(self, address: int, code: bytes) -> tuple[str, int]:
        try:
            instruction = self._program.decoder.decode(address, code)
        except Unsupported:
            return ("", 0)
        kinds = [_CALLS[op.opcode] for op in instruction.ops if op.opcode in _CALLS]
        if not kinds:
            return ("", 0)
        conditional = any(op.opcode == "CBRANCH" for op in instruction.ops)
        return (kinds[-1] + ("" if conditional else " always"), address + instruction.size)

    def _input_function(self) -> int | None:
        engine, row = self._engine, self._row
        if not self._inputs:
            self._result = "input"
            return None
        self._steps += 1
        engine.reg_write(self._first, self._inputs.pop(0))
        if row.pushes_return_address:
            pointer = self._isa.registers[row.stack_pointer].register
            top = int(engine.reg_read(pointer))
            try:
                back = int.from_bytes(engine.mem_read(top, self._word), self._order)
            except UcError:
                self._result = "fault"
                return None
            engine.reg_write(pointer, top + self._word & row.address_mask)
        else:
            back = int(engine.reg_read(self._isa.registers[row.return_address].register))
        self._previous = None
        if not self._returns_to(back):
            return None
        return back


def _protection(permissions: int) -> int:
    bits = ((4, unicorn.UC_PROT_READ), (2, unicorn.UC_PROT_WRITE), (1, unicorn.UC_PROT_EXEC))
    return sum(theirs for ours, theirs in bits if permissions & ours)


def all_runs(program: Program, executor: Executor, max_runs: int = MAX_RUNS) -> Iterator[tuple[list[int], RunResult]]:
    """Every input in order with what it leads to; inputs of calls are extended while a run asks for more."""
    count = sum(end - start for start, end in program.input_memory)
    calls = program.spec.input_calls
    values = range(1 << calls[0].bits) if calls else range(0)
    runs = 0
    for number in range(256**count):
        waiting = [[number >> 8 * i & 0xFF for i in range(count)]]
        while waiting:
            inputs = waiting.pop()
            result = executor.run(list(inputs))
            if result.kind == "input" and len(inputs) - count < MAX_CALLS:
                waiting += [[*inputs, value] for value in reversed(values)]
                continue
            runs += 1
            yield inputs, result
            if runs >= max_runs:
                yield inputs, RunResult("limit", 0, 0)
                return


def truth_of(program: Program, max_runs: int = MAX_RUNS) -> Truth:
    truth = Truth()
    for inputs, result in all_runs(program, Executor(program), max_runs):
        truth.runs += 1
        truth.longest = max(truth.longest, result.steps)
        if result.kind in ("reach", "return-address"):
            truth.violations.setdefault(result.kind, inputs)
        elif result.kind in ("limit", "input"):
            truth.complete = False
    return truth
