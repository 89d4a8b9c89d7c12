"""A model as the text that `model_parser` reads back to an equal one."""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.counterexamples.model import Model
from mcveto.counterexamples.model_parser import NO_CONTROL, POP


def model_text(model: Model) -> str:
    return "\n".join(_lines(model)) + "\n"


def _lines(model: Model) -> Iterator[str]:
    def side(control: int, symbols: tuple[int, ...]) -> str:
        name = model.controls[control]
        stack = " ".join(model.symbols[symbol] for symbol in symbols) or POP
        return stack if name == NO_CONTROL else f"{name}: {stack}"

    yield f"{'finite' if model.is_finite else 'model'} {model.name}"
    yield f"start {side(model.start_control, model.start_stack)}"
    for rule in model.rules():
        yield f"{side(rule.control, (rule.symbol,))} -> {side(rule.target, rule.pushed)}"
    for control, symbol in model.labelled():
        labels = ", ".join(map(str, model.labels(control, symbol)))
        yield f"event {model.controls[control]}: {model.symbols[symbol]}: {labels}"
