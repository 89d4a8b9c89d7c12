"""How a round of strategy `auto` can end other than with a verdict of its own."""

from __future__ import annotations

from mcveto.verdict import Verdict


class GiveUp(Exception):
    """This strategy has nothing more to try."""


class TooManyLocations(Exception):
    """Call strings make more locations than invariants can be found for."""


class Decided(Exception):
    """The other strategy has an answer."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.headline)
        self.verdict = verdict
