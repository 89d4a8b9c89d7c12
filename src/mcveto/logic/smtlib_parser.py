"""A reader for the subset of SMT-LIB 2 that `smtlib` prints. Iterative; anything unknown is a ValueError."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import mcveto.logic.terms as tm
from mcveto.logic.node import Term

_TOKEN = re.compile(r"""\s+|;[^\n]*|(\()|(\))|\|([^|\\]*)\||([^\s()|;"]+)""")

Expression = Any  # str, or a list of expressions


class _Symbol(str):
    """A quoted symbol: never a number or a keyword."""

    __slots__ = ()


def _read(text: str) -> list[Expression]:
    """All top-level expressions."""
    stack: list[list[Expression]] = [[]]
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"unreadable SMT-LIB at {text[at : at + 20]!r}")
        at = match.end()
        opened, closed, quoted, plain = match.groups()
        if opened:
            stack.append([])
        elif closed:
            if len(stack) == 1:
                raise ValueError("unbalanced ) in SMT-LIB text")
            finished = stack.pop()
            stack[-1].append(finished)
        elif quoted is not None:
            stack[-1].append(_Symbol(quoted))
        elif plain:
            stack[-1].append(plain)
    if len(stack) != 1:
        raise ValueError("unbalanced ( in SMT-LIB text")
    return stack[0]


def _left(function: Callable[[Term, Term], Term]) -> Callable[..., Term]:
    def folded(first: Term, second: Term, *rest: Term) -> Term:
        result = function(first, second)
        for x in rest:
            result = function(result, x)
        return result

    return folded


def _two(function: Callable[[Term, Term], Term]) -> Callable[..., Term]:
    def applied(a: Term, b: Term) -> Term:
        return function(a, b)

    return applied


_FUNCTIONS: dict[str, Callable[..., Term]] = {
    "bvadd": _left(tm.add),
    "bvsub": _two(tm.sub),
    "bvneg": tm.neg,
    "bvmul": _left(tm.mul),
    "bvudiv": _two(tm.udiv),
    "bvurem": _two(tm.urem),
    "bvsdiv": _two(tm.sdiv),
    "bvsrem": _two(tm.srem),
    "bvand": _left(tm.band),
    "bvor": _left(tm.bor),
    "bvxor": _left(tm.bxor),
    "bvnot": tm.bnot,
    "bvshl": _two(tm.shl),
    "bvlshr": _two(tm.lshr),
    "bvashr": _two(tm.ashr),
    "bvult": _two(tm.ult),
    "bvule": _two(tm.ule),
    "bvslt": _two(tm.slt),
    "bvsle": _two(tm.sle),
    "bvugt": lambda a, b: tm.ult(b, a),
    "bvuge": lambda a, b: tm.ule(b, a),
    "bvsgt": lambda a, b: tm.slt(b, a),
    "bvsge": lambda a, b: tm.sle(b, a),
    "=": _two(tm.eq),
    "distinct": _two(tm.ne),
    "ite": lambda c, a, b: tm.ite(c, a, b),
    "not": tm.bnot,
    "and": lambda *args: tm.conj(args),
    "or": lambda *args: tm.disj(args),
    "xor": _left(tm.bxor),
    "=>": _two(tm.implies),
    "concat": _left(tm.concat),
    "select": lambda m, p: tm.load(m, p, 1, False),
    "store": lambda m, p, v: tm.store(m, p, v, False),
}


def _atom(token: str, names: Mapping[str, Term]) -> Term:
    if isinstance(token, _Symbol) or token in names:
        if str(token) not in names:
            raise ValueError(f"unknown symbol {token!r}")
        return names[str(token)]
    if token == "true" or token == "false":
        return tm.TRUE if token == "true" else tm.FALSE
    if re.fullmatch(r"#x[0-9a-fA-F]+", token):
        return tm.const(int(token[2:], 16), 4 * (len(token) - 2))
    if re.fullmatch(r"#b[01]+", token):
        return tm.const(int(token[2:], 2), len(token) - 2)
    raise ValueError(f"unknown symbol {token!r}")


def _number(token: Expression) -> int:
    if not isinstance(token, str) or not token.isdigit():
        raise ValueError(f"a numeral is needed, not {token!r}")
    return int(token)


