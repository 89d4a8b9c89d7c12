"""Models as text: what is read, printed back, and complained about with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from mcveto.counterexamples.model import Model
from mcveto.counterexamples.model_parser import parse_model, read_model
from mcveto.counterexamples.model_printer import model_text
from mcveto.errors import InputFileError
from mcveto.property.typestate import Label
from tests.counterexamples.strategies import models

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "models").glob("*.pds"))


def content(model: Model) -> object:
    """All that a model says, by names."""

    def names(symbols: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(model.symbols[symbol] for symbol in symbols)

    rules = {
        (model.controls[r.control], model.symbols[r.symbol], model.controls[r.target], names(r.pushed))
        for r in model.rules()
    }
    labels = {(model.controls[c], model.symbols[s]): model.labels(c, s) for c, s in model.labelled()}
    start = model.controls[model.start_control], names(model.start_stack)
    return model.name, model.is_finite, start, rules, labels


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_round_trip(path: Path) -> None:
    model = read_model(str(path))
    assert content(parse_model(model_text(model))) == content(model)


@settings(max_examples=100, deadline=None)
@given(models())
def test_random_round_trip(model: Model) -> None:
    assert content(parse_model(model_text(model))) == content(model)


def test_what_is_read() -> None:
    model = parse_model(
        "model m # c\nstart p: a b\np: a -> q: c d\nq : c -> p : pop\nb->c\nb -> c\na -> a\na -> a\n"
        'event p: a: e(1, "x: # y", -0x10), call f\nevent c: g\n'.replace("b->c\n", "")
    )
    assert content(model) == (
        "m",
        False,
        ("p", ("a", "b")),
        {("p", "a", "q", ("c", "d")), ("q", "c", "p", ()), (".", "b", ".", ("c",)), (".", "a", ".", ("a",))},
        {
            ("p", "a"): (Label("e", (1, "x: # y", -16)), Label("call f")),
            **{(control, "c"): (Label("g"),) for control in ("p", "q", ".")},
        },
    )
    assert model.rule_count == 4


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("a -> b\n", 1, "this is no model"),
        ("model m\na -> b\n", 2, "no start"),
        ("model m\nstart a\nstart b\n", 3, "one start"),
        ("model m\nstart\n", 2, "the start needs a stack"),
        ("model m\nstart a\na -> b c d\n", 3, "at most two symbols, not 3"),
        ("model m\nstart a\na ->\n", 3, "the right side of a rule is empty"),
        ("model m\nstart a\na b -> c\n", 3, "the left side of a rule is one symbol"),
        ("model m\nstart a\na -> b pop\n", 3, "pushes nothing"),
        ("finite m\nstart a\na -> b c\n", 3, "neither calls nor pops"),
        ("finite m\nstart a\na -> pop\n", 3, "neither calls nor pops"),
        ("finite m\nstart a b\n", 2, "holds one symbol"),
        ("model m\nstart a\nsomething else\n", 3, "cannot read 'something'"),
        ("model m\nstart a\na -> event\n", 3, "'event' is not a name"),
        ("model m\nstart a\nevent a\n", 3, "names a node and its events"),
        ("model m\nstart a\nevent a: e(\n", 3, "cannot read the event"),
        ("model m\nstart a\nevent a: e(x)\n", 3, "cannot read the argument"),
        ("model m\nstart a\nevent a: e,\n", 3, "cannot read the event"),
        ("model m\nstart a\na -> a\nevent z: e\n", 4, "no rule mentions 'z'"),
        ("model m\nstart a\na -> a\nevent q: a: e\n", 4, "control location 'q'"),
    ],
)
def test_complaints(text: str, line: int, message: str) -> None:
    with pytest.raises(InputFileError) as caught:
        parse_model(text, "file.pds")
    assert str(caught.value).startswith(f"file.pds:{line}: ")
    assert message in str(caught.value)
