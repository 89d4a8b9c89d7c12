"""What is claimed of a procedure, and what that means for a path that begins an activation of it.

`requires` speaks of the state in which an activation begins and of the address it is expected to return to, `ensures`
also of the state behind its return; the frame says which bytes are the same there. A quantifier over addresses is never
needed: as an assumption the frame is instantiated at every address that a formula reads behind the call, as a goal it
is shown for one address of which nothing is known.

Claims of the form "this register is that" make states simple and are used as definitions when paths are built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from mcveto.dpg.summaries.state import AFTER, Applied, Frame, Kept, Names, State
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

if TYPE_CHECKING:
    from mcveto.dpg.summaries.paths import Call, Path


@dataclass
class Summary:
    requires: dict[Term, None] = field(default_factory=dict)
    ensures: dict[Term, None] = field(default_factory=dict)
    frame: Frame | None = None
    begins: dict[Term, Term] = field(default_factory=dict)
    """Registers at the beginning that are something simpler; each of these is required, too."""
    returns: dict[Term, Term] = field(default_factory=dict)
    """Registers behind the return that are something of the beginning; each of these is ensured, too."""
    otherwise: dict[Term, list[Term]] = field(default_factory=dict)
    """What else registers behind the return may be, if it is not that."""

    def beginning(self, names: Names) -> State:
        return State(names, dict(self.begins), names.memory)

    def behind(self, names: Names, before: State, return_to: Term, prefix: str) -> State:
        """The state behind an activation that began in `before`."""
        said = before.with_more({names.return_to: return_to})
        registers = {
            register: said.of(self.returns[register]) if register in self.returns else names.renamed(register, prefix)
            for register in names.cells
        }
        memory = names.renamed_memory(prefix)
        kept = before.kept
        if self.frame is not None:
            kept = (*kept, Kept(memory, before.memory, before.value(names.stack_pointer), self.frame))
        return State(names, registers, memory, kept)


@dataclass(frozen=True)
class ProcedureClaims:
    """What a proof says of the procedure at `pc`."""

    pc: int
    requires: tuple[Term, ...]
    ensures: tuple[Term, ...]
    frame: Frame | None


@dataclass(frozen=True)
class ProcedureProof:
    """What is handed over as a proof: claims that are inductive together and exclude every bad end."""

    procedures: tuple[ProcedureClaims, ...]


def required(names: Names, call: Call, conditions: Iterable[Term]) -> list[Term]:
    """Conditions on the beginning of an activation, said of a call."""
    return call.before.with_more({names.return_to: call.return_to}).all(conditions)


def ensured(names: Names, call: Call, conditions: Iterable[Term]) -> list[Term]:
    """Conditions on an activation's beginning and return, said of a call."""
    mapping = {**call.before.registers, names.memory: call.before.memory, names.return_to: call.return_to}
    return Applied({**mapping, **call.after.as_after()}, call.after.kept).all(conditions)


def ensured_by(path: Path, conditions: Iterable[Term]) -> list[Term]:
    """The same, said of the own activation that ends as the path does."""
    return Applied({**path.start.registers, **path.state.as_after()}, path.state.kept).all(conditions)


def kept_word(call: Call, names: Names, frame: Frame, load: Term) -> Term:
    """That a word read in the memory behind a call is what it was before, if the frame says so."""
    size, big_endian = load.data
    address = load.args[1]
    stack_pointer = call.before.value(names.stack_pointer)
    kept = [frame.keeps(t.add(address, t.const(i, address.width)), stack_pointer) for i in range(size)]
    now = t.load(call.after.memory, address, size, big_endian)
    before = t.load(call.before.memory, address, size, big_endian)
    return t.implies(t.conj(kept), t.eq(now, before))


def frame_axioms(
    names: Names, calls: Sequence[Call], frames: Sequence[Frame | None], terms: Iterable[Term]
) -> dict[Term, None]:
    """Instances of the calls' frames for all that the terms, and the instances themselves, read."""
    memories = {call.after.memory: number for number, call in enumerate(calls)}
    found: dict[Term, None] = {}
    seen: set[Term] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        stack.extend(term.args)
        if term.op == "load":
            number = memories.get(t.base_of(term.args[0]))
            frame = frames[number] if number is not None else None
            if number is not None and frame is not None:
                axiom = kept_word(calls[number], names, frame, term)
                if axiom is not t.TRUE and axiom not in found:
                    found[axiom] = None
                    stack.append(axiom)
    return found


def equation(names: Names, register: Term, value: Term, is_after: bool) -> Term:
    """The claim that goes with a definition."""
    return t.eq(names.renamed(register, AFTER) if is_after else register, value)
