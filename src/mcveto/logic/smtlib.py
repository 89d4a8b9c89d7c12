"""SMT-LIB 2 text (logic QF_ABV) of terms, and back.

Shared subterms are bound by `let`, so the text is linear in the size of the DAG. Width 1 is printed as
Bool. The parser reads what is printed here plus the usual spellings of the same operators, and refuses
everything else; it goes through the simplifying constructors, so byte accesses become word accesses again
where they can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.logic.lowering import Lowering
from mcveto.logic.node import Term
from mcveto.logic.smtlib_parser import parse, parse_script
from mcveto.logic.terms import free_variables

__all__ = ["declarations", "expression", "parse", "parse_script", "script"]

_SIMPLE = frozenset("~!@$%^&*_-+=<>.?/")


class _Text:
    """A node of the printed DAG."""

    __slots__ = ("args", "head")

    def __init__(self, head: str, args: tuple[_Text, ...]) -> None:
        self.head = head
        self.args = args


def symbol(name: str) -> str:
    """A name as an SMT-LIB symbol, quoted if need be."""
    if name and not name[0].isdigit() and all((c.isascii() and c.isalnum()) or c in _SIMPLE for c in name):
        return name
    if "|" in name or "\\" in name:
        raise ValueError(f"{name!r} cannot be an SMT-LIB symbol")
    return f"|{name}|"


class _Printer:
    """Lowers terms into `_Text` nodes, shared where equal."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, tuple[_Text, ...]], _Text] = {}

    def _node(self, head: str, args: tuple[_Text, ...] = ()) -> _Text:
        found = self._nodes.get((head, args))
        if found is None:
            found = self._nodes[(head, args)] = _Text(head, args)
        return found

    def constant(self, value: int, width: int) -> _Text:
        """#x where the width allows it, else #b."""
        return self._node(f"#x{value:0{width // 4}x}" if width % 4 == 0 else f"#b{value:0{width}b}")

    def boolean(self, value: bool) -> _Text:
        """true or false."""
        return self._node("true" if value else "false")

    def variable(self, name: str, width: int) -> _Text:
        """The quoted name."""
        return self._node(symbol(name))

    def array(self, name: str, address_width: int) -> _Text:
        """The quoted name."""
        return self._node(symbol(name))

    def apply(self, op: str, args: Sequence[_Text], indices: tuple[int, ...] = ()) -> _Text:
        """An application."""
        if op == "concat":  # strictly, SMT-LIB's concat takes two
            result = args[0]
            for x in args[1:]:
                result = self._node(op, (result, x))
            return result
        head = f"(_ {op} {' '.join(map(str, indices))})" if indices else op
        return self._node(head, tuple(args))


def expression(term: Term) -> str:
    """One SMT-LIB expression."""
    root = Lowering(_Printer()).lower(term)
    uses: dict[_Text, int] = {root: 1}
    order: list[_Text] = []  # arguments first
    stack: list[tuple[_Text, bool]] = [(root, False)]
    seen: set[_Text] = set()
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            for x in node.args:
                uses[x] = uses.get(x, 0) + 1
            stack.extend([(x, False) for x in reversed(node.args)])
    names: dict[_Text, str] = {}
    out: list[str] = []
    for node in order:
        if node.args and uses[node] > 1 and node is not root:
            name = f"?{len(names)}"
            out.append(f"(let (({name} ")
            _emit(node, names, out)
            out.append(")) ")
            names[node] = name
    _emit(root, names, out)
    out.append(")" * len(names))
    return "".join(out)


def _emit(root: _Text, names: dict[_Text, str], out: list[str]) -> None:
    stack: list[_Text | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif item in names:
            out.append(names[item])
        elif not item.args:
            out.append(item.head)
        else:
            out.append(f"({item.head}")
            stack.append(")")
            for x in reversed(item.args):
                stack.append(x)
                stack.append(" ")


def declarations(terms: Iterable[Term]) -> list[str]:
    """A declaration for every variable and memory in the terms."""
    lines: list[str] = []
    taken: set[str] = set()
    for v in free_variables(terms):
        name = v.data if v.op == "var" else v.data[0]
        if name in taken or name.startswith("?"):
            raise ValueError(f"the name {name!r} is ambiguous or reserved")
        taken.add(name)
        if v.op == "memory":
            sort = f"(Array (_ BitVec {v.address_width}) (_ BitVec 8))"
        else:
            sort = "Bool" if v.width == 1 else f"(_ BitVec {v.width})"
        lines.append(f"(declare-const {symbol(name)} {sort})")
    return lines


def script(assertions: Iterable[Term]) -> str:
    """A complete benchmark: is the conjunction of the assertions satisfiable?"""
    terms = list(assertions)
    for t in terms:
        if t.width != 1:
            raise ValueError("assertions must be Booleans")
    lines = ["(set-logic QF_ABV)", *declarations(terms), *[f"(assert {expression(t)})" for t in terms]]
    return "\n".join([*lines, "(check-sat)", ""])
