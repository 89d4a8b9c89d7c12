"""The text of a typestate automaton (.fsm), line by line.

    automaton lock-pairing
    about     A lock is taken twice, or released while it is free.
    event     lock(l)   = call acquire | call acquire_irq
    event     unlock(l) = call release
    var       owner = 0
    states    free held
    start     free
    error     twice "taken while held"
    error     idle "released while free"

    free -> held  on lock(l) do owner := l
    held -> twice on lock(l) when l == owner
    held -> free  on unlock(l) when l == owner
    free -> idle  on unlock

Points of a program: `call F`, `return F`, `reach A`, `syscall N`, with symbols, addresses or numbers; they can also be
written in a transition (`on call F(x)`); `call undefined F` is no point of a file that defines F, or another function
of the event. Arguments are machine words; `event close(file:32)` takes the lower 32 bits of one, as a C int. A
parameter is a name, a constant (the argument must equal it) or `_`. The source `*` is every state that is not an error.
Guards are joined by `and`: == != and, with the sign said, <s <=s >s >=s <u <=u >u >=u. Values are numbers, or "texts"
(on models). `#` begins a comment.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from mcveto.errors import InputFileError
from mcveto.property.text_file import read_text
from mcveto.property.typestate import (
    ANY,
    UNDEFINED,
    Assignment,
    Constant,
    Event,
    Guard,
    Name,
    Operand,
    Parameter,
    Pattern,
    Point,
    PointKind,
    Relation,
    Transition,
    Typestate,
    Value,
)

MAX_BYTES = 1 << 20
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>-?(?:0[xX][0-9a-fA-F]+|[0-9]+)(?![\w.]))
    | (?P<word>[A-Za-z_.$@](?:[\w.$@+/]|-(?!>))*)
    | (?P<sign>->|:=|==|!=|[<>]=?[su](?!\w)|[<>]=?|[=(),|*:])
    )""",
    re.VERBOSE,
)
_KINDS = {kind.value: kind for kind in PointKind}
_KEYWORDS = ("automaton", "about", "event", "var", "states", "start", "error")
_RESERVED = {*_KEYWORDS, *_KINDS, ANY, "on", "when", "do", "and", "_"}
# Relation, and whether its sides change places.
_RELATIONS = {
    "==": (Relation.EQUAL, False),
    "!=": (Relation.DIFFERENT, False),
    **{f"<{sign}": (Relation(f"<{sign}"), False) for sign in "su"},
    **{f"<={sign}": (Relation(f"<={sign}"), False) for sign in "su"},
    **{f">{sign}": (Relation(f"<{sign}"), True) for sign in "su"},
    **{f">={sign}": (Relation(f"<={sign}"), True) for sign in "su"},
}


def read_typestate_text(path: str) -> str:
    """The text of a property file; raises InputFileError."""
    return read_text(path, "property", MAX_BYTES)


def parse_typestate(text: str, path: str = "<text>") -> Typestate:
    """The automaton that the text describes; raises InputFileError with path and line."""
    parser = _Parser(path)
    for number, line in enumerate(text.splitlines(), 1):
        parser.line(number, line)
    return parser.finish()


class _Token(NamedTuple):
    kind: str
    text: str


class _Line:
    """The tokens of one line, taken from the left."""

    def __init__(self, path: str, number: int, text: str) -> None:
        self.path, self.number = path, number
        self.tokens: list[_Token] = []
        at = 0
        while text[at:].strip():
            if text[at:].lstrip().startswith("#"):
                break
            match = _TOKEN.match(text, at)
            if match is None:
                rest = text[at:].strip()
                self.fail("a text has no end" if rest.startswith('"') else f"cannot read '{rest[:20]}'")
            assert match.lastgroup is not None
            self.tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.position = 0

    def fail(self, message: str, hint: str = "") -> NoReturn:
        raise InputFileError(f"{self.path}:{self.number}: {message}", hint)

    @property
    def next(self) -> _Token:
        return self.tokens[self.position] if self.position < len(self.tokens) else _Token("end", "the end of the line")

    def take(self) -> _Token:
        token = self.next
        self.position += 1
        return token

    def skip(self, text: str) -> bool:
        """Takes the next token if it is this word or sign."""
        if self.next.kind in ("word", "sign") and self.next.text == text:
            self.position += 1
            return True
        return False

    def require(self, text: str) -> None:
        if not self.skip(text):
            self.fail(f"expected '{text}', not {self._found()}")

    def name(self, what: str) -> str:
        token = self.next
        if token.kind != "word" or token.text in _RESERVED:
            self.fail(f"expected {what}, not {self._found()}")
        self.position += 1
        return token.text

    def value(self) -> Value | None:
        """A constant, if one comes next."""
        match self.next:
            case _Token("number", text):
                self.position += 1
                number = int(text, 16 if "x" in text.lower() else 10)
                if not -(1 << 63) <= number < 1 << 64:
                    self.fail(f"{text[:30]} does not fit 64 bits")
                return number
            case _Token("text", text):
                self.position += 1
                return re.sub(r"\\(.)", r"\1", text[1:-1])
        return None

    def end(self) -> None:
        if self.next.kind != "end":
            self.fail(f"'{self.next.text[:20]}' is one too many")

    def _found(self) -> str:
        return self.next.text if self.next.kind == "end" else f"'{self.next.text[:20]}'"


