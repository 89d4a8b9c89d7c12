"""Machine states along a path, over the state at the entry of the activation and the states behind summarised calls.

Variables named like registers and the memory `mem` are the state at entry. What a call leaves behind that is known by
its summary alone has variables of its own (`call 2 EAX`), and in summaries the state at the return has (`after EAX`).
`RETURN_TO` is the address that the activation is expected to return to: a ghost, set by whoever begins it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.program.program import Program

AFTER = "after "
RETURN_TO = "expected return"


class Names:
    """The variables of a program's states."""

    def __init__(self, program: Program) -> None:
        layout, row = program.decoder.layout, program.decoder.row
        self.address_bits = row.address_bits
        self.big_endian = row.big_endian
        self.registers = tuple(t.var(cell.name, layout.significant_bits(cell)) for cell in layout.cells)
        self.memory = t.memory("mem", row.address_bits)
        self.after_memory = self.renamed_memory(AFTER)
        (stack_pointer,) = layout.named(row.stack_pointer)
        self.stack_pointer = self.registers[stack_pointer.cell.number]
        self.return_to = t.var(RETURN_TO, row.address_bits)

    def renamed(self, register: Term, prefix: str) -> Term:
        return t.var(f"{prefix}{register.data}", register.width)

    def renamed_memory(self, prefix: str) -> Term:
        return t.memory(f"{prefix}mem", self.address_bits)

    def address(self, number: int) -> Term:
        return t.const(number, self.address_bits)


@dataclass(frozen=True, eq=False)
class State:
    """`registers` holds those that are not what they were at entry."""

    names: Names
    registers: Mapping[Term, Term]
    memory: Term
    _substitution: list[Substitution] = field(default_factory=list, repr=False)

    def value(self, term: Term) -> Term:
        """`term`, which speaks of this state, over the entry of the activation."""
        return self.values((term,))[0]

    def values(self, terms: Iterable[Term]) -> list[Term]:
        if not self._substitution:
            self._substitution.append(Substitution({**self.registers, self.names.memory: self.memory}))
        return self._substitution[0].apply_all(terms)

    def as_after(self) -> dict[Term, Term]:
        """What the variables of a summary's return stand for if the activation ends in this state."""
        names = self.names
        found = {names.renamed(register, AFTER): self.value(register) for register in names.registers}
        return {**found, names.after_memory: self.memory}


def identity(names: Names) -> State:
    return State(names, {}, names.memory)


def entry_state(program: Program, names: Names) -> State:
    """The states the program starts in, as far as something fixes them."""
    fixed = {
        names.registers[number]: t.const(value & ((1 << names.registers[number].width) - 1), names.registers[number].width)
        for number, value in program.registers.items()
    }
    return State(names, fixed, names.memory)


def unknown_state(names: Names, prefix: str) -> State:
    """A state of which nothing is known."""
    registers = {register: names.renamed(register, prefix) for register in names.registers}
    return State(names, registers, names.renamed_memory(prefix))
