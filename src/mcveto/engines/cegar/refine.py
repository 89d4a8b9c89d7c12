"""Validation of an abstract path to an error, and new predicates where it is none.

The path is executed symbolically backwards in pieces: its last step alone, its last two, four, … steps, each time from
any state of the region where the piece begins. A piece that no state can follow is enough to refine, and it says where.
Only if the whole path from the entry has a model is that a counterexample, to be run.

Predicates: the literals of an unsatisfiable core, and their `Pre` at every location of the piece before them, up to
where the constants decide it (the weakest preconditions of Ball and Rajamani, "Generating abstract explanations of
spurious counterexamples in C programs", 2002, as MAGIC and COPPER use them). Literals are evaluated with what is
constant on the way, so that they do not mention pointers and stores that are known. If that gives nothing new, the
predicates of the piece are followed in both cases from now on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.runs import Choices
from mcveto.dpg.strengthen.path_inputs import choices_from
from mcveto.dpg.strengthen.path_state import PathState, stores_of
from mcveto.engines.cegar.bounded_state import bounded_entry
from mcveto.engines.cegar.bounds import limits
from mcveto.engines.cegar.post import Post
from mcveto.engines.cegar.region import Edge, Error, Kind, Region
from mcveto.engines.cegar.treatment import Answer, Model, Oracle, Unsat
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term, free_variables
from mcveto.program.program import Program

# Nodes of a literal that counts as short, and seconds for a question about a part of a path.
SHORT = 40
PIECE_SECONDS = 1.0
MULTIPLICATIONS = frozenset({"mul", "udiv", "urem", "sdiv", "srem"})
COMPARISONS = frozenset({"eq", "ult", "ule", "slt", "sle"})
MAX_PARTS = 8
MAX_PREDICATE = 400
"""Nodes of a predicate; larger ones are not carried further back."""


@dataclass(frozen=True, slots=True)
class Refined:
    """Predicates were added."""


@dataclass(frozen=True, slots=True)
class Found:
    """The path has a model."""

    choices: Choices
    steps: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Stuck:
    why: str


Result = Refined | Found | Stuck


@dataclass(frozen=True, slots=True)
class _Piece:
    """The end of a path: its steps, the regions before each of them and at the end, and the states there as terms over
    the state where it begins."""

    edges: Sequence[Edge]
    regions: Sequence[Region]
    states: Sequence[PathState]
    conditions: Sequence[_Condition]
    from_entry: bool


@dataclass(frozen=True, slots=True)
class _Condition:
    """A literal that must hold before a step of the piece, and its value over the state where the piece begins."""

    step: int
    literal: Term
    value: Term


class _States:
    """States of regions, made when they are looked at."""

    def __init__(self, post: Post, regions: Sequence[Region]) -> None:
        self._post = post
        self._regions = regions
        self._made: dict[int, PathState] = {}

    def __getitem__(self, number: int) -> PathState:
        found = self._made.get(number)
        if found is None:
            region = self._regions[number]
            found = self._made[number] = self._post.state(region.location, region.constants)
        return found


class Refinement:
    def __init__(self, program: Program, post: Post, oracle: Oracle, is_exact: bool, seed: int) -> None:
        self._program = program
        self._post = post
        self._oracle = oracle
        self._is_exact = is_exact
        self._seed = seed
        self._live = frozenset(range(len(program.decoder.layout.cells)))

    def refine(self, error: Error, longest: int | None = None) -> Result | None:
        """None if no piece of up to `longest` steps decides; None for that is: as long as the path is."""
        path = path_to(error.source)
        length = 0
        while True:
            begins = max(0, len(path) - length)
            piece = self._piece(error, path[begins:], begins == 0)
            if error.kind is Kind.UNRESOLVED and self._learn_bounds(error, piece):
                return Refined()
            core = self._plain_core(error, piece)
            if core:
                return self._learn(core, piece)
            if begins == 0 or (longest is not None and length >= longest):
                break
            length = max(1, 4 * length)
        # What contradicts itself in a shorter piece does so here.
        answer = self._ask_near(piece)
        if isinstance(answer, Unsat):
            return self._learn(self._conditions(piece, answer), piece)
        return self._whole(error, piece) if piece.from_entry else None

    def _piece(self, error: Error, edges: Sequence[Edge], from_entry: bool) -> _Piece:
        start = edges[0].source if edges else error.source
        state = bounded_entry(self._program) if from_entry else self._post.state(start.location, start.constants)
        conditions = [_Condition(0, literal, state.value(literal)) for literal in start.cube]
        states = [state]
        for number, edge in enumerate(edges):
            conditions += [_Condition(number, literal, state.value(literal)) for literal in edge.literals]
            state = state.after(edge.outcome, edge.target.location, self._live, self._post.pointers)
            states.append(state)
        conditions += [_Condition(len(edges), literal, state.value(literal)) for literal in error.literals]
        kept = [condition for condition in conditions if condition.value is not t.TRUE]
        return _Piece(edges, [start, *(edge.target for edge in edges)], states, kept, from_entry)

    def _plain_core(self, error: Error, piece: _Piece) -> list[_Condition]:
        """What is wrong with a piece, if no solver is needed to see it."""
        for condition in piece.conditions:
            if condition.value is t.FALSE:
                return [condition]
        if error.kind is Kind.UNRESOLVED:
            resolved = self._resolved(error, piece.states[-1], len(piece.edges))
            if resolved:
                return resolved
        opposed = _opposed([condition.value for condition in piece.conditions])
        return [condition for condition in piece.conditions if condition.value in opposed]

    def _ask_near(self, piece: _Piece) -> Answer:
        """Asks about short conditions without multiplications: a contradiction is mostly there, and the others are
        mostly arithmetic that has nothing to do with it."""
        plain = [item.value for item in piece.conditions if _is_plain(item.value)]
        return self._small(list(dict.fromkeys(plain)), piece) if len(plain) > 1 else None

    def _small(self, asked: list[Term], piece: _Piece) -> Answer:
        facts = [] if piece.from_entry else self._post.facts(asked, piece.regions[0].constants)
        answer = self._oracle.ask([*asked, *facts], piece.from_entry, with_model=False, seconds=PIECE_SECONDS)
        if isinstance(answer, Unsat):
            return Unsat(self._smaller([value for value in asked if value in answer.core], facts, piece.from_entry))
        return answer

    def _conditions(self, piece: _Piece, answer: Unsat) -> list[_Condition]:
        return [condition for condition in piece.conditions if condition.value in answer.core]

    def _whole(self, error: Error, piece: _Piece) -> Result:
        """The path from the entry: impossible, or a model of it. Conditions that have nothing to do with each other are
        asked about one after the other."""
        asked = list(dict.fromkeys(condition.value for condition in piece.conditions))
        models: list[Model] = []
        for group in self._groups(asked):
            answer = self._oracle.ask(group, at_entry=True)
            if isinstance(answer, Unsat):
                core = self._smaller([value for value in group if value in answer.core], [], True)
                return self._learn(self._conditions(piece, Unsat(core)), piece)
            if not isinstance(answer, Model):
                return Stuck("a path is neither possible nor impossible, as far as the solver can tell")
            models.append(answer)
        if error.kind is Kind.UNRESOLVED and isinstance(self._bounded(error, piece), Refined):
            return Refined()
        if error.kind is Kind.GAP or error.kind is Kind.UNRESOLVED:
            return Stuck(error.reason)
        choices = choices_from(self._program, asked, _joined(models), self._seed, len(piece.edges))
        if choices is None:
            return Stuck("it depends on bytes that the file does not determine")
        return Found(choices, len(piece.edges), self._is_exact)

    def _groups(self, literals: list[Term]) -> list[list[Term]]:
        """The literals in groups that share nothing they read; all that read memory are in the first one."""
        reads = [literal for literal in literals if any(_is_memory(leaf) for leaf in self._oracle.leaves(literal))]
        first = [*reads, *self._oracle.related([x for x in literals if x not in set(reads)], reads)] if reads else []
        groups = [first] if first else []
        taken = set(first)
        for literal in literals:
            if literal not in taken:
                rest = [other for other in literals if other not in taken and other is not literal]
                group = [literal, *self._oracle.related(rest, [literal])]
                taken.update(group)
                groups.append(group)
        return groups

    def _resolved(self, error: Error, state: PathState, step: int) -> list[_Condition]:
        """That lost values are what they are on this path, as literals to learn from."""
        values = [state.value(term) for term in error.about]
        if any(value.op != "const" for value in values):
            return []
        return [
            _Condition(step, t.eq(term, value), t.TRUE)
            for term, value in zip(error.about, values, strict=True)
            if t.eq(term, value) is not t.TRUE
        ]

    def _smaller(self, core: list[Term], facts: list[Term], at_entry: bool) -> set[Term]:
        """A core without literals that are not needed, if it is short enough to try."""
        kept = list(core)
        for literal in core if len(core) <= 12 else ():
            rest = [other for other in kept if other is not literal]
            answer = self._oracle.ask([*rest, *facts], at_entry=at_entry, with_model=False, seconds=PIECE_SECONDS)
            if isinstance(answer, Unsat):
                kept = [other for other in rest if other in answer.core]
        return set(kept)

    def _bounded(self, error: Error, piece: _Piece) -> Result:
        """That a lost value is within what the path asks of it: a switch compares its index before it jumps."""
        values = [piece.states[-1].value(term) for term in error.about]
        related = set(self._oracle.related([condition.value for condition in piece.conditions], values))
        core = [condition for condition in piece.conditions if condition.value in related]
        return self._learn(core, piece, len(piece.edges)) if core else Stuck(error.reason)

    def _learn_bounds(self, error: Error, piece: _Piece) -> bool:
        """Whether it is new that the path has compared with a number what is lost, and not changed it since: a switch
        does that with its index."""
        inside = set(t.postorder(error.about))
        is_new = False
        for number, edge in enumerate(piece.edges):
            for atom in (atom for literal in edge.literals for atom in _atoms(literal)):
                is_kept = all(later.outcome.after(atom) is atom for later in piece.edges[number:])
                if is_kept and not inside.isdisjoint(limits([atom])):
                    for region in piece.regions[number + 1 :]:
                        is_new |= self._post.precision.add(region.location, _positive(atom))
        return is_new

    def _learn(self, core: Sequence[_Condition], piece: _Piece, until: int | None = None) -> Result:
        """New predicates from conditions; `until`: the step to which they matter, the last of them if not given."""
        precision = self._post.precision
        states = _States(self._post, piece.regions)
        tracked: list[tuple[Region, Term]] = []
        copied: list[tuple[Region, Term]] = []
        lost: dict[tuple[int, Term], None] = {}
        # Literals that contradict each other need not be known before the first of them.
        first = min(condition.step for condition in core) if len(core) > 1 else 0
        for condition in core:
            for atom in _atoms(condition.literal):
                self._carry(atom, condition.step, first, piece, states, tracked, lost)
        for step, literal in list(lost):
            self._carry(literal, step, 0, piece, states, tracked, {})
        last = max(condition.step for condition in core) if until is None else until
        for condition in core:
            self._follow(condition, last, piece, states, copied)
        everywhere: list[tuple[Region, Term]] = []
        for condition in core if first else ():
            for atom in _atoms(condition.literal):
                self._carry(atom, condition.step, 0, piece, states, everywhere, {})
        simple = [(region, predicate) for region, predicate in tracked if not _writes(predicate)]
        if precision.compare(predicate for _, predicate in simple):
            return Refined()
        for chosen in (simple, copied, tracked, everywhere):
            if sum(precision.add(region.location, predicate) for region, predicate in chosen):
                return Refined()
        for chosen in (simple, copied, tracked, everywhere):
            if sum(precision.split(region.location, predicate) for region, predicate in chosen):
                return Refined()
        return Stuck("no predicate excludes a path that is impossible")

    def _carry(
        self,
        atom: Term,
        step: int,
        first: int,
        piece: _Piece,
        states: _States,
        tracked: list[tuple[Region, Term]],
        lost: dict[tuple[int, Term], None],
    ) -> None:
        """Carries an atom back from a step to the first that matters.

        Where it meets a store whose address is lost in the region but not on the path, what the path knows of the
        address is worth knowing first: it goes to `lost`."""
        carried = _usable_parts([states[step].value(atom)])
        for number in range(step, first - 1, -1):
            if number < step:
                outcome = piece.edges[number].outcome
                before = [states[number].value(outcome.after(predicate)) for predicate in carried]
                if any(map(_writes, before)):
                    lost.update(dict.fromkeys(self._lost(number, piece, states[number])))
                carried = _usable_parts(before)
            if not carried:
                break
            tracked += [(piece.regions[number], predicate) for predicate in carried]

    def _follow(
        self,
        condition: _Condition,
        last: int,
        piece: _Piece,
        states: _States,
        copied: list[tuple[Region, Term]],
    ) -> None:
        """Carries a literal forward to where its step copies what it speaks of: `Pre` of what comes later does not
        know that two places hold the same value."""
        if condition.step >= last:
            return
        literal = states[condition.step].value(condition.literal)
        outcome = piece.edges[condition.step].outcome
        for predicate in _images(literal, outcome, states[condition.step], self._post.memory):
            if not _is_usable(predicate):
                continue
            for number in range(condition.step + 1, last + 1):
                copied.append((piece.regions[number], _positive(predicate)))
                if number == last or piece.edges[number].outcome.after(predicate) is not predicate:
                    break

    def _lost(self, number: int, piece: _Piece, here: PathState) -> list[tuple[int, Term]]:
        """Equations for what store addresses of a step are made of, as the path has it."""
        found: list[tuple[int, Term]] = []
        for address, _, _ in stores_of(piece.edges[number].outcome.memory, self._post.memory):
            for leaf in _parts(here.value(address)):
                value = piece.states[number].value(leaf)
                if value.op == "const":
                    found.append((number, t.eq(leaf, value)))
        return found


def path_to(region: Region) -> list[Edge]:
    """The steps by which a region was found, from the entry on."""
    path: list[Edge] = []
    while region.arrived is not None:
        path.append(region.arrived)
        region = region.arrived.source
    return path[::-1]


def _atoms(literal: Term) -> list[Term]:
    if literal.op == "and" and literal.width == 1:
        return list(literal.args)
    return [literal]


def _positive(predicate: Term) -> Term:
    return predicate.args[0] if predicate.op == "not" else predicate


def _usable_parts(predicates: Iterable[Term]) -> list[Term]:
    """The predicates that can be carried; of one that depends on a value that is chosen in the step, the comparisons in
    it that do not (what an automaton does when it may choose its object)."""
    found: dict[Term, None] = {}
    for predicate in map(_positive, predicates):
        if predicate.op == "const":
            continue
        if _is_usable(predicate):
            found[predicate] = None
            continue
        order = t.postorder([predicate])
        if len(order) <= MAX_PREDICATE:
            parts = [term for term in order if term.op in COMPARISONS and term.args[0].width > 1 and _is_usable(term)]
            found.update(dict.fromkeys(parts))
    return list(found)[:MAX_PARTS]


def _is_usable(predicate: Term) -> bool:
    """Whether it speaks of the state alone and is not too large."""
    if any("!" in str(variable.data) for variable in free_variables([predicate])):
        return False
    return t.are_short([predicate], MAX_PREDICATE)


def _writes(predicate: Term) -> bool:
    """Whether it reads memory behind a store, so that it asks which addresses are equal."""
    return any(term.op == "store" for term in t.postorder([predicate]))


def _parts(address: Term) -> list[Term]:
    """The registers and words of memory that an address is made of."""
    found: dict[Term, None] = {}
    stack = [address]
    while stack:
        term = stack.pop()
        if term.op == "var" or (term.op == "load" and term.args[1].op == "const"):
            found[term] = None
        else:
            stack.extend(term.args)
    return list(found)


def _images(literal: Term, outcome: Outcome, state: PathState, memory: Term) -> list[Term]:
    """The literal said of places to which the outcome copies something that it speaks of, as it is or with zeros in
    front; then also that these are zeros."""
    parts = {term for term in t.postorder([literal]) if term.op not in ("const", "memory")} - {literal}
    found: dict[Term, None] = {}
    for variable, term in outcome.state.items():
        value = state.value(term) if variable is not memory else memory
        if value in parts and value is not variable:
            found[substitute(literal, {value: variable})] = None
        elif value.op == "zext" and value.args[0] in parts:
            low = value.args[0].width
            found[substitute(literal, {value.args[0]: t.extract(variable, low - 1, 0)})] = None
            found[t.eq(t.extract(variable, value.width - 1, low), t.const(0, value.width - low))] = None
    for address, term, big_endian in stores_of(outcome.memory, memory):
        where, value = state.value(address), state.value(term)
        if where.op == "const" and value in parts:
            place = t.load(memory, where, value.width // 8, big_endian)
            found[substitute(literal, {value: place})] = None
    return [image for image in found if image.op != "const"]


def _opposed(literals: Sequence[Term]) -> set[Term]:
    """Two literals one of which denies the other, if there are."""
    known = set(literals)
    for literal in literals:
        if t.bnot(literal) in known:
            return {literal, t.bnot(literal)}
    return set()


def _is_memory(leaf: Term) -> bool:
    """Whether it stands for bytes of memory: an address, or the memory."""
    return leaf.op in ("const", "memory")


def _joined(models: list[Model]) -> Model:
    """One model of groups that have nothing in common; only the first reads memory."""
    values = {variable: value for model in models for variable, value in model.values.items()}
    return Model(values, models[0].byte if models else lambda address: 0)


def _is_plain(literal: Term) -> bool:
    order = t.postorder([literal])
    return len(order) <= SHORT and not any(term.op in MULTIPLICATIONS for term in order)
