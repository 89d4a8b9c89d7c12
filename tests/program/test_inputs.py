"""Where input values come from."""

from __future__ import annotations

import pytest

from mcveto.errors import UsageError
from mcveto.program.inputs import ConsumedInput, InputSource, parse_inputs


def test_given_values_come_first_and_are_recorded() -> None:
    source = InputSource([3, -1, 0xFF], seed=1)
    assert [source.next(8, "a"), source.next(8, "b", signed=True), source.next(8, "c", signed=True)] == [3, 255, 255]
    assert source.consumed == [ConsumedInput(3, 8, "a"), ConsumedInput(-1, 8, "b"), ConsumedInput(-1, 8, "c")]
    assert source.unused == 0
    drawn = source.next(16, "d")
    assert 0 <= drawn < 1 << 16
    assert InputSource([3, 4]).unused == 2


@pytest.mark.parametrize(("value", "bits"), [(256, 8), (-129, 8), (2, 1), (1 << 32, 32)])
def test_values_that_do_not_fit_are_refused(value: int, bits: int) -> None:
    with pytest.raises(UsageError, match=f"does not fit {bits} bits"):
        InputSource([value]).next(bits, "here")


def test_draws_depend_on_the_seed_alone() -> None:
    def draws(seed: int) -> list[int]:
        source = InputSource((), seed)
        return [source.next(32, "") for _ in range(50)]

    assert draws(5) == draws(5)
    assert draws(5) != draws(6)
    assert all(0 <= value < 1 << 32 for value in draws(5))
    assert {0, 1, 0xFFFFFFFF} & set(draws(5)), "boundary values are drawn often"


@pytest.mark.parametrize("bits", [1, 5, 8, 64])
def test_draws_fit(bits: int) -> None:
    source = InputSource((), 3)
    assert {source.next(bits, "") >> bits for _ in range(200)} == {0}


def test_parsing() -> None:
    assert parse_inputs("3,0x10 -1,\t 0") == [3, 16, -1, 0]
    assert parse_inputs("") == []
    for text in ("x", "1.5", "0x", "1;2", "--3"):
        with pytest.raises(UsageError, match="is not an input value"):
            parse_inputs(text)
