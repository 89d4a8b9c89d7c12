"""The text of a model (.pds), line by line.

    model tar
    start m0                     # or: start p: m0 m1     (control location, stack with its top first)
    m0 -> s0 m1                  # a call: s0 runs, m1 continues
    s0 -> s1                     # a step within a procedure
    s4 -> pop                    # the procedure ends
    p: a -> q: b                 # with control locations; where none is written it is `.`
    event s3: e1, open("/etc/passwd", 2)

`finite NAME` instead of `model NAME` declares a finite-state model, whose rules must neither call nor pop. Events are
written as in typestate automata; `call f`, `return f`, `reach f` and `syscall f` are names of events, too. `#` begins a
comment. The words model, finite, start, event and pop are reserved.
"""

from __future__ import annotations

import re
from typing import NoReturn

from mcveto.counterexamples.collector import without_cycle_collection
from mcveto.counterexamples.model import Model, ModelRule
from mcveto.errors import InputFileError
from mcveto.property.text_file import read_text
from mcveto.property.typestate import Label, Value

MAX_BYTES = 1 << 28
NO_CONTROL = "."
POP = "pop"
RESERVED = {"model", "finite", "start", "event", POP, "->"}
_NAME = re.compile(r"[\w.$@+*/'\[\]<>=!?&|-]+")
_LABEL = re.compile(
    r"""\s*(?P<name>(?:(?:call|return|reach|syscall)\s+)?[A-Za-z_.$@0-9][\w.$@+/-]*)\s*
    (?:\((?P<arguments>(?:[^()"]|"(?:[^"\\]|\\.)*")*)\))?\s*(?P<after>,|$)""",
    re.VERBOSE,
)
_ARGUMENT = re.compile(
    r"""\s*(?:(?P<number>-?(?:0[xX][0-9a-fA-F]+|[0-9]+))|(?P<text>"(?:[^"\\]|\\.)*"))\s*(?P<after>,|$)""", re.VERBOSE
)


def read_model(path: str) -> Model:
    """The model in a file; raises InputFileError."""
    text = read_text(path, "model", MAX_BYTES)
    return parse_model(text, path)


def parse_model(text: str, path: str = "<text>") -> Model:
    """The model that the text describes; raises InputFileError with path and line."""
    parser = _Parser(path)
    with without_cycle_collection():
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            parser.number = number
            if words and not parser.plain_rule(words, line):
                parser.line(line)
        return parser.finish()


