"""Verifiers of C programs as engines: what they claim is read, replayed, and never believed unchecked."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.translate.external_tool import read_claim, verify_externally

ROOT = Path(__file__).parents[2]
FAKE = Path(__file__).with_name("fake_verifier.py")

# In the format of each tool, shortened.
CBMC = """
Trace for main.assertion.1:
State 11 file program.c function __CPROVER_initialize line 90 thread 0
----------------------------------------------------
  mc_taken=0ull (00000000 00000000)
State 40 file program.c function mc_input line 120 thread 0
----------------------------------------------------
  mc_taken=7ull (00000000 00000111)
State 55 file program.c function fn_add line 300 thread 0
  mc_at=4194320u (0)
State 60 file program.c function mc_input line 120 thread 0
  mc_taken=4294967295ull (0)
VERIFICATION FAILED
"""
ESBMC = """
[Counterexample]
State 3 file program.c line 120 column 3 function mc_input thread 0
  mc_taken = 7 (00000000 00000111)
State 9 file program.c line 120 column 3 function mc_input thread 0
  mc_taken = 4294967295 (11111111)
VERIFICATION FAILED
"""
WITNESS = """
Verification result: FALSE. Property violation (unreach-call) found by chosen configuration.
<edge source="A1" target="A2"><data key="assumption">mc_taken == (7ULL);</data></edge>
<edge source="A3" target="A4"><data key="assumption">mc_taken == (4294967295ULL);</data></edge>
"""
ULTIMATE = """
  - CounterExampleResult [Line: 99]: a call to reach_error is reachable
[L120]  mc_taken = mc_any(bits) VAL [mc_at=1, mc_taken=7]
[L121]  return mc_taken; VAL [mc_at=1, mc_taken=7]
[L120]  mc_taken = mc_any(bits) VAL [mc_at=1, mc_taken=4294967295]
[L300]  r3 = 1 VAL [mc_at=1, mc_taken=4294967295]
RESULT: Ultimate proved your program to be incorrect!
"""


@pytest.mark.parametrize("output", [CBMC, ESBMC, WITNESS, ULTIMATE], ids=["cbmc", "esbmc", "witness", "ultimate"])
def test_inputs_are_found_in_the_formats_of_the_tools(output: str) -> None:
    claim = read_claim(output)
    assert claim.reachable is True
    assert claim.inputs == (7, 0xFFFFFFFF)


def test_the_last_address_is_found() -> None:
    assert read_claim(CBMC).at == 0x400010


@pytest.mark.parametrize(
    ("output", "reachable"),
    [
        ("VERIFICATION SUCCESSFUL", False),
        ("Verification result: TRUE. No property violation found", False),
        ("RESULT: Ultimate proved your program to be correct!", False),
        ("TRUE", False),
        ("false(unreach-call)", True),
        ("VERIFICATION SUCCESSFUL\nVERIFICATION FAILED", None),
        ("segmentation fault", None),
        ("This is not TRUE at all", None),
    ],
)
def test_verdicts(output: str, reachable: bool | None) -> None:
    assert read_claim(output).reachable is reachable


@pytest.fixture(scope="module")
def buggy() -> Program:
    spec = load_spec(str(ROOT / "examples/air/ppc32-be/array-reset-bug-O1.yaml"))
    return load_program(None, replace(spec, stack=1 << 14))


needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="the fake tool compiles with gcc")


def engine(values: str) -> str:
    return f"external:{sys.executable} {FAKE} {values} {{file}}"


@needs_gcc
def test_a_violation_is_confirmed_by_replaying_its_inputs(buggy: Program) -> None:
    verdict = verify_externally(buggy, engine("0xffffffff"), 60)
    assert verdict.kind == "violated" and verdict.about == "reach"
    assert [item.value for item in verdict.inputs] == [0xFFFFFFFF]
    assert "emulator" in verdict.confirmed_by


def test_a_claim_of_safety_is_not_believed(buggy: Program) -> None:
    """The program is wrong, so believing the tool would be the worst answer."""
    verdict = verify_externally(buggy, engine("safe"), 60)
    assert verdict.kind == "unknown" and "nothing checks this claim" in verdict.reason


def test_a_violation_that_does_not_replay_is_unknown(buggy: Program, tmp_path: Path) -> None:
    liar = tmp_path / "liar.py"
    liar.write_text("print('mc_taken=20')\nprint('VERIFICATION FAILED')\n")
    verdict = verify_externally(buggy, f"external:{sys.executable} {liar}", 60)
    assert verdict.kind == "unknown" and "does not replay" in verdict.reason


def test_values_that_do_not_fit_are_unknown(buggy: Program, tmp_path: Path) -> None:
    liar = tmp_path / "liar.py"
    liar.write_text("print('mc_taken=99999999999')\nprint('VERIFICATION FAILED')\n")
    verdict = verify_externally(buggy, f"external:{sys.executable} {liar}", 60)
    assert verdict.kind == "unknown" and "do not fit" in verdict.reason


def test_a_tool_that_takes_too_long_is_unknown(buggy: Program, tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(100)\n")
    verdict = verify_externally(buggy, f"external:{sys.executable} {slow}", 1)
    assert verdict.kind == "unknown" and "time-out" in verdict.reason


@pytest.mark.parametrize("command", ["external:", "external:no-such-tool-anywhere", "external:'"])
def test_commands_that_cannot_run_are_usage_errors(buggy: Program, command: str) -> None:
    with pytest.raises(UsageError):
        verify_externally(buggy, command, 10)


def test_a_target_is_needed(buggy: Program) -> None:
    aimless = load_program(None, replace(buggy.spec, properties=()))
    with pytest.raises(UsageError, match="needs a target"):
        verify_externally(aimless, "external:true", 10)
