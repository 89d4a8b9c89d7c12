"""Conditions on all cells of memory, without quantifiers.

A condition that mentions the variable ANY_CELL is claimed for every address it might be. The variable is no part of the
state and no step changes it, so as a goal the condition is shown for one address of which nothing is known; as an
assumption it may be used for as many addresses as one likes, and those that a question reads are the ones that matter
(instantiation at the index terms, which is complete for the array property fragment: Bradley, Manna, Sipma, "What's
decidable about arrays?", VMCAI 2006).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term

if TYPE_CHECKING:
    from mcveto.dpg.strengthen.big_steps import BigStep
    from mcveto.dpg.strengthen.system import System

NAME = "any cell"
MAX_ADDRESSES = 24


def any_cell(bits: int) -> Term:
    return t.var(NAME, bits)


def speaks_of_all(term: Term) -> bool:
    return any(variable.data == NAME for variable in t.free_variables([term]) if variable.width)


def addresses_read(terms: Iterable[Term]) -> list[Term]:
    """The addresses of words that are read, those that are not constant first."""
    found = dict.fromkeys(term.args[1] for term in t.postorder(terms) if term.op == "load")
    return sorted(found, key=lambda address: address.op == "const")[:MAX_ADDRESSES]


def loads_that_vary(terms: Iterable[Term]) -> list[Term]:
    """The words that are read at addresses that are not constant."""
    return [term for term in t.postorder(terms) if term.op == "load" and term.args[1].op != "const"]


def word_of_equal_bytes(memory: Term, at: Term, around: tuple[int, int], byte: int, load: Term) -> Term:
    """A word like the one of `load`, at an address within a range of equal bytes, consists of them."""
    (low, high), (size, big_endian) = around, load.data
    outside = t.ult(t.const(high - low - size, at.width), t.sub(at, t.const(low, at.width)))
    word = t.load(memory, at, size, big_endian)
    return t.disj([outside, t.eq(word, t.const(int.from_bytes(bytes([byte]) * size), word.width))])


def instances(literals: Collection[Term], terms: Iterable[Term]) -> list[Term]:
    """What the literals that speak of all cells say of the addresses that terms read."""
    general = [literal for literal in literals if speaks_of_all(literal)]
    if not general:
        return []
    found: dict[Term, None] = {}
    for address in addresses_read(terms):
        for literal in general:
            instance = substitute(literal, {any_cell(address.width): address})
            if instance is not t.TRUE and instance is not literal:
                found[instance] = None
    return list(found)


def instantiate(system: System) -> None:
    """Adds to the guard of each step what the invariants say of the cells that it reads: it holds there anyway."""
    for source in system.cuts:
        known = system.invariants[source]
        if any(map(speaks_of_all, known)):
            system.steps_from[source] = [
                _told(step, instances(known, step.guard)) for step in system.steps_from[source]
            ]


def _told(step: BigStep, said: Iterable[Term]) -> BigStep:
    new = [literal for literal in said if literal not in step.guard]
    return replace(step, guard=(*step.guard, *new), told=step.told.union(new))
