"""Remainders by constants as compilers write them get a name that is less than the divisor; nothing else does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcveto.dpg.location import Blocks
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.simulation.remainders import Remainders, has_remainder
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator

from .driver_text import needs_assembler, reaching
from .random_programs import RandomProgram

X = t.var("x", 32)


def number(value: int) -> t.Term:
    return t.const(value, 32)


def quotient(dividend: t.Term, divisor: int, off_by: int = 0) -> t.Term:
    """dividend / divisor by multiplication with a rounded inverse, as compilers do it."""
    limit = (1 << 32) - 1
    for shift in range(33):
        factor = -(-(1 << 32 + shift) // divisor) + off_by
        if (factor <= limit and 0 <= (factor * divisor - (1 << 32 + shift)) * limit < 1 << 32 + shift) or off_by:
            upper = t.extract(t.mul(t.zext(dividend, 64), t.const(factor, 64)), 63, 32)
            return t.lshr(upper, number(shift))
        if factor > limit:
            upper = t.extract(t.mul(t.zext(dividend, 64), t.const(factor - limit - 1, 64)), 63, 32)
            half = t.lshr(t.sub(dividend, upper), number(1))
            return t.lshr(t.add(half, upper), number(shift - 1))
    raise AssertionError(divisor)


def value(term: t.Term, x: int) -> int:
    return Evaluator(lambda _: x, lambda *_: 0).value(term)


@pytest.mark.parametrize("divisor", [3, 5, 6, 7, 10, 12, 14, 19, 21, 22, 27, 28, 52, 60, 100, 641, 1000, 4099])
def test_a_remainder_is_recognised_in_a_sum(divisor: int) -> None:
    remainder = t.sub(X, t.mul(quotient(X, divisor), number(divisor)))
    draw = random.Random(divisor)
    for x in [0, 1, divisor - 1, divisor, (1 << 32) - 1, *(draw.getrandbits(32) for _ in range(50))]:
        assert value(remainder, x) == x % divisor  # the test's own division is right
    remainders = Remainders(Unknowns())
    name, bounds = remainders.named(remainder)
    assert name.op == "var" and bounds == [t.ult(name, number(divisor))]
    assert remainders.definitions[name] == (X, divisor)
    place, _ = remainders.named(t.add(t.mul(remainder, number(52)), number(0x8000)))
    assert place is t.add(t.mul(name, number(52)), number(0x8000))


@pytest.mark.parametrize("summands", [1, 3, 8, 9, 16, 30])
def test_a_remainder_that_indexes_words_is_recognised_however_long_its_dividend_is(summands: int) -> None:
    """PowerPC shifts by rotating and masking."""
    dividend = number(40834)
    for i in range(summands):
        dividend = t.add(dividend, t.var(f"y{i}", 32))
    remainder = t.sub(dividend, t.mul(quotient(dividend, 6), number(6)))
    rotated = t.bor(t.shl(remainder, number(2)), t.lshr(remainder, number(30)))
    place = t.add(t.band(rotated, number(0xFFFFFFFC)), t.mul(t.var("device", 32), number(52)))
    named, bounds = Remainders(Unknowns()).named(place)
    assert len(bounds) == 1 and len(named.args) == 2


def test_division_instructions_and_narrow_dividends_are_recognised() -> None:
    remainders = Remainders(Unknowns())
    name, _ = remainders.named(t.sub(X, t.mul(t.udiv(X, number(12)), number(12))))
    assert name.op in ("var", "urem")
    part = t.extract(X, 31, 8)
    wide = t.zext(part, 32)
    upper = t.extract(t.mul(t.zext(part, 64), t.const(0x15555556, 64)), 63, 32)
    found, bounds = remainders.named(t.sub(wide, t.mul(upper, number(12))))
    assert found.op == "var" and bounds == [t.ult(found, number(12))]


@pytest.mark.parametrize("divisor", [3, 5, 10, 12, 100])
def test_what_is_not_exactly_a_remainder_has_no_name(divisor: int) -> None:
    remainders = Remainders(Unknowns())
    wrong = [
        t.sub(X, t.mul(quotient(X, divisor, off_by=1 << 8), number(divisor))),
        t.sub(X, t.mul(quotient(X, divisor), number(divisor + 1))),
        t.sub(t.mul(X, number(2)), t.mul(quotient(X, divisor), number(divisor))),
    ]
    for term in wrong:
        found, bounds = remainders.named(term)
        if bounds:  # whatever was found must be true
            assert all(value(term, x) < bounds[0].args[1].data for x in range(0, 1 << 32, 65_521))
        else:
            assert found is term


@pytest.mark.parametrize(
    ("divisor", "factor", "shift"), [(6, 0xAAAB, 18), (12, 0xAAAB, 19), (10, 0xCCCD, 19), (5, 0xCCCD, 18)]
)
@pytest.mark.parametrize("zeros", [0, 2, 3])
def test_a_remainder_computed_in_half_a_word(divisor: int, factor: int, shift: int, zeros: int) -> None:
    """A dividend that fits in 16 bits: divided by multiplying in 32 bits, masked and shifted in one instruction."""
    half = t.extract(t.add(X, number(77)), 15, 0)
    wide = t.zext(half, 32)
    upper = t.lshr(t.mul(wide, number(factor)), number(shift))
    whole = t.sub(t.add(X, number(77)), t.mul(upper, number(divisor)))
    mask = number(0xFFFF << zeros)
    term = t.band(t.shl(whole, number(zeros)), mask)
    for x in range(0, 1 << 17, 13):
        assert value(term, x) == (x + 77) % (1 << 16) % divisor << zeros
    remainders = Remainders(Unknowns())
    assert has_remainder(term)
    found, bounds = remainders.named(term)
    assert len(bounds) == 1 and bounds[0].args[1].data == divisor
    name = bounds[0].args[0]
    assert found is t.mul(name, number(1 << zeros))
    dividend, by = remainders.definitions[name]
    assert by == divisor and all(value(dividend, x) == (x + 77) % (1 << 16) for x in range(0, 1 << 17, 997))
    # What is multiplied by another number is none.
    other = t.band(t.shl(t.sub(X, t.mul(upper, number(divisor + 1))), number(zeros)), mask)
    assert not remainders.named(other)[1]


def test_a_remainder_has_a_name_as_soon_as_it_is_computed() -> None:
    """By itself, not only in a sum: else each access through it is a question about divisions to the solver."""
    # mov ecx, eax; mov edx, 0xaaaaaaab; mul edx; shr edx, 2; imul edx, edx, 6; sub ecx, edx; jmp to the next
    code = bytes.fromhex("89c1 baabaaaaaa f7e2 c1ea02 6bd206 29d1 eb00")
    program = RandomProgram(code, b"\xc3", bytes(64), False).load()
    executor = Simulation(program, Blocks(program), 0, None)._executor
    ((_, state),) = executor.run(executor.initial()).successors
    rest = state.registers[program.decoder.layout.by_name["ECX"].number]
    assert isinstance(rest, t.Term) and rest.op == "var"
    assert executor.remainders.definitions[rest][1] == 6
    assert state.path.holds(t.ult(rest, number(6)))


def test_whatever_is_named_is_looked_for() -> None:
    draw = random.Random(7)
    found = 0
    for _ in range(300):
        width = draw.choice([8, 16])
        rest = t.urem(t.var("n", width), t.const(draw.randrange(1, 1 << width), width))
        rest = t.zext(rest, draw.choice([width, 16]))
        term = t.mul(rest, t.const(draw.choice([1, 1, 2, 4, 52]), rest.width))
        term = t.add(term, draw.choice([t.const(draw.choice([0, 5]), rest.width), t.var(f"m{rest.width}", rest.width)]))
        term = t.zext(term, draw.choice([rest.width, 32]))
        is_named = bool(Remainders(Unknowns()).named(term)[1])
        assert has_remainder(term) or not is_named
        found += is_named
    assert found > 100


REMAINDER = """
	li	5, 7
	divwu	4, 3, 5
	mullw	4, 4, 5
	subf	3, 4, 3
	OPERATION
