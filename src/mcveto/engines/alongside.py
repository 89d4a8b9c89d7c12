"""Explorations that take turns with a search for invariants, in the same process.

Programs whose paths all end are decided faster by following them than by any invariant, with paths kept apart (few long
ones) or merged (many that meet); others never come to an end that way. A violation behind a long loop is found by
simply running the program; drivers with many paths, of which few facts matter, are proved by predicates. Code of some
size is simulated: a glance in the first turn, a part of the time once the others had theirs, and larger ones later.
Nobody knows beforehand, so the search for invariants hands over now and then. The first turns are counted in states,
not in seconds: what is decided there is decided the same way each time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from mcveto.engines.exploration import Exploration, Policy, Report
from mcveto.engines.far_paths import FarPaths
from mcveto.engines.long_runs import LongRuns
from mcveto.engines.record import PathProof
from mcveto.engines.simulation import size
from mcveto.program.program import Program
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.engines.cegar.turns import PredicateTurns
    from mcveto.engines.simulation.by_turns import SimulatedByTurns

    Partner: TypeAlias = Exploration | LongRuns | FarPaths | PredicateTurns

FIRST_STATES = 600
MORE_STATES = 2500
# What runs, and paths that begin within one, get of a turn; explorations from the entry share the rest.
SHARES = {"runs": 0.2, "far": 0.15}
WEIGHTS = {"symex": 2.0, "bmc": 1.0, "cegar": 1.5}
# In code of some size predicates get a turn of their own before the others, so much of the time and at most so many
# seconds: there are many paths then, and what invariants cost grows with all of the code.
FIRST_SHARE = 0.12
LONGEST_FIRST = 10.0
# A simulation: after so many seconds, or this part of all the time if that is less, it gets a part of the time left,
# where there is so much code. In a short routine it finds soon what it finds at all.
SIMULATIONS = (
    (4.0, 0.1, 0.12, size.SMALL),
    (30.0, 0.5, 0.3, size.SMALL),
    (40.0, 0.65, 0.85, size.CONSIDERABLE),
)
# Routines that are proved at all are mostly proved in tenths of a second, drivers of several hundred instructions in
# one to four: seconds, and the part of all the time, of the glance in the first turn, by how much code there is.
FIRST_GLANCES = ((4.0, 0.08, size.MEDIUM), (0.6, 0.05, size.ROUTINE))
# Where inputs have not mattered so far, a run may be all there is.
ONLY_RUN_SHARE = 0.6
# Where one run was all there is, following it is a proof: so much of the time at once, and at most so many seconds.
FOLLOW_SHARE = 0.25
LONGEST_FOLLOW = 15.0
# Processor seconds after which a counted turn ends all the same, looked at after at most so many states: few at first,
# because a single one can take long, and one at a time again after some that took such a part of it.
LONGEST_COUNTED = 0.6
MOST_AT_ONCE = 20
SLOW = 0.15
LONGEST_AT_ONCE = 2.0
# Seconds for one question to the solver; an exploration that got stuck on one starts over with the next.
QUERY_SECONDS = (0.5, 4.0, 30.0)
POLICIES = {"symex": Policy(merges=False, asks_at_forks=True), "bmc": Policy(merges=True, asks_at_forks=False)}


def _counted(exploration: Partner, states: int) -> Verdict | None:
    """How busy the machine is makes no difference to what is found."""
    begun = time.process_time()
    at_once = 1
    while states > 0 and (spent := time.process_time() - begun) < LONGEST_COUNTED:
        verdict = exploration.advance(min(at_once, states), time.monotonic() + LONGEST_AT_ONCE)
        if verdict is not None:
            return verdict
        states -= at_once
        is_slow = time.process_time() - begun - spent > SLOW * LONGEST_COUNTED
        at_once = 1 if is_slow else min(2 * at_once, MOST_AT_ONCE)
    return None


def is_final(verdict: Verdict | None, must_record: bool = False) -> bool:
    """Whether nothing better is to be looked for: a proof should be one that can be written down and read. That of a
    simulation is long because the code is, so that it need not be there unless somebody asked for it."""
    if verdict is None or verdict.kind != "proved":
        return verdict is not None
    if verdict.certificate:
        return True
    if verdict.found_by == "simulation":
        return verdict.proof is not None or not must_record
    if not isinstance(verdict.proof, PathProof):
        return verdict.proof is not None
    return not verdict.proof.is_bulky()


def glance(program: Program, seconds: float, report: Report | None = None) -> Verdict | None:
    """What paths followed one by one decide in so many seconds; nothing if that is not final."""
    policy = replace(POLICIES["symex"], query_seconds=QUERY_SECONDS[0])
    verdict = Exploration(program, policy, seconds, report).run()
    return replace(verdict, found_by="symex") if verdict.kind != "unknown" and is_final(verdict) else None


class Alongside:
    def __init__(
        self,
        program: Program,
        seconds: float,
        report: Report | None = None,
        must_recheck: bool = True,
        must_record: bool = False,
    ) -> None:
        """`must_recheck`: no checker will look at a proof later; `must_record`: somebody asked for a certificate."""
        self._program = program
        self._report = report
        self._begun = time.monotonic()
        self._deadline = self._begun + seconds
        self._simulations = list(SIMULATIONS)
        self._simulation: SimulatedByTurns | None = None
        self._must_record = must_record
        self._states = FIRST_STATES
        self._is_first = True
        self._must_follow = False
        self._attempts = dict.fromkeys(POLICIES, 0)
        self._must_recheck = must_recheck
        self._explorations: dict[str, Partner] = {name: self._new(name) for name in POLICIES}
        if LongRuns.apply_to(program):
            self._explorations["runs"] = LongRuns(program, seconds)
            self._attempts["runs"] = 0
            if FarPaths.apply_to(program):
                self._explorations["far"] = FarPaths(program, seconds, replace(POLICIES["symex"], query_seconds=2.0))
                self._attempts["far"] = 0

    @property
    def is_over(self) -> bool:
        """Whether nobody is left who could find something, after the first turn that is measured in seconds."""
        return "cegar" in self._attempts and not self._explorations and not self._simulations

    def turn(self, seconds: float | None) -> Verdict | None:
        """What is found in so many seconds, or (None) in so many states, if it decides."""
        found = self._simulated() if seconds is not None else None
        if found is not None:
            return found
        states, self._states = self._states, MORE_STATES
        is_first, self._is_first = self._is_first, False
        own = 0.0
        if seconds is not None and "cegar" not in self._attempts:
            self._attempts["cegar"] = 0
            self._explorations["cegar"] = self._predicates()
            if size.is_large(self._program, size.MEDIUM):
                own = min(FIRST_SHARE * (self._deadline - time.monotonic()), LONGEST_FIRST)
        turns = list(self._explorations.items())
        if seconds is None:
            # Runs warm up first, and a proof that is nearly found should not wait for that.
            left_out = ("runs", "far", "cegar") if is_first else ("far", "cegar")
            turns = [(name, exploration) for name, exploration in turns if name not in left_out]
        else:
            turns.sort(key=lambda turn: turn[0] not in SHARES)  # what runs find is found soonest
        shares = {name: SHARES[name] for name, _ in turns if name in SHARES}
        if any(isinstance(partner, LongRuns) and partner.is_the_only_run for _, partner in turns):
            shares["runs"] = ONLY_RUN_SHARE
        weights = {name: WEIGHTS[name] for name, _ in turns if name in WEIGHTS}
        rest = (1 - sum(shares.values())) / max(1, sum(weights.values()))
        shares |= {name: weight * rest for name, weight in weights.items()}
        for name, exploration in turns:
            if is_first and seconds is None and name == "bmc":
                found = self._glance()
                if found is not None:
                    return found
            if seconds is None:
                verdict = _counted(exploration, states)
            else:
                longer = own if name == "cegar" else 0.0
                if name == "bmc" and self._must_follow:
                    self._must_follow = False
                    longer = min(FOLLOW_SHARE * (self._deadline - time.monotonic()), LONGEST_FOLLOW)
                verdict = exploration.advance(until=time.monotonic() + shares[name] * seconds + longer)
            if isinstance(exploration, LongRuns) and verdict is not None:
                self._must_follow = exploration.was_the_only_run
            if verdict is None:
                continue
            if verdict.kind != "unknown":
                return replace(verdict, found_by=name)
            self._attempts[name] += 1
            if exploration.got_stuck and self._attempts[name] < len(QUERY_SECONDS):
                self._explorations[name] = self._new(name)
            else:
                del self._explorations[name]
        return None

    def _glance(self) -> Verdict | None:
        """What a simulation finds in a moment."""
        for longest, share, least in FIRST_GLANCES:
            if size.is_large(self._program, least):
                return self._simulate(min(longest, share * (self._deadline - time.monotonic())))
        return None

    def _simulated(self) -> Verdict | None:
        """What a simulation finds, when it is time for one."""
        now = time.monotonic()
        after, part, share, least = self._simulations[0] if self._simulations else (math.inf, math.inf, 0.0, 0)
        if now - self._begun < min(after, part * (self._deadline - self._begun)):
            return None
        if not size.is_large(self._program, least):
            self._simulations = []
            return None
        del self._simulations[0]
        return self._simulate(share * (self._deadline - now))

    def _simulate(self, seconds: float) -> Verdict | None:
        """What the simulation finds in so many seconds, going on where it was."""
        if self._simulation is None:
            from mcveto.engines.simulation.by_turns import SimulatedByTurns

            self._simulation = SimulatedByTurns(self._program, self._deadline, self._report, self._must_record)
        found = self._simulation.advance(time.monotonic() + seconds)
        if found is None:
            return None
        self._simulations, self._simulation = [], None  # It would end the same way again.
        return replace(found, found_by="simulation") if found.kind != "unknown" else None

    def after(self, first: Verdict | None) -> Callable[[float | None], Verdict | None]:
        """Turns of which the first has been taken already and found `first`."""
        taken = [False]

        def turn(seconds: float | None) -> Verdict | None:
            if not taken[0]:
                taken[0] = True
                return first
            return self.turn(seconds)

        return turn

    def _new(self, name: str) -> Exploration:
        policy = replace(POLICIES[name], query_seconds=QUERY_SECONDS[self._attempts[name]])
        return Exploration(self._program, policy, self._deadline - time.monotonic(), self._report)

    def _predicates(self) -> PredicateTurns:
        from mcveto.engines.cegar.turns import PredicateTurns  # seldom needed, and its imports take time

        return PredicateTurns(self._program, self._deadline - time.monotonic(), self._report, self._must_recheck)
