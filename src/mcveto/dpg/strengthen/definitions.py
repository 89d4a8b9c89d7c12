"""What a place was computed from, as a candidate: x = f(y) at a cut point that is entered with x just computed from y.

Compilers split a count before a loop: the turns of an unrolled loop are n & ~3, those of what it leaves over n & 3, and
both numbers stay as they are while the loops run. Samples would have to show many values of n before nothing but
these equations fits them; the step into the loop says them outright. In the same way a step says of which cell of an
array a register holds the content, where a turn reads what the next one stores. Read as a set of equations that hold on
the way in, this is value numbering (Alpern, Wegman, Zadeck, "Detecting equality of variables in programs", POPL 1988);
that they hold at every later visit is for Houdini to find out.
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
    """Equations between the places of a cut point that some step into it establishes and no sample refutes."""
    found = dict.fromkeys(equation for step in system.into(cut) for equation in _established(step, places))
    return [equation for equation in found if equation.op != "const" and system.samples.holds(cut, equation)]


def _established(step: BigStep, places: Sequence[Term]) -> Iterator[Term]:
    computed = {place: step.pre(place) for place in places}
    for place, value in computed.items():
        holders = _holders(computed, place)
        for piece, part in _pieces(place, value):
            is_plain = part.op in ("const", "var") or (part.op == "load" and part.args[1].op == "const")
            said = None if is_plain else _renamed(part, holders)
            if said is not None:
                yield t.eq(piece, said)


def _pieces(place: Term, value: Term) -> Iterator[tuple[Term, Term]]:
    """A place and its value, piece by piece: an instruction may write part of a long register."""
    parts = value.args if value.op == "concat" else (value,)
    high = value.width
    for part in parts:
        yield t.extract(place, high - 1, high - part.width), part
        high -= part.width


def _holders(computed: Mapping[Term, Term], but: Term) -> dict[Term, Term]:
    """Where to find behind a step what was there before it: in which place, or how far from its value."""
    found: dict[Term, Term] = {}
    for place, value in computed.items():
        if place is not but:
            found[value] = place
    for value, place in list(found.items()):
        if value.op in ("zext", "sext"):
            found.setdefault(value.args[0], t.extract(place, value.args[0].width - 1, 0))
        elif value.op == "lin" and value.data[0] == (1,):
            found.setdefault(value.args[0], t.sub(place, t.const(value.data[1], value.width)))
    return found


def _renamed(value: Term, holders: Mapping[Term, Term]) -> Term | None:
    """A value by what is to be found behind the step; None if something it reads is lost, or if it is long."""
    found: dict[Term, Term] = {}
    seen: set[Term] = set()
    waiting = [value]
    while waiting:
        term = waiting.pop()
        if term in seen:
            continue
        seen.add(term)
        held = holders.get(term)
        if held is None and term.op == "load":
            # Behind the step memory is another; that the word is still the same is part of the claim.
            address = _renamed(term.args[1], holders)
            held = None if address is None else t.load(t.base_of(term.args[0]), address, *term.data)
        if held is not None:
            found[term] = held
        elif term.op in ("var", "load") or len(seen) > MAX_TERMS:
            return None
        else:
            waiting.extend(term.args)
    return substitute(value, found)
