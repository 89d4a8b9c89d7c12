"""Property-directed strengthening: IC3/PDR over the steps between cut points.

Bradley, "SAT-based model checking without unrolling" (VMCAI 2011); Eén, Mishchenko, Brayton (FMCAD 2011); per location
as in Lange, Neuhäußer, Noll, "IC3 software model checking on control flow automata" (FMCAD 2015). A lemma excludes a
cube at a cut point; at level k it holds in all states that at most k steps reach. A state that can leave the explored
graph is an obligation: either a lemma excludes it, or a predecessor becomes an obligation, or an entry state steps into
it, and then the chain of steps is a path of the program, which a test will follow.

Differences: entry states are exact, steps from them are asked directly; `Pre` over a step is a substitution, fresh
values are projected (`cubes`); lemmas are generalised by cores, by dropping literals and by weakening equations to
bounds, never beyond what the runs saw; after each level all lemmas together are tried as invariants (`houdini`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import count

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.cubes import cube_of
from mcveto.dpg.strengthen.houdini import surviving
from mcveto.dpg.strengthen.queries import Answer, Model, Unsat
from mcveto.dpg.strengthen.system import System
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_DROP_ATTEMPTS = 24
QUERY_SECONDS = 3.0

Cube = tuple[Term, ...]


class Undecided(Exception):
    """The solver could not answer a question the search depends on."""


@dataclass(eq=False)
class Lemma:
    cut: Location
    cube: Cube
    level: int
    clause: Term = field(init=False)

    def __post_init__(self) -> None:
        self.clause = t.bnot(t.conj(self.cube))


@dataclass(eq=False)
class Obligation:
    cut: Location
    cube: Cube
    step: BigStep
    """The step from here towards the exit."""
    behind: Obligation | None


@dataclass(frozen=True)
class Path:
    """Steps from an entry state to an exit."""

    steps: tuple[BigStep, ...]


class Strengthening:
    def __init__(self, system: System) -> None:
        self._system = system
        self._queries = system.queries
        self._into: dict[Location, list[BigStep]] = {cut: system.into(cut) for cut in system.cuts}
        self._exits = sorted(system.exits(), key=lambda step: len(step.guard))
        self.lemmas: dict[Location, list[Lemma]] = {cut: [] for cut in system.cuts}
        self.count = 0
        self.level = 0

    def run(self, levels: int) -> list[Path] | bool:
        """Paths to exits, True if no exit can be reached, False if `levels` more levels did not decide it."""
        at_entry = [step for step in self._exits if step.source is None and self._ask(step.guard, step) is not None]
        if at_entry:
            return [Path((step,)) for step in at_entry]
        for _ in range(levels):
            self.level += 1
            found = self._block_exits()
            if found:
                return found
            if self._push() or self._keep_inductive():
                return True
        return False

    def _block_exits(self) -> list[Path]:
        """Excludes what can leave the graph at this level; the paths that do, one per place where they leave."""
        paths: dict[Location, Path] = {}
        for exit_step in self._exits:
            cut = exit_step.source
            while cut is not None and exit_step.trail[-1] not in paths:
                model = self._ask([*exit_step.guard, *self._lemmas(cut, self.level)], exit_step)
                if model is None:
                    break
                cube = cube_of(exit_step.guard, exit_step.fresh, model.value)
                path = self._block(Obligation(cut, cube, exit_step, None))
                if path is not None:
                    paths[exit_step.trail[-1]] = path
        return list(paths.values())

    def _block(self, first: Obligation) -> Path | None:
        queue: list[tuple[int, int, Obligation]] = [(self.level, 0, first)]
        order = count(1)
        while queue:
            level, _, obligation = heapq.heappop(queue)
            cut, cube = obligation.cut, obligation.cube
            known = self._system.invariants[cut]
            if self._queries.refutes([*cube, *self._lemmas(cut, level)], False, QUERY_SECONDS, cut, known):
                continue
            found, core = self._predecessor(cut, cube, level)
            if found is not None:
                step, model = found
                if step.source is None:
                    return _path(step, obligation)
                literals = [*step.guard, *(step.pre(literal) for literal in cube)]
                before = cube_of(literals, step.fresh, model.value)
                heapq.heappush(queue, (level - 1, next(order), Obligation(step.source, before, step, obligation)))
                heapq.heappush(queue, (level, next(order), obligation))
                continue
            lemma = Lemma(cut, self._generalised(cut, core, level), level)
            while lemma.level < self.level and self._predecessor(cut, lemma.cube, lemma.level + 1)[0] is None:
                lemma.level += 1
            self.lemmas[cut].append(lemma)
            self.count += 1
            if lemma.level < self.level:
                heapq.heappush(queue, (lemma.level + 1, next(order), obligation))
        return None

    def _lemmas(self, cut: Location, level: int) -> list[Term]:
        """What holds at a cut point in every state reached within `level` steps, apart from the invariants."""
        return [lemma.clause for lemma in self.lemmas[cut] if lemma.level >= level]

    def _predecessor(self, cut: Location, cube: Cube, level: int) -> tuple[tuple[BigStep, Model] | None, Cube]:
        """A step into the cube from what is reached one level below, or the literals that exclude one."""
        needed: dict[Term, None] = {}
        excluded = t.bnot(t.conj(cube))
        for step in self._into[cut]:
            if step.source is not None and level == 1:
                continue
            before = {literal: step.pre(literal) for literal in cube}
            never = [literal for literal, value in before.items() if value is t.FALSE]
            if never:
                if not any(literal in needed for literal in never):
                    needed[never[0]] = None
                continue
            assumed = list(step.guard)
            if step.source is not None:
                assumed += self._lemmas(step.source, level - 1)
                if step.source == cut:
                    assumed.append(excluded)
            answer = self._answer([*before.values(), *assumed], step)
            if isinstance(answer, Model):
                return (step, answer), ()
            if answer is None:
                raise Undecided
            for literal, value in before.items():
                if value in answer.core:
                    needed[literal] = None
        return None, tuple(literal for literal in cube if literal in needed)

    def _excludes(self, cut: Location, cube: Cube, level: int) -> bool:
        """Whether a cube can be excluded at a level: no run was in it and no step leads into it."""
        if self._seen(cut, cube):
            return False
        try:
            return self._predecessor(cut, cube, level)[0] is None
        except Undecided:
            return False

    def _seen(self, cut: Location, cube: Cube) -> bool:
        columns = [self._system.samples.values(cut, literal) for literal in cube]
        return (
            any(all(row) for row in zip(*columns, strict=True)) if columns else bool(self._system.samples.visits[cut])
        )

    def _generalised(self, cut: Location, cube: Cube, level: int) -> Cube:
        current = list(cube)
        attempts = 0
        at = 0
        while at < len(current) and attempts < MAX_DROP_ATTEMPTS:
            attempt = (*current[:at], *current[at + 1 :])
            attempts += 1
            if self._excludes(cut, attempt, level):
                del current[at]
            else:
                at += 1
        for number in range(len(current)):
            for weaker in _weaker(current[number]):
                attempt = (*current[:number], weaker, *current[number + 1 :])
                if self._excludes(cut, attempt, level):
                    current[number] = weaker
                    break
        return tuple(current)

    def _push(self) -> bool:
        """Moves lemmas to the highest level they hold at; whether some level then equals the next."""
        for level in range(1, self.level + 1):
            for cut in self._system.cuts:
                for lemma in self.lemmas[cut]:
                    if lemma.level == level and self._predecessor(cut, lemma.cube, level + 1)[0] is None:
                        lemma.level = level + 1
            if not any(lemma.level == level for found in self.lemmas.values() for lemma in found):
                self._settle(lemma for found in self.lemmas.values() for lemma in found if lemma.level > level)
                return True
        return False

    def _keep_inductive(self) -> bool:
        """Makes the lemmas that are inductive together invariants; whether they exclude every exit."""
        candidates = {
            cut: {
                lemma.clause: None
                for lemma in self.lemmas[cut]
                if lemma.clause not in self._system.invariants[cut] and not self._seen(cut, lemma.cube)
            }
            for cut in self._system.cuts
        }
        kept = surviving(self._system, candidates, background=self._system.invariants)
        if not any(kept.values()):
            return False
        for cut, clauses in kept.items():
            self._system.invariants[cut].update(clauses)
            self.lemmas[cut] = [lemma for lemma in self.lemmas[cut] if lemma.clause not in clauses]
        return all(isinstance(self._answer(step.guard, step), Unsat) for step in self._exits if step.source is not None)

    def _settle(self, lemmas: Iterable[Lemma]) -> None:
        for lemma in lemmas:
            self._system.invariants[lemma.cut][lemma.clause] = None

    def _ask(self, literals: Sequence[Term], step: BigStep) -> Model | None:
        answer = self._answer(literals, step)
        if answer is None:
            raise Undecided
        return None if isinstance(answer, Unsat) else answer

    def _answer(self, literals: Iterable[Term], step: BigStep) -> Answer:
        """Whether some state at the step's source that the invariants allow satisfies the literals."""
        if step.source is None:
            return self._queries.ask(literals, True, QUERY_SECONDS)
        known = self._system.invariants[step.source]
        return self._queries.ask(literals, False, QUERY_SECONDS, step.source, known)


def _path(step: BigStep, obligation: Obligation) -> Path:
    steps = [step]
    current: Obligation | None = obligation
    while current is not None:
        steps.append(current.step)
        current = current.behind
    return Path(tuple(steps))


def _weaker(literal: Term) -> list[Term]:
    """Bounds that an equation implies."""
    if literal.op != "eq" or literal.args[0].width == 1:
        return []
    one, other = literal.args
    if one.op == "const":
        one, other = other, one
    found = [t.sle(other, one), t.sle(one, other), t.ule(other, one), t.ule(one, other)]
    return [candidate for candidate in found if candidate.op != "const"]
