"""Replay: a counterexample on every machine that can run it, and what they say together.

The reference emulator decides whether the inputs violate the property at all. Unicorn, and the processor of this
computer where the program is made for it, or qemu-user where that is installed, then follow it instruction by
instruction. A violation is *confirmed* if none of those that can run it contradicts; where the processor itself took
part, it overrules Unicorn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mcveto.check.counterexample import REPLAYABLE, SAFETY, Counterexample, counterexample_of
from mcveto.check.judgement import judgement
from mcveto.check.lockstep import Comparison, Follower, follow
from mcveto.check.reference_run import MAX_STEPS, Turns, Violation
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.late_methods import dataclass
from mcveto.program.program import Program
from mcveto.verdict import Verdict

REFERENCE = "emulator"
NATIVE = "native"
# Steps that are followed one by one; at most so many are replayed at all.
LOCKSTEP_STEPS = 5_000
LONGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of a counterexample. Without a violation, `failure` says why the reference run has none."""

    violation: Violation | None
    failure: str = ""
    turns: Turns = ()
    comparisons: tuple[Comparison, ...] = ()

    @property
    def contradicted_by(self) -> tuple[Comparison, ...]:
        differing = tuple(item for item in self.comparisons if item.difference is not None)
        if any(item.name == NATIVE and item.agrees for item in self.comparisons):
            return tuple(item for item in differing if item.name == NATIVE)
        return differing

    @property
    def confirmed(self) -> bool:
        return self.violation is not None and not self.contradicted_by

    @property
    def confirmed_by(self) -> tuple[str, ...]:
        """Who agrees; empty unless the violation is confirmed."""
        if not self.confirmed:
            return ()
        return (REFERENCE, *(item.name for item in self.comparisons if item.agrees))

    @property
    def problem(self) -> str:
        """Why it is not confirmed; empty if it is."""
        if self.violation is None:
            return self.failure
        return "; ".join(map(str, self.contradicted_by))


def standard_followers() -> tuple[Callable[[Program], Follower], ...]:
    from mcveto.check.native_follower import NativeFollower
    from mcveto.check.qemu_follower import QemuFollower

    return (UnicornFollower, NativeFollower, QemuFollower)


def replay(
    program: Program,
    example: Counterexample,
    followers: Sequence[Callable[[Program], Follower]] | None = None,
    max_steps: int = MAX_STEPS,
    judged: tuple[Turns, Violation] | None = None,
) -> Replay:
    """Runs a counterexample on the reference emulator and on every other machine that can; on the emulator not again if
    it was `judged` there just now."""
    found: Violation | str
    turns, found = judged or judgement(program, example, min(max_steps, LOCKSTEP_STEPS))
    if isinstance(found, str) and max_steps > LOCKSTEP_STEPS:
        long = _long_replay(program, example) if followers is None else None
        if long is not None:
            return long
        turns, found = judgement(program, example, max_steps)
    if isinstance(found, str):
        return Replay(None, found)
    others = standard_followers() if followers is None else followers
    comparisons = tuple(follow(program, example, turns, found, make(program)) for make in others)
    return Replay(found, "", turns, comparisons)


def _long_replay(program: Program, example: Counterexample) -> Replay | None:
    """None if the run is not long, or if only a comparison step by step can tell."""
    if example.undefined or example.about != "reach":
        return None
    from mcveto.check.long_replay import replay_in_stretches

    found, comparison = replay_in_stretches(program, example, LONGEST, UnicornFollower(program))
    if isinstance(found, str):
        return Replay(None, found) if comparison.steps > LOCKSTEP_STEPS else None
    if comparison.steps <= LOCKSTEP_STEPS or found.about != "reach":
        return None
    if comparison.difference is not None and comparison.steps <= MAX_STEPS:
        return None
    return Replay(found, "", (), (comparison,))


def confirmed(program: Program, verdict: Verdict) -> Verdict:
    """A verdict of an engine after its counterexample was replayed; unknown if the replay does not confirm it.

    Violations of properties that a replay cannot judge stay as they are. What is violated of memory safety and
    `no-fault`, and the words for it, are the monitor's.
    """
    if verdict.kind != "violated" or verdict.about not in REPLAYABLE:
        return verdict
    known = None
    if verdict.about in SAFETY:
        from mcveto.check.safety_monitor import judged

        verdict, known = judged(program, verdict)
        if verdict.kind != "violated":
            return verdict
    result = replay(program, counterexample_of(verdict), judged=known)
    if result.confirmed:
        monitor = ("monitor",) if verdict.about in SAFETY else ()
        first, *others = result.confirmed_by
        return replace(verdict, confirmed_by=(first, *monitor, *others))
    reason = f"self-check failed: the counterexample is not confirmed: {result.problem}"
    return replace(verdict, kind="unknown", about="", reason=reason, inputs=(), confirmed_by=(), at=None)
