"""Interpolants along paths as candidates (McMillan, "Lazy abstraction with interpolants", CAV 2006).

A path from the entry over cut points to an exit that must be excluded is cut in two at each of them. What leads there
contradicts what follows, and an interpolant of the two speaks of the state there alone: true of what arrives, false of
what can go on to the exit. Taken forwards it is close to what arrives, taken backwards close to what must be excluded;
both are proposed, and their conjuncts one by one, since an invariant is often a part of one.

McMillan unwinds until interpolants cover each other. We unwind shortest paths and one or two turns more, and leave to
Houdini which of the conditions are inductive together. Only paths that read memory at fixed addresses are asked about:
the cells that what follows reads are variables of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.houdini import Candidates
from mcveto.dpg.strengthen.path_state import PathState
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.solver.interpolation import interpolant
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term, free_variables

MAX_PATHS = 10
MAX_TURNS = 2
MAX_CANDIDATES = 200
MAX_SIZE = 300
QUERY_SECONDS = 0.5

Condition = list[Term]


def path_interpolants(system: System, exits: Iterable[BigStep]) -> Candidates:
    """Candidates from paths to the exits, all true in the samples."""
    found: Candidates = {cut: {} for cut in system.cuts}
    for path in _paths(system, exits):
        for at in range(1, len(path)):
            cut = path[at].source
            assert cut is not None
            if len(found[cut]) > MAX_CANDIDATES:
                continue
            for candidate in _between(system, cut, path[:at], path[at:]):
                for part in (candidate, *_parts(candidate)):
                    known = part in system.invariants[cut] or part.op == "const"
                    if not known and t.are_short([part], MAX_SIZE) and system.samples.holds(cut, part):
                        found[cut][part] = None
    return found


def _paths(system: System, exits: Iterable[BigStep]) -> Iterator[tuple[BigStep, ...]]:
    """The shortest path to each exit, and with a few turns of the loop that it leaves."""
    shortest: dict[Location, tuple[BigStep, ...]] = {}
    waiting: deque[tuple[Location | None, tuple[BigStep, ...]]] = deque([(None, ())])
    while waiting:
        source, steps = waiting.popleft()
        for step in system.steps_from[source]:
            if step.target is not None and step.target not in shortest:
                shortest[step.target] = (*steps, step)
                waiting.append((step.target, shortest[step.target]))
    count = 0
    for step in exits:
        if step.source is None or step.source not in shortest:
            continue
        turns: list[tuple[BigStep, ...]] = [()]
        for _ in range(MAX_TURNS + 1):
            for turn in turns:
                count += 1
                if count > MAX_PATHS:
                    return
                yield (*shortest[step.source], *turn, step)
            around = [inner for inner in system.steps_from[step.source] if inner.target == step.source]
            turns = [(*turn, inner) for turn in turns for inner in around]


def _between(system: System, cut: Location, before: Sequence[BigStep], behind: Sequence[BigStep]) -> Iterator[Term]:
    """Conditions at a cut point that hold behind the first steps, and under which the others cannot be taken."""
    arrives, state = _composed(before)
    leaves, _ = _composed(behind)
    places = sorted(system.places.of_all(leaves), key=lambda place: place.serial)
    if state is None or _overlap(places):
        return
    shared = {place: t.var(f"shared {number}", place.width) for number, place in enumerate(places)}
    later = {leaf: t.var(f"later {leaf.data}", leaf.width) for leaf in free_variables(leaves) if leaf.width}
    known = [literal for literal in system.invariants[cut] if system.places.of(literal) <= shared.keys()]
    follows = [substitute(literal, {**later, **shared}) for literal in (*leaves, *known)]
    given = [*arrives, *(t.eq(variable, state.value(place)) for place, variable in shared.items())]
    given = _with_variables(system, given)
    back = {variable: place for place, variable in shared.items()}
    for one, other, is_backwards in ((given, follows, False), (follows, given, True)):
        result = interpolant(one, other, QUERY_SECONDS)
        if result is not None:
            yield substitute(t.bnot(result) if is_backwards else result, back)


def _composed(steps: Sequence[BigStep]) -> tuple[Condition, PathState | None]:
    """What must hold for steps to be taken one after the other, and the state behind them."""
    condition: Condition = []
    state: PathState | None = None
    for step in steps:
        condition += [literal if state is None else state.value(literal) for literal in step.guard]
        if step.target is not None:
            state = step.state if state is None else state.through(step.state)
    return condition, state


def _overlap(places: Iterable[Term]) -> bool:
    """Whether some byte belongs to two words."""
    seen: set[int] = set()
    for place in places:
        if place.op == "load":
            cells = {place.args[1].data + i for i in range(place.data[0])}
            if seen & cells:
                return True
            seen |= cells
    return False


def _with_variables(system: System, literals: Condition) -> Condition:
    """Words of the entry's memory as variables; that they may overlap is forgotten."""
    words = [place for place in system.places.of_all(literals) if place.op == "load"]
    named = {word: t.var(f"entry {word.args[1].data:#x} {word.data}", word.width) for word in words}
    return [substitute(literal, named) for literal in literals]


def _parts(term: Term) -> Iterator[Term]:
    """The conjuncts of a condition, as far as it is a conjunction."""
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if part.op == "and" and part.width == 1:
            waiting.extend(part.args)
        elif part.op == "not" and part.args[0].op == "or" and part.args[0].width == 1:
            waiting.extend(t.bnot(x) for x in part.args[0].args)
        else:
            yield part
