"""What a literal speaks of: its variables, the bytes at constant addresses it reads, and memory if it reads others."""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.logic import terms as t
from mcveto.logic.terms import Term


def words_read(literal: Term) -> Iterator[Term]:
    """Variables, addresses of bytes read directly, memory variables read in another way; some may come twice.

    Literals that have none of these in common say nothing of each other.
    """
    stack, seen = [literal], {literal}
    while stack:
        term = stack.pop()
        if term.op == "load" and term.args[0].op == "memory" and term.args[1].op == "const":
            # Words that overlap are the same thing here.
            for at in range(term.data[0]):
                yield t.add(term.args[1], t.const(at, term.args[1].width))
            continue
        if term.op in ("var", "memory"):
            yield term
        for argument in term.args:
            if argument not in seen:
                seen.add(argument)
                stack.append(argument)
