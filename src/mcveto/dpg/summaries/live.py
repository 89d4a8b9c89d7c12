"""Which registers matter where an activation begins, and which behind its return: liveness over the paths.

A register matters if a guard, an address, a stored value or a return target depends on it, directly or through the
activations on the way: those of one procedure are alike, so this is a fixed point over procedures. Of other registers
no claim is worth making: a compiler leaves something in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mcveto.dpg.summaries.paths import End, Path
from mcveto.dpg.summaries.state import Names
from mcveto.logic.terms import Term


@dataclass
class Live:
    """By procedure (None: the program itself): the registers that matter at its beginning, and behind its return."""

    begins: dict[int | None, set[Term]] = field(default_factory=dict)
    behind: dict[int | None, set[Term]] = field(default_factory=dict)

    def values(self, path: Path) -> Iterator[Term]:
        """What registers that matter hold: where a path begins activations, and where it returns."""
        for call in path.calls:
            yield from map(call.before.value, self.begins[call.procedure])
        if path.end is End.RETURN:
            yield from map(path.state.value, self.behind[path.procedure])

    def registers(self, names: Names) -> tuple[Term, ...]:
        """Those that matter anywhere."""
        found = {names.stack_pointer}.union(*self.begins.values(), *self.behind.values())
        return tuple(register for register in names.cells if register in found)


def live_registers(names: Names, paths: Mapping[int | None, Sequence[Path]]) -> Live:
    by_name = {str(register.data): register for register in names.cells}
    live = Live({procedure: set() for procedure in paths}, {procedure: set() for procedure in paths})
    seen: dict[int, set[Term]] = {}
    has_changed = True
    while has_changed:
        has_changed = False
        for procedure, found in paths.items():
            for path in found:
                memories = [path.state.memory, *(call.before.memory for call in path.calls)]
                roots = [*path.guard, *memories, *live.values(path)]
                for variable in _unseen_variables(roots, seen.setdefault(id(path), set())):
                    name, where = str(variable.data), live.begins[procedure]
                    if name.startswith("call "):
                        _, number, name = name.split(" ", 2)
                        where = live.behind[path.calls[int(number)].procedure]
                    register = by_name.get(name)
                    if register is not None and register not in where:
                        where.add(register)
                        has_changed = True
    return live


def _unseen_variables(roots: Iterable[Term], seen: set[Term]) -> Iterator[Term]:
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            stack.extend(term.args)
            if term.op == "var":
                yield term
