"""Whatever the constructors simplify, the value stays.

The generator draws *raw* trees (operator and operands as written). Small widths and small constants make
the rules meet each other often; memory has 3- to 8-bit addresses so that accesses overlap and wrap. The
expressions are built and compared with a naive evaluation from the definitions, and, for all values at
once, by Z3 with a translation of the raw expression that shares no code with ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


def _constants(width: int) -> st.SearchStrategy[Raw]:
    top = (1 << width) - 1
    special = sorted({0, 1, top, top >> 1, (top >> 1) + 1, 2 & top, (top - 1) & top})
    return st.one_of(st.sampled_from(special), st.integers(0, top)).map(lambda v: Raw("const", width, (), v))


@st.composite
def expression(draw: st.DrawFn, width: int, depth: int) -> Raw:
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        if draw(st.integers(0, 2)) == 0:
            return draw(_constants(width))
        return Raw("var", width, (), draw(st.sampled_from("abc")))

    def sub(w: int) -> Raw:
        return draw(expression(w, depth - 1))

    def any_width() -> int:
        return draw(st.sampled_from(WIDTHS))

    kinds = ["same", "same", "same", "not", "neg", "ite", "shape", "shape", "count"]
    if width == 1:
        kinds += ["compare", "compare", "compare", "conj", "flags", "flags"]
    if width % 8 == 0:
        kinds += ["load", "load", "load"]
    kind = draw(st.sampled_from(kinds))
    if kind == "same":
        return Raw(draw(st.sampled_from(SAME)), width, (sub(width), sub(width)))
    if kind == "not" or kind == "neg":
        return Raw("bnot" if kind == "not" else "neg", width, (sub(width),))
    if kind == "ite":
        return Raw("ite", width, (sub(1), sub(width), sub(width)))
    if kind == "count":
        return Raw(draw(st.sampled_from(("popcount", "lzcount"))), width, (sub(any_width()),))
    if kind == "compare":
        w = any_width()
        return Raw(draw(st.sampled_from(COMPARE)), 1, (sub(w), sub(w)))
    if kind == "conj":
        parts = tuple(sub(1) for _ in range(draw(st.integers(0, 4))))
        return Raw(draw(st.sampled_from(("conj", "disj"))), 1, parts)
    if kind == "flags":  # what compare-and-branch code computes
        w = any_width()
        a, b = sub(w), sub(w)
        zero = Raw("const", w, (), 0)
        sign = Raw("slt", 1, (Raw("sub", w, (a, b)), zero))
        overflow = Raw("sborrow", 1, (a, b))
        less = Raw(draw(st.sampled_from(("bxor", "eq", "ne"))), 1, (sign, overflow))
        zf = Raw("eq", 1, (Raw("sub", w, (a, b)), zero))
        cf = Raw("ult", 1, (a, b))
        first = draw(st.sampled_from((less, cf, Raw("bnot", 1, (cf,)), Raw("bnot", 1, (less,)))))
        second = draw(st.sampled_from((zf, Raw("bnot", 1, (zf,)), sub(1))))
        return Raw(draw(st.sampled_from(("band", "bor", "bxor"))), 1, (first, second))
    if kind == "load":
        aw = draw(st.integers(3, 8))
        mem = draw(raw_memory(aw, depth - 1))
        address = draw(raw_address(aw, depth - 1))
        return Raw("load", width, (mem, address), draw(st.booleans()))
    shape = draw(st.sampled_from(("extract", "concat", "zext", "sext")))
    if shape == "concat" and width > 1:
        low = draw(st.integers(1, width - 1))
        return Raw("concat", width, (sub(width - low), sub(low)))
    if shape in ("zext", "sext") and width > 1:
        return Raw(shape, width, (sub(draw(st.integers(1, width))),))
    lo = draw(st.integers(0, 8))
    wider = width + lo + draw(st.integers(0, 4))
    return Raw("extract", width, (sub(wider),), (lo + width - 1, lo))


@st.composite
def raw_address(draw: st.DrawFn, width: int, depth: int) -> Raw:
    if draw(st.integers(0, 3)):
        base = Raw("var", width, (), draw(st.sampled_from("ab")))
        return Raw("add", width, (base, draw(_constants(width))))
    return draw(expression(width, max(0, depth - 1)))


@st.composite
def raw_memory(draw: st.DrawFn, address_width: int, depth: int) -> Raw:
    mem = Raw("memory", 0, (), ("m", address_width))
    for _ in range(draw(st.integers(0, 4))):
        size = 8 * draw(st.integers(1, 4))
        value = draw(expression(size, max(0, depth - 1)))
        mem = Raw("store", 0, (mem, draw(raw_address(address_width, depth)), value), draw(st.booleans()))
    if draw(st.integers(0, 9)) == 0:
        mem = Raw("ite", 0, (draw(expression(1, 0)), mem, Raw("memory", 0, (), ("n", address_width))))
    return mem


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


EFFORT = settings(
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@EFFORT
@given(st.sampled_from(WIDTHS).flatmap(lambda w: expression(w, 3)))
def test_built_terms_evaluate_like_raw_ones(raw: Raw) -> None:
    agree(raw)


@settings(EFFORT, max_examples=1000)
@given(expression(1, 4))
def test_built_booleans_evaluate_like_raw_ones(raw: Raw) -> None:
    agree(raw)


@settings(EFFORT, max_examples=1000)
@given(st.sampled_from((8, 16, 24, 32)).flatmap(lambda w: expression(w, 4)))
def test_built_words_evaluate_like_raw_ones(raw: Raw) -> None:
    agree(raw)


@settings(EFFORT, max_examples=1000)
@given(st.sampled_from((1, 8)).flatmap(lambda w: expression(w, 3)), expression(8, 2))
def test_substitution_is_evaluation_in_another_environment(raw: Raw, image: Raw) -> None:
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


@settings(EFFORT, max_examples=1000)
@given(st.sampled_from((1, 8, 16)).flatmap(lambda w: expression(w, 3)))
def test_rebuilding_a_built_term_keeps_its_value(raw: Raw) -> None:
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
@given(st.sampled_from(WIDTHS).flatmap(lambda w: expression(w, 3)))
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
