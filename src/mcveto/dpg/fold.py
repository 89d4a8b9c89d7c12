"""Trace folding: one concrete trace becomes an automaton that over-approximates the whole program (TR1669 Fig. 5).

`fold` builds π/[PC] by items 1-12 of Fig. 5 (12 is in §3.5), or its variant for self-modifying code (§3.1), where
states carry the instruction and items 8-10 are replaced. All positions with the same address fall together; whatever
the trace did not explore leads to TS.

Fig. 5 as printed loses feasible paths; `literal=True` builds it so, for comparison. Item 4 gives return edges only to
pairs of exit and call site that were seen together: a path that enters at one site and leaves by an exit seen only
from another has no edge. Item 7 lets TS return only from unmatched calls: a path that leaves the known code inside a
matched call and comes back has none either. Item 10 gives an unfinished trace that ends in a branch only the direction
it took. By default we add a return edge for every exit and call site whose return address was visited, TS returns for
every call site, and both directions of a last branch.

The incremental graph of `graph.py` is the intersection of such foldings in another representation; this one is the
definition, for tests and for explaining.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcveto.automata.nested_words import ANY, Kind, NWPrefix
from mcveto.automata.nwa import NWA

TS = "TS"
EXIT = "Exit"
State = str | tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Symbol:
    """An instruction instance; a branch is two symbols, one per direction."""

    code: bytes
    taken: bool | None = None
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class TracePosition:
    """One step of a trace; `following` is the address after a call, where it is expected to return to."""

    pc: int
    symbol: Symbol
    kind: Kind
    following: int = 0


NameState = Callable[[TracePosition], State]


@dataclass(frozen=True, slots=True)
class FoldableTrace:
    """Definition 1 of the report: positions, and whether the last one halted the program."""

    positions: tuple[TracePosition, ...]
    halted: bool

    def word(self, length: int | None = None) -> NWPrefix:
        """The nested-word prefix of the first `length` steps."""
        shown = self.positions[:length]
        return NWPrefix(tuple(p.symbol for p in shown), tuple(p.kind for p in shown))


def fold(trace: FoldableTrace, *, self_modifying: bool = False, literal: bool = False) -> NWA[State]:
    """An automaton with a run on every feasible trace (with `literal`: except those the printed figure loses)."""
    positions = trace.positions
    nwa: NWA[State] = NWA()

    def state(position: TracePosition) -> State:
        return (position.pc, position.symbol.code if self_modifying else b"")

    for number, position in enumerate(positions):  # item 1
        nwa.add_state(state(position), initial=number == 0)
    nwa.add_state(TS, final=True)  # items 5, 6
    nwa.add_internal(TS, ANY, TS)
    nwa.add_call(TS, ANY, TS)
    nwa.add_return(TS, TS, ANY, TS)
    matched = _add_steps(nwa, positions, state)
    calls = {number for number, position in enumerate(positions[:-1]) if position.kind is Kind.CALL}
    for number in sorted(calls if not literal else calls - set(matched.values())):  # item 7
        nwa.add_return(TS, state(positions[number]), ANY, TS)
    if not literal:
        _close_return_gap(nwa, positions, state)
    if self_modifying:
        _add_unexplored_anywhere(nwa, positions, state, matched, literal)
    else:
        _add_unexplored(nwa, trace, state, literal)
    if trace.halted and positions:  # item 11
        nwa.add_internal(state(positions[-1]), positions[-1].symbol, EXIT)
    for position in positions:  # item 12
        if position.kind is Kind.RETURN:
            nwa.add_internal(state(position), position.symbol, TS)
    return nwa


def _add_steps(nwa: NWA[State], positions: Sequence[TracePosition], state: NameState) -> dict[int, int]:
    """Items 2-4: the steps of the trace. Returns the call position of each matched return position."""
    matched: dict[int, int] = {}
    open_calls: list[int] = []
    for number, position in enumerate(positions):
        last = number + 1 == len(positions)
        if position.kind is Kind.CALL:
            open_calls.append(number)
        elif position.kind is Kind.RETURN and open_calls:
            matched[number] = open_calls.pop()
        if last:
            continue
        here, there = state(position), state(positions[number + 1])
        if position.kind is Kind.INTERNAL:
            nwa.add_internal(here, position.symbol, there)
        elif position.kind is Kind.CALL:
            nwa.add_call(here, position.symbol, there)
        elif number in matched:
            nwa.add_return(here, state(positions[matched[number]]), position.symbol, there)
    return matched


def _close_return_gap(nwa: NWA[State], positions: Sequence[TracePosition], state: NameState) -> None:
    """Every exit returns to every call site; into TS where the return address was not visited."""
    by_address: dict[int, list[State]] = {}
    for position in positions:
        by_address.setdefault(position.pc, []).append(state(position))
    exits = [position for position in positions if position.kind is Kind.RETURN]
    for call in positions:
        if call.kind is Kind.CALL:
            for leaving in exits:
                for target in by_address.get(call.following, [TS]):
                    nwa.add_return(state(leaving), state(call), leaving.symbol, target)


def _add_unexplored(nwa: NWA[State], trace: FoldableTrace, state: NameState, literal: bool) -> None:
    """Items 8-10: branch directions, indirect targets and a last step that were not explored."""
    positions = trace.positions
    directions = {(p.pc, p.symbol.code, p.symbol.taken) for p in positions[:-1] if p.kind is Kind.INTERNAL}
    for position in positions[:-1]:
        symbol = position.symbol
        if position.kind is Kind.INTERNAL and symbol.taken is not None:
            if (position.pc, symbol.code, not symbol.taken) not in directions:
                nwa.add_internal(state(position), Symbol(symbol.code, not symbol.taken, symbol.indirect), TS)
            if symbol.indirect:
                nwa.add_internal(state(position), symbol, TS)
        if position.kind is Kind.CALL and symbol.indirect:
            nwa.add_call(state(position), symbol, TS)
    if positions and not trace.halted:
        last = positions[-1]
        nwa.add_internal(state(last), last.symbol, TS)
        if last.symbol.taken is not None and not literal:
            nwa.add_internal(state(last), Symbol(last.symbol.code, not last.symbol.taken, last.symbol.indirect), TS)


def _add_unexplored_anywhere(
    nwa: NWA[State], positions: Sequence[TracePosition], state: NameState, matched: dict[int, int], literal: bool
) -> None:
    """The variant for self-modifying code: the next instruction may be another one everywhere."""
    open_calls: list[TracePosition] = []
    sites = [position for position in positions if position.kind is Kind.CALL]
    for number, position in enumerate(positions):
        nwa.add_internal(state(position), ANY, TS)
        nwa.add_call(state(position), ANY, TS)
        for site in open_calls[-1:] if literal else sites:
            nwa.add_return(state(position), state(site), ANY, TS)
        if position.kind is Kind.CALL:
            open_calls.append(position)
        elif number in matched:
            open_calls.pop()