"""
AS_BEFORE = "".join(f"\tli\t{register}, 0\n" for register in (0, 3, 4, 5, 6)) + "\tmtlr\t0\n\tcmpwi\t0, 3, 0\n"
# What was made of the remainder of a number is kept; then there is another number, and nothing else has changed.
ANOTHER_NUMBER = f"""
	.globl _start
_start:
	bl	choice
	lis	9, number@ha
	addi	9, 9, number@l
	stw	3, 0(9)
{REMAINDER}
	stw	3, 4(9)
{AS_BEFORE}
.Lagain:
	lwz	3, 0(9)
{REMAINDER}
	lwz	6, 4(9)
	cmplw	0, 3, 6
	bne	0, reached
	bl	choice
	cmpwi	0, 3, 0
	beq	0, .Lend
	bl	choice
	stw	3, 0(9)
{AS_BEFORE}
	b	.Lagain
.Lend:
	b	.Lend
reached:
	nop
	blr
choice:
	blr
	.data
	.p2align 4
number:
	.long 0, 0
"""


@needs_assembler
@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("operation", ["nop", "xori 3, 3, 5", "addi 3, 3, 5", "mullw 3, 3, 3"])
def test_a_remainder_within_a_word_is_that_of_the_number(operation: str, is_recorded: bool, tmp_path: Path) -> None:
    """The second turn is no part of the first, although the word is the same and the number can be any."""
    program = reaching(tmp_path, ANOTHER_NUMBER.replace("OPERATION", operation), arch="ppc32-be")
    assert simulate(program, 20, is_recorded=is_recorded).kind == "violated"
