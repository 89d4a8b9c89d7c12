"""The aliasing condition relevant to a property, and the predicate under it (TR1669 §3.4).

`Pre(I, ψ)` reads memory through stores whose distance to the read is unknown. Following one aliasing at a time, each
such read is decided as it is in the witness (the paper's alternative that needs no solver): either it misses the store
or it reads bytes of it. With the symbolic state's aliasing a read is decided only if every run along the witness's path
decides it so, and is left as it is otherwise; what they all agree on is also what the witness does, so only that one
possibility needs to be asked about. The decisions are collected in α; under α, `Pre(I, ψ)` is the simplified ψ', and
the refinement predicate `Pre_α(I, ψ)` is α ⇒ ψ'.

Where we differ: the paper's memory maps single bytes and α is a conjunction of byte disequalities (its Fig. 8). Here
an access is one node of n bytes, so α says it in words: two ranges are disjoint, or one starts at a given offset in
the other. The states that satisfy α are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term


class AliasingDecider:
    """Rewrites predicates under the aliasing of one witness; `alpha` collects the conditions used.

    `concrete` gives the value a term over the state has at the witness; `is_certain` says which conditions may be
    used, all of them by default.
    """

    def __init__(
        self, concrete: Callable[[Term], int], is_certain: Callable[[Term], bool] = lambda condition: True
    ) -> None:
        self._concrete = concrete
        self._is_certain = is_certain
        self.alpha: dict[Term, None] = {}
        self._rewritten = Substitution({}, self._through_stores)

    def simplify(self, term: Term) -> Term:
        """A term equal to `term` in every state that satisfies `alpha`."""
        return self._rewritten.apply(term)

    def _through_stores(self, read: Term) -> Term:
        """A load decided store by store until it meets its bytes or the memory variable."""
        while read.op == "load" and read.args[0].op == "store":
            memory, address = read.args
            before, where, value = memory.args
            size, big_endian = read.data
            stored = value.width // 8
            width = address.width
            offset = (self._concrete(address) - self._concrete(where)) & ((1 << width) - 1)
            back = -offset & ((1 << width) - 1)
            if offset >= stored and back >= size:
                if not self._may_require(disjoint(address, size, where, stored)):
                    return read
                read = t.load(before, address, size, big_endian)
            elif offset + size <= stored:
                if not self._may_require(t.eq(address, t.add(where, t.const(offset, width)))):
                    return read
                start = stored - offset - size if memory.data else offset
                part = t.extract(value, 8 * (start + size) - 1, 8 * start)
                return part if memory.data == big_endian or size == 1 else _reversed(part)
            else:
                return self._bytewise(memory, address, size, big_endian)
        return read

    def _bytewise(self, memory: Term, address: Term, size: int, big_endian: bool) -> Term:
        """A load that straddles the edge of a store: byte by byte."""
        parts = [
            self._through_stores(t.load(memory, t.add(address, t.const(i, address.width)), 1, False))
            for i in range(size)
        ]
        if not big_endian:
            parts.reverse()
        result = parts[0]
        for part in parts[1:]:
            result = t.concat(result, part)
        return result

    def _may_require(self, condition: Term) -> bool:
        if condition is t.TRUE or condition in self.alpha:
            return True
        if not self._is_certain(condition):
            return False
        self.alpha[condition] = None
        return True


def disjoint(a: Term, a_size: int, b: Term, b_size: int) -> Term:
    """[a, a+a_size) and [b, b+b_size) have no byte in common, addresses wrapping around."""
    width = a.width
    return t.conj([t.ule(t.const(b_size, width), t.sub(a, b)), t.ule(t.const(a_size, width), t.sub(b, a))])


def _reversed(word: Term) -> Term:
    """The bytes of a word in the other order."""
    result = t.extract(word, 7, 0)
    for low in range(8, word.width, 8):
        result = t.concat(result, t.extract(word, low + 7, low))
    return result


def pre_alpha(
    literals: tuple[Term, ...],
    concrete: Callable[[Term], int],
    is_certain: Callable[[Term], bool] = lambda condition: True,
) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """(ψ' as literals, α as literals) for the conjunction of `literals` over the state before the step."""
    decider = AliasingDecider(concrete, is_certain)
    simplified = tuple(decider.simplify(literal) for literal in literals)
    return simplified, tuple(decider.alpha)
