"""What the solver is asked, and how much it is told about bitwise operations.

Chaki and Ivers (air-powerpc, section 4) compare three treatments, which can be chosen here:

- `interpreted`: every question goes to the solver as it is;
- `uninterpreted`: a bitwise operation that rewriting has left in a formula is a function of which nothing is known but
  that equal arguments give equal results;
- `semi`: as before, and as it is only if that does not refute the formula.

Bitwise are and, or, xor of words, shifts by unknown amounts, and counting bits. Selecting and joining bits, which
rewriting makes of masks and shifts by constants, are not. A formula without models whatever a function is has none
for the function that it is: "unsat" is right under all three. A model found under `uninterpreted` need not be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from mcveto.dpg.strengthen.queries import Answer, Model, Queries, Unsat
from mcveto.logic import terms as t
from mcveto.logic.substitute import rebuild
from mcveto.logic.terms import Term
from mcveto.logic.words_read import words_read
from mcveto.program.program import Program

COMMUTATIVE = frozenset({"and", "or", "xor"})
BITWISE = frozenset({"and", "or", "xor", "shl", "lshr", "ashr", "popcount", "lzcount"})
# Pairs of applications for which "equal arguments, equal results" is told.
MAX_PAIRS = 64
RENEW_AFTER = 400


class Treatment(Enum):
    INTERPRETED = "interpreted"
    SEMI = "semi"
    UNINTERPRETED = "uninterpreted"


class Oracle:
    """Questions about states, answered under a treatment; remembers what it refuted."""

    def __init__(self, program: Program, treatment: Treatment, remaining: Callable[[], float], seconds: float) -> None:
        self._program = program
        self._remaining = remaining
        self._queries = Queries(program, remaining)
        self._asked_before = 0
        self._seconds = seconds
        self._treatment = treatment
        self._functions = Functions()
        self._refuted: dict[frozenset[Term], bool] = {}
        self._leaves: dict[Term, frozenset[Term]] = {}

    @property
    def questions(self) -> int:
        return self._asked_before + self._queries.count

    @property
    def exact(self) -> Queries:
        """Questions as they are. A solver gets slower with all it was ever asked, so a new one is made now and then;
        what was looked up in the image is kept."""
        if self._queries.count > RENEW_AFTER:
            old = self._queries
            self._asked_before += old.count
            self._queries = Queries(self._program, self._remaining)
            self._queries.facts.update(old.facts)
        return self._queries

    def refutes(self, literals: Iterable[Term]) -> bool:
        """Whether no state satisfies all literals, as far as the treatment can tell."""
        asked = frozenset(literals)
        if t.FALSE in asked:
            return True
        found = self._refuted.get(asked)
        if found is None:
            ordered = sorted(asked, key=_serial)
            found = self._refuted[asked] = isinstance(self.ask(ordered, with_model=False), Unsat)
        return found

    def ask(
        self, literals: Sequence[Term], at_entry: bool = False, with_model: bool = True, seconds: float | None = None
    ) -> Answer:
        """As `Queries.ask`; a model is one of the formula only under `interpreted` and `semi`."""
        limit = self._seconds if seconds is None else seconds
        if self._treatment is not Treatment.INTERPRETED:
            abstract = self._functions.abstract(literals)
            if abstract is not None:
                answer = self.exact.ask(
                    [*abstract, *self._functions.congruences(abstract)],
                    at_entry,
                    limit,
                    with_model=with_model,
                )
                if isinstance(answer, Unsat):
                    back = dict(zip(abstract, literals, strict=True))
                    # Congruences hold anyway, so that they need not be named.
                    return Unsat({back[item] for item in answer.core if item in back})
                if self._treatment is Treatment.UNINTERPRETED:
                    return answer
        return self.exact.ask(literals, at_entry, limit, with_model=with_model)

    def related(self, literals: Iterable[Term], to: Iterable[Term]) -> list[Term]:
        """Those literals that are connected with others through what they read."""
        reached: set[Term] = set()
        for term in to:
            reached |= self.leaves(term)
        rest = [(literal, self.leaves(literal)) for literal in literals]
        found: list[Term] = []
        changed = True
        while changed and rest:
            changed = False
            waiting = []
            for literal, leaves in rest:
                if reached.isdisjoint(leaves):
                    waiting.append((literal, leaves))
                else:
                    found.append(literal)
                    reached |= leaves
                    changed = True
            rest = waiting
        return found

    def leaves(self, literal: Term) -> frozenset[Term]:
        """Variables, bytes at constant addresses, and the memory if it is read elsewhere."""
        found = self._leaves.get(literal)
        if found is None:
            found = self._leaves[literal] = frozenset(words_read(literal))
        return found


class Functions:
    """Bitwise operations as functions that nobody knows: each application is a variable of its own."""

    def __init__(self) -> None:
        self._applications: dict[Term, tuple[str, object, tuple[Term, ...]]] = {}
        self._done: dict[Term, Term] = {}

    def abstract(self, literals: Sequence[Term]) -> list[Term] | None:
        """The literals with variables for bitwise operations; None if there are no such operations."""
        found = [self._abstracted(literal) for literal in literals]
        return None if found == list(literals) else found

    def congruences(self, literals: Sequence[Term]) -> list[Term]:
        """Equal arguments give equal results, for the applications that the literals mention."""
        mentioned = [term for term in t.free_variables(literals) if term in self._applications]
        # The arguments of an application may mention others.
        for term in mentioned:
            inner = t.free_variables(self._applications[term][2])
            mentioned += [other for other in inner if other in self._applications and other not in mentioned]
        found: list[Term] = []
        for number, one in enumerate(mentioned):
            for other in mentioned[:number]:
                (op, data, here), (op_too, data_too, there) = self._applications[one], self._applications[other]
                if (op, data) == (op_too, data_too) and [x.width for x in here] == [x.width for x in there]:
                    same = _equal(here, there)
                    if op in COMMUTATIVE:
                        same = t.disj([same, _equal(here, there[::-1])])
                    found.append(t.implies(same, t.eq(one, other)))
                    if len(found) >= MAX_PAIRS:
                        return found
        return found

    def _abstracted(self, root: Term) -> Term:
        done = self._done
        if root not in done:
            for term in t.postorder([root]):
                if term in done:
                    continue
                arguments = tuple([done[x] for x in term.args])
                if term.op in BITWISE and term.width > 1:
                    done[term] = self._variable(term.op, term.data, arguments, term.width)
                else:
                    done[term] = term if arguments == term.args else rebuild(term, arguments)
        return done[root]

    def _variable(self, op: str, data: object, arguments: tuple[Term, ...], width: int) -> Term:
        key = (op, data, arguments)
        name = f"{op}({', '.join(str(x.serial) for x in arguments)}) {data or ''} {width}"
        variable = t.var(name, width)
        self._applications.setdefault(variable, key)
        return variable


def _equal(some: Sequence[Term], others: Sequence[Term]) -> Term:
    return t.conj(t.eq(x, y) for x, y in zip(some, others, strict=True))


def _serial(term: Term) -> int:
    return term.serial


__all__ = ["Answer", "Model", "Oracle", "Treatment", "Unsat"]
