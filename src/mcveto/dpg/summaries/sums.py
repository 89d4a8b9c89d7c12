"""Results that something is only added to, found in the paths: f(n, sum) = sum + T[n].

Where compilers make a loop of the last of several recursive calls, its head has a sum so far; a global counter grows by
what each activation counts. A place is such a summand of a result if on every path of the procedure the result is the
place plus something else, and nothing else that matters depends on it: no guard, and no argument of an activation on
the way, except that it is a summand there as well. All places are taken to be summands until a path says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mcveto.dpg.summaries.paths import End, Path
from mcveto.dpg.summaries.state import AFTER
from mcveto.dpg.summaries.summary import ensured_by
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term


class Known:
    """Terms with what is known put in, also of words behind activations."""

    def __init__(self, mapping: Mapping[Term, Term]) -> None:
        self.mapping = mapping
        self._substitution = Substitution(mapping, lambda load: mapping.get(load, load))

    def of(self, term: Term) -> Term:
        return self._substitution.apply(term)


def behind(number: int, place: Term) -> Term:
    """What a place behind an activation is called on a path where that is the activation with this number."""
    if place.op == "load":
        memory = t.memory(f"call {number} mem", place.args[0].address_width)
        return t.load(memory, place.args[1], *place.data)
    return t.var(f"call {number} {str(place.data).removeprefix(AFTER)}", place.width)


def whole(place: Term, value: Term) -> tuple[Term, Term]:
    """The register that a place is the low half of, and what it holds if the rest is zero; or both as they are."""
    return (place.args[0], t.zext(value, place.args[0].width)) if place.op == "extract" else (place, value)


def total(places: Iterable[Term], width: int) -> Term:
    found = t.const(0, width)
    for place in places:
        found = t.add(found, place)
    return found


Summands = dict[int, dict[Term, list[Term]]]
"""By procedure and result: the places at the beginning that are only added to it."""


def summands(
    paths: Mapping[int | None, Sequence[Path]],
    results: Mapping[int, Sequence[Term]],
    places: Mapping[int, Sequence[Term]],
    arguments: Mapping[int, Sequence[Term]],
    fixed: Mapping[Term, Term],
) -> Summands:
    """Which of the `places` are only added to which results; `arguments` are what activations of procedures depend on,
    and what is `fixed` may be put in (where the stack is, so that words are told apart)."""
    found: Summands = {
        pc: {result: [x for x in places[pc] if x.width == result.width] for result in made}
        for pc, made in results.items()
    }
    has_changed = True
    while has_changed:
        has_changed = False
        for pc, result in [(pc, result) for pc, made in results.items() for result in made]:
            if found[pc][result]:
                ends = [path for path in paths[pc] if path.end is End.RETURN]
                spoiled = set().union(*(_spoiled(path, result, pc, found, arguments, fixed) for path in ends))
                has_changed |= bool(spoiled)
                found[pc][result] = [place for place in found[pc][result] if place not in spoiled]
    return found


def _spoiled(
    path: Path,
    result: Term,
    procedure: int,
    found: Summands,
    arguments: Mapping[int, Sequence[Term]],
    fixed: Mapping[Term, Term],
) -> set[Term]:
    """The places that are more than summands of a result on a path."""
    known = Known(fixed)
    others = [*map(known.of, path.guard)]
    for number, call in enumerate(path.calls):
        added = {_root(place) for places in found[call.procedure].values() for place in places}
        others += map(known.of, call.before.values(x for x in arguments[call.procedure] if x not in added))
        more = {}
        for one, places in found[call.procedure].items():
            begun = total(map(known.of, call.before.values(places)), one.width)
            place, value = whole(one, t.add(begun, t.var(f"row {number} {one.serial}", one.width)))
            more[behind(number, place)] = value
        known = Known({**known.mapping, **more})
    (end,) = ensured_by(path, [result])
    places = found[procedure][result]
    others.append(t.sub(known.of(end), known.of(total(places, result.width))))
    read = set(t.postorder(others))
    return {place for place in places if known.of(_root(place)) in read}


def _root(place: Term) -> Term:
    """The register or word that a place is, or is the low half of."""
    return place.args[0] if place.op == "extract" else place
