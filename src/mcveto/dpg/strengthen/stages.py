"""The stages of candidates, from cheap to dear: each proposes, Houdini keeps what is inductive with what is known.

Sampled relations, the same by cases of a mode variable, the property and its preconditions (`k_induction`),
interpolants of paths (`interpolants`), the `phases` that are seldom needed. What a stage keeps is an invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.candidates import MAX_PLACES, MAX_RELATED, by_mode, open_places, relations, tightest
from mcveto.dpg.strengthen.definitions import definitions
from mcveto.dpg.strengthen.halves import half_relations, lower_halves
from mcveto.dpg.strengthen.houdini import Candidates, surviving
from mcveto.dpg.strengthen.interpolants import path_interpolants
from mcveto.dpg.strengthen.k_induction import MAX_CLAUSES, k_inductive
from mcveto.dpg.strengthen.phases import later_candidates, with_preconditions
from mcveto.dpg.strengthen.places import relevant_places
from mcveto.dpg.strengthen.system import System
from mcveto.logic.terms import Term

EXIT_SECONDS = 3.0
MAX_BY_MODE = 2500
# Conditions of a k-induction that is only tried: it should cost little where it fails.
FEW_CLAUSES = 24


class Stages:
    def __init__(
        self, system: System, learned: Mapping[Location, Mapping[Term, None]], record: Callable[[str], None]
    ) -> None:
        """`learned` is what was learned before the graph grew; `record` is told what was found."""
        self.system = system
        self._learned = learned
        self._record = record

    def is_safe(self) -> bool:
        return all(self.excludes(step) for step in self.system.exits())

    def excludes(self, step: BigStep) -> bool:
        """Whether the invariants say that an exit cannot be taken."""
        known = self.system.invariants[step.source] if step.source is not None else {}
        return self.system.queries.refutes(step.guard, step.source is None, EXIT_SECONDS, step.source, known)

    def open_exits(self) -> list[BigStep]:
        return [step for step in self.system.exits() if not self.excludes(step)]

    def first(self) -> Iterator[bool]:
        """The stages to begin with; after each whether every exit is excluded."""
        for stage in (self.known_lemmas, self.relations, self.by_mode):
            stage()
            yield self.is_safe()
        yield self.by_k_induction()

    def again(self) -> Iterator[bool]:
        """The stages that have more to propose when there are more samples."""
        for stage in (self.relations, self.by_mode):
            stage()
            yield self.is_safe()
        yield self.by_k_induction()

    def dear(self) -> Iterator[bool]:
        """The stages that cost more than a few levels of property-directed strengthening: candidates that are
        2-inductive, and interpolants of paths, also together with k-induction."""
        candidates = with_preconditions(self.system)
        if candidates is not None:
            self.keep(candidates, "candidates that are 2-inductive")
            yield self.is_safe() or self.by_k_induction(FEW_CLAUSES)
        self.keep(path_interpolants(self.system, self.open_exits()), "interpolants of paths that are inductive")
        yield self.is_safe() or self.by_k_induction()

    def later(self) -> Iterator[bool]:
        """The stages that are seldom needed."""
        for candidates in later_candidates(self.system):
            before = self._count()
            self.keep(candidates)
            yield self.is_safe() or (self._count() > before and self.by_k_induction(FEW_CLAUSES))

    def known_lemmas(self) -> None:
        """What was learned before the graph grew, where it is still inductive."""
        system = self.system
        self.keep(
            {
                cut: {
                    clause: None
                    for clause in self._learned.get(cut, ())
                    if clause not in system.invariants[cut] and system.samples.holds(cut, clause)
                }
                for cut in system.cuts
            }
        )

    def relations(self) -> None:
        system = self.system
        relevant = relevant_places(system.places, system.all_steps())
        candidates = {}
        places = {cut: open_places(system, cut, relevant.get(cut, ()), MAX_PLACES) for cut in system.cuts}
        halves = lower_halves(system, list(dict.fromkeys(place for found in places.values() for place in found)))
        for cut in system.cuts:
            found = [*relations(system, cut, places[cut][:MAX_RELATED]), *definitions(system, cut, places[cut])]
            found += half_relations(system, cut, places[cut][:MAX_RELATED], halves)
            candidates[cut] = dict.fromkeys(found)
        self.keep(candidates)

    def by_mode(self) -> None:
        system = self.system
        relevant = relevant_places(system.places, system.all_steps())
        candidates = {}
        for cut in system.cuts:
            places = open_places(system, cut, relevant.get(cut, ()), MAX_PLACES)
            candidates[cut] = dict.fromkeys(by_mode(system, cut, places, system.invariants[cut]))
        if sum(map(len, candidates.values())) <= MAX_BY_MODE:
            self.keep(candidates)

    def by_k_induction(self, most: int = MAX_CLAUSES) -> bool:
        """Whether the property is k-inductive relative to the invariants, for a small k."""
        found = k_inductive(self.system, self.open_exits(), most)
        if found is None:
            return False
        self.keep(found, "the property and what it needs up to k steps before (k-induction)")
        return self.is_safe()

    def keep(self, candidates: Candidates, how: str = "candidates (relations, cases) that are inductive") -> None:
        for cut, found in surviving(self.system, candidates, background=self.system.invariants).items():
            self.system.invariants[cut].update(tightest(found))
        self._record(f"{how}: {self._count()} conditions at {len(self.system.cuts)} cut points")

    def _count(self) -> int:
        return sum(map(len, self.system.invariants.values()))
