"""States in which activations of procedures began and returned in concrete runs.

Of a state the registers are kept, the bytes above the stack pointer, and the cells that somebody asked for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from mcveto.dpg.evidence import Evidence
from mcveto.dpg.summaries.state import AFTER, RETURN_TO
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.node import signed
from mcveto.logic.terms import Term
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

WINDOW = 128
PER_PROCEDURE = 250
PER_ACTIVATION = 3
# Of the activations that did not return before a run was over: a deep recursion would leave no room for others.
UNRETURNED = 24
INPUTS = 40


class Missing(Exception):
    """A sample does not hold a byte."""


@dataclass(frozen=True)
class Snapshot:
    registers: dict[str, int]
    stack_pointer: int
    window: bytes
    cells: dict[int, int]

    def byte(self, address: int) -> int:
        if 0 <= address - self.stack_pointer < len(self.window):
            return self.window[address - self.stack_pointer]
        if address not in self.cells:
            raise Missing
        return self.cells[address]


@dataclass
class Sample:
    """`after` is None if the activation did not return in the run."""

    before: Snapshot
    return_to: int
    after: Snapshot | None = None
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(self._variable, self._byte)

    def value(self, term: Term) -> int | None:
        """The value of a term over the state before and, if there is one, after; None if it is not known."""
        try:
            return self.evaluator.value(term)
        except Missing:
            return None

    def _variable(self, variable: Term) -> int:
        name = str(variable.data)
        if name == RETURN_TO:
            return self.return_to
        if name.startswith(AFTER):
            if self.after is None:
                raise Missing
            return self.after.registers.get(name.removeprefix(AFTER), 0)
        return self.before.registers.get(name, 0)

    def _byte(self, memory: Term, address: int) -> int:
        snapshot = self.after if str(memory.data[0]).startswith(AFTER) else self.before
        if snapshot is None:
            raise Missing
        return snapshot.byte(address)


class _Watched(Machine):
    @property
    def transfer(self) -> Transfer:
        return self._last_transfer

    @property
    def instruction_end(self) -> int:
        return (self._last_instruction.pc + self._last_instruction.size) & self._row.address_mask

    def writes(self) -> Iterator[tuple[int, int]]:
        return ((access.address, access.size) for access in self._domain.accesses if access.is_write)


@dataclass
class _Activation:
    return_to: int
    begun: list[tuple[int, Sample]] = field(default_factory=list)


@dataclass
class Observed:
    """What runs showed of a procedure."""

    samples: list[Sample] = field(default_factory=list)
    above: int = 0
    """How far above the initial stack pointer an activation wrote."""
    written: set[tuple[int, int]] = field(default_factory=set)
    """What it wrote outside the stack: addresses and sizes."""


class _Fitting(InputSource):
    """Numbers that were drawn for the widest input function, cut to the width of the one that is called."""

    def next(self, bits: int, where: str, signed: bool = False) -> int:
        number = len(self.consumed)
        if number < len(self._given):
            self._given[number] &= (1 << bits) - 1
        return super().next(bits, where, signed)


class Sampler:
    def __init__(self, program: Program, procedures: Collection[int], cells: Collection[tuple[int, int]]) -> None:
        self._program = program
        self._addresses = sorted({address + i for address, size in cells for i in range(size)})
        layout, row = program.decoder.layout, program.decoder.row
        self._row = row
        self._names = [(cell.number, cell.name, (1 << layout.significant_bits(cell)) - 1) for cell in layout.cells]
        (self._stack_pointer,) = layout.named(row.stack_pointer)
        (self._stack,) = [region for region in program.space.regions if region.name == "stack"][:1]
        self.steps = 0
        self.violating: list[Sequence[int]] = []
        """Inputs of runs that reached a target."""
        self._endings: Counter[str] = Counter()
        self._assumed = {pc for pc, hook in program.hooks.items() if hook.mnemonic == "assume"}
        self._called: set[int] = set()
        self._met: set[int] = set()
        self.observed: dict[int, Observed] = {pc: Observed() for pc in procedures}

    def run(self, inputs: Sequence[int], max_steps: int, seed: int = 0) -> None:
        source = _Fitting(inputs, seed)
        before = {pc: len(found.samples) for pc, found in self.observed.items()}
        ending = self._run(source, max_steps, seed)
        self._endings[ending] += 1
        for pc, found in self.observed.items():
            found.samples[before[pc] :] = _with_few_unreturned(found.samples[before[pc] :])
        if ending == "target":
            self.violating.append([item.value for item in source.consumed])

    def evidence(self) -> Evidence:
        """What the runs show to be reachable."""
        return Evidence(
            entered=self.steps > 0,
            endings=dict(sorted(self._endings.items())),
            halted=self._endings["halted"] > 0,
            assumptions_met=tuple(sorted(self._met)),
            assumptions_missed=tuple(sorted(self._called - self._met)),
        )

    def _run(self, source: InputSource, max_steps: int, seed: int) -> str:
        """One run; returns how it ended."""
        machine = self._program.machine(source, seed, log_accesses=True, make=_Watched)
        assert isinstance(machine, _Watched)
        stack = [_Activation(self._program.return_sentinel)]
        for _ in range(max_steps):
            found = self.observed.get(machine.pc)
            if found is not None and len(found.samples) < PER_PROCEDURE:
                begun = stack[-1].begun
                if sum(pc == machine.pc for pc, _ in begun) < PER_ACTIVATION:
                    sample = Sample(self._snapshot(machine), stack[-1].return_to)
                    found.samples.append(sample)
                    begun.append((machine.pc, sample))
            self.steps += 1
            pc = machine.pc
            if pc in self._assumed:
                self._called.add(self._row.code_address(pc))
            outcome = machine.step()
            if outcome is not None:
                return outcome.kind
            if pc in self._assumed:
                self._met.add(self._row.code_address(pc))
            for address, size in machine.writes():
                self._wrote(stack, address, size)
            if machine.transfer is Transfer.CALL:
                stack.append(_Activation(machine.instruction_end))
            elif machine.transfer is Transfer.RETURN:
                if not stack or machine.pc != stack[-1].return_to:
                    return "return"
                begun = stack.pop().begun
                if begun:
                    after = self._snapshot(machine)
                    for _, sample in begun:
                        sample.after = after
        return "limit"

    def _wrote(self, stack: list[_Activation], address: int, size: int) -> None:
        in_stack = self._stack.start <= address < self._stack.end
        for activation in reversed(stack):
            for pc, sample in activation.begun:
                offset = address + size - sample.before.stack_pointer
                if not in_stack:
                    self.observed[pc].written.add((address, size))
                elif offset > 0:
                    self.observed[pc].above = max(self.observed[pc].above, offset)
            if in_stack and activation.begun and address < activation.begun[0][1].before.stack_pointer:
                break

    def _snapshot(self, machine: Machine) -> Snapshot:
        registers = {name: machine.registers.get(number, 0) & mask for number, name, mask in self._names}
        pointer = machine.registers.get(self._stack_pointer.cell.number, 0)
        window = b""
        if self._stack.start <= pointer < self._stack.end:
            window = machine.memory.peek(pointer, min(WINDOW, self._stack.end - pointer)) or b""
        cells = {}
        for address in self._addresses:
            content = machine.memory.peek(address, 1)
            if content is not None:
                cells[address] = content[0]
        return Snapshot(registers, pointer, window, cells)


def _with_few_unreturned(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of a run without those from the middle of a recursion that was cut off."""
    unreturned = [number for number, sample in enumerate(samples) if sample.after is None]
    dropped = set(unreturned[UNRETURNED // 2 : len(unreturned) - UNRETURNED // 2])
    return [sample for number, sample in enumerate(samples) if number not in dropped]


def random_inputs(number: int, seed: int, interesting: Sequence[int], bits: int) -> list[int]:
    """The inputs of one run: small numbers, and numbers near those that the program compares with."""
    generator = random.Random(f"{seed}/{number}")
    half = 1 << (bits - 1)
    near = sorted({value for value in interesting if -half <= value < half})

    def draw() -> int:
        kind = generator.randrange(8)
        if near and kind < 3:
            value = generator.choice(near) + generator.randrange(-12, 13)
        elif kind < 6:
            value = generator.randrange(0, 4 + 2 * number)
        elif kind == 6:
            value = -generator.randrange(0, 12)
        else:
            value = signed(generator.getrandbits(bits), bits)
        return max(-half, min(value, half - 1))

    return [draw() for _ in range(INPUTS)]
