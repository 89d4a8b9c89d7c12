"""The largest set of claims about procedures that is inductive, out of candidates (Houdini; Flanagan, Leino 2001).

All candidates are assumed of the activation itself and of those it begins. Along every path, what is claimed of the
return and what the activations on the way require must follow; what does not is dropped, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcveto.dpg.strengthen.queries import OutOfTime
from mcveto.dpg.summaries import at_sight
from mcveto.dpg.summaries.paths import Call, End, Path
from mcveto.dpg.summaries.state import Frame, Names
from mcveto.dpg.summaries.summary import Summary, ensured, ensured_by, equation, frame_axioms, required
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import Solver, make_solver
from mcveto.logic.terms import Term
from mcveto.program.program import Program

Summaries = Mapping[int, Summary]
QUERY_SECONDS = 10.0
# A candidate that takes longer is not worth it: there are many.
CLAIM_SECONDS = 2.0
FEW_GOALS = 4
FRAME = t.var("the claim about memory", 1)
SOME_ADDRESS = "some address"


@dataclass(frozen=True)
class Claim:
    """`term` is a claim of `procedure`: of what it requires, or of what it ensures; or its frame."""

    procedure: int
    is_required: bool
    term: Term


class PathQuestions:
    """What a path asks: do these claims follow at its end from those?"""

    def __init__(self, program: Program, names: Names, path: Path, make: Callable[[], Solver]) -> None:
        self.path = path
        self._program = program
        self._names = names
        self._solver = make()
        self._known: dict[Claim, tuple[Term, ...]] = {}
        self._goals: dict[Claim, Term] = {}
        self._asserted: set[Term] = set()
        self._is_asked = False
        self.count = 0
        for literal in path.guard:
            self._solver.add(literal)
        self._tell_bytes(path.guard)

    @property
    def _calls(self) -> tuple[Call, ...]:
        """The activations that have returned."""
        return self.path.calls[:-1] if self.path.end is End.BEGIN else self.path.calls

    def assumptions(self, summaries: Summaries) -> dict[Claim, None]:
        """The claims that the path may use."""
        path = self.path
        found: dict[Claim, None] = {}
        if path.procedure is not None:
            found.update({Claim(path.procedure, True, term): None for term in summaries[path.procedure].requires})
        for call in self._calls:
            found.update({Claim(call.procedure, False, term): None for term in summaries[call.procedure].ensures})
        return found

    def goals(self, summaries: Summaries) -> list[Claim]:
        """The claims that the path must show."""
        path = self.path
        if path.end is End.BEGIN:
            callee = path.calls[-1].procedure
            return [Claim(callee, True, term) for term in summaries[callee].requires]
        if path.end is End.RETURN and path.procedure is not None:
            claims = [Claim(path.procedure, False, term) for term in summaries[path.procedure].ensures]
            if summaries[path.procedure].frame is not None:
                claims.append(Claim(path.procedure, False, FRAME))
            return claims
        return []

    def _known_terms(self, claim: Claim) -> tuple[Term, ...]:
        found = self._known.get(claim)
        if found is None:
            if claim.is_required:
                found = (self.path.start.value(claim.term),)
            else:
                found = tuple(
                    ensured(self._names, call, [claim.term])[0]
                    for call in self._calls
                    if call.procedure == claim.procedure
                )
            self._known[claim] = found
        return found

    def _goal_term(self, claim: Claim, summaries: Summaries) -> Term:
        if claim.term is FRAME:
            frame = summaries[claim.procedure].frame
            return t.TRUE if frame is None else self._frame_goal(frame, summaries)
        found = self._goals.get(claim)
        if found is None:
            if claim.is_required:
                found = required(self._names, self.path.calls[-1], [claim.term])[0]
            else:
                found = ensured_by(self.path, [claim.term])[0]
            self._goals[claim] = found
        return found

    def _frame_goal(self, own: Frame, summaries: Summaries) -> Term:
        """That nothing which is to be kept is written: by no store on the path, and by no activation within it.

        More than is needed (a byte may be written with what it holds), but without a word about memory's contents."""
        names = self._names
        stack_pointer = self.path.start.value(names.stack_pointer)
        where = t.var(SOME_ADDRESS, names.address_bits)
        memory, parts = self.path.state.memory, []
        after = {call.after.memory: call for call in self._calls}
        while memory is not names.memory:
            if memory.op == "store":
                memory, address, value = memory.args
                parts.append(own.leaves_free(address, value.width // 8, stack_pointer))
                continue
            call = after[memory]
            frame, memory = summaries[call.procedure].frame, call.before.memory
            if frame is None:
                return t.FALSE
            kept = frame.keeps(where, call.before.value(names.stack_pointer))
            parts.append(t.implies(own.keeps(where, stack_pointer), kept))
        return t.conj(parts)

    def unshown(self, goals: Sequence[Claim], summaries: Summaries, timeout: float) -> list[Claim]:
        """The goals that do not follow, as far as one answer tells; empty only if all of them do."""
        wanted = [self._goal_term(goal, summaries) for goal in goals]
        answer, terms = self._ask(t.bnot(t.conj(wanted)), summaries, timeout if len(goals) == 1 else timeout / 4)
        if answer == "unsat":
            return []
        wrong: list[Claim] = []
        if answer == "sat":
            evaluator = self._evaluator(terms)
            wrong = [goal for goal, term in zip(goals, wanted, strict=True) if not evaluator.value(term)]
        if wrong or len(goals) == 1:
            return wrong or list(goals)
        # One that is hard should not cost those beside it; rows of a table are easy one by one.
        few = FEW_GOALS if len(goals) > FEW_GOALS else 1
        parts = [goals[at : at + few] for at in range(0, len(goals), few)]
        return [goal for some in parts for goal in self.unshown(some, summaries, timeout)]

    def is_at_sight(self, goal: Claim, summaries: Summaries) -> bool:
        """Whether a goal follows without a solver."""
        if goal.is_required or goal.term is FRAME:
            return False
        facts = [term for claim in self.assumptions(summaries) for term in self._known_terms(claim)]
        return at_sight.follows(self._goal_term(goal, summaries), [*self.path.guard, *facts], 2 + len(self._calls))

    def is_impossible(self, summaries: Summaries, timeout: float) -> bool:
        """Whether the claims exclude that the path is taken."""
        return self._ask(t.TRUE, summaries, timeout)[0] == "unsat"

    def needed(self, goal: Claim | None, summaries: Summaries, timeout: float) -> set[Claim] | None:
        """Claims that suffice for a goal of the path, or to exclude the path; None if that is not decided."""
        question = t.TRUE if goal is None else t.bnot(self._goal_term(goal, summaries))
        if question is t.FALSE:
            return set()
        if self._ask(question, summaries, timeout)[0] != "unsat":
            return None
        core = set(self._solver.core()) if self._is_asked else set()
        return {
            claim
            for claim in self.assumptions(summaries)
            if any(term in core or term is t.FALSE for term in self._known_terms(claim))
        }

    def inputs(self, summaries: Summaries, others_than: Sequence[Sequence[int]], timeout: float) -> list[int] | None:
        """Inputs, in the order in which the path consumes its own, with which the claims allow it to be taken."""
        made = [item for item in self.path.fresh if str(item.data).startswith("input!")]
        new = [
            t.disj(t.ne(item, t.const(value, item.width)) for item, value in zip(made, values, strict=True))
            for values in others_than
        ]
        if not made or self._ask(t.conj(new), summaries, timeout)[0] != "sat":
            return None
        return [self._solver.value(item) for item in made]

    def activations(
        self, summaries: Summaries, places: Mapping[int, Sequence[Term]], timeout: float
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Procedures with what some `places` hold where the path begins them, if it is taken as the claims allow."""
        answer, terms = self._ask(t.TRUE, summaries, timeout)
        if answer != "sat":
            return []
        evaluator = self._evaluator(terms)
        found = [(call.procedure, call.before.values(places[call.procedure])) for call in self.path.calls]
        return [(procedure, tuple(map(evaluator.value, values))) for procedure, values in found]

    def _ask(self, question: Term, summaries: Summaries, timeout: float) -> tuple[str, list[Term]]:
        known = [term for claim in self.assumptions(summaries) for term in self._known_terms(claim)]
        calls = self._calls
        frames = [summaries[call.procedure].frame for call in calls]
        axioms = frame_axioms(self._names, calls, frames, [*self.path.guard, *known, question])
        terms = [term for term in dict.fromkeys([*known, *axioms, question]) if term is not t.TRUE]
        self._is_asked = t.FALSE not in terms
        if not self._is_asked:
            return "unsat", []
        self._tell_bytes(terms)
        self.count += 1
        return self._solver.check(terms, timeout), [*self.path.guard, *terms]

    def _evaluator(self, terms: Sequence[Term]) -> Evaluator:
        solver = self._solver
        free = t.free_variables(terms)
        values = {variable: solver.value(variable) for variable in free if variable.width}
        memories = {memory: solver.model_memory(memory) for memory in free if not memory.width}
        return Evaluator(
            lambda variable: values.get(variable, 0),
            lambda memory, address: memories[memory].byte(address) if memory in memories else 0,
        )

    def _tell_bytes(self, terms: Sequence[Term]) -> None:
        """Bytes at constant addresses that no run can change, or that are known in the entry state."""
        space, names = self._program.space, self._names
        for term in t.postorder(terms):
            if term.op != "load" or term in self._asserted:
                continue
            self._asserted.add(term)
            address, base = term.args[1], t.base_of(term.args[0])
            if address.op != "const":
                continue
            at_entry = self.path.procedure is None and base is names.memory
            for offset in range(term.data[0]):
                where = (address.data + offset) & space.mask
                known = space.initial_byte(where) if at_entry or not space.writable(where) else None
                if known is not None:
                    cell = t.load(base, names.address(where), 1, False)
                    self._solver.add(t.eq(cell, t.const(known, 8)))


class Houdini:
    def __init__(
        self,
        program: Program,
        names: Names,
        paths: Sequence[Path],
        remaining: Callable[[], float],
        make: Callable[[], Solver] = make_solver,
    ) -> None:
        self.questions = [PathQuestions(program, names, path, make) for path in paths]
        self._remaining = remaining
        self._names = names

    def filter(self, summaries: dict[int, Summary]) -> bool:
        """Drops claims until the rest is inductive; False where one was dropped that the paths were built with."""
        changed: set[int] | None = None
        while changed is None or changed:
            again: set[int] = set()
            for question in self.questions:
                path = question.path
                involved = {call.procedure for call in path.calls} | ({path.procedure} - {None})
                if changed is not None and changed.isdisjoint(involved) and again.isdisjoint(involved):
                    continue
                is_built = False
                for claim in self._not_shown(question, summaries):
                    is_built |= _drop(self._names, summaries[claim.procedure], claim)
                    again.add(claim.procedure)
                if is_built:
                    return False
            changed = again
        return True

    def _not_shown(self, question: PathQuestions, summaries: Summaries) -> list[Claim]:
        goals = [goal for goal in question.goals(summaries) if not question.is_at_sight(goal, summaries)]
        lost: list[Claim] = []
        while goals and (wrong := question.unshown(goals, summaries, min(CLAIM_SECONDS, self._seconds()))):
            lost += wrong
            goals = [goal for goal in goals if goal not in wrong]
        return lost

    def _seconds(self) -> float:
        if self._remaining() <= 0:
            raise OutOfTime
        return min(QUERY_SECONDS, self._remaining())

    def reduce(self, summaries: dict[int, Summary]) -> None:
        """Leaves out claims that the proof does not need; those that paths were built with stay."""
        wanted: dict[Claim, None] = {}
        for pc, summary in summaries.items():
            for is_after, definitions in ((False, summary.begins), (True, summary.returns)):
                for register, value in definitions.items():
                    wanted[Claim(pc, not is_after, equation(self._names, register, value, is_after))] = None
            if summary.frame is not None:
                wanted[Claim(pc, False, FRAME)] = None
        for question in self.questions:
            if question.path.end is End.BAD:
                needed = question.needed(None, summaries, self._seconds())
                if needed is None:
                    return
                wanted.update(dict.fromkeys(needed))
        done: set[Claim] = set()
        while len(done) < len(wanted):
            for claim in [claim for claim in wanted if claim not in done]:
                done.add(claim)
                for question in self.questions:
                    if claim in question.goals(summaries):
                        needed = question.needed(claim, summaries, self._seconds())
                        if needed is None:
                            return
                        wanted.update(dict.fromkeys(needed))
        for pc, summary in summaries.items():
            summary.requires = {term: None for term in summary.requires if Claim(pc, True, term) in wanted}
            summary.ensures = {term: None for term in summary.ensures if Claim(pc, False, term) in wanted}

    def open_ends(self, summaries: Summaries) -> list[Path]:
        """The bad ends that the claims do not exclude."""
        found = []
        for question in self.questions:
            if question.path.end is End.BAD and not question.is_impossible(summaries, self._seconds()):
                found.append(question.path)
        return found


def _drop(names: Names, summary: Summary, claim: Claim) -> bool:
    """Takes a claim back; whether paths were built with it."""
    if claim.term is FRAME:
        summary.frame = None
        return True
    claims, definitions = (
        (summary.requires, summary.begins) if claim.is_required else (summary.ensures, summary.returns)
    )
    claims.pop(claim.term, None)
    for register, value in list(definitions.items()):
        if equation(names, register, value, not claim.is_required) is claim.term:
            del definitions[register]
            others = [] if claim.is_required else summary.otherwise.get(register, [])
            others = [other for other in others if equation(names, register, other, True) in claims]
            if others:
                definitions[register] = others[0]
            return True
    return False
