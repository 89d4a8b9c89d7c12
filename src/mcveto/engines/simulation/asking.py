"""Of which functions every branch is asked about: those where something was forgotten that makes a target seem reached.

Mostly that is nearby: in the functions that were entered lately and led there, or in one that was left since a flag got
the value that it has there (a lock that is still held when the next request comes). Only what was done since these
functions were entered is done again. Where every branch is asked about anyway nothing is gained: everybody calls such
functions, and their summaries are good.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcveto.engines.order import Order
from mcveto.engines.simulation.checkpoints import Begun, callers
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.simulation.relevance import Relevance
from mcveto.engines.state import Calls, PathState

# Variables, and the part of all of them, that were made lately.
LATELY = 5000
SHARE_OF_LATELY = 10


class Doubt(NamedTuple):
    functions: set[int]
    serial: int
    """What was made before this variable is not in doubt."""


class Asking:
    def __init__(self, order: Order, relevance: Relevance, unknowns: Unknowns) -> None:
        self._order, self._relevance, self._unknowns = order, relevance, unknowns
        self.functions: set[int] = set()
        self.begun: dict[tuple[Calls, int], Begun] = {}
        self._function_at: dict[int, int] = {}

    def note(self, state: PathState) -> None:
        """A state is executed. A call is made anew in each turn of a loop around it, but not when another state that is
        kept apart enters it in the same turn."""
        place = state.place
        if place is None:
            return
        self._function_at[state.pc] = place.function
        if state.calls is None:
            return
        call = state.calls, place.function
        known = self.begun.get(call)
        if known is None or (state.pc == place.function and known.caller != place.caller):
            self.begun[call] = Begun(self._unknowns.count, place.caller)

    def when_begun(self, calls: Calls | None, function: int) -> int:
        """How many variables there were when a call was made last."""
        known = self.begun.get((calls, function)) if calls is not None else None
        return known.serial if known is not None else 0

    def around(self, state: PathState) -> Doubt | None:
        """The functions that were entered lately and led here."""
        now = self._unknowns.count
        earliest = now - max(LATELY, now // SHARE_OF_LATELY)
        functions: set[int] = set()
        serial = None
        place, calls = state.place, state.calls
        while place is not None and calls is not None:
            begun = self.when_begun(calls, place.function)
            if begun < earliest:
                break
            if self._is_worth(place.function):
                functions.add(place.function)
                serial = begun
            place, calls = place.caller, calls.parent
        return None if serial is None else Doubt(functions, serial)

    def since_change(self, state: PathState, places: Iterable[tuple[int, Calls | None]]) -> Doubt | None:
        """The functions of these places that were left: whoever forgot a lock has returned."""
        around = {*callers(state.place)}
        begun: dict[int, int] = {}
        for pc, calls in places:
            function = self._function_at.get(pc)
            if function is not None and function not in around and calls is not None and self._is_worth(function):
                serial = self.when_begun(calls, function)
                begun[function] = min(begun.get(function, serial), serial)
        return Doubt({*begun}, min(begun.values())) if begun else None

    def _is_worth(self, function: int) -> bool:
        return function not in self.functions and not self._relevance.all_matter(self._order, function)
