"""What a place was computed from, as a candidate: x = f(y) at a cut point that is entered with x just computed from y.

Compilers split a count before a loop: the turns of an unrolled loop are n & ~3, those of what it leaves over n & 3, and
both numbers stay as they are while the loops run. Samples would have to show many values of n before nothing but
these equations fits them; the step into the loop says them outright. Read as a set of equations that hold on the way in, this
is value numbering (Alpern, Wegman, Zadeck, "Detecting equality of variables in programs", POPL 1988); that they hold
at every later visit is for Houdini to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term

# Terms of a definition: longer ones are what a loop has computed, not a count.
MAX_TERMS = 16


def definitions(system: System, cut: Location, places: Sequence[Term]) -> list[Term]:
    """Equations between the places of a cut point that its entering steps establish and no sample refutes."""
    entering = [step for step in system.into(cut) if step.source != cut]
    found = dict.fromkeys(equation for step in entering for equation in _established(system, step, places))
    return [equation for equation in found if system.samples.holds(cut, equation)]


def _established(system: System, step: BigStep, places: Sequence[Term]) -> Iterator[Term]:
    computed = {place: step.pre(place) for place in places}
    for place, value in computed.items():
        if value.op in ("const", "var", "load") or sum(1 for _ in t.postorder([value])) > MAX_TERMS:
            continue
        said = _renamed(value, {other: term for other, term in computed.items() if other is not place})
        if said is not None and said is not place:
            yield t.eq(place, said)


def _renamed(value: Term, computed: Mapping[Term, Term]) -> Term | None:
    """A value with all that it reads replaced by the places that hold it behind the step; None if something is lost."""
    kept: dict[Term, Term] = {}
    for place, term in computed.items():
        kept[term] = place
        if term.op in ("zext", "sext"):
            kept.setdefault(term.args[0], t.extract(place, term.args[0].width - 1, 0))
    read = [term for term in t.postorder([value]) if term.op in ("var", "load") and term.width]
    inner = {part for term in read if term.op == "load" for part in t.postorder(term.args)}
    leaves = [term for term in read if term not in inner]
    return substitute(value, {leaf: kept[leaf] for leaf in leaves}) if all(leaf in kept for leaf in leaves) else None
