"""Steps between nodes as literals: what a state must satisfy to step from one location into another, or into TS.

Literals speak of the state before the step (and of the step's fresh values); their conjunction is exactly the states
that make the step. They are kept apart so that an unsatisfiable core can name the ones that matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcveto.dpg.location import ANY, Blocks, Fold, Location
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.surroundings import Surroundings
from mcveto.dpg.ways import INTERNAL, Exits, Kind, Way
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program

Literals = tuple[Term, ...]


class Steps:
    """Where locations keep no call string, a return is told the address it is expected to go to."""

    def __init__(self, program: Program, blocks: Blocks, outcomes: OutcomeTable, fold: Fold = Fold.FRAME) -> None:
        self._program = program
        self._fold = fold
        self._blocks = blocks
        self._outcomes = outcomes
        self._row = program.decoder.row
        layout = program.decoder.layout
        (stack_pointer,) = layout.named(self._row.stack_pointer)
        (frame_pointer,) = layout.named(self._row.frame_pointer)
        self._stack_pointer = t.var(stack_pointer.cell.name, stack_pointer.cell.bits)
        self._frame_pointer = t.var(frame_pointer.cell.name, frame_pointer.cell.bits)
        self._surroundings = Surroundings(program)
        # A target that is also a halt is a target.
        self.ends = sorted((program.halts | {self._row.code_address(program.return_sentinel)}) - program.targets)
        replaced = {self._row.code_address(pc) for pc in program.hooks}
        self._entered = sorted(address for address in program.targets | replaced if not self._is_executable(address))

    def outcomes(self, location: Location) -> tuple[Outcome, ...]:
        return self._outcomes.of(location, self._blocks.of(location))

    def exits(self, location: Location) -> Exits:
        """In which ways the block of a location can end."""
        outcomes = self.outcomes(location)
        returns = [self.is_return(outcome) for outcome in outcomes]
        return Exits(not all(returns), any(returns))

    def is_return(self, outcome: Outcome) -> bool:
        """Whether the auxiliary stack says where this outcome must go."""
        matched = self._fold is not Fold.UNMATCHED
        return matched and outcome.transfer is Transfer.RETURN and not outcome.unsupported

    def way(self, outcome: Outcome, expected: int | None) -> Way:
        """How the outcome leaves its location; a return is one to `expected`."""
        if self._fold is not Fold.PC:
            return INTERNAL
        if self.is_return(outcome):
            return INTERNAL if expected is None else Way(Kind.RETURN, expected)
        return Way(Kind.CALL, outcome.following) if outcome.transfer is Transfer.CALL else INTERNAL

    def into(
        self,
        source: Location,
        outcome: Outcome,
        target: Location,
        predicate: Iterable[Term],
        expected: int | None = None,
    ) -> Literals | None:
        """What takes `outcome` from `source` into the states of `target` that satisfy `predicate`; None if nothing."""
        if outcome.unsupported:
            return None
        arrival = self.arrival(source, outcome, target, expected)
        if arrival is None:
            return None
        after = outcome.all_after(predicate)
        step = None if t.FALSE in after else _checked([*outcome.guard, *arrival])
        if step is None:
            return None
        # A node that was split often has a long predicate, so its literals are not looked at one by one.
        return (*step, *(after if t.TRUE not in after else (literal for literal in after if literal is not t.TRUE)))

    def arrival(
        self, source: Location, outcome: Outcome, target: Location, expected: int | None = None
    ) -> Literals | None:
        """When `outcome` ends in `target`; None if never."""
        literals: list[Term] = []
        frames = source.frames
        if self.is_return(outcome):
            address = self.expected_return(source, expected)
            if address is None:
                return None
            literals.append(self.goes_to(outcome, address))
            frames = None if frames is None else frames[:-1]
        elif outcome.transfer is Transfer.CALL and frames is not None:
            frames = (*frames, outcome.following)
        if frames != target.frames:
            return None
        literals.append(self.goes_to(outcome, target.pc))
        for register, value in (
            (self._stack_pointer, target.stack_pointer),
            (self._frame_pointer, target.frame_pointer),
        ):
            if value != ANY:
                after = outcome.state.get(register, register)
                literals.append(t.eq(after, t.const(value, after.width)))
        if self._blocks.fixed_block(target.pc) is None:
            address_term = t.const(self._row.code_address(target.pc), self._row.address_bits)
            order = "big" if self._row.big_endian else "little"
            code = t.load(self._outcomes.memory, address_term, len(target.code), self._row.big_endian)
            value = int.from_bytes(target.code, order)  # type: ignore[arg-type]
            literals.append(outcome.after(t.eq(code, t.const(value, code.width))))
        return _checked(literals)

    def outside(
        self, source: Location, outcome: Outcome, known: Iterable[Location], expected: int | None = None
    ) -> list[Literals]:
        """The ways `outcome` leads into TS: into none of the known successors and no halt, or violating the return."""
        if outcome.unsupported:
            ways = [_checked(outcome.guard)]
        elif self.is_return(outcome):
            address = self.expected_return(source, expected)
            if address is None:
                ways = [_checked(outcome.guard)]
            else:
                there = t.const(address, self._row.address_bits)
                matched = t.eq(outcome.target, there)
                returned = replace(outcome, target=there)
                ways = [
                    _checked([*outcome.guard, t.bnot(matched)]),
                    _checked([*outcome.guard, matched, *self._elsewhere(source, returned, known, address)]),
                ]
        else:
            ways = [_checked([*outcome.guard, *self._elsewhere(source, outcome, known, expected)])]
        return [way for way in ways if way is not None]

    def expected_return(self, source: Location, expected: int | None) -> int | None:
        """Where a return from `source` must go; None if it must not return at all."""
        if source.frames is None:
            return expected
        return source.frames[-1] if source.frames else None

    def _elsewhere(
        self, source: Location, outcome: Outcome, known: Iterable[Location], expected: int | None
    ) -> list[Term]:
        # A jump to where nothing can be executed is a fault: the run ends there.
        elsewhere = [self.executable(outcome)]
        for target in sorted(known):
            arrival = self.arrival(source, outcome, target, expected)
            if arrival is not None:
                elsewhere.append(t.bnot(t.conj(arrival)))
        elsewhere.extend(t.bnot(self.ends_at(outcome, end)) for end in self.ends)
        return elsewhere

    def executable(self, outcome: Outcome) -> Term:
        """When `outcome` goes where instructions can be fetched, or to another module; elsewhere it faults.

        A target or a replaced function is reached wherever it is: nothing is fetched there."""
        width = self._row.address_bits
        plain = t.band(outcome.target, t.const(~self._row.mode_mask, width))
        entered = [t.eq(plain, t.const(address, width)) for address in self._entered]
        return t.disj([self._program.space.allowed(plain, 1, EXECUTE), self._surroundings.foreign(plain), *entered])

    def _is_executable(self, address: int) -> bool:
        region = self._program.space.region_at(address)
        return region is not None and bool(region.permissions & EXECUTE)

    def ends_at(self, outcome: Outcome, end: int) -> Term:
        """When `outcome` goes to a halt."""
        width = self._row.address_bits
        plain = t.band(outcome.target, t.const(~self._row.mode_mask, width))
        return t.eq(plain, t.const(end, width))

    def goes_to(self, outcome: Outcome, pc: int) -> Term:
        return t.eq(outcome.target, t.const(pc, self._row.address_bits))


def _checked(literals: Iterable[Term]) -> Literals | None:
    """The literals without those that always hold; None if one never does."""
    kept: dict[Term, None] = {}
    for literal in literals:
        if literal is t.FALSE:
            return None
        if literal.op == "and":
            kept.update(dict.fromkeys(part for part in literal.args if part is not t.TRUE))
        elif literal is not t.TRUE:
            kept[literal] = None
    return tuple(kept)
