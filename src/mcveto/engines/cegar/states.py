"""Words that hold the state of a protocol: followed by their values instead of by predicates.

A protocol engine stores one of dozens of numbers in a word and compares it with each of them. One predicate for each is
found one after the other, each at the price of an exploration. So from the third number on that refinement compares a
word at a fixed address with, regions that differ in this word stay apart: explicit values beside predicates (Beyer and
Löwe, "Explicit-state software model checking based on CEGAR and interpolation", FASE 2013). A word that turns out to
have many values is a counter, and is given up. Nothing depends on the choice but the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from mcveto.engines.cegar.constants import Constants
from mcveto.logic.terms import Term

# Numbers that a word was compared with before it is followed, and values that it may have.
FEW = 3
MANY = 80
MOST_WORDS = 4

Word = tuple[int, int]
"""Address and size."""


class States:
    def __init__(self) -> None:
        self._compared: dict[Word, set[int]] = {}
        self._followed: dict[Word, set[tuple[int | None, ...]]] = {}
        self._given_up: set[Word] = set()
        self._hopeless: set[int] = set()

    def bytes(self) -> set[int]:
        """The addresses of what is followed."""
        return {address + at for address, size in self._followed for at in range(size)}

    def compare(self, predicates: Iterable[Term]) -> bool:
        """Takes note of what predicates compare words with; whether one more is followed now."""
        before = len(self._followed)
        for predicate in predicates:
            word, value = _comparison(predicate)
            if word is None or word in self._followed or word in self._given_up:
                continue
            values = self._compared.setdefault(word, set())
            values.add(value)
            if len(values) >= FEW and len(self._followed) < MOST_WORDS:
                self._followed[word] = set()
        return len(self._followed) > before

    def see(self, constants: Constants) -> Set[int]:
        """Takes note of the values of what is followed; bytes of words that have too many."""
        for (address, size), values in self._followed.items():
            if len(values) <= MANY:
                values.add(tuple([constants.byte(address + at) for at in range(size)]))
                if len(values) > MANY:
                    self._hopeless.update(range(address, address + size))
        return self._hopeless

    def give_up(self) -> bool:
        """Stops following what has too many values; whether there was such a word."""
        hopeless = [word for word, values in self._followed.items() if len(values) > MANY]
        for word in hopeless:
            del self._followed[word]
            self._given_up.add(word)
        self._hopeless.clear()
        return bool(hopeless)


def _comparison(predicate: Term) -> tuple[Word | None, int]:
    """The word at a fixed address that an equation compares with a number."""
    if predicate.op == "eq":
        for one, other in (predicate.args, predicate.args[::-1]):
            if other.op == "const" and one.op == "load" and one.args[0].op == "memory" and one.args[1].op == "const":
                return (one.args[1].data, one.data[0]), other.data
    return None, 0
