"""A compiled function, and the machine state it leaves behind.

When the function returns, its locals hold the registers it keeps up to date, and the operands of those it did not
bother to compute. `state` puts the exact registers together again: the values at the last head, then, if the function
was left in mid-path, the effect of the instructions of that path that have been executed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import repeat
from types import CodeType
from typing import Any

from ..operators import FUNCTIONS, HELPERS
from ..pcode import Instruction
from ..trace import Trace
from .emit import Emitter, PathEnd
from .nodes import Node
from .tree import Forest, Leave, Site
from .views import View

_FAILURES = (IndexError, struct.error)


@lru_cache(maxsize=256)
def _code_of(source: str) -> CodeType:
    """Runs of one program side by side come to the same code."""
    return compile(source, "<compiled machine code>", "exec")


class Unit:
    def __init__(self, forest: Forest, trace: Trace, objects: Mapping[str, object]) -> None:
        emitter = Emitter(forest, trace)
        self.source = emitter.source()
        # A head that cannot be compiled is a way out, not a way in.
        self.heads = {
            pc: number for number, pc in enumerate(emitter.heads) if not isinstance(forest.trees[pc][0], Leave)
        }
        self.addresses = emitter.heads
        self.sites: list[Site] = emitter.sites
        self.cells = emitter.cells
        self.longest = forest.longest
        self.instructions: list[Instruction] = sorted(forest.instructions, key=lambda i: (i.pc, i.bytes))
        self.watched: list[View] = sorted(view for view in forest.written if view.watched)
        self.rebuilt = 0
        self.checked_in = -1
        self._ends: dict[int, PathEnd] = emitter.ends
        self._lazy = {cell for end in emitter.ends.values() for cell in end.lazy}
        self.dynamic = emitter.dynamic
        self._site_of_line = emitter.site_of_line
        namespace: dict[str, Any] = {name: objects[name] for name in emitter.used if name not in HELPERS}
        namespace.update(HELPERS)
        exec(_code_of(self.source), namespace)
        self._function: Callable[..., tuple[int, dict[str, Any]]] = namespace["unit"]

    def run(self, pc: int, fuel: int, registers: dict[int, int], pending: list[int]) -> tuple[int, Site | None]:
        """Runs from head `pc` along at most `fuel` paths, recording them; the address and site where it came out.

        `registers` is brought up to date; the steps of an unfinished path are in the site, not in `pending`.
        """
        first = len(pending)
        values = [registers.get(cell, 0) for cell in self.cells]
        fuel_source: Iterator[None] = iter(repeat(None, fuel))
        number, final = self._function(
            self.heads[pc],
            fuel_source,
            pending.append,
            self.dynamic,
            self._site_of_line,
            _FAILURES,
            *values,
        )
        for cell in self.cells:
            registers[cell] = final[f"r{cell}"]
        self._settle_lazy(registers, final, pending, first)
        if number < 0:
            return self.addresses[final["n"]], None
        site = self.sites[number]
        memo: dict[int, int] = {}

        def value_of(node: Node) -> int:
            return self._evaluate(node, memo, registers, final, site)

        changed = {cell: value_of(node) for cell, node in site.cells.items()}
        target = site.pc if site.target is None else value_of(site.target)
        registers.update(changed)
        return target, site

    def _settle_lazy(self, registers: dict[int, int], final: dict[str, Any], pending: list[int], first: int) -> None:
        """Works out the registers whose last assignment was put off."""
        wanted = set(self._lazy)
        found: dict[int, int] = {}
        at = len(pending)
        while wanted and at > first:
            at -= 1
            end = self._ends[pending[at]]
            wanted -= end.assigned
            due = wanted & end.lazy.keys()
            if due:
                memo = {serial: final[name] for serial, name in end.saved.items()}
                for cell in due:
                    found[cell] = _evaluate_saved(end.lazy[cell], memo)
                wanted -= due
        registers.update(found)

    def _evaluate(
        self, node: Node, memo: dict[int, int], registers: dict[int, int], final: dict[str, Any], site: Site
    ) -> int:
        if node.op == "CONST":
            return node.value
        value = memo.get(node.serial)
        if value is None:
            if node.op == "CELL":
                return registers.get(node.value, 0)
            for scope, sequence, name in node.names:
                if sequence < site.sequence and scope in site.scopes:
                    value = final[name]
                    break
            else:
                value = _operate(node, [self._evaluate(arg, memo, registers, final, site) for arg in node.args])
            memo[node.serial] = value
        return value


def _evaluate_saved(node: Node, memo: dict[int, int]) -> int:
    if node.op == "CONST":
        return node.value
    value = memo.get(node.serial)
    if value is None:
        value = memo[node.serial] = _operate(node, [_evaluate_saved(argument, memo) for argument in node.args])
    return value


def _operate(node: Node, arguments: list[int]) -> int:
    if node.op == "INSERT":
        low, size = node.value >> 16, node.value & 0xFFFF
        return arguments[0] & ~(((1 << size) - 1) << low) | arguments[1] << low
    if node.op == "PIECE":
        return arguments[0] << node.value | arguments[1]
    bits = node.in_bits
    return FUNCTIONS[node.op](tuple(arguments), (1 << node.out_bits) - 1, (1 << bits) - 1, 1 << (bits - 1), bits)
