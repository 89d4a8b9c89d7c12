"""Time and memory grow linearly with the model; the first counterexample of 100,000 rules comes within a second."""

from __future__ import annotations

import gc
import time
import tracemalloc

import pytest

from mcveto.counterexamples.finder import Request, find_counterexamples
from mcveto.counterexamples.model_parser import parse_model
from mcveto.property.typestate_parser import parse_typestate
from tests.counterexamples.growth import PROPERTY, SHAPES, grown_model

SIZES = (100, 1_000, 10_000, 100_000)


def first_counterexample(text: str) -> tuple[int, int, float, float]:
    """Rules, length of the first counterexample, CPU seconds for reading and for finding it."""
    # What other tests have left behind is not looked through for cycles in our time.
    gc.collect()
    gc.freeze()
    try:
        started = time.process_time()
        model = parse_model(text)
        read = time.process_time()
        (witness,) = find_counterexamples(model, parse_typestate(PROPERTY), Request(count=1)).witnesses
        return model.rule_count, len(witness), read - started, time.process_time() - read
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("shape", ["grown", "chain", "deep", "wide"])
def test_time_is_linear(shape: str) -> None:
    small = first_counterexample(SHAPES[shape](5_000))
    large = first_counterexample(SHAPES[shape](20_000))
    assert large[1] > small[1]
    # Four times the rules; ten times the time would not be linear even on a busy machine.
    assert large[2] + large[3] < 10 * (small[2] + small[3]) + 0.2


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shortest_alone_is_the_first_of_many(shape: str) -> None:
    model, automaton = parse_model(SHAPES[shape](200)), parse_typestate(PROPERTY)
    one = find_counterexamples(model, automaton, Request(count=1))
    many = find_counterexamples(model, automaton, Request(count=2))
    assert len(one.witnesses[0]) == len(many.witnesses[0])


def test_memory_is_linear() -> None:
    used = []
    for size in (2_000, 8_000):
        text = grown_model(size)
        tracemalloc.start()
        first_counterexample(text)
        used.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert used[1] < 6 * used[0]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_thousand_rules(shape: str) -> None:
    for size in SIZES:
        rules, length, reading, finding = first_counterexample(SHAPES[shape](size))
        print(f"{shape}, {rules} rules: {length} steps, read in {reading:.2f} s, found in {finding:.2f} s")
        assert finding < 1.0
        assert reading < 1.0
