"""Where a run is on a trace, if it may go round loops on the way.

A trace is loop-free; the runs it stands for need not be. A run follows a trace if the trace is what remains of it after
some cycles, from a configuration back to the same one, are taken out. So a run that leaves the trace is not lost as
long as it may come back to a configuration that it has passed. Whether it may is asked of the model, procedure by
procedure, as if every call returned: that errs on the side of going on.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.counterexamples.model import Model

Configuration = tuple[int, ...]
"""Program counters of nodes: the one at hand, then where the pending calls return to, innermost first."""


class Surroundings:
    """The model's nodes by their program counters, and where control may go within a procedure."""

    def __init__(self, model: Model, addresses: dict[str, int]) -> None:
        self.nodes = frozenset(addresses.values())
        self._following: dict[int, list[int]] = {pc: [] for pc in addresses.values()}
        self._ends: set[int] = set()
        pc_of = [addresses[name] for name in model.symbols]
        for rule in model.rules():
            source = pc_of[rule.symbol]
            pushed = [pc_of[symbol] for symbol in rule.pushed]
            if not pushed:
                self._ends.add(source)
            else:
                # Behind a call the procedure goes on where the call returns to.
                self._following[source].append(pushed[-1])
        self._reached: dict[int, frozenset[int]] = {}

    def within(self, pc: int) -> frozenset[int]:
        """The nodes of the procedure that may come after `pc`, and itself."""
        found = self._reached.get(pc)
        if found is None:
            seen = {pc}
            worklist = [pc]
            while worklist:
                for target in self._following.get(worklist.pop(), ()):
                    if target not in seen:
                        seen.add(target)
                        worklist.append(target)
            found = self._reached[pc] = frozenset(seen)
        return found

    def may_end(self, pc: int) -> bool:
        """Whether the procedure may return after `pc`."""
        return not self._ends.isdisjoint(self.within(pc))


class Progress:
    """How far a run is along a trace: all positions it may be said to be at."""

    def __init__(self, trace: Sequence[Configuration], surroundings: Surroundings) -> None:
        self._trace = trace
        self._surroundings = surroundings
        self._places: dict[Configuration, list[int]] = {}
        for position, configuration in enumerate(trace):
            self._places.setdefault(configuration, []).append(position)
        self.positions = {0}
        self.farthest = 0

    @property
    def is_at_end(self) -> bool:
        return len(self._trace) - 1 in self.positions

    def arrive(self, configuration: Configuration) -> bool:
        """The run is at a node; whether it may still follow the trace."""
        trace = self._trace
        ahead = {
            position + 1
            for position in self.positions
            if position + 1 < len(trace) and trace[position + 1] == configuration
        }
        back = {position for position in self._places.get(configuration, ()) if position <= self.farthest}
        self.positions = ahead | back
        self.farthest = max(self.farthest, *self.positions) if self.positions else self.farthest
        return bool(self.positions) or self.may_come_back(configuration)

    def may_go_on(self, configuration: Configuration) -> bool:
        """Whether a run that went to this configuration next could still follow the trace."""
        trace = self._trace
        ahead = (trace[position + 1] for position in self.positions if position + 1 < len(trace))
        return configuration in ahead or self.may_come_back(configuration)

    def may_come_back(self, configuration: Configuration) -> bool:
        """Whether a configuration may lead back to one that the run has passed on the trace."""
        pc, frames = configuration[0], configuration[1:]
        passed = {(step[0], step[1:]) for step in self._trace[: self.farthest + 1] if len(step) <= len(configuration)}
        while True:
            if any((node, frames) in passed for node in self._surroundings.within(pc)):
                return True
            if not frames or not self._surroundings.may_end(pc):
                return False
            pc, frames = frames[0], frames[1:]
