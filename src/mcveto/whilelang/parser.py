"""Recursive descent with precedence climbing; every complaint names line and column.

    file ::= ("theory" NAME ";" | "memory" NUMBER ";")* procedure* (program | [formula "->"] "[" program "]" formula)
    procedure ::= "proc" f "(" x, … ")" ["returns" r] block

Terms and formulas are one expression grammar whose sorts are checked as it is built, so parentheses need no guessing.
Comparisons may be chained: 0 <= e < U is 0 <= e ∧ e < U. A `;` may be left out after a closing brace. A file with a
`[` is a contract, any other file is a program.
"""

from __future__ import annotations

import difflib

from mcveto.errors import InputFileError, UsageError
from mcveto.whilelang.lexer import KEYWORDS, MAX_SOURCE_BYTES, Token, error, tokens
from mcveto.whilelang.syntax import (
    MEM,
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
    Module,
    Not,
    Num,
    Position,
    Procedure,
    Read,
    Skip,
    Store,
    Term,
    Truth,
    Unary,
    Var,
    While,
    sequence,
)
from mcveto.whilelang.theory import BITWISE, Theory, theory_named

COMPARISONS = ("=", "≠", "<", "≤", ">", "≥")
# Weakest first; formulas up to level 4, comparisons 5, terms above.
LEVELS: dict[str, int] = {"↔": 1, "→": 2, "∨": 3, "∧": 4}
TERM_LEVELS: dict[str, int] = {
    "|": 6,
    "^": 7,
    "&": 8,
    "<<": 9,
    ">>": 9,
    "+": 10,
    "-": 10,
    "*": 11,
    "/": 11,
    "%": 11,
}
MAX_CELLS = 1 << 20
MAX_DEPTH = 60
MAX_OPERATORS = 150


def parse(source: str, path: str = "<text>", theory: str | None = None) -> Module:
    """The module a text denotes, in its own number theory or in `theory`; raises InputFileError or UsageError."""
    if len(source) > MAX_SOURCE_BYTES:
        raise InputFileError(f"{path} is larger than {MAX_SOURCE_BYTES} bytes")
    return _Parser(tokens(source, path), path, theory).module()


def parse_formula(source: str, path: str = "<formula>", theory: str = "Z") -> Formula:
    """One formula without modalities."""
    parser = _Parser(tokens(source, path), path, theory)
    formula = parser.formula()
    parser.expect("end")
    return parser.plain(formula, Position(1, 1))


