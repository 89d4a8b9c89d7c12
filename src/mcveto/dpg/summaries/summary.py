"""What is claimed of a procedure, and what that means for a path that begins an activation of it.

`requires` speaks of the state in which an activation begins and of the address it is expected to return to, `ensures`
also of the state behind its return. The frame says which bytes are the same there: all outside the stack and all from
`above` bytes over the initial stack pointer on, except the ranges `written`. A quantifier over addresses is never
needed: as an assumption the frame is instantiated at every address that a formula reads behind the call, as a goal it
is shown for one address of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcveto.dpg.summaries.paths import Call
from mcveto.dpg.summaries.state import Names, State
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

Span = tuple[int, int]


@dataclass(frozen=True)
class Frame:
    stack_start: int
    above: int
    written: tuple[Span, ...] = ()
    """Address ranges outside the stack that may change, ends excluded."""

    def keeps(self, address: Term, stack_pointer: Term) -> Term:
        """Whether the byte at `address` is the same behind the return."""
        width = address.width
        unused = t.ule(t.add(stack_pointer, t.const(self.above, width)), address)
        outside = t.ult(address, t.const(self.stack_start, width))
        spared = [t.disj([t.ult(address, t.const(a, width)), t.ule(t.const(b, width), address)]) for a, b in self.written]
        return t.conj([t.disj([unused, outside]), *spared])


@dataclass
class Summary:
    requires: dict[Term, None] = field(default_factory=dict)
    ensures: dict[Term, None] = field(default_factory=dict)
    frame: Frame | None = None


def required(names: Names, call: Call, conditions: Iterable[Term]) -> list[Term]:
    """Conditions on the beginning of an activation, said of a call."""
    mapping = {**call.before.registers, names.memory: call.before.memory, names.return_to: call.return_to}
    return Substitution(mapping).apply_all(conditions)


def ensured(names: Names, call: Call, conditions: Iterable[Term]) -> list[Term]:
    """Conditions on an activation's beginning and return, said of a call."""
    mapping = {**call.before.registers, names.memory: call.before.memory, names.return_to: call.return_to}
    return Substitution({**mapping, **call.after.as_after()}).apply_all(conditions)


def ensured_by(names: Names, state: State, conditions: Iterable[Term]) -> list[Term]:
    """The same, said of the own activation that ends in `state`."""
    return Substitution(state.as_after()).apply_all(conditions)


def base_of(memory: Term) -> Term:
    while memory.op == "store":
        memory = memory.args[0]
    return memory


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
) -> dict[Term, int]:
    """Instances of the calls' frames for all that the terms, and the instances themselves, read: term and call."""
    memories = {call.after.memory: number for number, call in enumerate(calls)}
    found: dict[Term, int] = {}
    seen: set[Term] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        stack.extend(term.args)
        if term.op == "load":
            number = memories.get(base_of(term.args[0]))
            frame = frames[number] if number is not None else None
            if number is not None and frame is not None:
                axiom = kept_word(calls[number], names, frame, term)
                if axiom is not t.TRUE and axiom not in found:
                    found[axiom] = number
                    stack.append(axiom)
    return found
