"""The text of automata: what is read, printed back, and complained about with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from mcveto.errors import InputFileError, UsageError
from mcveto.property.library import find_typestate, library_names
from mcveto.property.typestate import Configuration, Constant, Guard, Label, Name, Point, PointKind, Relation, Typestate
from mcveto.property.typestate_parser import parse_typestate, read_typestate_text
from mcveto.property.typestate_printer import typestate_text
from tests.counterexamples.strategies import automata

HEAD = "automaton a\nevent e(x)\nvar v = 3\nstates s t\nstart s\nerror bad\n"


def test_what_is_read() -> None:
    automaton = parse_typestate(
        'automaton a-b # comment\nabout It says "so".\nevent e(x, y:32) = call f | reach 0x10\nvar v = -2\n'
        'states s t\nstart s\nerror bad "very # bad"\n'
        "s -> t on e(p, 7) when p >=s v and 4 <u p do v := p\n* -> bad on return g(r) when r != 0\n"
    )
    assert automaton.name == "a-b"
    assert automaton.about == 'It says "so".'
    assert automaton.errors == {"bad": "very # bad"}
    assert automaton.events["e"].points == (Point(PointKind.CALL, "f"), Point(PointKind.REACH, 16))
    assert [str(parameter) for parameter in automaton.events["e"].parameters] == ["x", "y:32"]
    first, *wild = automaton.transitions
    assert first.pattern.parameters == (Name("p"), Constant(7))
    assert first.guards == (
        Guard(Relation.SIGNED_LESS_EQUAL, Name("v"), Name("p")),
        Guard(Relation.UNSIGNED_LESS, Constant(4), Name("p")),
    )
    assert [transition.source for transition in wild] == ["s", "t"]
    assert wild[0].pattern.event == "return g"


@pytest.mark.parametrize("name", library_names())
def test_library_round_trip(name: str) -> None:
    automaton = find_typestate(name)
    assert automaton.name == name
    assert automaton.about
    assert all(automaton.errors.values()), "every error of the library says what is wrong"
    assert parse_typestate(typestate_text(automaton)) == automaton


def test_library_holds_what_was_promised() -> None:
    expected = {"lock", "double-free", "use-after-close", "privileged-io", "open-before-setresuid", "unlisted-files"}
    assert expected <= set(library_names())


@settings(max_examples=100, deadline=None)
@given(automata(variables=True))
def test_random_round_trip(automaton: Typestate) -> None:
    assert parse_typestate(typestate_text(automaton)) == automaton


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("states s\n", 1, "this is no typestate automaton"),
        ("", 1, "this is no typestate automaton"),
        (HEAD.replace("start s\n", ""), 5, "no start state"),
        (HEAD.replace("error bad\n", ""), 5, "no error state"),
        (HEAD + "s -> u on e", 7, "state u is not declared"),
        (HEAD + "s -> t on f", 7, "event f is not declared"),
        (HEAD + "s -> t on e when y == 1", 7, "y is neither a variable nor an argument"),
        (HEAD + "s -> t on e(v)", 7, "v is a variable"),
        (HEAD + "s -> t on e(p, q)", 7, "event e has 1 arguments, not 2"),
        (HEAD + "s -> t on e(p) when p < 3", 7, "signed or unsigned"),
        (HEAD + 's -> t on e(p) when p <s "x"', 7, "texts have no order"),
        (HEAD + "s -> t on e(p) do w := p", 7, "variable w is not declared"),
        (HEAD + "s -> t on e(p) do v := p, v := 1", 7, "assigned twice"),
        (HEAD + "s -> t on e extra", 7, "'extra' is one too many"),
        (HEAD + "s -> t", 7, "expected 'on', not the end of the line"),
        (HEAD + "s -> t on e(", 7, "expected a name, a value or _"),
        (HEAD + 's -> t on e("x', 7, "a text has no end"),
        (HEAD + "bad -> t on e", 7, "which nothing leaves"),
        (HEAD + "stats q", 7, "did you mean 'states'"),
        (HEAD + "states t", 7, "declared twice"),
        (HEAD + "var v", 7, "declared twice"),
        (HEAD + "event e", 7, "declared twice"),
        (HEAD + "event g = jump 3", 7, "expected call, return, reach, syscall"),
        (HEAD + "event g(x:7)", 7, "how many bits"),
        (HEAD + "var w = 99999999999999999999999", 7, "does not fit 64 bits"),
        (HEAD + "s -> t on e ; x", 7, "cannot read '; x'"),
        (HEAD.replace("start s", "start bad"), 5, "both start and error"),
        (HEAD + "s -> t on call", 7, "call of what?"),
    ],
)
def test_complaints(text: str, line: int, message: str) -> None:
    with pytest.raises(InputFileError) as caught:
        parse_typestate(text, "file.fsm")
    assert str(caught.value).startswith(f"file.fsm:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "x.fsm"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputFileError, match="is not text"):
        read_typestate_text(str(binary))
    with pytest.raises(InputFileError, match="cannot read"):
        read_typestate_text(str(tmp_path))
    with pytest.raises(UsageError, match="one of double-free"):
        find_typestate("no-such-property")


def test_steps() -> None:
    automaton = parse_typestate(HEAD + "s -> t on e(p) when p <s v do v := p\ns -> s on any\nt -> bad on e(-1)\n")
    start = Configuration("s", (3,))
    assert automaton.initial() == (start,)
    assert automaton.successors(start, ()) == (start,)
    assert automaton.successors(start, (Label("e", (2,)),)) == (Configuration("t", (2,)), start)
    # As 64-bit words, -1 is less than 3 if signed, and the same as its unsigned form.
    assert automaton.successors(start, (Label("e", (-1,)),)) == (Configuration("t", (-1,)), start)
    assert automaton.successors(Configuration("t", (0,)), (Label("e", (2**64 - 1,)),)) == (Configuration("bad", (0,)),)
    # Nothing enabled: too few arguments, another event.
    assert automaton.successors(Configuration("t", (0,)), (Label("e"), Label("f"))) == (Configuration("t", (0,)),)
