"""An engine with a wrong transfer function is caught by the self-check, never believed.

The defects are switched on here only, by replacing parts of the engine in the test's process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcveto.cli.main import run_command_line
from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.logic import terms as t
from mcveto.machine import symbolic
from mcveto.machine.pcode import Instruction
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec, load_spec
from mcveto.search import Question, search
from mcveto.verdict import Verdict

from .proofs import EXAMPLES

Of = Callable[[OutcomeTable, Location, tuple[Instruction, ...]], tuple[Outcome, ...]]
ORIGINAL: Of = OutcomeTable.of


def loses_one_way(table: OutcomeTable, location: Location, block: tuple[Instruction, ...]) -> tuple[Outcome, ...]:
    """Only the first way of every branch."""
    return ORIGINAL(table, location, block)[:1]


def loses_the_other_way(table: OutcomeTable, location: Location, block: tuple[Instruction, ...]) -> tuple[Outcome, ...]:
    """All but the first way of every branch."""
    outcomes = ORIGINAL(table, location, block)
    return outcomes[1:] if len(outcomes) > 1 else outcomes


def verdict_on(name: str, strategy: str = "paper") -> Verdict:
    program = load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))
    return search(lambda: program, Question(strategy=strategy, timeout=60, alongside=False)).verdict


VIOLATED = (
    "fig10/x86-32/berkeley",
    "fig10/x86-32/fig5-gap",
    "fig10/x86-32/store-REACH-1",
    "fig10/x86-32/underflow",
    "fig10/ppc32-be/store-REACH-1",
)


@pytest.mark.parametrize("strategy", ["paper", "auto"])
@pytest.mark.parametrize("broken", [loses_one_way, loses_the_other_way])
def test_a_lost_outcome_is_caught(broken: Of, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutcomeTable, "of", broken)
    verdicts = [verdict_on(name, strategy) for name in VIOLATED]
    assert all(verdict.kind != "proved" for verdict in verdicts)
    caught = [verdict for verdict in verdicts if verdict.reason.startswith("self-check failed: ")]
    assert caught
    assert all(verdict.exit_code == 70 for verdict in caught)


def test_a_wrong_comparison_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(symbolic._COMPARE, "INT_SLESS", t.ult)
    verdicts = [verdict_on(name) for name in ("fig10/x86-32/underflow", "fig10/x86-32/ex")]
    assert all(verdict.kind != "proved" for verdict in verdicts)
    assert any(verdict.reason.startswith("self-check failed: ") for verdict in verdicts)


def test_what_the_user_sees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(OutcomeTable, "of", loses_one_way)
    monkeypatch.chdir(tmp_path)
    spec = EXAMPLES / "fig10/x86-32/store-REACH-1.yaml"
    assert run_command_line(["verify", "--spec", str(spec), "--strategy", "paper", "--proof", "proof.json"]) == 70
    out, err = capsys.readouterr()
    assert out.startswith("UNKNOWN(self-check failed: step ")
    (bundle,) = tmp_path.iterdir()
    assert bundle.name.startswith("mcveto-self-check-") and bundle.name in err
    assert "mcveto-certificate-3" in bundle.read_text()


def test_a_proof_that_is_not_handed_over_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcveto.dpg.driver import Driver

    monkeypatch.setattr(Driver, "run", lambda self: Verdict("proved"))
    verdict = verdict_on("fig10/x86-32/store-REACH-1")
    assert verdict.headline == "UNKNOWN(self-check failed: no proof was handed over)"


def test_a_target_that_is_a_halt(tmp_path: Path) -> None:
    """call input; cmp eax, 1234567; jne end; target: nop; end: ret; …; input: ret"""
    file = tmp_path / "blob"
    file.write_bytes(bytes.fromhex("e80b000000 3d87d61200 7501 90 c3 9090 c3"))
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(0x1010),),
        halt=(0x100C,),
        properties=(PropertySpec("reach", (0x100C,)),),
    )
    program = load_program(str(file), spec)
    assert search(lambda: program, Question(timeout=120)).verdict.kind != "proved"
