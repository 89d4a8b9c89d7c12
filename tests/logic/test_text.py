"""Infix and SMT-LIB text."""

from __future__ import annotations

import pytest

from mcveto.logic import smtlib
from mcveto.logic.infix import pretty
from mcveto.logic.terms import (
    Term,
    add,
    ashr,
    band,
    bnot,
    bor,
    concat,
    conj,
    const,
    disj,
    eq,
    extract,
    ite,
    load,
    lzcount,
    memory,
    mul,
    ne,
    popcount,
    sborrow,
    scarry,
    sext,
    slt,
    store,
    sub,
    ule,
    ult,
    var,
    zext,
)

eax, ebx, esp = var("eax", 32), var("ebx", 32), var("esp", 32)
mem, al, zf = memory("mem", 32), var("al", 8), var("zf", 1)


def k(value: int) -> Term:
    return const(value, 32)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (slt(add(eax, k(4)), load(mem, sub(esp, k(8)), 4, False)), "eax + 4 <s mem32[esp - 8]"),
        (load(mem, esp, 2, True), "mem16be[esp]"),
        (mul(add(eax, esp), ebx), "ebx * (eax + esp)"),
        (mul(add(eax, k(1)), ebx), "ebx + eax * ebx"),
        (sub(k(5), eax), "-eax + 5"),
        (add(mul(eax, k(3)), k(0x12345)), "3*eax + 0x12345"),
        (conj([zf, disj([ult(eax, ebx), eq(eax, k(-1))])]), "zf and (eax <u ebx or eax = -1)"),
        (bnot(conj([zf, ne(eax, ebx)])), "eax = ebx or not zf"),
        (ne(eax, ebx), "eax != ebx"),
        (ite(zf, eax, ebx), "zf ? eax : ebx"),
        (extract(add(eax, ebx), 15, 8), "(eax + ebx)[15:8]"),
        (extract(eax, 3, 3), "eax[3]"),
        (concat(al, eax), "al ++ eax"),
        (zext(al, 32), "zext32(al)"),
        (sext(al, 32), "sext32(al)"),
        (ashr(eax, ebx), "eax >>s ebx"),
        (band(bor(eax, ebx), esp), "esp & (eax | ebx)"),
        (load(store(mem, eax, ebx, False), esp, 4, False), "mem{eax := ebx}32[esp]"),
        (sborrow(eax, ebx), "sborrow(eax, ebx)"),
        (popcount(al, 8), "popcount8(al)"),
        (const(1, 1), "true"),
    ],
)
def test_infix(term: Term, text: str) -> None:
    assert pretty(term) == text
    assert repr(term) == text


FORMULAS = [
    ult(add(eax, k(4)), ebx),
    conj([zf, ule(eax, ebx), ne(extract(eax, 7, 0), al)]),
    eq(load(store(mem, eax, ebx, True), esp, 4, False), k(7)),
    ite(zf, ne(eax, k(3)), scarry(eax, ebx)),
    eq(popcount(al, 8), lzcount(extract(ebx, 7, 0), 8)),
    eq(concat(al, zext(zf, 8)), extract(mul(eax, ebx), 15, 0)),
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_scripts_are_read_back_and_mean_the_same(formula: Term) -> None:
    from mcveto.logic.solver import make_solver

    text = smtlib.script([formula])
    (again,) = smtlib.parse_script(text)
    for name in ("bitwuzla", "z3"):
        solver = make_solver(name)
        assert solver.check([ne(formula, again)]) == "unsat"
        assert solver.check([formula]) == "sat"


@pytest.mark.parametrize("formula", FORMULAS)
def test_other_readers_agree_with_the_text(formula: Term) -> None:
    import z3

    solver = z3.Solver()
    solver.from_string(smtlib.script([formula]))
    assert solver.check() == z3.sat


def test_simple_formulas_are_read_back_identically() -> None:
    for formula in FORMULAS[:2]:
        assert smtlib.parse_script(smtlib.script([formula])) == [formula]
    word = eq(load(store(mem, eax, ebx, False), esp, 4, False), k(7))
    assert smtlib.parse_script(smtlib.script([word])) == [word]


def test_odd_names_are_quoted() -> None:
    odd = var("stack var#1", 32)
    text = smtlib.script([ult(odd, eax)])
    assert "|stack var#1|" in text
    assert smtlib.parse_script(text) == [ult(odd, eax)]


@pytest.mark.parametrize(
    "text",
    [
        "(assert true",
        "(assert (bvfoo x))",
        "(declare-const x Int)",
        "(declare-const x Bool)(declare-const x Bool)",
        "(assert (let ((a true)) (let ((a false)) a)))",
        "(assert (bvadd #x01 #x0001))",
        "(assert #x01)",
        "(assert (not true false))",
        "(define-fun f () Bool true)",
        ")",
        "(assert ((_ extract 9 0) #x01))",
    ],
)
def test_unreadable_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        smtlib.parse_script(text)


def test_ambiguous_names_are_refused() -> None:
    with pytest.raises(ValueError):
        smtlib.script([conj([eq(var("n", 8), const(1, 8)), eq(var("n", 16), const(1, 16))])])
