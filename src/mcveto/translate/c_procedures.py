"""Procedures in C: each a `void` function without parameters, its instructions in the order of addresses.

A procedure owns the addresses from its start to the next one. `mc_pc` holds the program counter whenever control
passes between procedures, so that the C stack is only a convenience: a procedure entered begins with a dispatch on
`mc_pc`; one that is left by a jump elsewhere returns, and whoever called it sees that `mc_pc` is not where it expected
to go on and dispatches again, up to the loop in `mc_run`. Returns to other places than the caller, tail calls, jumps
into the middle of procedures and recursion deeper than the C stack allows all come out right in this way.

For a verifier a return address is a value in memory, and that every call may go on anywhere more than it can explore.
Its task says instead that coming back to another place is an error, and a jump elsewhere is a call (MC_BACK, MC_LEAVE).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mcveto.machine.pcode import Transfer

from .c_expressions import constant
from .c_instruction import End, Here, Translated, comment, identifier
from .discovery import Code


@dataclass(slots=True)
class Procedure:
    name: str
    start: int
    """Its lowest address; the mode bit is not part of it."""
    end: int
    pcs: list[int] = field(default_factory=list)
    entries: set[int] = field(default_factory=set)
    """Where the dispatch at its beginning can lead."""


def partition(
    code: Code, code_address: Callable[[int], int], names: Mapping[int, str], boundaries: list[tuple[int, int]]
) -> list[Procedure]:
    """Every instruction in one procedure; `boundaries` are address ranges that no procedure crosses."""
    pcs = sorted(code.instructions, key=lambda pc: (code_address(pc), pc))
    starts = sorted({code_address(pc) for pc in code.starts})
    present = {code_address(pc) for pc in pcs}
    starts = [start for start in starts if start in present]
    procedures: list[Procedure] = []
    taken: set[str] = set()
    known = set(starts)
    limits = sorted(boundaries)
    limit = -1
    for pc in pcs:
        address = code_address(pc)
        starts_here = address in known and (not procedures or procedures[-1].start != address)
        if starts_here or address >= limit:
            limit = _limit(limits, address)
            name = f"fn_{identifier(names[address]) if address in names else f'{address:08x}'}"
            if name in taken:
                name = f"{name}_{address:08x}"
            taken.add(name)
            if procedures:
                procedures[-1].end = min(procedures[-1].end, address)
            procedures.append(Procedure(name, address, limit))
        procedures[-1].pcs.append(pc)
    return procedures


def _limit(boundaries: list[tuple[int, int]], address: int) -> int:
    for start, end in boundaries:
        if start <= address < end:
            return end
    return address + 1  # a stand-in for something outside the file


class ProcedurePrinter:
    """Prints procedures; knows to which one an address belongs."""

    def __init__(
        self,
        code: Code,
        procedures: list[Procedure],
        *,
        address_bits: int,
        mode_mask: int,
        names: Mapping[int, str],
        before: Callable[[int], list[str]],
        dispatch_all: bool,
    ) -> None:
        self._code = code
        self._procedures = procedures
        self._bits = address_bits
        self._mask = ((1 << address_bits) - 1) & ~mode_mask
        self._address_mask = (1 << address_bits) - 1
        self._mode_mask = mode_mask
        self._names = names
        self._before = before
        self._starts = [procedure.start for procedure in procedures]
        self._settle_entries(dispatch_all)

    def _settle_entries(self, dispatch_all: bool) -> None:
        for procedure in self._procedures:
            procedure.entries.add(procedure.pcs[0])
            whole = dispatch_all
            for pc in procedure.pcs:
                if pc in self._code.targets or pc in self._code.starts:
                    procedure.entries.add(pc)
                for end in self._code.instructions[pc].ends():
                    if end.target is None:
                        whole = whole or end.transfer is Transfer.JUMP
                        continue
                    owner = self.owner(end.target)
                    if owner is not None and (owner is not procedure or end.transfer is Transfer.CALL):
                        owner.entries.add(end.target)
            if whole:
                procedure.entries.update(procedure.pcs)

    def owner(self, pc: int) -> Procedure | None:
        """The procedure that has a translated instruction at `pc`."""
        if pc not in self._code.instructions:
            return None
        return self._procedures[bisect_right(self._starts, pc & self._mask) - 1]

    def number(self, value: int) -> str:
        return constant(value, self._bits)

    def address_text(self) -> str:
        """The address in `mc_pc`, without the mode bit."""
        return f"(mc_pc & {self.number(self._mask)})" if self._mode_mask else "mc_pc"

    def label(self, pc: int) -> str:
        name = self._names.get(pc & self._mask)
        if name is not None and not pc & self._mode_mask:
            return identifier(name)
        return f"L_{pc:08x}"

    def print(self, procedure: Procedure) -> Iterator[str]:
        """The lines of one procedure."""
        members = set(procedure.pcs)
        labels: dict[int, str] = {}
        redispatches = False
        for at, pc in enumerate(procedure.pcs):
            following = procedure.pcs[at + 1] if at + 1 < len(procedure.pcs) else None
            translated = self._code.instructions[pc]
            for end in translated.ends():
                target = self._return_point(translated) if end.transfer is Transfer.CALL else end.target
                calls = end.transfer is Transfer.CALL and end.target != target
                redispatches = redispatches or calls or (end.transfer is Transfer.JUMP and end.target is None)
                if target is not None and target in members and target != following:
                    labels[target] = ""
        for pc in sorted(procedure.entries):
            labels[pc] = ""
        taken: set[str] = set()
        for pc in labels:
            name = self.label(pc)
            labels[pc] = name if name not in taken else f"{name}_{pc:08x}"
            taken.add(labels[pc])
        yield f"void {procedure.name}(void) {{"
        if redispatches:
            yield "mc_dispatch:"
        yield "  switch (mc_pc) {"
        for pc in sorted(procedure.entries):
            yield f"  case {self.number(pc)}: goto {labels[pc]};"
        yield "  default: break;"
        yield "  }"
        inside = f"{self.address_text()} - {self.number(procedure.start)} < "
        yield f"  if ({inside}{self.number(procedure.end - procedure.start)}) mc_nowhere();"
        yield "  MC_LEAVE();"
        yield "  return;"
        for at, pc in enumerate(procedure.pcs):
            following = procedure.pcs[at + 1] if at + 1 < len(procedure.pcs) else None
            if pc in labels:
                yield f"{labels[pc]}: ;"
            yield from self._instruction(self._code.instructions[pc], procedure, following, labels)
        yield "}"

    def _return_point(self, translated: Translated) -> int:
        return translated.following & self._address_mask

    def _instruction(
        self, translated: Translated, procedure: Procedure, following: int | None, labels: dict[int, str]
    ) -> Iterator[str]:
        instruction = translated.instruction
        address = instruction.pc & self._mask
        yield f"  /* {address:#010x}: {instruction.bytes.hex() or 'hook'}  {comment(instruction.text)} */"
        for text in self._before(instruction.pc):
            yield f"  {text}"
        scoped = any(isinstance(line.content, str) and _declares(line.content) for line in translated.lines)
        margin = "    " if scoped else "  "
        if scoped:
            yield "  {"
        otherwise = ""  # an `else` that is only worth printing if something follows
        for line in translated.lines:
            indent = margin + "  " * line.depth
            if line.content == "} else {":
                otherwise = indent + line.content
                continue
            if isinstance(line.content, str):
                texts = [line.content]
            elif isinstance(line.content, Here):
                texts = [f"MC_AT({self.number(instruction.pc)});"]
            else:
                texts = list(self._end(translated.resolved(line.content), translated, procedure, following, labels))
            if otherwise and texts:
                if texts != ["}"]:
                    yield otherwise
                otherwise = ""
            yield from (indent + text for text in texts)
        if scoped:
            yield "  }"

    def _end(
        self, end: End, translated: Translated, procedure: Procedure, following: int | None, labels: dict[int, str]
    ) -> Iterator[str]:
        if end.transfer is Transfer.RETURN and end.target is None:
            yield "return;"
            return
        target = end.target
        if end.transfer is Transfer.CALL:
            back = self._return_point(translated)
            if target != back:
                yield from self._call(target)
                yield f"MC_BACK({self.number(back)});"
            target = back
        if target is None:
            yield "goto mc_dispatch;"
        elif target == following:
            return
        elif target in labels and self.owner(target) is procedure:
            yield f"goto {labels[target]};"
        else:
            yield f"mc_pc = {self.number(target)};"
            owner = self.owner(target)
            if owner is not None:
                yield f"MC_CALL({owner.name});"
            yield "return;"

    def _call(self, target: int | None) -> Iterator[str]:
        owner = None
        if target is not None:
            owner = self.owner(target)
            name = self._names.get(target & self._mask) if owner is None else None
            yield f"mc_pc = {self.number(target)};" + (f" /* {comment(name)} */" if name else "")
        yield f"MC_CALL({owner.name if owner is not None else 'mc_enter'});"

    def print_enter(self) -> Iterator[str]:
        """The function that enters the procedure `mc_pc` points into: a binary search over their starts."""
        yield "void mc_enter(void) {"
        yield f"  const u{self._bits} at = {self.address_text()};"
        yield from self._search(0, len(self._procedures), "  ")
        yield "}"

    def _search(self, low: int, high: int, indent: str) -> Iterator[str]:
        if high - low == 0:
            yield f"{indent}(void)at;"
            yield f"{indent}mc_nowhere();"
        elif high - low == 1:
            procedure = self._procedures[low]
            size = self.number(procedure.end - procedure.start)
            yield f"{indent}if (at - {self.number(procedure.start)} < {size}) {procedure.name}();"
            yield f"{indent}else mc_nowhere();"
        else:
            middle = (low + high) // 2
            yield f"{indent}if (at < {self.number(self._procedures[middle].start)}) {{"
            yield from self._search(low, middle, indent + " ")
            yield f"{indent}}} else {{"
            yield from self._search(middle, high, indent + " ")
            yield f"{indent}}}"


def _declares(line: str) -> bool:
    return line.startswith(("u32 mc", "u64 mc", "u128 mc"))
