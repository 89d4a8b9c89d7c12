"""Explicit values: the states that a few chosen cells can be in together, enumerated.

A protocol engine has a cell for its state, a few flags and tests of inputs that never change. An invariant for it is a
long disjunction, which lemmas find one disjunct at a time. Here the combinations are followed as they are: an abstract
state gives each tracked *item* (a cell, or a condition that a guard tests) a value or leaves it open, a step is taken
unless the values refute its guard, and values behind it are what its terms simplify to.

The items are chosen by refinement (Beyer and Löwe, "Explicit-state software model checking based on CEGAR and
interpolation", FASE 2013): a path to an exit is solved as a whole; if it is infeasible, what the core of its condition
reads is tracked from then on, and what flows into that along the path. A feasible path is a test. Of a cell that takes
too many values, like a counter, only conditions are tracked. Instead of interpolants we take the items of the core:
they are what an interpolant over explicit values would mention. Where they are tracked already and each is open, their
conjunction is tracked (`joint_conditions`).

All combinations found are one candidate invariant per cut point; Houdini and the proof's own checks decide about it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.joint_conditions import follows, is_joint, joint_conditions
from mcveto.dpg.strengthen.path_state import PathState
from mcveto.dpg.strengthen.pdr import Path
from mcveto.dpg.strengthen.queries import Model, Unsat
from mcveto.dpg.strengthen.system import System
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term, free_variables

MAX_ITEMS = 32
MAX_STATES = 3000
MAX_STEPS_TAKEN = 300_000
MAX_REFINEMENTS = 40
MAX_VALUES = 80
MAX_WORK = 60_000
MAX_EXCLUDED = 1000
PATHS_AT_ONCE = 12
QUERY_SECONDS = 1.0

Values = tuple[int | None, ...]
_COMPARISONS = frozenset(("eq", "ult", "ule", "slt", "sle"))


@dataclass(frozen=True, eq=False)
class _Node:
    cut: Location
    values: Values
    step: BigStep
    behind: _Node | None
    """Where the step came from; None if from the entry."""


@dataclass
class Explicit:
    """What the enumeration found."""

    invariants: dict[Location, dict[Term, None]] = field(default_factory=dict)
    is_safe: bool = False
    paths: list[Path] = field(default_factory=list)
    """Feasible paths from the entry to exits."""


class ExplicitValues:
    def __init__(self, system: System, exits: Iterable[BigStep]) -> None:
        """`exits` are those to be excluded."""
        self._system = system
        self._exits = [step for step in exits if step.source is not None]
        self._inner = [step for step in system.all_steps() if step.target is not None]
        self._fresh = {variable for step in system.all_steps() for variable in step.fresh}
        self._items: dict[Term, int] = {}
        self._parts: dict[Term, frozenset[Term]] = {}
        self._guards: dict[BigStep, list[Term]] = {}
        self._facts: dict[BigStep, dict[Term, Term]] = {}
        self._after: dict[tuple[BigStep, Term], Term] = {}
        self._simple: dict[tuple[Term, Values], Term] = {}
        self._mentioned: dict[Term, tuple[int, ...]] = {}
        self._joint: list[tuple[int, Term]] = []
        self._excluded: dict[tuple[BigStep, Term], bool] = {}
        self._constant: set[Term] = set()
        self._sources = self._computed_from()
        self._enumerable = {cell for cell, read in self._sources.items() if self._constant & ({cell} | read)}
        """Cells that some step gives a constant, or what comes from such a cell."""

    def search(self) -> Explicit:
        stuck: set[BigStep] = set()
        feasible: dict[Location, Path] = {}
        for _ in range(MAX_REFINEMENTS):
            nodes = self._reach()
            if isinstance(nodes, Term):
                self._forget(nodes)
                stuck.clear()
                continue
            if nodes is None:
                break
            reached = self._reached_exits(nodes, stuck, feasible)
            if not reached:
                if feasible:
                    break
                return Explicit(self._invariants(nodes), not stuck)
            before = dict(self._items)
            for node, step in reached[:PATHS_AT_ONCE]:
                path = _path(node, step)
                conflict = self._conflict(path)
                if conflict is None:
                    feasible[step.trail[-1]] = Path(tuple(path))
                elif not self._refine(path, conflict, before):
                    stuck.add(step)
            if len(self._items) > len(before):
                stuck.clear()
            if len(self._items) > MAX_ITEMS:
                break
        return Explicit(paths=list(feasible.values()))

    def _forget(self, cell: Term) -> None:
        """Does not enumerate a cell any more, nor what is computed from it."""
        hopeless = {other for other, read in self._sources.items() if other == cell or cell in read}
        self._enumerable -= hopeless
        self._items = {item: at for at, item in enumerate(item for item in self._items if item not in hopeless)}

    def _reach(self) -> list[_Node] | Term | None:
        """All abstract states; the cell that has too many values, or None, if there are too many."""
        self._guards.clear()
        self._simple.clear()
        self._mentioned.clear()
        self._joint = [(at, item) for item, at in self._items.items() if is_joint(item)]
        nothing: Values = (None,) * len(self._items)
        seen: dict[tuple[Location, Values], None] = {}
        values_of: list[set[int]] = [set() for _ in self._items]
        found: list[_Node] = []
        waiting: deque[_Node | None] = deque([None])
        taken = 0
        while waiting:
            node = waiting.popleft()
            source = node.cut if node is not None else None
            for step in self._system.steps_from[source]:
                if step.target is None:
                    continue
                taken += 1
                before = self._entering(step, node.values if node is not None else nothing)
                if before is None:
                    continue
                after = tuple([self._value(step, item, before) for item in self._items])
                if (step.target, after) in seen:
                    continue
                seen[step.target, after] = None
                for known, value in zip(values_of, after, strict=True):
                    if value is not None:
                        known.add(value)
                found.append(_Node(step.target, after, step, node))
                waiting.append(found[-1])
            for item, known in zip(self._items, values_of, strict=True):
                if len(known) > MAX_VALUES:
                    return item
            if len(found) > MAX_STATES or taken > MAX_STEPS_TAKEN:
                return None
        return found

    def _reached_exits(
        self, nodes: Sequence[_Node], stuck: set[BigStep], done: Mapping[Location, Path]
    ) -> list[tuple[_Node, BigStep]]:
        """For each place where an exit can be taken one such exit and the nearest abstract state that can."""
        at_cut: dict[Location, list[_Node]] = {}
        for node in nodes:
            at_cut.setdefault(node.cut, []).append(node)
        found: dict[Location, tuple[_Node, BigStep]] = {}
        for step in self._exits:
            assert step.source is not None
            if step in stuck or step.trail[-1] in found or step.trail[-1] in done:
                continue
            for node in at_cut.get(step.source, ()):
                if self._entering(step, node.values) is not None:
                    found[step.trail[-1]] = node, step
                    break
        return list(found.values())

    def _entering(self, step: BigStep, values: Values) -> Values | None:
        """The values with what the step's guard adds to them; None if they refute it."""
        guard = self._guards.get(step)
        if guard is None:
            guard = self._guards[step] = [literal for literal in step.guard if self._mentions(literal)]
        for _ in range(len(values) + 1):
            learned: dict[int, int] = {}
            for literal in guard:
                simple = self._simplified(literal, values)
                if simple is t.FALSE:
                    return None
                if simple is not t.TRUE:
                    self._learn(simple, values, learned)
            for at, joint in self._joint:
                holds = values[at]
                said = [] if holds is None else follows(joint, bool(holds), self._simplifier(values))
                if said is None:
                    return None
                for literal in said:
                    self._learn(literal, values, learned)
            if not learned:
                return values
            values = tuple([learned.get(at, value) for at, value in enumerate(values)])
        return values

    def _learn(self, literal: Term, values: Values, learned: dict[int, int]) -> None:
        """What a literal that holds says about items: that a condition does or does not hold, or a cell's value."""
        negated = literal.op == "not"
        atom = literal.args[0] if negated else literal
        at = self._items.get(atom)
        if at is not None and values[at] is None:
            learned[at] = 0 if negated else 1
        if atom.op == "eq" and not negated:
            for one, other in (atom.args, atom.args[::-1]):
                at = self._items.get(one)
                if at is not None and values[at] is None and other.op == "const":
                    learned[at] = other.data

    def _value(self, step: BigStep, item: Term, before: Values) -> int | None:
        after = self._after.get((step, item))
        if after is None:
            after = self._after[step, item] = substitute(step.pre(item), self._told(step))
        result = self._simplified(after, before)
        if is_joint(item) and result.op != "const" and after is not item and self._excludes(step, item, after):
            return 0
        return result.data if result.op == "const" else None

    def _excludes(self, step: BigStep, item: Term, after: Term) -> bool:
        """Whether a condition, which is another before a step, cannot hold behind it."""
        found = self._excluded.get((step, item))
        if found is None and len(self._excluded) >= MAX_EXCLUDED:
            return False
        if found is None:
            asked = [*step.guard, after]
            answer = self._system.queries.ask(asked, step.source is None, QUERY_SECONDS, with_model=False)
            found = self._excluded[step, item] = isinstance(answer, Unsat)
        return found

    def _simplifier(self, values: Values) -> Callable[[Term], Term]:
        return lambda term: self._simplified(term, values)

    def _told(self, step: BigStep) -> dict[Term, Term]:
        """What a step's guard says of the terms in it."""
        found = self._facts.get(step)
        if found is None:
            found = self._facts[step] = {}
            for literal in step.guard:
                if literal.op == "not":
                    found[literal.args[0]] = t.FALSE
                else:
                    found[literal] = t.TRUE
                    if literal.op == "eq":
                        for one, other in (literal.args, literal.args[::-1]):
                            if other.op == "const":
                                found[one] = other
        return found

    def _simplified(self, term: Term, values: Values) -> Term:
        if term.op == "const":
            return term
        mentioned = self._mentions(term)
        if not mentioned:
            return term
        chosen = tuple([values[at] for at in mentioned])
        result = self._simple.get((term, chosen))
        if result is None:
            items = list(self._items)
            known = {
                items[at]: t.const(value, items[at].width)
                for at, value in zip(mentioned, chosen, strict=True)
                if value is not None
            }
            result = self._simple[term, chosen] = self._with_fixed_bytes(substitute(term, known))
        return result

    def _with_fixed_bytes(self, term: Term) -> Term:
        """The term with what it reads of memory that no run can change, such as an entry of a jump table."""
        if term.op == "const" or not any(part.op == "load" for part in t.postorder([term])):
            return term
        space = self._system.program.space
        fixed: dict[Term, Term] = {}
        for part in t.postorder([term]):
            if part.op != "load" or part.args[0].op != "memory" or part.args[1].op != "const":
                continue
            size, big_endian = part.data
            addresses = [(part.args[1].data + i) & space.mask for i in range(size)]
            content = [None if space.writable(at) else space.initial_byte(at) for at in addresses]
            if None not in content:
                known = bytes(byte for byte in content if byte is not None)
                fixed[part] = t.const(int.from_bytes(known, "big" if big_endian else "little"), part.width)
        return substitute(term, fixed)

    def _mentions(self, term: Term) -> tuple[int, ...]:
        """The numbers of the items that occur in a term."""
        found = self._mentioned.get(term)
        if found is None:
            parts = self._parts.get(term)
            if parts is None:
                parts = self._parts[term] = frozenset(t.postorder([term]))
            found = self._mentioned[term] = tuple(at for item, at in self._items.items() if item in parts)
        return found

    def _conflict(self, path: Sequence[BigStep]) -> list[tuple[int, Term]] | None:
        """Guards along a path, by the number of their step, that contradict each other; None if it is feasible."""
        meaning: dict[Term, list[tuple[int, Term]]] = {}
        state: PathState | None = None
        for number, step in enumerate(path):
            for literal in step.guard:
                value = state.value(literal) if state is not None else literal
                meaning.setdefault(value, []).append((number, literal))
            if step.target is not None:
                state = state.through(step.state) if state is not None else step.state
        answer = self._system.queries.ask(list(meaning), True, QUERY_SECONDS, with_model=False)
        if isinstance(answer, Model):
            return None
        return [place for term in answer.core for place in meaning[term]] if isinstance(answer, Unsat) else []

    def _refine(
        self, path: Sequence[BigStep], conflict: Iterable[tuple[int, Term]], before: Mapping[Term, int]
    ) -> bool:
        """Tracks what a conflict reads, as conditions if the cells were tracked; whether that is new."""
        places = sorted(conflict, key=lambda place: (place[0], place[1].serial))
        for as_cells in (True, False):
            wanted: set[Term] = set()
            for number, literal in places:
                for atom in _atoms(literal):
                    wanted |= self._tracked_back(path, number, atom, as_cells)
            for item in sorted(wanted, key=lambda item: item.serial):
                self._items.setdefault(item, len(self._items))
            if not wanted <= before.keys():
                return True
        joint = [item for item in joint_conditions(path, places) if self._fresh.isdisjoint(free_variables([item]))]
        for item in joint:
            self._items.setdefault(item, len(self._items))
        return not before.keys() >= set(joint)

    def _tracked_back(self, path: Sequence[BigStep], number: int, atom: Term, as_cells: bool) -> set[Term]:
        """Items for an atom at a step of a path, and for what it was at the steps before."""
        found: set[Term] = set()
        for step in (*reversed(path[:number]), None):
            cells = self._cells(atom)
            if not cells or not self._fresh.isdisjoint(free_variables([atom])):
                break
            is_enumerable = cells <= self._enumerable
            if as_cells and is_enumerable:
                # All that they are computed from as well; what is not enumerable stays open.
                found |= cells.union(*(self._sources[cell] for cell in cells)) & self._enumerable
            elif atom.width == 1 and atom.op in (*_COMPARISONS, "var"):
                found.add(atom)
            if step is None:
                break
            earlier = step.pre(atom)
            if earlier is not atom and self._cells(earlier) & cells and not is_enumerable:
                break  # computed from itself: would go on forever
            atom = earlier
        return found

    def _cells(self, term: Term) -> frozenset[Term]:
        return self._system.places.of(term)

    def _computed_from(self) -> dict[Term, set[Term]]:
        """For each cell that matters those it is computed from, by any number of steps, itself if it changes so."""
        direct: dict[Term, set[Term]] = {}
        waiting: list[Term] = []
        for step in (*self._inner, *self._exits):
            waiting += self._system.places.of_all(step.guard)
        if len(set(waiting)) * len(self._inner) > MAX_WORK:
            return {}  # nothing is enumerable then, and conditions alone are cheap
        while waiting:
            cell = waiting.pop()
            if cell in direct:
                continue
            direct[cell] = set()
            for step in self._inner:
                value = step.pre(cell)
                if value.op == "const":
                    self._constant.add(cell)
                elif value is not cell:
                    direct[cell] |= self._cells(value)
            waiting.extend(direct[cell])
        return _closure(direct)

    def _invariants(self, nodes: Iterable[_Node]) -> dict[Location, dict[Term, None]]:
        by_cut: dict[Location, list[Values]] = {}
        for node in nodes:
            by_cut.setdefault(node.cut, []).append(node.values)
        items = list(self._items)
        # What is not reached at all must be said, too: steps from there would break the rest.
        found: dict[Location, dict[Term, None]] = {cut: {t.FALSE: None} for cut in self._system.cuts}
        for cut, states in by_cut.items():
            claim = _disjunction(items, states)
            found[cut] = {claim: None} if claim.op != "const" else {}
        return found


