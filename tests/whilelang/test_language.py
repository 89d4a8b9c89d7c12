"""Parser complaints, trace semantics, bounds, and reports."""

from __future__ import annotations

import re

import pytest

from mcveto.errors import InputFileError, McvetoError, UsageError
from mcveto.whilelang.backward import BackwardDerivation
from mcveto.whilelang.checker import check
from mcveto.whilelang.formatter import LATEX, MATHEMATICAL, command_text, formula_text
from mcveto.whilelang.forward import Bounds, ForwardDerivation, TooLarge
from mcveto.whilelang.guards import guarded, memory_safety
from mcveto.whilelang.interpreter import Interpreter, Run
from mcveto.whilelang.parser import parse, parse_formula
from mcveto.whilelang.state import State
from mcveto.whilelang.symex import SymbolicExecution
from mcveto.whilelang.theory import Theory, theory_named
from mcveto.whilelang.tree_text import html_page, latex_document, text_lines


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("x := ", "a.w:1:6: a term or formula is needed, not the end of the file"),
        ("x = 1", "a.w:1:3: ':=' is needed, not '='"),
        ("x := 1\ny := 2", "a.w:2:1: ';' or the end of the file is missing before 'y'"),
        ("x := y < 2", "a.w:1:8: ';' or the end of the file is missing before '<'"),
        ("if (x) { }", "a.w:1:5: a formula is needed, not a term (compare it with something, e.g. … != 0)"),
        ("while (x > 0) x := 1", "a.w:1:15: '{' is needed, not 'x'"),
        ("x := 3 @ 4", "a.w:1:8: unexpected character '@'"),
        ("x := 12ab", "a.w:1:6: '12a' is neither a number nor a name"),
        ("theory u0; x := 1", "a.w:1:8: there is no number theory 'u0'"),
        ("theory u8; x := 256", "a.w:1:17: 256 does not fit theory u8"),
        ("x := y & 1", "a.w:1:8: the integers have no operator & (theory u32; gives machine integers)"),
        ("theory s4; memory 8; x := 1", "a.w: 8 memory cells cannot be counted in theory s4"),
        ("f(1)", "a.w:1:1: there is no procedure f"),
        ("proc f(x) { } f(1, 2)", "a.w:1:15: f takes 1 arguments, not 2"),
        ("proc f(x) { } y := f(1)", "a.w:1:20: f has no result"),
        ("proc f(x) { } proc f(y) { }", "a.w:1:15: procedure f is defined twice"),
        ("y := 1 + f(2)", "a.w:1:10: f(…) cannot stand inside an expression (write r := f(…))"),
        ("x > 0", "a.w:1:3: ':=' is needed, not '>'"),
        ("x > 0 -> [y := 1", "a.w:1:17: ';' or ']' is missing before the end of the file"),
        ("[x := 1] [y := 2] x = y", "a.w:1:1: […] may only stand once, around the program of the contract"),
        ("x := " + "(" * 200 + "1" + ")" * 200, "this is nested too deeply"),
        ("x := " + "+".join("1" * 1000), "this expression is too long"),
        ("while := 1", "a.w:1:7: '(' is needed, not ':='"),
    ],
)
def test_complaints(source: str, complaint: str) -> None:
    with pytest.raises(McvetoError, match=re.escape(complaint)) as found:
        parse(source, "a.w")
    assert isinstance(found.value, (InputFileError, UsageError))
    assert "\n" not in str(found.value)


def test_both_spellings_mean_the_same() -> None:
    mathematical = parse("x ≠ 0 ∧ ¬(y ≤ 1) ∨ ⊥ → [skip] x ≥ 1 ↔ ⊤")
    assert mathematical == parse("x != 0 && !(y <= 1) || false -> [skip] x >= 1 <-> true")
    assert formula_text(mathematical.pre, MATHEMATICAL) == "x ≠ 0 ∧ ¬(y ≤ 1) ∨ ⊥"


def test_chained_comparisons() -> None:
    assert parse_formula("0 <= x < U") == parse_formula("0 <= x && x < U")


def ran(source: str, *, theory: str | None = None, memory: dict[int, int] | None = None, **variables: int) -> Run:
    module = parse(source, theory=theory)
    return Interpreter(module, 1_000).run(State(dict(variables), memory or {}))


@pytest.mark.parametrize(
    ("source", "kind", "why"),
    [
        ("x := Mem(16)", "aborted", "memory"),
        ("x := Mem(0 - 1)", "aborted", "memory"),
        ("Mem(16) := 0", "aborted", "memory"),
        ("Mem(15) := 0", "ended", ""),
        ("Mem(0) := Mem(99)", "aborted", "memory"),
        ("assert(false)", "aborted", "assertion"),
        ("assert(Mem(99) = 0 || true)", "aborted", "memory"),
        ("if (false && Mem(99) = 0) { x := 1 }", "aborted", "memory"),
        ("while (Mem(99) = 0) { x := 1 }", "aborted", "memory"),
        ("x := 1 / 0", "aborted", "division"),
        ("assume(false); assert(false)", "blocked", ""),
        ("while (true) { x := x + 1 }", "limit", ""),
        ("proc f() { f() } f()", "limit", ""),
    ],
)
def test_aborts_are_the_lectures(source: str, kind: str, why: str) -> None:
    """Definitions 1 to 3; a formula with an undefined term is undefined, whatever stands beside it."""
    run = ran(source)
    assert (run.kind, run.why) == (kind, why)


