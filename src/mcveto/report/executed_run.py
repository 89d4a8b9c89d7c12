"""A concrete run cut into the blocks that reports show: executed once more, one step at a time, and watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mcveto.machine.pcode import Instruction, Space, Transfer
from mcveto.machine.trace import TraceStep
from mcveto.program.program import Program
from mcveto.report.result import Block, Module
from mcveto.verdict import VerdictInput

MAX_BLOCKS = 100_000
_CALL_OF = "call of "


class Watcher:
    """What is known of the program besides its code: where events happen (by program counter), and the cells that hold
    the states of automata, each with the property's name and the names of the states."""

    def __init__(
        self,
        program: Program,
        events: Mapping[int, Sequence[str]],
        cells: Mapping[str, tuple[str, Sequence[str]]],
    ) -> None:
        self.program = program
        self._events = events
        self._cells = cells
        self._decoded: dict[tuple[int, bytes], Instruction] = {}

    def blocks(
        self, steps: Iterator[TraceStep], read: Callable[[str], int], inputs: Sequence[VerdictInput] = ()
    ) -> Iterator[Block]:
        """The blocks of a run; `read` tells a register's value after the step that was made last."""
        program, row = self.program, self.program.decoder.row
        waiting = iter([item for item in inputs if item.where.startswith(_CALL_OF)])
        open_steps: list[TraceStep] = []
        depth = count = 0
        states: dict[str, str] = {}

        def block(way: str) -> Block:
            first, last = open_steps[0], open_steps[-1]
            result = None
            hook = program.hooks.get(last.pc)
            if hook is not None and hook.text.startswith("input"):
                item = next(waiting, None)
                if item is not None:
                    result = (row.return_registers[0], item.bits, item.value & ((1 << item.bits) - 1))
            return Block(
                row.code_address(first.pc),
                sum(len(step.bytes) for step in open_steps),
                row.code_address(last.pc),
                self.instruction(last).text,
                way,
                row.code_address(last.next_pc),
                depth,
                tuple(self._events.get(first.pc, ())),
                states,
                result,
            )

        for step in steps:
            if open_steps and step.pc in self._events:
                yield block("fall")
                count += 1
                open_steps.clear()
            open_steps.append(step)
            states = {
                name: known[value] if (value := read(cell)) < len(known) else "?"
                for cell, (name, known) in self._cells.items()
            }
            way = self._way(step)
            if way != "fall":
                yield block(way)
                count += 1
                open_steps.clear()
                if count >= MAX_BLOCKS:
                    return
            if step.transfer is Transfer.CALL:
                depth += 1
            elif step.transfer is Transfer.RETURN:
                depth = max(0, depth - 1)
        if open_steps:
            yield block("end")

    def instruction(self, step: TraceStep) -> Instruction:
        hook = self.program.hooks.get(step.pc)
        if hook is not None:
            return hook
        key = (step.pc, step.bytes)
        if key not in self._decoded:
            self._decoded[key] = self.program.decoder.decode(step.pc, step.bytes)
        return self._decoded[key]

    def _way(self, step: TraceStep) -> str:
        program, row = self.program, self.program.decoder.row
        if step.transfer is Transfer.CALL:
            return "call"
        if step.transfer is Transfer.RETURN:
            return "return"
        if row.code_address(step.next_pc) in program.targets and step.pc in self._events:
            return "end"
        ops = self.instruction(step).ops
        jumps = [op for op in ops if op.opcode in ("BRANCH", "CBRANCH", "BRANCHIND")]
        own = [
            op
            for op in jumps
            if not (op.inputs[0].space is Space.RAM and row.code_address(op.inputs[0].offset) in program.targets)
            or step.pc not in self._events
        ]
        leaves = any(op.opcode == "BRANCHIND" or op.inputs[0].space is Space.RAM for op in own)
        if leaves and any(op.opcode == "CBRANCH" for op in own):
            return "branch" if step.transfer is Transfer.JUMP else "no branch"
        return "jump" if step.transfer is Transfer.JUMP else "fall"


def place_of_last_event(blocks: Sequence[Block]) -> int:
    """Where the event of the last block happens: at the call, if it is one."""
    return blocks[-2].last_pc if len(blocks) > 1 and blocks[-2].way == "call" else blocks[-1].pc


def module_of(program: Program) -> Module:
    image, row = program.image, program.decoder.row
    segments = tuple((segment.address, segment.end) for segment in image.segments if segment.size)
    symbols = sorted((row.code_address(address), name) for name, address in image.symbols.items())
    return Module(
        image.path,
        image.sha256,
        image.isa,
        min((start for start, _ in segments), default=image.base),
        max((end for _, end in segments), default=image.base),
        row.code_address(program.entry),
        row.address_bits,
        segments,
        tuple((address, name) for address, name in symbols if name),
    )
