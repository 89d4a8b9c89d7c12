"""Whatever the constructors simplify, the value stays.

The generator draws *raw* trees (operator and operands as written). Small widths and small constants make
the rules meet each other often; memory has 3- to 8-bit addresses so that accesses overlap and wrap. The
expressions are built and compared with a naive evaluation from the definitions, and, for all values at
once, by Z3 with a translation of the raw expression that shares no code with ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcveto.logic.terms as tm
from mcveto.logic import smtlib
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.substitute import rebuild, substitute

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16)
SAME = ("add", "sub", "mul", "udiv", "urem", "sdiv", "srem", "band", "bor", "bxor", "shl", "lshr", "ashr")
COMPARE = ("eq", "ne", "ult", "ule", "slt", "sle", "carry", "scarry", "sborrow")


@dataclass(frozen=True)
class Raw:
    """An expression exactly as drawn."""

    op: str
    width: int
    args: tuple[Raw, ...] = ()
    data: Any = None


class Draws(Protocol):
    """Where choices come from: from Hypothesis, which shrinks what fails, or from a random number generator, which is
    twenty times as fast."""

    def integer(self, low: int, high: int) -> int: ...

    def one_of(self, choices: Sequence[Any]) -> Any: ...


class Drawn:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def one_of(self, choices: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(choices))


class Diced:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def one_of(self, choices: Sequence[Any]) -> Any:
        return self._random.choice(choices)


def _constant(draws: Draws, width: int) -> Raw:
    top = (1 << width) - 1
    special = sorted({0, 1, top, top >> 1, (top >> 1) + 1, 2 & top, (top - 1) & top})
    return Raw("const", width, (), draws.one_of(special) if draws.integer(0, 1) else draws.integer(0, top))


def make(draws: Draws, width: int, depth: int) -> Raw:
    if depth == 0 or draws.integer(0, 9) == 0:
        if draws.integer(0, 2) == 0:
            return _constant(draws, width)
        return Raw("var", width, (), draws.one_of("abc"))

    def sub(w: int) -> Raw:
        return make(draws, w, depth - 1)

    kinds = ["same", "same", "same", "not", "neg", "ite", "shape", "shape", "count"]
    if width == 1:
        kinds += ["compare", "compare", "compare", "conj", "flags", "flags"]
    if width % 8 == 0:
        kinds += ["load", "load", "load"]
    kind = draws.one_of(kinds)
    if kind == "same":
        return Raw(draws.one_of(SAME), width, (sub(width), sub(width)))
    if kind == "not" or kind == "neg":
        return Raw("bnot" if kind == "not" else "neg", width, (sub(width),))
    if kind == "ite":
        return Raw("ite", width, (sub(1), sub(width), sub(width)))
    if kind == "count":
        return Raw(draws.one_of(("popcount", "lzcount")), width, (sub(draws.one_of(WIDTHS)),))
    if kind == "compare":
        w = draws.one_of(WIDTHS)
        return Raw(draws.one_of(COMPARE), 1, (sub(w), sub(w)))
    if kind == "conj":
        parts = tuple(sub(1) for _ in range(draws.integer(0, 4)))
        return Raw(draws.one_of(("conj", "disj")), 1, parts)
    if kind == "flags":  # what compare-and-branch code computes
        w = draws.one_of(WIDTHS)
        a, b = sub(w), sub(w)
        zero = Raw("const", w, (), 0)
        sign = Raw("slt", 1, (Raw("sub", w, (a, b)), zero))
        overflow = Raw("sborrow", 1, (a, b))
        less = Raw(draws.one_of(("bxor", "eq", "ne")), 1, (sign, overflow))
        zf = Raw("eq", 1, (Raw("sub", w, (a, b)), zero))
        cf = Raw("ult", 1, (a, b))
        first = draws.one_of((less, cf, Raw("bnot", 1, (cf,)), Raw("bnot", 1, (less,))))
        second = (zf, Raw("bnot", 1, (zf,)), None)[draws.integer(0, 2)] or sub(1)
        return Raw(draws.one_of(("band", "bor", "bxor")), 1, (first, second))
    if kind == "load":
        aw = draws.integer(3, 8)
        mem = _memory(draws, aw, depth - 1)
        address = _address(draws, aw, depth - 1)
        return Raw("load", width, (mem, address), bool(draws.integer(0, 1)))
    shape = draws.one_of(("extract", "concat", "zext", "sext"))
    if shape == "concat" and width > 1:
        low = draws.integer(1, width - 1)
        return Raw("concat", width, (sub(width - low), sub(low)))
    if shape in ("zext", "sext") and width > 1:
        return Raw(shape, width, (sub(draws.integer(1, width)),))
    lo = draws.integer(0, 8)
    wider = width + lo + draws.integer(0, 4)
    return Raw("extract", width, (sub(wider),), (lo + width - 1, lo))


def _address(draws: Draws, width: int, depth: int) -> Raw:
    if draws.integer(0, 3):
        base = Raw("var", width, (), draws.one_of("ab"))
        return Raw("add", width, (base, _constant(draws, width)))
    return make(draws, width, max(0, depth - 1))


def _memory(draws: Draws, address_width: int, depth: int) -> Raw:
    mem = Raw("memory", 0, (), ("m", address_width))
    for _ in range(draws.integer(0, 4)):
        size = 8 * draws.integer(1, 4)
        value = make(draws, size, max(0, depth - 1))
        mem = Raw("store", 0, (mem, _address(draws, address_width, depth), value), bool(draws.integer(0, 1)))
    if draws.integer(0, 9) == 0:
        mem = Raw("ite", 0, (make(draws, 1, 0), mem, Raw("memory", 0, (), ("n", address_width))))
    return mem


@st.composite
def expression(draw: st.DrawFn, width: int, depth: int) -> Raw:
    return make(Drawn(draw), width, depth)


def expressions(widths: Sequence[int], depth: int) -> st.SearchStrategy[Raw]:
    return st.sampled_from(widths).flatmap(lambda width: expression(width, depth))


def diced(count: int, widths: Sequence[int], depth: int) -> Iterator[Raw]:
    """Other ones in every run; what fails is shown, and the same draws are among those of Hypothesis, which shrinks."""
    seed = random.randrange(1 << 48)
    for number in range(count):
        draws = Diced(seed + number)
        yield make(draws, draws.one_of(widths), depth)


def signed(v: int, w: int) -> int:
    return v - (1 << w) if v & (1 << (w - 1)) else v


class Reference:
    """Values straight from the definitions."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def var(self, name: str, width: int) -> int:
        return (hash((self.seed, ord(name))) * 0x9E3779B97F4A7C15 >> 20) & ((1 << width) - 1)

    def byte(self, name: str, address: int) -> int:
        return (self.seed * 31 + address * 37 + ord(name)) & 0xFF

    def contents(self, raw: Raw) -> list[int]:
        if raw.op == "memory":
            name, aw = raw.data
            return [self.byte(name, i) for i in range(1 << aw)]
        if raw.op == "ite":
            return self.contents(raw.args[1] if self.value(raw.args[0]) else raw.args[2])
        cells = list(self.contents(raw.args[0]))
        address, value, count = self.value(raw.args[1]), self.value(raw.args[2]), raw.args[2].width // 8
        for i in range(count):
            shift = 8 * (count - 1 - i) if raw.data else 8 * i
            cells[(address + i) % len(cells)] = value >> shift & 0xFF
        return cells

    def value(self, raw: Raw) -> int:
        w, mask = raw.width, (1 << raw.width) - 1
        if raw.op == "const":
            return int(raw.data) & mask
        if raw.op == "var":
            return self.var(raw.data, w)
        if raw.op == "load":
            cells, address, count = self.contents(raw.args[0]), self.value(raw.args[1]), w // 8
            result = 0
            for i in range(count):
                shift = 8 * (count - 1 - i) if raw.data else 8 * i
                result |= cells[(address + i) % len(cells)] << shift
            return result
        v = [self.value(x) for x in raw.args]
        s = [signed(x, y.width) for x, y in zip(v, raw.args, strict=True)]
        aw = raw.args[0].width if raw.args else 0
        least, most = -(1 << (aw - 1)) if aw else 0, (1 << (aw - 1)) - 1 if aw else 0
        match raw.op:
            case "add":
                return (v[0] + v[1]) & mask
            case "sub":
                return (v[0] - v[1]) & mask
            case "neg":
                return -v[0] & mask
            case "mul":
                return v[0] * v[1] & mask
            case "udiv":
                return v[0] // v[1] if v[1] else mask
            case "urem":
                return v[0] % v[1] if v[1] else v[0]
            case "sdiv":
                if s[1] == 0:
                    return (1 if s[0] < 0 else -1) & mask
                q = abs(s[0]) // abs(s[1])
                return (q if (s[0] < 0) == (s[1] < 0) else -q) & mask
            case "srem":
                if s[1] == 0:
                    return v[0]
                r = abs(s[0]) % abs(s[1])
                return (-r if s[0] < 0 else r) & mask
            case "band":
                return v[0] & v[1]
            case "bor":
                return v[0] | v[1]
            case "bxor":
                return v[0] ^ v[1]
            case "bnot":
                return ~v[0] & mask
            case "shl":
                return v[0] << v[1] & mask if v[1] < w else 0
            case "lshr":
                return v[0] >> v[1] if v[1] < w else 0
            case "ashr":
                return s[0] >> min(v[1], w) & mask
            case "eq":
                return int(v[0] == v[1])
            case "ne":
                return int(v[0] != v[1])
            case "ult":
                return int(v[0] < v[1])
            case "ule":
                return int(v[0] <= v[1])
            case "slt":
                return int(s[0] < s[1])
            case "sle":
                return int(s[0] <= s[1])
            case "carry":
                return int(v[0] + v[1] >= 1 << aw)
            case "scarry":
                return int(not least <= s[0] + s[1] <= most)
            case "sborrow":
                return int(not least <= s[0] - s[1] <= most)
            case "popcount":
                return bin(v[0]).count("1") & mask
            case "lzcount":
                return (aw - len(bin(v[0])) + 2 if v[0] else aw) & mask
            case "ite":
                return v[1] if v[0] else v[2]
            case "extract":
                return v[0] >> int(raw.data[1]) & mask
            case "concat":
                return v[0] << raw.args[1].width | v[1]
            case "zext":
                return v[0]
            case "sext":
                return s[0] & mask
            case "conj":
                return int(all(v))
            case "disj":
                return int(any(v))
        raise AssertionError(raw.op)