class _Parser:
    def __init__(self, path: str) -> None:
        self.path = path
        self.automaton = ""
        self.about: list[str] = []
        self.states: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self.errors: dict[str, str] = {}
        self.variables: dict[str, Value] = {}
        self.events: dict[str, Event] = {}
        self.transitions: list[Transition] = []
        self.wildcards: list[Transition] = []
        self.last = 1

    def line(self, number: int, text: str) -> None:
        self.last = number
        stripped = text.strip()
        if stripped == "about" or stripped.startswith(("about ", "about\t")):
            self.about.append(stripped.removeprefix("about").strip())
            return
        line = _Line(self.path, number, text)
        if not line.tokens:
            return
        if len(line.tokens) > 1 and line.tokens[1].text in ("->", ","):
            self._transition(line)
            return
        keyword = line.take()
        match keyword.text:
            case "automaton":
                if self.automaton:
                    line.fail("a file holds one automaton")
                self.automaton = line.name("a name")
            case "states":
                while line.next.kind != "end":
                    self._state(line, line.name("a state"))
            case "start":
                while line.next.kind != "end" or not self.starts:
                    name = line.name("a state")
                    self.starts[name] = number
                    self.states.setdefault(name, number)
            case "error":
                self._error(line)
            case "var":
                self._variable(line)
            case "event":
                self._event(line)
            case _:
                nearest = difflib.get_close_matches(keyword.text, _KEYWORDS, n=1, cutoff=0.6)
                hint = f"did you mean '{nearest[0]}'?" if nearest else f"a line begins with {', '.join(_KEYWORDS)} "
                line.fail(f"cannot read '{keyword.text[:20]}'", hint if nearest else f"{hint}or is STATE -> STATE on …")
        line.end()

    def _state(self, line: _Line, name: str) -> None:
        if name in self.states and name not in self.starts:
            line.fail(f"state {name} is declared twice")
        self.states[name] = line.number

    def _error(self, line: _Line) -> None:
        name = line.name("a state")
        if name in self.errors:
            line.fail(f"error state {name} is declared twice")
        self.states.setdefault(name, line.number)
        message = line.value() if line.next.kind == "text" else ""
        assert isinstance(message, str)
        self.errors[name] = message

    def _variable(self, line: _Line) -> None:
        name = line.name("a variable")
        if name in self.variables:
            line.fail(f"variable {name} is declared twice")
        value = line.value() if line.skip("=") else 0
        if value is None:
            line.fail(f"expected a value for {name}")
        self.variables[name] = value

    def _event(self, line: _Line) -> None:
        name = line.name("an event")
        if name in self.events:
            line.fail(f"event {name} is declared twice")
        parameters: list[Parameter] = []
        if line.skip("("):
            while not line.skip(")"):
                argument = line.name("a name for the argument")
                bits = line.value() if line.skip(":") else 0
                if not isinstance(bits, int) or bits not in (0, 8, 16, 32, 64):
                    line.fail(f"how many bits has {argument}?", "8, 16, 32 or 64")
                parameters.append(Parameter(argument, bits))
                if line.next.text != ")":
                    line.require(",")
        points: list[Point] = []
        if line.skip("="):
            points.append(self._point(line))
            while line.skip("|"):
                points.append(self._point(line))
        self.events[name] = Event(tuple(parameters), tuple(points))

    def _point(self, line: _Line) -> Point:
        token = line.take()
        if token.text not in _KINDS:
            line.fail(f"expected {', '.join(_KINDS)}, not '{token.text[:20]}'")
        kind = _KINDS[token.text]
        number = line.value()
        if isinstance(number, int) and number >= 0:
            return Point(kind, number)
        if number is not None:
            line.fail(f"'{number}' is no place in a program", "write an address or a symbol")
        if line.next.kind != "word":
            line.fail(f"{token.text} of what?", "e.g. call malloc, reach 0x8049012, syscall write")
        word = line.take().text
        if word == UNDEFINED and kind in (PointKind.CALL, PointKind.RETURN) and line.next.kind == "word":
            return Point(kind, line.take().text, only_undefined=True)
        return Point(kind, word)

    def _transition(self, line: _Line) -> None:
        sources = [self._source(line)]
        while line.skip(","):
            sources.append(self._source(line))
        line.require("->")
        target = self._known_state(line)
        line.require("on")
        pattern = self._pattern(line)
        bound = {parameter.name for parameter in pattern.parameters if isinstance(parameter, Name)}
        guards: list[Guard] = []
        if line.skip("when"):
            guards.append(self._guard(line, bound))
            while line.skip("and"):
                guards.append(self._guard(line, bound))
        assignments: list[Assignment] = []
        if line.skip("do"):
            assignments.append(self._assignment(line, bound))
            while line.skip(","):
                assignments.append(self._assignment(line, bound))
        line.end()
        if len({assignment.variable for assignment in assignments}) < len(assignments):
            line.fail("a variable is assigned twice")
        for source in sources:
            transition = Transition(source, target, pattern, tuple(guards), tuple(assignments), line.number)
            (self.wildcards if source == "*" else self.transitions).append(transition)

    def _source(self, line: _Line) -> str:
        return "*" if line.skip("*") else self._known_state(line)

    def _known_state(self, line: _Line) -> str:
        name = line.name("a state")
        if name not in self.states:
            line.fail(f"state {name} is not declared", _nearest(name, self.states))
        return name

    def _pattern(self, line: _Line) -> Pattern:
        if line.skip(ANY):
            return Pattern(ANY)
        if line.next.text in _KINDS:
            point = self._point(line)
            name = str(point)
            self.events.setdefault(name, Event((), (point,)))
        else:
            name = line.name("an event")
            if name not in self.events:
                line.fail(f"event {name} is not declared", _nearest(name, self.events) or f"write: event {name}")
        parameters: list[Operand | None] = []
        if line.skip("("):
            while not line.skip(")"):
                parameters.append(self._parameter(line))
                if line.next.text != ")":
                    line.require(",")
        declared = self.events[name].parameters
        if declared and len(parameters) > len(declared):
            line.fail(f"event {name} has {len(declared)} arguments, not {len(parameters)}")
        names = [parameter.name for parameter in parameters if isinstance(parameter, Name)]
        if len(set(names)) < len(names):
            line.fail("two arguments have the same name", "compare them: when x == y")
        return Pattern(name, tuple(parameters))

    def _parameter(self, line: _Line) -> Operand | None:
        if line.skip("_"):
            return None
        value = line.value()
        if value is not None:
            return Constant(value)
        name = line.name("a name, a value or _")
        if name in self.variables:
            line.fail(
                f"{name} is a variable", f"give the argument another name, and say when …== {name} or do {name} :="
            )
        return Name(name)

    def _operand(self, line: _Line, bound: set[str]) -> Operand:
        value = line.value()
        if value is not None:
            return Constant(value)
        name = line.name("a variable, an argument or a value")
        if name not in bound and name not in self.variables:
            line.fail(f"{name} is neither a variable nor an argument", _nearest(name, [*bound, *self.variables]))
        return Name(name)

    def _guard(self, line: _Line, bound: set[str]) -> Guard:
        left = self._operand(line, bound)
        token = line.take()
        sign = "==" if token.text == "=" else token.text
        if sign not in _RELATIONS:
            hint = f"say whether as signed or unsigned numbers: {sign}s or {sign}u" if sign in "<=>=" else ""
            line.fail(f"'{token.text[:20]}' is no comparison", hint)
        right = self._operand(line, bound)
        relation, swapped = _RELATIONS[sign]
        if relation not in (Relation.EQUAL, Relation.DIFFERENT):
            for side in (left, right):
                if isinstance(side, Constant) and isinstance(side.value, str):
                    line.fail("texts have no order", "compare them with == or !=")
        return Guard(relation, right, left) if swapped else Guard(relation, left, right)

    def _assignment(self, line: _Line, bound: set[str]) -> Assignment:
        name = line.name("a variable")
        if name not in self.variables:
            line.fail(f"variable {name} is not declared", _nearest(name, self.variables) or f"write: var {name}")
        line.require(":=")
        return Assignment(name, self._operand(line, bound))

    def finish(self) -> Typestate:
        def fail(number: int, message: str, hint: str = "") -> NoReturn:
            raise InputFileError(f"{self.path}:{number}: {message}", hint)

        if not self.automaton:
            fail(1, "this is no typestate automaton", "the first line is: automaton NAME")
        if not self.starts:
            fail(self.last, "no start state", "write: start STATE")
        if not self.errors:
            fail(self.last, "no error state: this automaton forbids nothing", "write: error STATE")
        for name in self.starts:
            if name in self.errors:
                fail(self.starts[name], f"{name} is both start and error: every program violates this")
        for name in self.errors:
            for transition in self.transitions:
                if transition.source == name:
                    fail(transition.line, f"{name} is an error state, which nothing leaves")
        expanded = [
            Transition(state, wild.target, wild.pattern, wild.guards, wild.assignments, wild.line)
            for wild in self.wildcards
            for state in self.states
            if state not in self.errors
        ]
        every = dict.fromkeys(sorted([*self.transitions, *expanded], key=lambda transition: transition.line))
        return Typestate(
            self.automaton,
            tuple(self.states),
            tuple(self.starts),
            dict(self.errors),
            dict(self.variables),
            dict(self.events),
            tuple(every),
            " ".join(self.about),
            self.path,
        )


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else ""
