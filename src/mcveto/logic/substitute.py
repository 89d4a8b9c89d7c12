"""Simultaneous substitution of terms for terms.

The result is rebuilt with the simplifying constructors, which is how Pre is computed: the state after an
instruction is substituted into the formula behind it and reads meet writes (TR1669 section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import mcveto.logic.linear as linear
import mcveto.logic.pieces as pieces
import mcveto.logic.terms as tm
from mcveto.logic.node import Term, WidthError

_BUILDERS: dict[str, Callable[..., Term]] = {
    "mul": tm.mul,
    "udiv": tm.udiv,
    "urem": tm.urem,
    "sdiv": tm.sdiv,
    "srem": tm.srem,
    "shl": tm.shl,
    "lshr": tm.lshr,
    "ashr": tm.ashr,
    "xor": tm.bxor,
    "not": tm.bnot,
    "eq": tm.eq,
    "ult": tm.ult,
    "ule": tm.ule,
    "slt": tm.slt,
    "sle": tm.sle,
    "carry": tm.carry,
    "scarry": tm.scarry,
    "sborrow": tm.sborrow,
    "ite": tm.ite,
}


def rebuild(t: Term, args: tuple[Term, ...]) -> Term:
    """The operator of t applied to other arguments of the same widths, simplified."""
    op = t.op
    builder = _BUILDERS.get(op)
    if builder is not None:
        return builder(*args)
    if op == "lin":
        return linear.combine(zip(t.data[0], args, strict=True), t.data[1], t.width)
    if op == "and":
        return tm.conj(args) if t.width == 1 else tm.band(args[0], args[1])
    if op == "or":
        return tm.disj(args) if t.width == 1 else tm.bor(args[0], args[1])
    if op == "extract":
        return tm.extract(args[0], t.data[0], t.data[1])
    if op == "concat":
        return pieces.row(args)
    if op == "zext":
        return tm.zext(args[0], t.width)
    if op == "sext":
        return tm.sext(args[0], t.width)
    if op == "load":
        return tm.load(args[0], args[1], t.data[0], t.data[1])
    if op == "store":
        return tm.store(args[0], args[1], args[2], t.data)
    if op == "popcount":
        return tm.popcount(args[0], t.width)
    if op == "lzcount":
        return tm.lzcount(args[0], t.width)
    if not args:
        return t
    raise ValueError(f"unknown operator {op}")


class Substitution:
    """A fixed mapping applied to many terms; what was rebuilt once is remembered.

    `read` says what becomes of a load whose arguments were rebuilt.
    """

    def __init__(self, mapping: Mapping[Term, Term], read: Callable[[Term], Term] | None = None) -> None:
        for old, new in mapping.items():
            if old.width != new.width or old.address_width != new.address_width:
                raise WidthError(f"width {new.width} substituted for width {old.width}")
        self._done: dict[Term, Term] = dict(mapping)
        self._read = read

    def apply_all(self, terms: Iterable[Term]) -> list[Term]:
        """`apply` to many terms, most of which were seen before."""
        known = self._done.get
        return [known(term) or self.apply(term) for term in terms]

    def apply(self, term: Term) -> Term:
        """The term with the mapping's keys replaced, all at once (replacements are not searched again)."""
        done, read = self._done, self._read
        stack = [term]
        while stack:
            t = stack[-1]
            if t in done:
                stack.pop()
                continue
            waiting = [x for x in t.args if x not in done]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            args = tuple([done[x] for x in t.args])
            rebuilt = t if args == t.args else rebuild(t, args)
            done[t] = rebuilt if read is None or rebuilt.op != "load" else read(rebuilt)
        return done[term]


def substitute(term: Term, mapping: Mapping[Term, Term]) -> Term:
    """The term with the mapping's keys (variables or any subterms) replaced, all at once."""
    return Substitution(mapping).apply(term) if mapping else term