def _indexed(head: list[Expression], args: list[Term]) -> Term:
    if len(head) > 2 and head[0] == "_":
        numbers = [_number(x) for x in head[2:]]
        if head[1] == "extract" and len(numbers) == 2 and len(args) == 1:
            return tm.extract(args[0], numbers[0], numbers[1])
        if head[1] in ("zero_extend", "sign_extend") and len(numbers) == 1 and len(args) == 1:
            extend = tm.zext if head[1] == "zero_extend" else tm.sext
            return extend(args[0], args[0].width + numbers[0])
    raise ValueError(f"unknown operator {head!r}")


def _apply(head: Expression, args: list[Term]) -> Term:
    if isinstance(head, list):
        return _indexed(head, args)
    function = None if isinstance(head, _Symbol) else _FUNCTIONS.get(head)
    if function is None:
        raise ValueError(f"unknown operator {head!r}")
    try:
        return function(*args)
    except TypeError as error:
        raise ValueError(f"wrong number of arguments for {head}") from error


def _interpret(root: Expression, names: dict[str, Term]) -> Term:
    """The term of an expression. Every `let` must bind new names, as the printer's do."""
    scope = dict(names)
    values: list[Term] = []
    work: list[tuple[str, Any]] = [("read", root)]
    while work:
        action, what = work.pop()
        if action == "apply":
            head, count = what
            args = values[len(values) - count :]
            del values[len(values) - count :]
            values.append(_apply(head, args))
        elif action == "bind":
            for name, value in zip(what, values[len(values) - len(what) :], strict=True):
                if str(name) in scope:
                    raise ValueError(f"{name!r} is bound twice")
                scope[str(name)] = value
            del values[len(values) - len(what) :]
        elif isinstance(what, str):
            values.append(_atom(what, scope))
        elif not what:
            raise ValueError("empty expression")
        elif what[0] == "let":
            if len(what) != 3 or not isinstance(what[1], list):
                raise ValueError("malformed let")
            if any(not isinstance(b, list) or len(b) != 2 or not isinstance(b[0], str) for b in what[1]):
                raise ValueError("malformed let")
            work.append(("read", what[2]))
            work.append(("bind", [b[0] for b in what[1]]))
            work.extend([("read", b[1]) for b in reversed(what[1])])
        elif what[0] == "_" and len(what) == 3 and isinstance(what[1], str) and what[1].startswith("bv"):
            values.append(tm.const(_number(what[1][2:]), _number(what[2])))
        else:
            work.append(("apply", (what[0], len(what) - 1)))
            work.extend([("read", x) for x in reversed(what[1:])])
    return values[0]


def _declared(name: str, sort: Expression) -> Term:
    if sort == "Bool":
        return tm.var(name, 1)
    if isinstance(sort, list) and len(sort) == 3 and sort[:2] == ["_", "BitVec"]:
        return tm.var(name, _number(sort[2]))
    if isinstance(sort, list) and len(sort) == 3 and sort[0] == "Array" and sort[2] == ["_", "BitVec", "8"]:
        index = sort[1]
        if isinstance(index, list) and len(index) == 3 and index[:2] == ["_", "BitVec"]:
            return tm.memory(name, _number(index[2]))
    raise ValueError(f"unknown sort {sort!r}")


def parse(text: str, variables: Mapping[str, Term]) -> Term:
    """The term of one printed expression; `variables` gives the variables and memories by name."""
    expressions = _read(text)
    if len(expressions) != 1:
        raise ValueError(f"one expression is needed, not {len(expressions)}")
    return _interpret(expressions[0], dict(variables))


def parse_script(text: str) -> list[Term]:
    """The assertions of a printed benchmark."""
    names: dict[str, Term] = {}
    assertions: list[Term] = []
    for command in _read(text):
        if not isinstance(command, list) or not command:
            raise ValueError(f"a command is needed, not {command!r}")
        match command[0]:
            case "set-logic" | "set-info" | "set-option" | "check-sat" | "exit":
                continue
            case "declare-const" if len(command) == 3:
                name, sort = str(command[1]), command[2]
            case "declare-fun" if len(command) == 4 and command[2] == []:
                name, sort = str(command[1]), command[3]
            case "assert" if len(command) == 2:
                assertions.append(_interpret(command[1], names))
                if assertions[-1].width != 1:
                    raise ValueError("an assertion must be Boolean")
                continue
            case _:
                raise ValueError(f"unknown command {command[0]!r}")
        if name in names:
            raise ValueError(f"{name!r} is declared twice")
        names[name] = _declared(name, sort)
    return assertions
