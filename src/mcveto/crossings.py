"""What becomes of a search that ends with an access that leaves its object.

If that is a violation (`check.object_crossings` says when), it is the answer. If it is a field of a structure, the
search goes on with its instruction excused. If nobody can tell, the search goes on for other violations; without one
the answer is UNKNOWN, with the access as the reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.property.attach import Attached


class Crossed:
    """The accesses of one search."""

    def __init__(self) -> None:
        self._reason = ""
        self._assumption = ""
        self._is_judged = False

    def without(self, attached: Attached, found: Verdict) -> Attached | None:
        """What to search next; None if the verdict stands."""
        guarded = attached.guarded
        if guarded is None or found.kind != "violated" or found.at is None or found.at != guarded.crossed:
            return None
        from mcveto.check.counterexample import sorted_inputs
        from mcveto.check.object_crossings import FIELD, Crossings
        from mcveto.check.reference_run import MAX_STEPS
        from mcveto.check.safety_monitor import SafetyViolation, crossing_reason, safety_violation

        example = sorted_inputs("memory-safety", found.inputs)
        turns, judged = safety_violation(attached.plain, example)
        if isinstance(judged, SafetyViolation):
            self._is_judged = True
            function = judged.facts.get("function")
            if function is not None and attached.plain.spec.objects is None:
                self._assumption = (
                    f"variables of the frame of {function:#x} that the code and this run tell apart are objects of "
                    "their own, not parts of one structure (`objects: together` in the spec lifts this)"
                )
            return None
        first = next(iter(Crossings(attached.plain).of(example, turns, MAX_STEPS)), None)
        if first is not None and first.meaning == FIELD:
            excused = guarded.watching.excused | {first.pc}
            return attached.watching(replace(guarded.watching, excused=excused))
        inputs = ", ".join(str(item.value) for item in found.inputs[:12])
        what = "an access leaves its object" if first is None else crossing_reason(attached.plain, first)
        self._reason = (
            f"{what}; whether that is one object with it, the code does not tell"
            f"{f' (inputs {inputs})' if inputs else ''}: `objects: separate` or `objects: together` in the spec does"
        )
        return attached.watching(replace(guarded.watching, is_on=False))

    def considered(self, attached: Attached, found: Verdict) -> Verdict:
        """The verdict in the light of what was seen on the way."""
        if self._is_judged:
            told = (self._assumption,) if self._assumption else ()
            return replace(found, assumptions=(*found.assumptions, *told))
        crossed = attached.guarded.crossed if attached.guarded is not None else None
        is_crossing = found.kind == "violated" and found.at is not None and found.at == crossed
        if not is_crossing and (not self._reason or found.kind == "violated"):
            return found
        # One that is no violation was found when there was no time to search on.
        reason = self._reason or "time-out"
        return replace(found, kind="unknown", reason=reason, proof=None, evidence=None)
