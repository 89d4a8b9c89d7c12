"""Trees written out as the source of one Python function.

Registers live in locals `r<cell>`; they change only where a path ends, so while a path runs they are the registers at
its head. A path's end assigns the registers that the code after it reads; the others (nearly always the flags) are not
computed at all: their operands are kept in locals of their own, and `unit.py` works them out if the function is left.
Where a path cannot go on (a guard fails, a trap, an address never seen before) the function returns the number of the
site and its locals.

    for _ in fuel:                    one unit of fuel per path: bounds the steps of one call
        if n < 2:                     n: which head
            if n < 1:
                for _ in fuel:        head with a path back to itself
                    ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from mcveto.late_methods import dataclass

from ..operators import HELPERS, TEMPLATES, expression
from ..trace import Trace
from .nodes import Node
from .tree import Access, Branch, Forest, Goto, Group, Guard, Item, Leave, Site

_LONGEST_TEXT = 160
_REGISTER = re.compile(r"\br(\d+)\b")
_CONDITIONS = {
    opcode: template[len("1 if ") : -len(" else 0")]
    for opcode, template in TEMPLATES.items()
    if template.startswith("1 if ") and template.endswith(" else 0")
}
# Congruent modulo any power of two up to the output's if their arguments are.
_MODULAR = {"INT_ADD": "{} + {}", "INT_SUB": "{} - {}", "INT_MULT": "{} * {}"}


@dataclass(slots=True)
class PathEnd:
    """What a finished path did to the registers: those it assigned, and how to work out the rest."""

    assigned: frozenset[int] = frozenset()
    lazy: dict[int, Node] = field(default_factory=dict)
    saved: dict[int, str] = field(default_factory=dict)


def _children(item: Item) -> Iterable[Node]:
    if isinstance(item, Access):
        yield item.address if item.group is None else item.group.base
        if item.is_store:
            yield item.value
    elif isinstance(item, Guard | Branch):
        yield item.condition
    elif isinstance(item, Goto) and isinstance(item.target, Node):
        yield item.target


def _walk(items: list[Item]) -> Iterable[Item]:
    for item in items:
        yield item
        if isinstance(item, Branch):
            yield from _walk(item.taken)
            yield from _walk(item.other)


class Emitter:
    def __init__(self, forest: Forest, trace: Trace) -> None:
        self._forest = forest
        self._address_mask = (1 << forest.address_bits) - 1
        self._trace = trace
        self.heads = sorted(forest.trees)
        self._index = {pc: number for number, pc in enumerate(self.heads)}
        self.dynamic = {pc: self._index[pc] for pc in sorted(forest.dynamic) if pc in self._index}
        self.sites: list[Site] = []
        self.ends: dict[int, PathEnd] = {}
        self.site_of_line: dict[int, int] = {}
        self.used: set[str] = set()
        self.live = self._liveness()
        self._lines: list[str] = []
        self._available: dict[int, str] = {}
        self._uses: dict[int, int] = {}
        self._offsets: dict[int, tuple[str, str]] = {}
        self._scopes: list[int] = [0]
        self._scope_count = 0
        self._sequence = 0
        self._names = 0
        self._head = 0
        self._inner = False
        self._assigned: set[int] = set()
        self.cells: list[int] = []

    def _liveness(self) -> dict[int, set[int]]:
        """Per head, the cells whose locals the code from there on reads."""
        live: dict[int, set[int]] = {}
        ends: dict[int, list[Goto]] = {}
        for head, items in self._forest.trees.items():
            seen: set[int] = set()
            cells: set[int] = set()
            ends[head] = []
            roots: list[Node] = []
            for item in _walk(items):
                roots.extend(_children(item))
                if isinstance(item, Goto):
                    ends[head].append(item)
                    roots.extend(value for cell, value in item.cells.items() if not _unchanged(cell, value))
            while roots:
                node = roots.pop()
                if node.serial in seen:
                    continue
                seen.add(node.serial)
                if node.op == "CELL":
                    cells.add(node.value)
                roots.extend(node.args)
            live[head] = cells
        changed = True
        while changed:
            changed = False
            for head, gotos in ends.items():
                for goto in gotos:
                    passed = self._live_after(goto, live) - {c for c, v in goto.cells.items() if not _unchanged(c, v)}
                    if not passed <= live[head]:
                        live[head] |= passed
                        changed = True
        return live

    def _live_after(self, goto: Goto, live: dict[int, set[int]]) -> set[int]:
        if isinstance(goto.target, int):
            return live[goto.target]
        result: set[int] = set()
        for pc in self.dynamic:
            result |= live[pc]
        return result

    def _count_uses(self, items: list[Item]) -> None:
        uses = self._uses = {}

        def use(node: Node) -> None:
            uses[node.serial] = uses.get(node.serial, 0) + 1
            if uses[node.serial] == 1:
                for argument in node.args:
                    use(argument)

        groups: set[int] = set()
        for item in _walk(items):
            if isinstance(item, Access) and item.group is not None:
                # One base computation serves the group.
                if id(item.group) not in groups:
                    groups.add(id(item.group))
                    use(item.group.base)
                if item.is_store:
                    use(item.value)
                continue
            for node in _children(item):
                use(node)
            if isinstance(item, Goto):
                after = self._live_after(item, self.live)
                for cell in sorted(after):
                    value = item.cells.get(cell)
                    if value is not None and not _unchanged(cell, value):
                        use(value)
                if isinstance(item.target, Node):
                    use(item.target)

    def source(self) -> str:
        body = self._dispatch(0, len(self.heads), 3)
        cells: set[int] = set(self._assigned)
        for numbers in self.live.values():
            cells |= numbers
        self.cells = sorted(cells)
        self.used |= {name for name in HELPERS if any(name in line for line in body)}
        registers = "".join(f", r{cell}" for cell in self.cells)
        defaults = "".join(f", {name}={name}" for name in sorted(self.used))
        head = [
            f"def unit(n, fuel, record, dynamic, site_of_line, failures{registers}{defaults}):",
            " try:",
            "  for _ in fuel:",
        ]
        tail = [
            " except failures as failure:",
            "  return site_of_line[failure.__traceback__.tb_lineno], locals()",
            " return -1, locals()",
        ]
        return "\n".join([*head, *body, *tail]) + "\n"

    # Lines of the body start at line 4 of the source.
    def _line(self, indent: int, text: str) -> None:
        self._lines.append(" " * indent + text)

    def _dispatch(self, low: int, high: int, indent: int) -> list[str]:
        if high - low == 1:
            self._tree(low, indent)
        else:
            middle = (low + high) // 2
            self._line(indent, f"if n < {middle}:")
            self._dispatch(low, middle, indent + 1)
            self._line(indent, "else:")
            self._dispatch(middle, high, indent + 1)
        return self._lines

    def _tree(self, number: int, indent: int) -> None:
        head = self._head = self.heads[number]
        items = self._forest.trees[head]
        self._count_uses(items)
        self._available.clear()
        self._offsets.clear()
        self._inner = any(isinstance(item, Goto) and item.target == head for item in _walk(items))
        if self._inner:
            self._line(indent, "for _ in fuel:")
            indent += 1
        self._scope_count += 1
        self._scopes = [self._scope_count]
        self._items(items, indent)

    def _items(self, items: list[Item], indent: int) -> None:
        for item in items:
            if isinstance(item, Access):
                self._access(item, indent)
            elif isinstance(item, Guard):
                condition = self._condition(item.condition, indent)
                self._line(indent, f"if {condition}: {self._return(item.site)}")
            elif isinstance(item, Branch):
                condition = self._condition(item.condition, indent)
                self._line(indent, f"if {condition}:")
                self._scoped(item.taken, indent + 1)
                self._line(indent, "else:")
                self._scoped(item.other, indent + 1)
            elif isinstance(item, Leave):
                self._line(indent, self._return(item.site))
            else:
                self._goto(item, indent)

    def _scoped(self, items: list[Item], indent: int) -> None:
        available, offsets = dict(self._available), dict(self._offsets)
        self._scope_count += 1
        self._scopes.append(self._scope_count)
        self._items(items, indent)
        self._scopes.pop()
        self._available, self._offsets = available, offsets

    def _site(self, site: Site) -> int:
        """A site with the present knowledge; the same exit at another point of the code is another site."""
        self._sequence += 1
        here = Site(site.cells, site.steps, site.pc, site.target, site.leaves, self._sequence, frozenset(self._scopes))
        self.sites.append(here)
        return len(self.sites) - 1

    def _return(self, site: Site) -> str:
        return f"return {self._site(site)}, locals()"

    def _name(self, node: Node, prefix: str = "t") -> str:
        self._names += 1
        name = f"{prefix}{self._names}"
        self._sequence += 1
        node.names.append((self._scopes[-1], self._sequence, name))
        self._available[node.serial] = name
        return name

    def _access(self, access: Access, indent: int) -> None:
        value = self._text(access.value, indent) if access.is_store else ""
        size, view = access.size, access.view
        if view is None:
            address = self._text(access.address, indent)
            if access.is_store:
                self.used.add(f"store{size}")
                self._line(indent, f"if store{size}({address}, {value}): {self._return(access.site)}")
            else:
                self.used.add(f"load{size}")
                site = self._return(access.site)
                name = self._name(access.value)
                self._line(indent, f"{name} = load{size}({address})")
                self._line(indent, f"if {name} is None: {site}")
            return
        self.used.add(view.name)
        if access.group is None:
            place = access.offset - view.low
            index = str(place // size) if view.aligned else str(place)
        else:
            offset, shifted = self._guarded(access.group, access.site, indent)
            distance = access.offset - access.group.lowest
            if view.aligned:
                distance //= size
            start = shifted if view.aligned else offset
            index = f"{start} + {distance}" if distance else start
        failing = self._site(access.site)
        if view.aligned:
            place_text = f"{view.name}[{index}]"
            text = f"{place_text} = {value}" if access.is_store else f"{self._name(access.value)} = {place_text}"
        elif access.is_store:
            self.used.add(f"pack{size}")
            text = f"pack{size}({view.name}, {index}, {value})"
        else:
            self.used.add(f"unpack{size}")
            text = f"{self._name(access.value)} = unpack{size}({view.name}, {index})[0]"
        self._line(indent, text)
        self.site_of_line[len(self._lines) + 3] = failing

    def _guarded(self, group: Group, site: Site, indent: int) -> tuple[str, str]:
        """The locals that hold the group's lowest offset and index, after a guard that they are in the view.

        The guard rules out negative and misaligned offsets; beyond the view's end the access itself fails, unless the
        group must be exact.
        """
        known = self._offsets.get(id(group))
        if known is not None:
            return known
        view = group.view
        self._names += 1
        offset = f"o{self._names}"
        distance = group.lowest - view.low
        base = self._text(group.base, indent)
        text = f"{base} {'-' if distance < 0 else '+'} {abs(distance)}"
        self._line(indent, f"{offset} = ({text}) & {self._address_mask}" if group.wraps else f"{offset} = {text}")
        length = view.high - view.low
        bad = -(1 << (length - 1).bit_length()) | (view.size - 1 if view.aligned else 0)
        limit = length - (group.highest - group.lowest)
        test = f"{offset} & {bad} or {offset} > {limit}" if group.exact else f"{offset} & {bad}"
        self._line(indent, f"if {test}: {self._return(site)}")
        shifted = offset
        if view.aligned and view.size > 1:
            shift = view.size.bit_length() - 1
            if group.accesses == 1:
                shifted = f"({offset} >> {shift})"
            else:
                shifted = f"i{self._names}"
                self._line(indent, f"{shifted} = {offset} >> {shift}")
        self._offsets[id(group)] = offset, shifted
        return offset, shifted

    def _goto(self, goto: Goto, indent: int) -> None:
        target: int | None = None
        if isinstance(goto.target, Node):
            address = self._text(goto.target, indent)
            assert goto.site is not None
            self._line(indent, f"n = dynamic.get({address})")
            self._line(indent, f"if n is None: {self._return(goto.site)}")
        else:
            target = goto.target
        after = self._live_after(goto, self.live)
        end = PathEnd()
        assignments: list[tuple[int, str]] = []
        for cell, value in sorted(goto.cells.items()):
            if _unchanged(cell, value):
                continue
            if cell in after:
                assignments.append((cell, self._text(value, indent)))
            else:
                end.lazy[cell] = value
        for value in end.lazy.values():
            self._save(value, end.saved, indent)
        end.assigned = frozenset(cell for cell, _ in assignments)
        self._assigned |= end.assigned
        self._assign(assignments, indent)
        # A number of its own: the last number recorded says which path's leftovers are the current ones.
        number = self._trace.new_number(goto.steps)
        self.ends[number] = end
        self._line(indent, f"record({number})")
        if target == self._head:
            self._line(indent, "continue")
            return
        if target is not None:
            self._line(indent, f"n = {self._index[target]}")
        self._line(indent, "break" if self._inner else "continue")

    def _save(self, value: Node, saved: dict[int, str], indent: int) -> None:
        if value.op == "CONST" or value.serial in saved:
            return
        source = f"r{value.value}" if value.op == "CELL" else self._available.get(value.serial)
        if source is None:
            for argument in value.args:
                self._save(argument, saved, indent)
            return
        self._names += 1
        saved[value.serial] = f"s{self._names}"
        self._line(indent, f"s{self._names} = {source}")

    def _assign(self, assignments: list[tuple[int, str]], indent: int) -> None:
        """Assigns all at once: none may overwrite a register that another one still reads."""
        waiting = [(cell, text, {int(n) for n in _REGISTER.findall(text)}) for cell, text in assignments]
        while waiting:
            for at, (cell, text, _) in enumerate(waiting):
                if not any(cell in reads for other, (_, _, reads) in enumerate(waiting) if other != at):
                    self._line(indent, f"r{cell} = {text}")
                    del waiting[at]
                    break
            else:
                cell, text, _ = waiting.pop(0)
                self._names += 1
                self._line(indent, f"x{self._names} = {text}")
                waiting.append((cell, f"x{self._names}", set()))

    def _condition(self, node: Node, indent: int) -> str:
        """A Python condition that holds if the node is not 0."""
        if node.serial not in self._available and self._uses.get(node.serial, 0) <= 1:
            if node.op in _CONDITIONS:
                arguments = tuple(self._text(argument, indent) for argument in node.args)
                return _CONDITIONS[node.op].format(
                    *arguments, s=1 << (node.in_bits - 1), im=(1 << node.in_bits) - 1, b=node.in_bits, m=0
                )
            if node.op in ("INT_AND", "INT_OR") and all(argument.width == 1 for argument in node.args):
                first, second = (self._condition(argument, indent) for argument in node.args)
                return f"({first}) {'and' if node.op == 'INT_AND' else 'or'} ({second})"
            if node.op == "BOOL_NEGATE" and node.args[0].width == 1:
                return f"not ({self._condition(node.args[0], indent)})"
        return self._text(node, indent)

    def _text(self, node: Node, indent: int) -> str:
        """An atom, or an expression in parentheses, for the node's value; may write statements first."""
        if node.op == "CONST":
            return str(node.value)
        if node.op == "CELL":
            return f"r{node.value}"
        name = self._available.get(node.serial)
        if name is not None:
            return name
        assert node.op != "LOAD"
        text = self._expression(node, indent)
        if self._uses.get(node.serial, 0) > 1 or len(text) > _LONGEST_TEXT:
            name = self._name(node)
            self._line(indent, f"{name} = {text}")
            return name
        return f"({text})"

    def _expression(self, node: Node, indent: int) -> str:
        op, bits = node.op, node.out_bits
        if op in _MODULAR:
            text = self._modular(node, indent, bits)
            fits = node.width < bits and op != "INT_SUB"
            return text if fits else f"({text}) & {(1 << bits) - 1}"
        arguments = tuple(self._text(argument, indent) for argument in node.args)
        if op == "INSERT":
            low, size = node.value >> 16, node.value & 0xFFFF
            kept = ((1 << node.in_bits) - 1) & ~(((1 << size) - 1) << low)
            moved = f"({arguments[1]} << {low})" if low else arguments[1]
            return f"({arguments[0]} & {kept}) | {moved}"
        if op == "PIECE":
            return f"({arguments[0]} << {node.value}) | {arguments[1]}"
        if op in ("INT_LEFT", "INT_RIGHT") and node.args[1].op == "CONST":
            if op == "INT_RIGHT":
                return f"{arguments[0]} >> {arguments[1]}"
            shifted = f"{arguments[0]} << {arguments[1]}"
            return shifted if node.width < bits else f"({shifted}) & {(1 << bits) - 1}"
        return expression(op, arguments, node.in_bits, bits)

    def _modular(self, node: Node, indent: int, bits: int) -> str:
        """The node's value modulo 2**bits, without masking what only flows into a sum that is masked anyway."""
        first = self._operand(node.args[0], indent, bits)
        constant = node.args[1]
        if node.op == "INT_ADD" and constant.op == "CONST" and constant.value >> (node.out_bits - 1):
            return f"{first} - {(1 << node.out_bits) - constant.value}"
        return _MODULAR[node.op].format(first, self._operand(node.args[1], indent, bits))

    def _operand(self, node: Node, indent: int, bits: int) -> str:
        modular = node.op in _MODULAR and node.out_bits >= bits
        if modular and self._uses.get(node.serial, 0) <= 1 and node.serial not in self._available:
            text = self._modular(node, indent, bits)
            if len(text) < _LONGEST_TEXT:
                return f"({text})"
        return self._text(node, indent)


def _unchanged(cell: int, value: Node) -> bool:
    return value.op == "CELL" and value.value == cell