def _disjunction(items: Sequence[Term], states: Sequence[Values]) -> Term:
    """That the items have one of these combinations of values, grouped by the item with the most values."""
    if not items:
        return t.TRUE
    widest = max(range(len(items)), key=lambda at: len({values[at] for values in states}))
    groups: dict[Values, dict[int | None, None]] = {}
    for values in states:
        groups.setdefault((*values[:widest], None, *values[widest + 1 :]), {})[values[widest]] = None
    cases = []
    for rest, own in groups.items():
        parts = [
            t.eq(item, t.const(value, item.width)) for item, value in zip(items, rest, strict=True) if value is not None
        ]
        if None not in own:
            chosen = [t.eq(items[widest], t.const(value, items[widest].width)) for value in own if value is not None]
            parts.append(t.disj(chosen))
        cases.append(t.conj(parts))
    return t.disj(cases)


def _closure(edges: Mapping[Term, set[Term]]) -> dict[Term, set[Term]]:
    """What is reached from each node along one or more edges."""
    found: dict[Term, set[Term]] = {}
    for start in edges:
        reached: set[Term] = set()
        waiting = list(edges[start])
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting.extend(edges.get(node, ()))
        found[start] = reached
    return found


def _atoms(literal: Term) -> list[Term]:
    """The comparisons and Boolean variables that a condition is made of."""
    found: dict[Term, None] = {}
    waiting = [literal]
    while waiting:
        term = waiting.pop()
        if term.width == 1 and term.op in ("and", "or", "not", "ite"):
            waiting.extend(term.args)
        elif term.width == 1 and term.op != "const":
            found[term] = None
    return list(found)


def _path(node: _Node, exit_step: BigStep) -> list[BigStep]:
    steps = [exit_step]
    current: _Node | None = node
    while current is not None:
        steps.append(current.step)
        current = current.behind
    return steps[::-1]
