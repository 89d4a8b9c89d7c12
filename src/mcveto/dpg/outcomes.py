"""What a block can do from a location: all its outcomes as guarded substitutions.

The block runs in the symbolic domain from the identity state of its location (registers and memory are variables, the
stack and frame pointers constants), once per combination of decisions. An outcome is a guard over the state before,
and the state after as terms over the state before; `Pre(outcome, ψ)` is the guard and ψ under the substitution
(TR1669 §3.4). Outcomes in which the run faults have no successor and are left out: the machine stops there, except at
system calls and at what belongs to another module (see `surroundings`).

Together the outcomes are complete: every state of the location that has a successor satisfies the guard of the outcome
that leads there, for some value of the fresh variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from mcveto.dpg.location import ANY, Location
from mcveto.dpg.surroundings import Surroundings
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.pcode import FreshOrigin, Instruction, Transfer
from mcveto.machine.symbolic import ConstraintKind, SymbolicDomain
from mcveto.machine.symbolic_memory import SymbolicMemory
from mcveto.program.program import Program

# More ways through one block than this are refused (the path is cut: UNKNOWN), not enumerated.
MAX_OUTCOMES = 256


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way through a block. `unsupported` is set where we do not know how it goes on."""

    guard: tuple[Term, ...]
    transfer: Transfer
    target: Term
    state: dict[Term, Term]
    memory: Term
    fresh: tuple[Term, ...]
    following: int
    """The address after the block: what a call is expected to return to."""
    unsupported: str = ""
    _substitution: list[Substitution] = field(default_factory=list, repr=False, compare=False)
    """Shared by all that differ only in their target."""

    def after(self, predicate: Term) -> Term:
        """`predicate`, which speaks of the state after, as a condition on the state before."""
        return self.all_after((predicate,))[0]

    def all_after(self, predicates: Iterable[Term]) -> list[Term]:
        if not self._substitution:
            self._substitution.append(Substitution(self.state))
        return self._substitution[0].apply_all(predicates)


class OutcomeTable:
    """Outcomes per location, computed once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._interpreter: Interpreter[Term] = Interpreter(program.decoder)
        self._known: dict[tuple[int, bytes, int, int], tuple[Outcome, ...]] = {}
        layout = program.decoder.layout
        row = program.decoder.row
        (self.stack_pointer,) = layout.named(row.stack_pointer)
        (self.frame_pointer,) = layout.named(row.frame_pointer)
        self.memory = t.memory("mem", row.address_bits)
        self._surroundings = Surroundings(program)

    def of(self, location: Location, block: tuple[Instruction, ...]) -> tuple[Outcome, ...]:
        key = (location.pc, location.code, location.stack_pointer, location.frame_pointer)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._enumerate(location, block))
        return found

    def _enumerate(self, location: Location, block: tuple[Instruction, ...]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        scripts: list[list[bool]] = [[]]
        while scripts:
            script = scripts.pop()
            outcome = self._follow(location, block, script, scripts)
            if outcome is not None:
                outcomes.append(outcome)
            if len(outcomes) + len(scripts) > MAX_OUTCOMES:
                return [self._cut(block, (), f"more than {MAX_OUTCOMES} ways through the block at {location}")]
        return outcomes

    def _follow(
        self, location: Location, block: tuple[Instruction, ...], script: Sequence[bool], scripts: list[list[bool]]
    ) -> Outcome | None:
        """The outcome of one script of decisions; decisions beyond it are taken one way, the other is queued."""
        taken: list[bool] = []
        fresh: list[Term] = []

        def choose(condition: Term) -> bool:
            if is_access[0]:
                return True
            if len(taken) < len(script):
                way = script[len(taken)]
            else:
                scripts.append([*taken, False])
                way = True
            taken.append(way)
            return way

        def make_fresh(bits: int, origin: FreshOrigin, usual: Term) -> Term:
            prefix = "input" if origin is FreshOrigin.INPUT else "undefined"
            variable = t.var(f"{prefix}!{len(fresh)}", bits)
            fresh.append(variable)
            return variable

        is_access = [False]
        program = self._program
        memory = SymbolicMemory(program.space, "mem", at_entry=False)
        domain = _BlockDomain(program.decoder.layout, program.space, choose, make_fresh, memory)
        domain.is_access = is_access
        domain.surroundings = self._surroundings
        for piece, value in (
            (self.stack_pointer, location.stack_pointer),
            (self.frame_pointer, location.frame_pointer),
        ):
            if value != ANY:
                domain.registers[piece.cell.number] = t.const(value, piece.cell.bits)
        try:
            for instruction in block:
                step = self._interpreter.execute(instruction, domain)
        except Fault as fault:
            return self._faulted(block, instruction, domain, fault, tuple(fresh))
        except Unsupported as error:
            return self._cut(block, tuple(item.term for item in domain.path), str(error), tuple(fresh))
        guard = tuple(item.term for item in domain.path)
        if any(term is t.FALSE for term in guard):
            return None
        target = step.target
        assert isinstance(target, Term)
        layout = program.decoder.layout
        state: dict[Term, Term] = {}
        for number in sorted(domain.registers):
            cell = layout.cells[number]
            variable = t.var(cell.name, layout.significant_bits(cell))
            state[variable] = t.extract(domain.registers[number], variable.width - 1, 0)
        state[self.memory] = domain.memory.term
        return Outcome(
            guard, step.transfer, target, state, domain.memory.term, tuple(fresh), self._following(block[-1])
        )

    def _faulted(
        self,
        block: tuple[Instruction, ...],
        instruction: Instruction,
        domain: SymbolicDomain,
        fault: Fault,
        fresh: tuple[Term, ...],
    ) -> Outcome | None:
        """None where the run ends; a cut where the program goes on in a way we do not know."""
        found = self._surroundings.goes_on(fault, domain)
        if found is None:
            return None
        why, conditions = found
        guard = (*(item.term for item in domain.path), *conditions)
        if any(term is t.FALSE for term in guard):
            return None
        return self._cut(block, guard, f"{why} at {instruction.pc:#x}", fresh)

    def _following(self, last: Instruction) -> int:
        row = self._program.decoder.row
        return (last.pc + last.size) & row.address_mask

    def _cut(
        self, block: tuple[Instruction, ...], guard: tuple[Term, ...], why: str, fresh: tuple[Term, ...] = ()
    ) -> Outcome:
        width = self._program.decoder.row.address_bits
        nowhere = t.const(self._program.return_sentinel, width)
        return Outcome(guard, Transfer.JUMP, nowhere, {}, self.memory, fresh, self._following(block[-1]), why)


class _BlockDomain(SymbolicDomain):
    """The symbolic domain; tells its chooser apart questions about access rights, where only one way goes on, and cuts
    the path of an access that may belong to another module."""

    is_access: list[bool]
    surroundings: Surroundings

    def _may_access(self, address: Term, size: int, needed: int) -> None:
        if address.op != "const":
            elsewhere = t.conj([t.bnot(self.space.allowed(address, size, needed)), self.surroundings.foreign(address)])
            if elsewhere is not t.FALSE and self._choose(elsewhere):
                self.assume(ConstraintKind.ACCESS, elsewhere)
                raise Unsupported("an access that may be to something outside the file")
        self.is_access[0] = True
        try:
            super()._may_access(address, size, needed)
        finally:
            self.is_access[0] = False