def test_trace_has_a_state_per_change_and_none_for_tests() -> None:
    run = ran("x := 1; assert(x = 1); if (x = 1) { Mem(2) := 7 }; while (x < 3) { x := x + 1 }", x=5)
    states = run.states()
    assert [state.variables["x"] for state in states] == [5, 1, 1, 2, 3]
    assert [state.memory.get(2) for state in states] == [None, None, 7, 7, 7]


def test_updates_of_the_lecture() -> None:
    run = ran("Mem(1) := 3; Mem(0) := 4; x := Mem(0); y := Mem(1); Mem(1) := 4; z := Mem(1)", memory={0: 1, 1: 2})
    assert run.final.variables == {"x": 4, "y": 3, "z": 4}


def test_procedures_have_variables_of_their_own() -> None:
    run = ran("proc f(n) returns r { r := r + n; n := 0; k := 9 } n := 5; k := 1; y := f(n)", r=8)
    assert run.final.variables == {"n": 5, "k": 1, "y": 5, "r": 8}


@pytest.mark.parametrize("theory", [Theory(4, True), Theory(4, False), Theory(1, False), Theory(8, True)])
def test_machine_integers_wrap(theory: Theory) -> None:
    assert theory.bits is not None and theory.smallest is not None and theory.largest is not None
    values = range(theory.smallest, theory.largest + 1)
    for a in values:
        for b in (theory.smallest, -1 if theory.signed else 1, 0, 1 if theory.bits > 1 else 0, theory.largest):
            exact = {"+": a + b, "-": a - b, "*": a * b}
            for op, value in exact.items():
                assert (theory.binary(op, a, b) - value) % (1 << theory.bits) == 0
                assert theory.binary(op, a, b) in values
            if b:
                quotient, remainder = theory.binary("/", a, b), theory.binary("%", a, b)
                assert (quotient * b + remainder - a) % (1 << theory.bits) == 0
                assert abs(remainder) < abs(b) and (remainder == 0 or (remainder < 0) == (a < 0))


def test_division_rounds_towards_zero() -> None:
    for left, right, quotient, remainder in ((-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1)):
        assert theory_named("Z").binary("/", left, right) == quotient
        assert theory_named("Z").binary("%", left, right) == remainder
        module = parse(f"x = {left} && y = {right} -> [q := x / y; r := x % y] q = {quotient} && r = {remainder}")
        assert check(module, ForwardDerivation(module)).kind == "proved"


def test_guards_of_theorem_5() -> None:
    module = guarded(parse("x := Mem(Mem(y)); if (Mem(1) / z > 0) { skip } while (Mem(x) != 0) { x := x + 1 }"))
    assert command_text(module.program) == (
        "assert(0 <= y && y < U); assert(0 <= Mem(y) && Mem(y) < U); x := Mem(Mem(y)); "
        "assert(z != 0); if (Mem(1) / z > 0) {} "
        "assert(0 <= x && x < U); while (Mem(x) != 0) { x := x + 1; assert(0 <= x && x < U) }"
    )
    assert guarded(module) == module


def test_memory_safety_alone() -> None:
    module = memory_safety(parse("assert(x < 3); y := 1 / z; Mem(x) := 0"))
    result = check(module, ForwardDerivation(module))
    assert result.headline == "VIOLATED(memory)"
    assert result.counterexample is not None and result.counterexample.initial.variables["x"] < 0
    module = memory_safety(parse("assert(0 <= x && x < 3); Mem(x) := 0; assert(false)"))
    assert check(module, ForwardDerivation(module)).headline == "PROVED"


LOOPS = """theory s32;
i = 0 && j = 0 -> [
  while (i < 3) { i := i + 1 }
  while (j < 5) { j := j + 1 }
] i = 3 && j = 5"""


def test_bounds_of_single_loops() -> None:
    module = parse(LOOPS)
    kinds = {}
    for lines in ({3: 3, 4: 5}, {3: 3, 4: 4}, {3: 2, 4: 5}):
        derivation = ForwardDerivation(module, Bounds(0, lines), "assert")
        kinds[tuple(lines.values())] = check(module, derivation).kind
        found = SymbolicExecution(module, Bounds(0, lines)).explore()
        assert (found.kind == "proved") == (lines == {3: 3, 4: 5})
    assert kinds == {(3, 5): "proved", (3, 4): "unknown", (2, 5): "unknown"}


def test_deep_violations_need_the_bound() -> None:
    module = parse("theory u8; x = 0 -> [while (x < 4) { x := x + 1 }] x != 4")
    assert check(module, ForwardDerivation(module, Bounds(3), "assume")).kind == "unknown"
    result = check(module, ForwardDerivation(module, Bounds(4), "assume"))
    assert result.headline == "VIOLATED(postcondition)"


