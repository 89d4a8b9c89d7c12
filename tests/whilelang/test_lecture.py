"""The worked examples of the lecture, condition by condition (examples/while/expected.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcveto.whilelang.backward import BackwardDerivation
from mcveto.whilelang.checker import check
from mcveto.whilelang.formatter import MATHEMATICAL, formula_text
from mcveto.whilelang.forward import Bounds, ForwardDerivation
from mcveto.whilelang.parser import parse_formula
from mcveto.whilelang.source import load_module
from mcveto.whilelang.symex import SymbolicExecution
from mcveto.whilelang.tree_text import text_lines

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "while"
CASES: list[dict[str, Any]] = tomllib.loads((EXAMPLES / "expected.toml").read_text())["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}-{case['engine']}-{case.get('theory', '')}")
def test_conditions_and_verdict(case: dict[str, Any]) -> None:
    module = load_module(str(EXAMPLES / case["file"]), case.get("theory"))
    bounds = Bounds(case.get("unwind", 8))
    if case["engine"] == "symex":
        invariant = case.get("invariant")
        formula = None if invariant is None else parse_formula(invariant)
        found = SymbolicExecution(module, bounds, invariant=formula, prune=not case.get("all_paths", False)).explore()
        verdict = found.headline
        conditions = [[item.text(), item.answer.kind] for item in found.findings]
    else:
        derivation: ForwardDerivation | BackwardDerivation
        if case["engine"] == "substitution":
            derivation = BackwardDerivation(module, bounds, "assert")
        else:
            cut, rename = case.get("cut", "assert"), case.get("rename", "needed")
            invariants = case["engine"] == "prove"
            derivation = ForwardDerivation(module, bounds, cut, rename=rename, use_invariants=invariants)
        result = check(module, derivation, resolve=case["engine"] == "prove")
        verdict = result.headline
        conditions = [
            [formula_text(item.condition.sequent.formula(), MATHEMATICAL), item.answer.kind] for item in result.checked
        ]
    if "conditions" in case:
        assert conditions == case["conditions"]
    assert verdict == case["verdict"]


def test_every_example_has_a_case() -> None:
    assert {path.name for path in EXAMPLES.glob("*.w")} == {case["file"] for case in CASES}


def test_the_notes_call_condition_8_valid_over_the_integers() -> None:
    """It is not: our counterexample is replayed, so the example is restated for numbers that are not negative."""
    module = load_module(str(EXAMPLES / "sum_nonzero.w"))
    result = check(module, BackwardDerivation(module))
    found = result.counterexample
    assert found is not None
    values = found.initial.variables
    assert (values["a"] > 0 or values["b"] > 0) and values["a"] + values["b"] == 0


def test_wrapping_counterexample() -> None:
    module = load_module(str(EXAMPLES / "sum_nonzero_natural.w"), "u32")
    found = check(module, BackwardDerivation(module)).counterexample
    assert found is not None
    assert found.initial.variables["a"] + found.initial.variables["b"] == 1 << 32


def test_the_cut_of_the_lecture_is_not_a_bug_by_itself() -> None:
    """Condition (7) is refuted, but no run of the program breaks the contract from there: y even means it goes on."""
    module = load_module(str(EXAMPLES / "multiply.w"))
    result = check(module, ForwardDerivation(module, Bounds(1), "replace"))
    assert [item.counterexample is not None for item in result.checked] == [False, False, True]


def test_derivation_of_the_swap_line_by_line() -> None:
    """Section 3: the derivation with [:=] works from the last assignment to the first."""
    module = load_module(str(EXAMPLES / "swap.w"))
    lines = text_lines(check(module, BackwardDerivation(module)).tree)
    assert [line.split(maxsplit=1) for line in lines] == [
        ["→R", "⊢ x = a ∧ y = b → [z := x; x := y; y := z] x = b ∧ y = a"],
        ["[;]", "x = a, y = b ⊢ [z := x; x := y; y := z] x = b ∧ y = a"],
        ["[;]", "x = a, y = b ⊢ [z := x][x := y; y := z] x = b ∧ y = a"],
        ["[:=]", "x = a, y = b ⊢ [z := x][x := y][y := z] x = b ∧ y = a"],
        ["[:=]", "x = a, y = b ⊢ [z := x][x := y] x = b ∧ z = a"],
        ["[:=]", "x = a, y = b ⊢ [z := x] y = b ∧ z = a"],
        ["ℤ", "x = a, y = b ⊢ y = b ∧ x = a  *"],
    ]


def test_derivation_of_the_division_line_by_line() -> None:
    """Section 2: [if], [;], [:=], [assert], in the order of the notes."""
    module = load_module(str(EXAMPLES / "sum_nonzero.w"))
    lines = text_lines(check(module, BackwardDerivation(module)).tree)
    assert [line.split()[0] for line in lines] == ["[if]", "[;]", "[:=]", "[assert]", "ℤ"]


def test_derivation_of_the_aliases_uses_the_memory_rules() -> None:
    module = load_module(str(EXAMPLES / "alias.w"))
    lines = text_lines(check(module, ForwardDerivation(module), resolve=True).tree)
    rules = [line.split()[0] for line in lines]
    assert "[*]=" in rules and "[*]1" in rules
    module = load_module(str(EXAMPLES / "no_alias.w"))
    assert any("[*]2" in line for line in text_lines(check(module, ForwardDerivation(module), resolve=True).tree))
