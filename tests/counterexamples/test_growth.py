"""Time and memory grow linearly with the model; the first counterexample of 100,000 rules comes within a second."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from mcveto.counterexamples.enumeration import Enumeration
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.model_parser import parse_model
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import MinimumRecursion
from mcveto.property.typestate_parser import parse_typestate
from tests.counterexamples.growth import PROPERTY, grown_model

SIZES = (100, 1_000, 10_000, 100_000)


def first_counterexample(text: str) -> tuple[int, int, float, float]:
    """Rules, length of the first counterexample, CPU seconds for reading and for finding it."""
    started = time.process_time()
    model = parse_model(text)
    read = time.process_time()
    product = Product(model, parse_typestate(PROPERTY))
    witness = next(iter(Enumeration(Reachable(product), MinimumRecursion(Erase(product)))))
    return model.rule_count, len(witness), read - started, time.process_time() - read


def test_time_is_linear() -> None:
    small = first_counterexample(grown_model(5_000))
    large = first_counterexample(grown_model(20_000))
    assert large[1] > small[1]
    # Four times the rules; ten times the time would not be linear even on a busy machine.
    assert large[2] + large[3] < 10 * (small[2] + small[3]) + 0.2


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
def test_a_hundred_thousand_rules() -> None:
    for size in SIZES:
        rules, length, reading, finding = first_counterexample(grown_model(size))
        print(f"{rules} rules: {length} steps, read in {reading:.2f} s, found in {finding:.2f} s")
        assert finding < 1.0
        assert reading < 1.0
