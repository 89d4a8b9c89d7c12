"""From a model and an automaton to the answer: is an error reached, by which traces, and is that all of them?

Reachability is decided first and without condition 2, so an answer "no violation" never depends on which traces count
as minimal. If an error is reached but condition 2 drops every trace to it (see `recursion`), the shortest trace is
given nevertheless, with a note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mcveto.counterexamples.collector import without_cycle_collection
from mcveto.counterexamples.enumeration import Enumeration, Limits
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.model import Model
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import AnyRecursion, BoundedRecursion, MinimumRecursion, Recursion
from mcveto.counterexamples.shortest import shortest_witness
from mcveto.counterexamples.trace import Witness
from mcveto.property.typestate import Typestate

# How many traces beyond those asked for are counted, and how much of the search that may take. Who asks for one only is
# in a hurry: nothing is counted then.
COUNTED = 10_000
_COUNTING_EXPANSIONS = 200_000
_COUNTING_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Request:
    """How many traces to give, which recursion counts as unnecessary (None: Definition 3 of the paper; N: more than N
    pending calls with the same continuation), and when to give up."""

    count: int = 20
    recursion: int | None = None
    limits: Limits = field(default_factory=Limits)


class Enough(Exception):
    """No more traces are wanted; says why."""


@dataclass(frozen=True, slots=True)
class Found:
    product: Product
    is_violated: bool
    witnesses: tuple[Witness, ...]
    more: int
    """Traces that were counted but not kept."""
    is_exhaustive: bool
    """Whether `witnesses` and `more` are all there are."""
    stopped: str
    """Why not, if not."""
    notes: tuple[str, ...]
    expansions: int


def find_counterexamples(
    model: Model,
    automaton: Typestate,
    request: Request | None = None,
    wanted: Callable[[Witness], bool] = lambda witness: True,
) -> Found:
    """Only traces that are `wanted` are given and count against the number asked for. It may raise Enough."""
    request = request or Request()
    product = Product(model, automaton)
    if request.count == 1:
        shortest = _one(product, request, wanted)
        if shortest is not None:
            return shortest
    reachable = Reachable(product)
    if not reachable.errors:
        return Found(product, False, (), 0, True, "", (), 0)
    enumeration = Enumeration(reachable, _recursion(product, request), request.limits)
    kept: list[Witness] = []
    more = given = 0
    for witness in enumeration:
        if len(kept) < request.count:
            given += 1
            try:
                if not wanted(witness):
                    continue
            except Enough as enough:
                enumeration.stop(str(enough))
                break
            kept.append(witness)
            if request.count == 1:
                enumeration.stop("only the shortest was asked for")
                break
            if len(kept) == request.count:
                enumeration.limits = _counting(request.limits, enumeration.expansions, enumeration.seconds)
        else:
            more += 1
            if more == COUNTED:
                enumeration.stop(f"counting was ended after {COUNTED} more")
                break
    notes: list[str] = []
    if given:
        pass
    elif enumeration.is_exhaustive:
        notes.append("every trace needs recursion that counts as unnecessary; the shortest one is shown")
        kept = _shortest(reachable)
    else:
        notes.append("no trace without unnecessary recursion was found within the limits; the shortest one is shown")
        kept = _shortest(reachable)
    return Found(
        product,
        True,
        tuple(kept),
        more,
        enumeration.is_exhaustive,
        enumeration.stopped,
        tuple(notes),
        enumeration.expansions,
    )


def _one(product: Product, request: Request, wanted: Callable[[Witness], bool]) -> Found | None:
    """The shortest trace, if it is wanted and goes to one of the nearest errors: nothing beyond these is looked at."""
    reachable = Reachable(product, nearest_only=True)
    if not reachable.errors:
        return None
    entry, head = reachable.errors[0]
    nearest = reachable.depth[entry] + reachable.distance[entry][head]
    limits = request.limits
    if limits.length is not None and limits.length < nearest:
        return None
    expansions = 0
    with without_cycle_collection():
        found, recurs = shortest_witness(reachable)
        witness: Witness | None = found
        if recurs or limits.stack_height is not None:
            enumeration = Enumeration(reachable, _recursion(product, request), replace(limits, length=nearest))
            witness = next(iter(enumeration), None)
            expansions = enumeration.expansions
    assert witness is None or len(witness) == nearest
    try:
        if witness is None or not wanted(witness):
            return None
    except Enough:
        return None
    reason = "only the shortest was asked for"
    return Found(product, True, (witness,), 0, False, reason, (), expansions)


def _recursion(product: Product, request: Request) -> Recursion:
    return MinimumRecursion(Erase(product)) if request.recursion is None else BoundedRecursion(request.recursion)


def _counting(limits: Limits, expansions: int, seconds: float) -> Limits:
    """The limits of the search once all traces that were asked for are there."""
    expansions, seconds = expansions + _COUNTING_EXPANSIONS, seconds + _COUNTING_SECONDS
    return replace(
        limits,
        expansions=expansions if limits.expansions is None else min(expansions, limits.expansions),
        seconds=seconds if limits.seconds is None else min(seconds, limits.seconds),
    )


def _shortest(reachable: Reachable) -> list[Witness]:
    return [next(iter(Enumeration(reachable, AnyRecursion())))]
