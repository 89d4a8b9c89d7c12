"""Terms, formulas and programs as text: the source form (parsing it gives back the same tree), the mathematical form
of the lecture, and LaTeX. One printer, three tables of symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcveto.whilelang.parser import LEVELS, TERM_LEVELS
from mcveto.whilelang.syntax import (
    TRUE,
    Assert,
    Assign,
    Assume,
    Binary,
    Box,
    Call,
    Command,
    Compare,
    Connective,
    Formula,
    If,
    Input,
    Limit,
    Memory,
    MemVar,
    Module,
    Not,
    Num,
    Procedure,
    Read,
    Seq,
    Skip,
    Store,
    Term,
    Truth,
    Unary,
    Update,
    Var,
    While,
)

_ATOM = 13
_UNARY = 12


@dataclass(frozen=True, slots=True)
class Style:
    """How symbols look. `word` wraps keywords, `name` variables (an index is split off where `subscripts`)."""

    symbols: dict[str, str]
    word: str = "{}"
    subscripts: bool = False
    opening: str = "{"
    closing: str = "}"
    blank: str = " "

    def of(self, symbol: str) -> str:
        return self.symbols.get(symbol, symbol)

    def keyword(self, text: str) -> str:
        return self.word.format(text)


SOURCE = Style(
    {
        "∧": "&&",
        "∨": "||",
        "¬": "!",
        "→": "->",
        "↔": "<->",
        "≠": "!=",
        "≤": "<=",
        "≥": ">=",
        "↦": "|->",
        "⊤": "true",
        "⊥": "false",
    }
)
MATHEMATICAL = Style({})
LATEX = Style(
    {
        "∧": r"\wedge",
        "∨": r"\vee",
        "¬": r"\neg ",
        "→": r"\rightarrow",
        "↔": r"\leftrightarrow",
        "≠": r"\neq",
        "≤": r"\leq",
        "≥": r"\geq",
        "↦": r"\mapsto",
        "⊤": r"\top",
        "⊥": r"\bot",
        "%": r"\mathbin{\%}",
        "&": r"\mathbin{\&}",
        "<<": r"\ll",
        ">>": r"\gg",
        "^": r"\oplus",
        "|": r"\mid",
        "*": r"\cdot",
        "~": r"{\sim}",
        "⊢": r"\vdash",
    },
    word=r"\mathrm{{{}}}",
    subscripts=True,
    opening=r"\{",
    closing=r"\}",
    blank=r"\;",
)


def term_text(term: Term, style: Style = SOURCE) -> str:
    return _term(term, 0, style)


def formula_text(formula: Formula, style: Style = SOURCE) -> str:
    return _formula(formula, 0, style)


def _name(name: str, style: Style) -> str:
    if not style.subscripts:
        return name
    base, mark, index = name.rpartition("_")
    plain = (base if mark and index.isdigit() and base else name).replace("_", r"\_").replace("$", r"\$")
    shown = plain if len(plain) == 1 else rf"\mathit{{{plain}}}"
    return f"{shown}_{{{index}}}" if mark and index.isdigit() and base else shown


def _wrapped(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def _term(term: Term, level: int, style: Style) -> str:
    match term:
        case Num(value):
            return _wrapped(str(value), _UNARY if value < 0 else _ATOM, level)
        case Var(name):
            return _name(name, style)
        case Limit():
            return "U"
        case Unary(op, operand):
            return _wrapped(f"{style.of(op)}{_term(operand, _UNARY, style)}", _UNARY, level)
        case Binary(op, left, right):
            own = TERM_LEVELS[op]
            return _wrapped(f"{_term(left, own, style)} {style.of(op)} {_term(right, own + 1, style)}", own, level)
        case Read(memory, index):
            return f"{_memory(memory, style)}({_term(index, 0, style)})"


def _memory(memory: Memory, style: Style) -> str:
    updates: list[str] = []
    while isinstance(memory, Update):
        pair = f"{_term(memory.index, 0, style)} {style.of('↦')} {_term(memory.value, 0, style)}"
        updates.append(f"{style.opening}{pair}{style.closing}")
        memory = memory.memory
    return _mem_name(memory, style) + "".join(reversed(updates))


def _mem_name(memory: MemVar, style: Style) -> str:
    if style.subscripts:
        base, _, index = memory.name.partition("_")
        return rf"\mathrm{{{base}}}" + (f"_{{{index}}}" if index else "")
    return memory.name


def _formula(formula: Formula, level: int, style: Style) -> str:
    match formula:
        case Truth(value):
            return style.of("⊤" if value else "⊥")
        case Compare(op, left, right):
            return _wrapped(f"{_term(left, 6, style)} {style.of(op)} {_term(right, 6, style)}", 5, level)
        case Not(body):
            return f"{style.of('¬')}{_formula(body, 6, style)}"
        case Connective(op, left, right):
            own = LEVELS[op]
            lower, upper = (own + 1, own) if op == "→" else (own, own + 1)
            if op == "→" and isinstance(right, Box):
                upper = 0
            text = f"{_formula(left, lower, style)} {style.of(op)} {_formula(right, upper, style)}"
            return _wrapped(text, own, level)
        case Box(program, body):
            inner = _formula(body, 0, style)
            return _wrapped(f"[{command_text(program, style)}]{'' if isinstance(body, Box) else ' '}{inner}", 0, level)


def command_text(command: Command, style: Style = SOURCE) -> str:
    """A program on one line."""
    blank = style.blank
    match command:
        case Seq(commands):
            parts = [command_text(item, style) for item in commands]
            text = parts[0]
            for before, part in zip(commands, parts[1:], strict=False):
                text += f"{blank if isinstance(before, (If, While)) else f';{blank}'}{part}"
            return text
        case If(condition, then, otherwise):
            head = f"{style.keyword('if')} ({formula_text(condition, style)}){blank}{_braces(then, style)}"
            if otherwise is None:
                return head
            return f"{head}{blank}{style.keyword('else')}{blank}{_braces(otherwise, style)}"
        case While(condition, body, invariant):
            kept = f" {style.keyword('invariant')} ({formula_text(invariant, style)})" if invariant is not None else ""
            head = f"{style.keyword('while')} ({formula_text(condition, style)}){kept}"
            return f"{head}{blank}{_braces(body, style)}"
    return _simple(command, style)


def _braces(command: Command, style: Style) -> str:
    inner = "" if isinstance(command, Skip) else f" {command_text(command, style)} "
    return f"{style.opening}{inner}{style.closing}"


def _simple(command: Command, style: Style) -> str:
    match command:
        case Skip():
            return style.keyword("skip")
        case Assign(target, value):
            return f"{_name(target, style)} := {term_text(value, style)}"
        case Store(index, value):
            return f"{_mem_name(MemVar(), style)}({term_text(index, style)}) := {term_text(value, style)}"
        case Input(target):
            return f"{_name(target, style)} := {style.keyword('input')}()"
        case Call(target, procedure, arguments):
            call = f"{_name(procedure, style)}({', '.join(term_text(item, style) for item in arguments)})"
            return call if target is None else f"{_name(target, style)} := {call}"
        case Assert(condition):
            return f"{style.keyword('assert')}({formula_text(condition, style)})"
        case Assume(condition):
            return f"{style.keyword('assume')}({formula_text(condition, style)})"
    raise TypeError(type(command).__name__)


def module_text(module: Module) -> str:
    """A file that parses to the same module."""
    lines = [f"theory {module.theory};", f"memory {module.cells};"]
    for procedure in module.procedures:
        lines += ["", *procedure_lines(procedure)]
    lines.append("")
    if module.pre == TRUE and module.post == TRUE:
        lines += _lines(module.program, 0)
    else:
        pre = "" if module.pre == TRUE else f"{_formula(module.pre, 3, SOURCE)} -> "
        lines += [f"{pre}[", *_lines(module.program, 1), f"] {formula_text(module.post)}"]
    return "\n".join(lines) + "\n"


def procedure_lines(procedure: Procedure) -> list[str]:
    """A procedure as indented lines."""
    returns = f" returns {procedure.result}" if procedure.result is not None else ""
    head = f"proc {procedure.name}({', '.join(procedure.parameters)}){returns} {{"
    return [head, *_lines(procedure.body, 1), "}"]


def _lines(command: Command, depth: int) -> list[str]:
    """A program as indented lines."""
    indentation = "  " * depth
    match command:
        case Seq(commands):
            return [line for item in commands for line in _lines(item, depth)]
        case If(condition, then, otherwise):
            lines = [f"{indentation}if ({formula_text(condition)}) {{", *_lines(then, depth + 1)]
            if otherwise is not None:
                lines += [f"{indentation}}} else {{", *_lines(otherwise, depth + 1)]
            return [*lines, f"{indentation}}}"]
        case While(condition, body, invariant):
            kept = "" if invariant is None else f" invariant ({formula_text(invariant)})"
            head = f"{indentation}while ({formula_text(condition)}){kept} {{"
            return [head, *_lines(body, depth + 1), f"{indentation}}}"]
    return [f"{indentation}{_simple(command, SOURCE)};"]
