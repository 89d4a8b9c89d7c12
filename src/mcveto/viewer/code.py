"""The code of a program as the pages show it: functions, their blocks, and where control can go from each.

Code is followed from the entry and from every address that runs executed, through direct jumps and calls; targets of
computed jumps are known where a run took them. What is called is a function, and its body is what can be reached from
there without calls. This is for looking at, nothing is concluded from it; what is left out is said in `notes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcveto.machine.faults import Unsupported
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Instruction, Space
from mcveto.program.program import Program

MAX_INSTRUCTIONS = 40_000
_PADDING = 16


@dataclass(slots=True)
class Jumps:
    """Steps of runs that the code alone does not tell: targets by the program counter of a computed jump or call."""

    jumps: dict[int, set[int]] = field(default_factory=dict)
    calls: dict[int, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Line:
    instruction: Instruction
    direct: list[int]
    calls: list[int]
    branches: bool
    returns: bool
    computed: bool


class Code:
    def __init__(self, program: Program, executed: Iterable[int] = (), jumps: Jumps | None = None) -> None:
        self._program = program
        self._row = program.decoder.row
        self._jumps = jumps or Jumps()
        self._lines: dict[int, _Line] = {}
        self._entries: set[int] = {program.entry}
        self.notes: dict[str, None] = {}
        self._symbols = sorted((address, name) for name, address in program.image.symbols.items())
        self._follow([program.entry, *sorted(executed)])

    def name(self, pc: int) -> str:
        """symbol+offset, or the address."""
        address = self._row.code_address(pc)
        at = bisect_right(self._symbols, (address, "\U0010ffff")) - 1
        region = self._program.space.region_at(address)
        if at >= 0 and region is not None and region.start <= self._symbols[at][0]:
            base, name = self._symbols[at]
            return f"{name}+{address - base:#x}" if address > base else name
        return f"{address:#x}"

    def text(self, pc: int) -> str | None:
        line = self._lines.get(pc)
        return line.instruction.text if line is not None else None

    def _follow(self, worklist: list[int]) -> None:
        worklist.reverse()
        while worklist:
            pc = worklist.pop()
            if pc in self._lines:
                continue
            if len(self._lines) >= MAX_INSTRUCTIONS:
                self.notes[f"only the first {MAX_INSTRUCTIONS} instructions found are listed"] = None
                return
            line = self._line(pc)
            if line is None:
                continue
            self._lines[pc] = line
            self._entries.update(line.calls)
            worklist += [*line.calls, *line.direct]

    def _line(self, pc: int) -> _Line | None:
        instruction = self._instruction(pc)
        if instruction is None:
            return None
        following = (pc + instruction.size) & self._row.address_mask
        mode = pc & self._row.mode_mask
        line = _Line(instruction, [], [], False, False, False)
        falls = bool(instruction.size)
        for number, op in enumerate(instruction.ops):
            target = op.inputs[0] if op.inputs else None
            is_code = target is not None and target.space is Space.RAM
            if op.opcode in ("BRANCH", "CBRANCH") and target is not None and is_code:
                if target.offset not in self._program.targets or self._is_code(target.offset):
                    line.direct.append(target.offset | mode)
                    line.branches = line.branches or op.opcode == "CBRANCH"
            elif op.opcode == "CALL" and target is not None and is_code:
                line.calls.append(target.offset | mode)
            elif op.opcode in ("CALLIND", "BRANCHIND"):
                line.computed = True
            elif op.opcode == "RETURN":
                line.returns = True
            if number == len(instruction.ops) - 1:
                falls = falls and op.opcode not in ("BRANCH", "BRANCHIND", "RETURN")
        seen = sorted(self._jumps.jumps.get(pc, ()))
        line.direct += [target for target in seen if self._is_code(self._row.code_address(target))]
        line.calls += sorted(self._jumps.calls.get(pc, ()))
        if self._row.code_address(pc) in self._program.halts:
            return _Line(instruction, [], [], False, False, False)  # the run ends before it
        ends = {self._row.code_address(target) for target in line.calls} <= self._program.halts and line.calls
        if falls and not ends and not self._is_padding(following):
            line.direct.append(following)
        line.direct = [target for target in dict.fromkeys(line.direct) if target != pc or not falls]
        line.calls = list(dict.fromkeys(line.calls))
        return line

    def _is_code(self, address: int) -> bool:
        """Whether the file has something there; the targets that stand for typestate errors have no content."""
        region = self._program.space.region_at(address)
        return region is not None and bool(region.content)

    def _is_padding(self, pc: int) -> bool:
        """Whether only zeros follow: what runs into them (after a call that does not return) is no code."""
        address = self._row.code_address(pc)
        return not any(self._program.space.initial_byte(address + offset) or 0 for offset in range(_PADDING))

    def _instruction(self, pc: int) -> Instruction | None:
        hook = self._program.hooks.get(pc)
        if hook is not None:
            return hook
        address, space = self._row.code_address(pc), self._program.space
        region = space.region_at(address)
        if region is None or not region.permissions & EXECUTE or not region.content:
            return None
        code = bytearray()
        for offset in range(self._row.longest_unit(pc)):
            byte = space.initial_byte((address + offset) & space.mask)
            if byte is None:
                break
            code.append(byte)
        try:
            return self._program.decoder.decode(pc, bytes(code))
        except Unsupported as error:
            self.notes[f"not decoded: {error}"] = None
            return None

    def record(self) -> list[dict[str, Any]]:
        """The functions in the order of addresses, the one of the entry first."""
        owner: dict[int, int] = {}
        order = [self._program.entry, *sorted(self._entries - {self._program.entry})]
        bodies: dict[int, list[int]] = {}
        for entry in order:
            bodies[entry] = self._body(entry, owner)
        rest = sorted(pc for pc in self._lines if pc not in owner)
        while rest:  # code that runs jumped into by computed jumps
            bodies[rest[0]] = self._body(rest[0], owner)
            rest = [pc for pc in rest if pc not in owner]
        return [self._function(entry, body) for entry, body in bodies.items() if body]

    def _body(self, entry: int, owner: dict[int, int]) -> list[int]:
        found: list[int] = []
        worklist = [entry]
        while worklist:
            pc = worklist.pop()
            if pc in owner or pc not in self._lines or (pc != entry and pc in self._entries):
                continue
            owner[pc] = entry
            found.append(pc)
            worklist += self._lines[pc].direct
        return sorted(found)

    def _function(self, entry: int, body: list[int]) -> dict[str, Any]:
        inside = set(body)
        arrivals: dict[int, int] = {entry: 2}
        for pc in body:
            line = self._lines[pc]
            for target in line.direct:
                ends = len(line.direct) > 1 or bool(line.calls) or target not in self._next(pc)
                arrivals[target] = arrivals.get(target, 0) + (2 if ends else 1)
        blocks: list[dict[str, Any]] = []
        taken: set[int] = set()
        for pc in body:
            if pc in taken or (arrivals.get(pc, 0) < 2 and pc != entry and self._is_continued(pc, body, taken)):
                continue
            blocks.append(self._block(pc, inside, arrivals, taken))
        return {"name": self.name(entry), "entry": self._hex(entry), "blocks": blocks}

    def _next(self, pc: int) -> list[int]:
        return [(pc + self._lines[pc].instruction.size) & self._row.address_mask]

    def _is_continued(self, pc: int, body: list[int], taken: set[int]) -> bool:
        """Whether the block of another instruction will run into this one."""
        at = bisect_right(body, pc) - 2
        return at >= 0 and self._next(body[at]) == [pc] and body[at] not in taken and pc in self._lines[body[at]].direct

    def _block(self, pc: int, inside: set[int], arrivals: dict[int, int], taken: set[int]) -> dict[str, Any]:
        lines: list[list[str]] = []
        start, calls = pc, []
        while True:
            taken.add(pc)
            line = self._lines[pc]
            item = line.instruction
            lines.append([self._hex(pc), item.bytes.hex(), item.text])
            calls = line.calls
            (following,) = self._next(pc)
            goes_on = line.direct == [following] and not calls and not line.returns and not line.computed
            if not goes_on or arrivals.get(following, 0) > 1 or following not in inside or following in taken:
                break
            pc = following
        out = [[self._kind(line, following, target), self._hex(target)] for target in line.direct]
        out += [["call", self._hex(target)] for target in calls]
        out += [["return", ""]] if line.returns else []
        out += [["computed", ""]] if line.computed else []
        return {"at": self._hex(start), "name": self.name(start), "lines": lines, "out": out}

    def _kind(self, line: _Line, following: int, target: int) -> str:
        if target in self._entries:
            return "jump to function"
        if line.branches:
            return "else" if target == following else "taken"
        return "next" if target == following else "jump"

    def _hex(self, pc: int) -> str:
        return f"{self._row.code_address(pc):#x}"