@pytest.mark.parametrize(
    ("invariant", "headline"),
    [
        ("0 <= i && i <= n && s = 2 * i", "PROVED"),
        ("0 <= i && i <= n", "UNKNOWN"),
        ("s = 2 * i", "UNKNOWN"),
        ("i = 0", "UNKNOWN"),
    ],
)
def test_invariants(invariant: str, headline: str) -> None:
    """An invariant that is not inductive or too weak proves nothing, and its counterexamples are not the program's."""
    module = parse(
        f"0 <= n -> [i := 0; s := 0; while (i < n) invariant ({invariant}) {{ i := i + 1; s := s + 2 }}] s = 2 * n"
    )
    assert check(module, ForwardDerivation(module)).headline.startswith(headline)


def test_invariants_forget_the_memory_a_loop_writes() -> None:
    source = "i = 0 && Mem(1) = 5 -> [while (i < 2) invariant ({}) {{ Mem(i) := 0; i := i + 1 }}] Mem(1) = {}"
    weak = parse(source.format("0 <= i && i <= 2", 5))
    assert check(weak, ForwardDerivation(weak)).kind != "proved"
    strong = parse(source.format("0 <= i && i <= 2 && (i <= 1 || Mem(1) = 0)", 0))
    assert check(strong, ForwardDerivation(strong)).kind == "proved"


def test_an_unsatisfied_name_of_the_user_is_never_reused() -> None:
    """x_1 of the program is not the second version of x."""
    module = parse("x_1 = 7 && x = 0 -> [x := x + 1; x := x + 1] x = 2 && x_1 = 7")
    assert check(module, ForwardDerivation(module)).kind == "proved"
    assert SymbolicExecution(module).explore().kind == "proved"


def test_too_many_conditions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcveto.whilelang.forward.MAX_CONDITIONS", 20)
    branches = "".join(f"if (x{i} > 0) {{ y := y + 1 }}" for i in range(20))
    with pytest.raises(TooLarge):
        check(parse(branches + "assert(y < 3)"), ForwardDerivation(parse(branches + "assert(y < 3)")))


@pytest.mark.parametrize(
    ("source", "headline"),
    [
        # An undefined index is neither equal to nor different from another: the cases of [*]1 and [*]2 are not all.
        ("0 <= x < U -> [Mem(x) := 0] Mem(1 / z) = Mem(1 / z)", "VIOLATED(postcondition)"),
        ("0 <= x < U && z = 1 -> [Mem(x) := 0] Mem(1 / z) = Mem(1 / z)", "PROVED"),
        ("[if (z != 0) { x := 1 / z; assert(x = x) }] true", "PROVED"),
        ("[if (z = 0) { x := 1 / z; assert(x = x) }] true", "VIOLATED(division)"),
    ],
)
def test_undefined_terms_are_not_lost(source: str, headline: str) -> None:
    module = parse(source)
    for resolve in (False, True):
        assert check(module, ForwardDerivation(module), resolve=resolve).headline == headline
    assert check(module, BackwardDerivation(module)).headline == headline
    assert SymbolicExecution(module).explore().headline == headline


def test_branches_that_contradict_their_context_are_closed_early() -> None:
    """Twelve turns with a branch each: one path, not 4096."""
    module = parse("theory s32; i = 0 && s = 0 -> [while (i < 12) { if (i % 2 = 0) { s := s + 1 } i := i + 1 }] s = 6")
    result = check(module, ForwardDerivation(module, Bounds(12), "assert"), seconds=200)
    assert result.kind == "proved"
    assert len(result.checked) < 100


def test_time_limits_end_derivations() -> None:
    branches = "".join(f"if (x{i} > 0) {{ y := y + 1 }}" for i in range(40))
    module = parse(branches)
    result = check(module, ForwardDerivation(module), seconds=0.2)
    assert result.kind == "unknown" and "time-out" in result.reason


def test_backward_refuses_inputs() -> None:
    module = parse("x := input(); assert(x > 0)")
    with pytest.raises(UsageError, match="inputs"):
        check(module, BackwardDerivation(module))


def test_renderings() -> None:
    module = parse("0 < x && x < 9 -> [y := x; Mem(y) := 1] Mem(x) = 1 && y <= 3")
    result = check(module, ForwardDerivation(module), resolve=True)
    lines = text_lines(result.tree)
    assert lines[0].startswith("→R")
    assert any(line.endswith("✗") for line in lines) and any(line.endswith("*") for line in lines)
    page = html_page(result.tree, "a <title>", result.headline, ["x"])
    assert "a &lt;title&gt;" in page and page.count("<details") == page.count("</details>") > 0
    latex = latex_document(result.tree, "title")
    assert latex.count("{") == latex.count("}")
    assert r"\vdash" in latex and r"[*]_{=}" in latex and r"\DisplayProof" in latex
    assert formula_text(parse_formula("x_12 <= 3"), LATEX) == r"x_{12} \leq 3"