class _Parser:
    def __init__(self, found: list[Token], path: str, theory: str | None) -> None:
        self._tokens = found
        self._path = path
        self._next = 0
        self._depth = 0
        self._forced = theory
        self._theory = theory_named(theory or "Z")
        self._calls: list[tuple[Call, Position]] = []
        self._numbers: list[tuple[int, Position]] = []
        self._bitwise: list[tuple[str, Position]] = []

    # The file

    def module(self) -> Module:
        theory, cells = self._header()
        procedures: list[Procedure] = []
        while self._peek() == "proc":
            procedure = self._procedure()
            if any(procedure.name == other.name for other in procedures):
                assert procedure.at is not None
                raise self._error(procedure.at, f"procedure {procedure.name} is defined twice")
            procedures.append(procedure)
        pre: Formula = TRUE
        post: Formula = TRUE
        if any(token.kind == "[" for token in self._tokens[self._next :]):
            pre, program, post = self._contract()
        else:
            program = self._commands("end")
        self.expect("end")
        self._check_calls(procedures)
        self._check_numbers(cells)
        return Module(program, pre, post, theory.name, cells, tuple(procedures))

    def _header(self) -> tuple[Theory, int]:
        cells = Module(Skip()).cells
        while self._peek() in ("theory", "memory"):
            kind = self._advance().kind
            token = self._advance()
            if kind == "theory":
                if token.kind not in ("name", "number"):
                    raise self._error(token.at, f"'{token.text}' is not a number theory", "e.g. theory u32;")
                try:
                    found = theory_named(token.text)
                except UsageError as problem:
                    raise self._error(token.at, str(problem)) from None
                if self._forced is None:
                    self._theory = found
            else:
                if token.kind != "number":
                    raise self._error(token.at, f"a number of cells is needed, not '{token.text}'")
                cells = int(token.text, 0)
                if not 0 <= cells <= MAX_CELLS:
                    raise self._error(token.at, f"a memory has at most {MAX_CELLS} cells")
            self.expect(";")
        return self._theory, cells

    def _procedure(self) -> Procedure:
        at = self._advance().at
        name = self._name("a procedure's name")
        self.expect("(")
        parameters: list[str] = []
        while self._peek() != ")":
            if parameters:
                self.expect(",")
            parameters.append(self._name("a parameter"))
        self.expect(")")
        if len(set(parameters)) != len(parameters):
            raise self._error(at, f"procedure {name} has two parameters of one name")
        result = None
        if self._peek() == "returns":
            self._advance()
            result = self._name("the result's name")
        return Procedure(name, tuple(parameters), result, self._block(), at)

    def _contract(self) -> tuple[Formula, Command, Formula]:
        at = self._current().at
        formula = self.formula()
        pre: Formula = TRUE
        if isinstance(formula, Connective) and formula.op == "→":
            pre, formula = formula.left, formula.right
        if not isinstance(formula, Box):
            raise self._error(at, "this is not a contract", "write P -> [ program ] Q, or a program alone")
        return self.plain(pre, at), formula.program, self.plain(formula.body, at)

    def plain(self, formula: Formula, at: Position) -> Formula:
        """The formula, which must not hold a modality."""
        if _has_box(formula):
            raise self._error(at, "[…] may only stand once, around the program of the contract")
        return formula

    def _check_calls(self, procedures: list[Procedure]) -> None:
        known = {procedure.name: procedure for procedure in procedures}
        for call, at in self._calls:
            procedure = known.get(call.procedure)
            if procedure is None:
                nearest = difflib.get_close_matches(call.procedure, known, n=1)
                raise self._error(
                    at, f"there is no procedure {call.procedure}", f"did you mean {nearest[0]}?" if nearest else ""
                )
            if len(call.arguments) != len(procedure.parameters):
                wanted, given = len(procedure.parameters), len(call.arguments)
                raise self._error(at, f"{call.procedure} takes {wanted} arguments, not {given}")
            if call.target is not None and procedure.result is None:
                raise self._error(at, f"{call.procedure} has no result")

    def _check_numbers(self, cells: int) -> None:
        largest = self._theory.largest
        if largest is None:
            for op, at in self._bitwise:
                raise self._error(at, f"the integers have no operator {op}", "theory u32; gives machine integers")
            return
        for value, at in self._numbers:
            if value > max(largest, 1 << (self._theory.bits or 0) - 1):
                raise self._error(at, f"{value} does not fit theory {self._theory.name}")
        if cells > largest:
            raise InputFileError(
                f"{self._path}: {cells} memory cells cannot be counted in theory {self._theory.name}",
                f"write memory {min(largest, 16)};",
            )

    # Commands

    def _block(self) -> Command:
        self.expect("{", "'{'")
        body = self._commands("}")
        self.expect("}")
        return body

    def _commands(self, end: str) -> Command:
        self._enter()
        found: list[Command] = []
        while self._peek() != end:
            if self._peek() == ";":
                self._advance()
                continue
            command = self._command()
            found.append(command)
            closed = self._tokens[self._next - 1].kind == "}"
            if self._peek() not in (end, ";") and not closed:
                token = self._current()
                raise self._error(token.at, f"';' or {_shown(end)} is missing before {_token_text(token)}")
        self._depth -= 1
        return sequence(found)

    def _command(self) -> Command:
        token = self._current()
        match token.kind:
            case "name":
                return self._assignment()
            case "Mem":
                index = self._memory_index()
                self.expect(":=", "':='")
                return Store(index, self._term(), token.at)
            case "assert" | "assume":
                self._advance()
                condition = self._condition()
                return Assert(condition, token.at) if token.kind == "assert" else Assume(condition, token.at)
            case "if":
                return self._if()
            case "while":
                self._advance()
                condition = self._condition()
                invariant = None
                if self._peek() == "invariant":
                    self._advance()
                    invariant = self._condition()
                return While(condition, self._block(), invariant, token.at)
            case "skip":
                self._advance()
                return Skip(token.at)
            case "{":
                return self._block()
        raise self._error(token.at, f"a command is needed, not {_token_text(token)}")

    def _if(self) -> Command:
        at = self._advance().at
        condition = self._condition()
        then = self._block()
        otherwise: Command | None = None
        if self._peek() == "else":
            self._advance()
            if self._peek() == "if":
                self._enter()
                otherwise = self._if()
                self._depth -= 1
            else:
                otherwise = self._block()
        return If(condition, then, otherwise, at)

    def _assignment(self) -> Command:
        token = self._advance()
        if self._peek() == "(":
            return self._call(None, token)
        self.expect(":=", "':='")
        if self._peek() == "input":
            self._advance()
            self.expect("(")
            self.expect(")")
            return Input(token.text, token.at)
        if self._peek() == "name" and self._tokens[self._next + 1].kind == "(":
            return self._call(token.text, self._advance())
        return Assign(token.text, self._term(), token.at)

    def _call(self, target: str | None, name: Token) -> Call:
        self.expect("(")
        arguments: list[Term] = []
        while self._peek() != ")":
            if arguments:
                self.expect(",", "',' or ')'")
            arguments.append(self._term())
        self.expect(")")
        call = Call(target, name.text, tuple(arguments), name.at)
        self._calls.append((call, name.at))
        return call

    def _condition(self) -> Formula:
        at = self.expect("(", "'('").at
        formula = self.plain(self.formula(), at)
        self.expect(")")
        return formula

    # Expressions

    def formula(self) -> Formula:
        at = self._current().at
        found = self._expression(1)
        if not isinstance(found, Formula):
            raise self._error(at, "a formula is needed, not a term", "compare it with something, e.g. … != 0")
        return found

    def _term(self) -> Term:
        at = self._current().at
        return self._as_term(self._expression(6), at)

    def _expression(self, level: int) -> Term | Formula:
        self._enter()
        at = self._current().at
        left = self._prefix()
        operators = 0
        while True:
            token = self._current()
            operators += 1
            if operators > MAX_OPERATORS:
                raise self._error(token.at, "this expression is too long")
            own = LEVELS.get(token.kind) or TERM_LEVELS.get(token.kind) or (5 if token.kind in COMPARISONS else 0)
            if own < level or own == 0:
                break
            if own == 5:
                left = self._comparisons(self._as_term(left, at))
                continue
            self._advance()
            right_at = self._current().at
            right = self._expression(own if token.kind == "→" else own + 1)
            if own < 5:
                left = Connective(token.kind, self._as_formula(left, at), self._as_formula(right, right_at))
            else:
                if token.kind in BITWISE:
                    self._bitwise.append((token.kind, token.at))
                left = Binary(token.kind, self._as_term(left, at), self._as_term(right, right_at))
        self._depth -= 1
        return left

    def _comparisons(self, left: Term) -> Formula:
        """a < b, or a chain a <= b < c."""
        result: Formula | None = None
        while self._peek() in COMPARISONS:
            op = self._advance().kind
            right = self._term()
            link = Compare(op, left, right)
            result = link if result is None else Connective("∧", result, link)
            left = right
        assert result is not None
        return result

    def _prefix(self) -> Term | Formula:
        token = self._current()
        match token.kind:
            case "¬":
                self._advance()
                at = self._current().at
                return Not(self._as_formula(self._expression(5), at))
            case "-" | "~":
                self._advance()
                if token.kind == "~":
                    self._bitwise.append(("~", token.at))
                at = self._current().at
                return Unary(token.kind, self._as_term(self._expression(12), at))
            case "[":
                self._advance()
                program = self._commands("]")
                self.expect("]")
                at = self._current().at
                return Box(program, self._as_formula(self._expression(1), at))
            case "(":
                self._advance()
                inner = self._expression(1)
                self.expect(")", "')'")
                return inner
            case "true" | "false":
                self._advance()
                return Truth(token.kind == "true")
            case "number":
                self._advance()
                value = int(token.text, 0)
                self._numbers.append((value, token.at))
                return Num(value)
            case "name":
                self._advance()
                if self._peek() == "(":
                    raise self._error(
                        token.at, f"{token.text}(…) cannot stand inside an expression", f"write r := {token.text}(…)"
                    )
                return Var(token.text)
            case "U":
                self._advance()
                return Limit()
            case "Mem":
                return Read(MEM, self._memory_index())
        raise self._error(token.at, f"a term or formula is needed, not {_token_text(token)}")

    def _memory_index(self) -> Term:
        self._advance()
        self.expect("(")
        index = self._term()
        self.expect(")", "')'")
        return index

    # Tokens

    def _as_term(self, found: Term | Formula, at: Position) -> Term:
        if isinstance(found, Formula):
            raise self._error(at, "a term is needed, not a formula")
        return found

    def _as_formula(self, found: Term | Formula, at: Position) -> Formula:
        if not isinstance(found, Formula):
            raise self._error(at, "a formula is needed, not a term", "compare it with something, e.g. … != 0")
        return found

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(self._current().at, "this is nested too deeply")

    def _current(self) -> Token:
        return self._tokens[self._next]

    def _peek(self) -> str:
        return self._tokens[self._next].kind

    def _advance(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def expect(self, kind: str, shown: str = "") -> Token:
        token = self._current()
        if token.kind != kind:
            raise self._error(token.at, f"{shown or _shown(kind)} is needed, not {_token_text(token)}")
        return self._advance()

    def _name(self, what: str) -> str:
        token = self._current()
        if token.kind != "name":
            reserved = token.text in KEYWORDS
            raise self._error(token.at, f"{what} is needed, not {_token_text(token)}", "a keyword" if reserved else "")
        return self._advance().text

    def _error(self, at: Position, message: str, hint: str = "") -> InputFileError:
        return error(self._path, at, message, hint)


def _shown(kind: str) -> str:
    return "the end of the file" if kind == "end" else f"'{kind}'"


def _token_text(token: Token) -> str:
    return "the end of the file" if token.kind == "end" else f"'{token.text[:40]}'"


def _has_box(formula: Formula) -> bool:
    match formula:
        case Box():
            return True
        case Not(body):
            return _has_box(body)
        case Connective(_, left, right):
            return _has_box(left) or _has_box(right)
    return False
