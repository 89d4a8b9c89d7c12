"""Machine states along a path, over the state in which the activation began and the states behind summarised calls.

Variables named like registers and the memory `mem` are the state at the beginning. What a call leaves behind that is
known by its summary alone has variables of its own (`call 2 EAX`), and in summaries the state at the return has (`after
EAX`). `RETURN_TO` is the address that the activation is expected to return to: a ghost, set by whoever begins it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from mcveto.late_methods import dataclass
from mcveto.logic import linear
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.program.program import Program

AFTER = "after "
RETURN_TO = "expected return"
Span = tuple[int, int]


class Names:
    """The variables of a program's states; `registers` may be narrowed to those that claims are worth making of."""

    def __init__(self, program: Program) -> None:
        layout, row = program.decoder.layout, program.decoder.row
        self.address_bits = row.address_bits
        self.big_endian = row.big_endian
        self.cells = tuple(t.var(cell.name, layout.significant_bits(cell)) for cell in layout.cells)
        self.registers: tuple[Term, ...] = self.cells
        self.memory = t.memory("mem", row.address_bits)
        self.after_memory = self.renamed_memory(AFTER)
        (stack_pointer,) = layout.named(row.stack_pointer)
        self.stack_pointer = self.cells[stack_pointer.cell.number]
        self.return_to = t.var(RETURN_TO, row.address_bits)
        stacks = [(region.start, region.end) for region in program.space.regions if region.name == "stack"]
        self.stack: Span = stacks[0]

    def renamed(self, register: Term, prefix: str) -> Term:
        return t.var(f"{prefix}{register.data}", register.width)

    def renamed_memory(self, prefix: str) -> Term:
        return t.memory(f"{prefix}mem", self.address_bits)

    def address(self, number: int) -> Term:
        return t.const(number, self.address_bits)

    def word(self, memory: Term, address: Term) -> Term:
        return t.load(memory, address, self.address_bits // 8, self.big_endian)


@dataclass(frozen=True)
class Frame:
    """The memory that an activation leaves alone: all outside the stack and all from `above` bytes over the initial
    stack pointer on, except the ranges `written`."""

    stack: Span
    above: int
    written: tuple[Span, ...] = ()
    """Address ranges outside the stack that may change, ends excluded."""

    def keeps(self, address: Term, stack_pointer: Term) -> Term:
        """Whether the byte at `address` is the same behind the return."""
        width = address.width
        unused = t.ule(t.add(stack_pointer, t.const(self.above, width)), address)
        outside = t.ult(address, t.const(self.stack[0], width))
        spared = [
            t.disj([t.ult(address, t.const(start, width)), t.ule(t.const(end, width), address)])
            for start, end in self.written
        ]
        return t.conj([t.disj([unused, outside]), *spared])

    def leaves_free(self, address: Term, size: int, stack_pointer: Term) -> Term:
        """Whether all bytes of a word are in one range that need not be the same: `keeps` of none of them holds."""
        width = address.width
        last = t.add(address, t.const(size - 1, width))
        whole = t.ule(address, last)
        free = t.add(stack_pointer, t.const(self.above, width))
        ways = [t.conj([whole, t.ule(t.const(self.stack[0], width), address), t.ult(last, free)])]
        for start, end in self.written:
            ways.append(t.conj([whole, t.ule(t.const(start, width), address), t.ult(last, t.const(end, width))]))
        return t.disj(ways)

    def surely_keeps(self, address: Term, size: int, stack_pointer: Term) -> bool:
        """The same without a question, if the stack pointer is in the stack."""
        start, end = self.stack
        if address.op == "const" and not start <= address.data < end:
            outside = address.data + size <= start or address.data >= end
            return outside and not any(a < address.data + size and address.data < b for a, b in self.written)
        offset = linear.distance(address, stack_pointer)
        return offset is not None and self.above <= offset < end - start


class Kept(NamedTuple):
    """The memory behind a call, of which a part is what it was before."""

    memory: Term
    before: Term
    stack_pointer: Term
    frame: Frame


class Applied:
    """A substitution in which reads of memory behind calls look through what the calls keep."""

    def __init__(self, mapping: Mapping[Term, Term], kept: Sequence[Kept] = ()) -> None:
        self._substitution = Substitution(mapping, self._through)
        self._kept = {item.memory: item for item in kept}

    def all(self, terms: Iterable[Term]) -> list[Term]:
        return self._substitution.apply_all(terms)

    def of(self, term: Term) -> Term:
        return self._substitution.apply(term)

    def _through(self, load: Term) -> Term:
        """A word read behind a call that keeps it, read before the call."""
        while load.op == "load":
            kept = self._kept.get(load.args[0])
            size, big_endian = load.data
            if kept is None or not kept.frame.surely_keeps(load.args[1], size, kept.stack_pointer):
                break
            load = t.load(kept.before, load.args[1], size, big_endian)
        return load


@dataclass(frozen=True, eq=False)
class State:
    """`registers` holds those that are not what they were at the beginning."""

    names: Names
    registers: Mapping[Term, Term]
    memory: Term
    kept: tuple[Kept, ...] = ()
    _applied: list[Applied] = field(default_factory=list, repr=False)

    def value(self, term: Term) -> Term:
        """`term`, which speaks of this state, over the beginning of the activation."""
        return self.values((term,))[0]

    def values(self, terms: Iterable[Term]) -> list[Term]:
        if not self._applied:
            self._applied.append(self.with_more({}))
        return self._applied[0].all(terms)

    def with_more(self, mapping: Mapping[Term, Term]) -> Applied:
        return Applied({**self.registers, self.names.memory: self.memory, **mapping}, self.kept)

    def as_after(self) -> dict[Term, Term]:
        """What the variables of a summary's return stand for if the activation ends in this state."""
        names = self.names
        found = {names.renamed(register, AFTER): self.value(register) for register in names.registers}
        return {**found, names.after_memory: self.memory}