class _Parser:
    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 1
        self.model = Model()
        self.is_named = False
        self.has_start = False
        self.events: list[tuple[int, str | None, str, tuple[Label, ...]]] = []
        self.known: set[ModelRule] = set()

    def fail(self, message: str, hint: str = "", number: int | None = None) -> NoReturn:
        raise InputFileError(f"{self.path}:{self.number if number is None else number}: {message}", hint)

    def plain_rule(self, words: list[str], text: str) -> bool:
        """Takes the rule if it is one without control locations, as most lines of a large model are."""
        if not self.is_named or not 3 <= len(words) <= 4 or words[1] != "->" or ":" in text or "#" in text:
            return False
        numbers = self.model.symbol_numbers
        pushed = words[2:]
        if POP in pushed or (self.model.is_finite and len(pushed) > 1):
            if self.model.is_finite or len(pushed) > 1:
                return False
            pushed = []
        for word in (words[0], *pushed):
            if word not in numbers:
                self._check(word)
        control = self.model.control(NO_CONTROL)
        symbol = self.model.symbol
        self._add(ModelRule(control, symbol(words[0]), control, *map(symbol, pushed)))
        return True

    def line(self, text: str) -> None:
        if "#" in text:
            text = _without_comment(text)
        words = text.split()
        if not words:
            return
        if not self.is_named:
            if words[0] not in ("model", "finite") or len(words) != 2:
                self.fail("this is no model", "the first line is: model NAME, or finite NAME")
            self.model.name, self.model.is_finite = words[1], words[0] == "finite"
            self.is_named = True
        elif words[0] == "event":
            self._event(text.strip()[len("event") :])
        elif "->" in words:
            at = words.index("->")
            self._rule(words[:at], words[at + 1 :])
        elif words[0] == "start":
            if self.has_start:
                self.fail("a model has one start")
            control, stack = self._side(words[1:])
            if not stack:
                self.fail("the start needs a stack", "e.g. start m0")
            if self.model.is_finite and len(stack) > 1:
                self.fail("the stack of a finite-state model holds one symbol")
            self.model.set_start(control, stack)
            self.has_start = True
        else:
            self.fail(f"cannot read '{words[0][:30]}'", "a line is a rule A -> B, start …, event …")

    def _rule(self, left: list[str], right: list[str]) -> None:
        control, symbols = self._side(left)
        if len(symbols) != 1:
            self.fail("the left side of a rule is one symbol")
        if right[-1:] == [POP]:
            target, pushed = self._side(right[:-1])
            if pushed:
                self.fail("a rule that pops pushes nothing")
        else:
            target, pushed = self._side(right)
            if not pushed:
                self.fail("the right side of a rule is empty", f"a procedure ends with: -> {POP}")
            if len(pushed) > 2:
                self.fail(f"a rule pushes at most two symbols, not {len(pushed)}")
        if self.model.is_finite and len(pushed) != 1:
            self.fail("a finite-state model neither calls nor pops", "begin the file with model NAME")
        self._add(ModelRule(control, symbols[0], target, *pushed))

    def _add(self, rule: ModelRule) -> None:
        if rule not in self.known:
            self.known.add(rule)
            self.model.add(rule)

    def _side(self, words: list[str]) -> tuple[int, list[int]]:
        """A control location, if one is written, and symbols."""
        model = self.model
        control = NO_CONTROL
        if words and words[0][-1] == ":":
            control = words[0][:-1]
            words = words[1:]
            self._check(control)
        elif len(words) > 1 and words[1] == ":":
            control = words[0]
            words = words[2:]
            self._check(control)
        for word in words:
            if word not in model.symbol_numbers:
                self._check(word)
        return model.control(control), [model.symbol(word) for word in words]

    def _check(self, name: str) -> None:
        if name in RESERVED or not _NAME.fullmatch(name):
            self.fail(f"'{name[:30]}' is not a name")

    def _event(self, text: str) -> None:
        where, colon, labels = text.partition(": ") if ": " in text else text.partition(":")
        if not colon or not labels.strip():
            self.fail("an event line names a node and its events", "e.g. event s3: open(1)")
        words = where.split()
        following = labels.partition(": ")
        # `event p: s: e` names a control location, too.
        if len(words) == 1 and following[1] and re.fullmatch(r"\s*[^\s\"(),]+\s*", following[0]):
            self._record(words[0], following[0].strip(), following[2])
        elif len(words) == 1:
            self._record(None, words[0], labels)
        else:
            self.fail("an event line names one node", "e.g. event s3: open(1)")

    def _record(self, control: str | None, symbol: str, labels: str) -> None:
        self.events.append((self.number, control, symbol, tuple(self._labels(labels))))

    def _labels(self, text: str) -> list[Label]:
        found = []
        at = 0
        while at < len(text):
            match = _LABEL.match(text, at)
            if match is None or (match["after"] == "," and match.end() == len(text)):
                self.fail(f"cannot read the event '{text[at:].strip()[:30]}'", 'e.g. open, or open(1, "name")')
            found.append(Label(" ".join(match["name"].split()), self._arguments(match["arguments"] or "")))
            at = match.end()
        return found

    def _arguments(self, text: str) -> tuple[Value, ...]:
        found: list[Value] = []
        at = 0
        while text.strip() and at < len(text):
            match = _ARGUMENT.match(text, at)
            if match is None or (match["after"] == "," and match.end() == len(text)):
                self.fail(f"cannot read the argument '{text[at:].strip()[:30]}'", 'a number, or a "text"')
            if match["number"] is not None:
                found.append(int(match["number"], 16 if "x" in match["number"].lower() else 10))
            else:
                found.append(re.sub(r"\\(.)", r"\1", match["text"][1:-1]))
            at = match.end()
        return tuple(found)

    def finish(self) -> Model:
        model = self.model
        if not self.is_named:
            self.fail("the file is empty", "the first line is: model NAME")
        if not self.has_start:
            self.fail("no start", "write: start SYMBOL")
        for number, control, symbol, labels in self.events:
            if symbol not in model.symbol_numbers:
                self.fail(f"no rule mentions '{symbol[:30]}'", number=number)
            if control is not None and control not in model.control_numbers:
                self.fail(f"no rule mentions control location '{control[:30]}'", number=number)
            # Without a control location the event happens in all of them.
            controls = range(len(model.controls)) if control is None else [model.control(control)]
            for where in controls:
                model.add_labels(where, model.symbol(symbol), labels)
        return model


def _without_comment(text: str) -> str:
    """The line up to a # outside quotes."""
    quoted = False
    skip = False
    for at, character in enumerate(text):
        if skip:
            skip = False
        elif character == "\\" and quoted:
            skip = True
        elif character == '"':
            quoted = not quoted
        elif character == "#" and not quoted:
            return text[:at]
    return text