def build(raw: Raw) -> tm.Term:
    """The same expression through the simplifying constructors."""
    if raw.op == "const":
        return tm.const(raw.data, raw.width)
    if raw.op == "var":
        return tm.var(f"{raw.data}{raw.width}", raw.width)
    if raw.op == "memory":
        return tm.memory(f"{raw.data[0]}{raw.data[1]}", raw.data[1])
    args = [build(x) for x in raw.args]
    if raw.op == "load":
        return tm.load(args[0], args[1], raw.width // 8, raw.data)
    if raw.op == "store":
        return tm.store(args[0], args[1], args[2], raw.data)
    if raw.op == "extract":
        return tm.extract(args[0], *raw.data)
    if raw.op in ("zext", "sext", "popcount", "lzcount"):
        result = getattr(tm, raw.op)(args[0], raw.width)
    elif raw.op in ("conj", "disj"):
        result = getattr(tm, raw.op)(args)
    else:
        result = getattr(tm, raw.op)(*args)
    assert isinstance(result, tm.Term)
    assert result.width == raw.width
    return result


def agree(raw: Raw) -> tm.Term:
    term = build(raw)
    assert term.width == raw.width
    for seed in range(6):
        reference = Reference(seed)
        ours = Evaluator(
            lambda v, r=reference: r.var(v.data[0], v.width),  # type: ignore[misc]
            lambda m, address, r=reference: r.byte(m.data[0][0], address),  # type: ignore[misc]
        )
        assert ours.value(term) == reference.value(raw), (raw, term)
    return term


# Most expressions are diced: drawing them by Hypothesis costs more than the tests of them.
EFFORT = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


WORDS = (8, 16, 24, 32)


@settings(EFFORT, max_examples=400)
@given(expressions(WIDTHS, 3))
def test_built_terms_evaluate_like_raw_ones(raw: Raw) -> None:
    agree(raw)


@EFFORT
@given(expression(1, 4))
def test_built_booleans_evaluate_like_raw_ones(raw: Raw) -> None:
    agree(raw)


@EFFORT
@given(expressions(WORDS, 4))
def test_built_words_evaluate_like_raw_ones(raw: Raw) -> None:
    agree(raw)


@pytest.mark.parametrize(
    ("count", "widths", "depth"), [(2500, WIDTHS, 3), (1250, (1,), 4), (1250, WORDS, 4)], ids=["terms", "bits", "words"]
)
def test_diced_terms_evaluate_like_raw_ones(count: int, widths: tuple[int, ...], depth: int) -> None:
    for raw in diced(count, widths, depth):
        agree(raw)


@EFFORT
@given(expressions((1, 8), 3), expression(8, 2))
def test_substitution_is_evaluation_in_another_environment(raw: Raw, image: Raw) -> None:
    substituted(raw, image)


def test_substitution_into_diced_terms() -> None:
    for raw, image in zip(diced(1000, (1, 8), 3), diced(1000, (8,), 2), strict=True):
        substituted(raw, image)


def substituted(raw: Raw, image: Raw) -> None:
    term, replacement = build(raw), build(image)
    target = tm.var("a8", 8)
    replaced = substitute(term, {target: replacement})
    for seed in range(4):
        reference = Reference(seed)
        new = reference.value(image)

        def byte(m: tm.Term, address: int, r: Reference = reference) -> int:
            return r.byte(m.data[0][0], address)

        plain = Evaluator(lambda v, r=reference: r.var(v.data[0], v.width), byte)  # type: ignore[misc]
        changed = Evaluator(
            lambda v, r=reference, n=new: n if v is target else r.var(v.data[0], v.width),  # type: ignore[misc]
            byte,
        )
        assert plain.value(replaced) == changed.value(term), (raw, image)


@EFFORT
@given(expressions((1, 8, 16), 3))
def test_rebuilding_a_built_term_keeps_its_value(raw: Raw) -> None:
    rebuilt(raw)


def test_rebuilding_diced_terms() -> None:
    for raw in diced(1000, (1, 8, 16), 3):
        rebuilt(raw)


def rebuilt(raw: Raw) -> None:
    term = build(raw)
    again = rebuild(term, term.args)
    for seed in range(4):
        reference = Reference(seed)
        ours = Evaluator(
            lambda v, r=reference: r.var(v.data[0], v.width),  # type: ignore[misc]
            lambda m, address, r=reference: r.byte(m.data[0][0], address),  # type: ignore[misc]
        )
        assert ours.value(again) == ours.value(term), (raw, term, again)


def _vector(condition: Any) -> Any:
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def _cells(raw: Raw) -> Any:
    if raw.op == "memory":
        name, width = raw.data
        return z3.Array(f"{name}{width}", z3.BitVecSort(width), z3.BitVecSort(8))
    if raw.op == "ite":
        return z3.If(to_z3(raw.args[0]) == 1, _cells(raw.args[1]), _cells(raw.args[2]))
    cells, address, value = _cells(raw.args[0]), to_z3(raw.args[1]), to_z3(raw.args[2])
    count = raw.args[2].width // 8
    for i in range(count):
        at = 8 * (count - 1 - i if raw.data else i)
        cells = z3.Store(cells, address + i, z3.Extract(at + 7, at, value))
    return cells


def _wide(raw: Raw, value: Any, by: int) -> Any:
    return z3.SignExt(by, value) if raw.op.startswith("s") else z3.ZeroExt(by, value)


def to_z3(raw: Raw) -> Any:
    """The raw expression; width 1 stays a bit-vector of one bit, overflows are computed with more bits."""
    w = raw.width
    if raw.op == "const":
        return z3.BitVecVal(raw.data, w)
    if raw.op == "var":
        return z3.BitVec(f"{raw.data}{w}", w) if w > 1 else _vector(z3.Bool(f"{raw.data}1"))
    if raw.op == "load":
        cells, address = _cells(raw.args[0]), to_z3(raw.args[1])
        parts = [z3.Select(cells, address + i) for i in range(w // 8)]
        parts = parts if raw.data else parts[::-1]
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]
    v = [to_z3(x) for x in raw.args]
    match raw.op:
        case "add" | "sub" | "mul" | "band" | "bor" | "bxor":
            name = {"add": "add", "sub": "sub", "mul": "mul", "band": "and", "bor": "or", "bxor": "xor"}[raw.op]
            return getattr(v[0], f"__{name}__")(v[1])
        case "neg":
            return -v[0]
        case "bnot":
            return ~v[0]
        case "udiv":
            return z3.UDiv(v[0], v[1])
        case "urem":
            return z3.URem(v[0], v[1])
        case "sdiv":
            return v[0] / v[1]
        case "srem":
            return z3.SRem(v[0], v[1])
        case "shl":
            return v[0] << v[1]
        case "lshr":
            return z3.LShR(v[0], v[1])
        case "ashr":
            return v[0] >> v[1]
        case "eq":
            return _vector(v[0] == v[1])
        case "ne":
            return _vector(v[0] != v[1])
        case "ult":
            return _vector(z3.ULT(v[0], v[1]))
        case "ule":
            return _vector(z3.ULE(v[0], v[1]))
        case "slt":
            return _vector(v[0] < v[1])
        case "sle":
            return _vector(v[0] <= v[1])
        case "carry" | "scarry" | "sborrow":
            a, b = _wide(raw, v[0], 1), _wide(raw, v[1], 1)
            exact = a - b if raw.op == "sborrow" else a + b
            return _vector(exact != _wide(raw, z3.Extract(raw.args[0].width - 1, 0, exact), 1))
        case "ite":
            return z3.If(v[0] == 1, v[1], v[2])
        case "extract":
            return z3.Extract(raw.data[0], raw.data[1], v[0])
        case "concat":
            return z3.Concat(v[0], v[1])
        case "zext":
            return z3.ZeroExt(w - raw.args[0].width, v[0])
        case "sext":
            return z3.SignExt(w - raw.args[0].width, v[0])
        case "conj":
            return _vector(z3.And(*[x == 1 for x in v]))
        case "disj":
            return _vector(z3.Or(*[x == 1 for x in v]))
    size, count = raw.args[0].width, z3.BitVecVal(0, 16)
    for i in range(size):
        bit = z3.Extract(i, i, v[0])
        if raw.op == "popcount":
            count = count + z3.ZeroExt(15, bit)
        else:
            seen = z3.BitVecVal(size - 1 - i, 16)
            count = z3.If(bit == 1, seen, count if i else z3.BitVecVal(size, 16))
    return z3.Extract(w - 1, 0, z3.ZeroExt(32, count))


@settings(EFFORT, max_examples=300)
@given(expressions(WIDTHS, 3))
def test_built_terms_equal_raw_ones_for_all_values(raw: Raw) -> None:
    term = build(raw)
    sort = "Bool" if term.width == 1 else f"(_ BitVec {term.width})"
    text = [*smtlib.declarations([term]), f"(declare-const built {sort})"]
    solver = z3.Solver()
    solver.set("timeout", 3000)
    solver.from_string("\n".join([*text, f"(assert (= built {smtlib.expression(term)}))"]))
    built = z3.Bool("built") if term.width == 1 else z3.BitVec("built", term.width)
    solver.add((_vector(built) if term.width == 1 else built) != to_z3(raw))
    assert solver.check() != z3.sat, (raw, term, solver.model())
