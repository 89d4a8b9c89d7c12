"""Small random models and automata."""

from __future__ import annotations

from hypothesis import strategies as st

from mcveto.counterexamples.model import Model
from mcveto.counterexamples.model_parser import parse_model
from mcveto.property.typestate import Typestate
from mcveto.property.typestate_parser import parse_typestate

EVENTS = ("a", "b")


@st.composite
def models(draw: st.DrawFn, max_rules: int = 9, finite: bool = False) -> Model:
    symbols = [f"s{number}" for number in range(draw(st.integers(2, 5)))]
    controls = ["."] if draw(st.integers(0, 3)) else ["p", "q"]
    symbol, control = st.sampled_from(symbols), st.sampled_from(controls)
    heights = st.just(1) if finite else st.integers(0, 2)

    def side(names: list[str]) -> str:
        where = draw(control)
        return f"{where}: {' '.join(names) or 'pop'}" if where != "." else " ".join(names) or "pop"

    start = [draw(symbol) for _ in range(1 if finite else draw(st.sampled_from([1, 1, 1, 2, 3])))]
    lines = ["finite random" if finite else "model random", f"start {side(start)}"]
    for _ in range(draw(st.integers(2, max_rules))):
        left, height = draw(symbol), draw(heights)
        lines.append(f"{side([left])} -> {side([draw(symbol) for _ in range(height)])}")
    used = {word for line in lines[1:] for word in line.split()}
    for name in symbols:
        if name in used:
            labels = draw(st.lists(st.sampled_from(["a", "b", "a(1)", "a(2)", "b(1)"]), max_size=2, unique=True))
            if labels:
                lines.append(f"event {name}: {', '.join(labels)}")
    return parse_model("\n".join(lines))


@st.composite
def automata(draw: st.DrawFn, variables: bool = False) -> Typestate:
    states = ["q0", "q1", "q2"][: draw(st.integers(1, 3))]
    lines = ["automaton random", "event a", "event b", *(["var x"] if variables else [])]
    lines += [f"states {' '.join(states)}", "start q0", "error bad"]
    targets = st.sampled_from([*states, "bad"])
    for _ in range(draw(st.integers(1, 5))):
        event = draw(st.sampled_from(["a", "b", "a", "b", "any"]))
        extra = ""
        if variables and event != "any":
            kind = draw(st.sampled_from(["", "(v) when v == x", "(v) when v != x", "(v) do x := v", "(1)"]))
            extra = kind
        lines.append(f"{draw(st.sampled_from(states))} -> {draw(targets)} on {event}{extra}")
    lines.append(f"{draw(st.sampled_from(states))} -> bad on {draw(st.sampled_from(EVENTS))}")
    return parse_typestate("\n".join(lines))
