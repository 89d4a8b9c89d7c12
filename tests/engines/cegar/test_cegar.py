"""Verdicts of engine cegar on programs of every kind, its proofs, and that it makes up nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mcveto.dpg.location import Blocks
from mcveto.dpg.outcomes import OutcomeTable
from mcveto.dpg.proof import Proof
from mcveto.dpg.proof_check import recheck
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.path_state import entry_state
from mcveto.engines.cegar.engine import Engine, cegar
from mcveto.engines.cegar.treatment import Treatment
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.property.attach import with_typestates
from mcveto.search import Question, search
from mcveto.verdict import Verdict

EXAMPLES = Path(__file__).parents[3] / "examples"
SECONDS = 300.0
DECIDED = (
    "air/ppc32-be/memname-fix-O0",
    "air/ppc32-be/memname-bug-O0",
    "air/ppc32-be/raid-poll-fix-O1",
    "air/ppc32-be/scsi-queue-fix-O0",
    "air/ppc32-be/scsi-queue-bug-O0",
    "fig10/x86-32/blast2",
    "fig10/x86-32/slam1",
    "fig10/x86-32/clobber-CASE-4",
    "fig10/x86-32/fig9",
    "fig10/x86-32/jmp",
    "machine/tricks/return-overwrite",
    "machine/tricks/x86-64",
)


def program(name: str) -> Program:
    return load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))


def asked(name: str, **options: str) -> Verdict:
    spec = load_spec(str(EXAMPLES / f"{name}.yaml"))
    return search(lambda: load_program(None, spec), Question("cegar", timeout=SECONDS, **options)).verdict  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DECIDED)
def test_decides(name: str) -> None:
    spec = load_spec(str(EXAMPLES / f"{name}.yaml"))
    verdict = asked(name)
    assert verdict.kind == spec.expected, verdict.headline
    if verdict.kind == "proved":
        assert verdict.certificate and verdict.support["obligations"]
    else:
        assert "emulator" in verdict.confirmed_by


@pytest.mark.parametrize("bitwise", ["semi", "uninterpreted"])
@pytest.mark.parametrize("version", ["fix", "bug"])
def test_other_treatments_are_never_wrong(bitwise: str, version: str) -> None:
    verdict = asked(f"air/ppc32-be/scsi-queue-{version}-O1", bitwise=bitwise)
    assert verdict.kind in ({"fix": "proved", "bug": "violated"}[version], "unknown")
    assert bitwise == "uninterpreted" or verdict.kind != "unknown"


def test_a_violation_is_told_as_assembly() -> None:
    verdict = asked("air/ppc32-be/memname-bug-O1")
    assert verdict.kind == "violated" and verdict.at is not None
    assert verdict.path and all(line.startswith("0x") for line in verdict.path)
    assert "b" in verdict.path[-1].split()[1]


@pytest.mark.parametrize(("missing", "kind"), [(0, "proved"), (1, "violated")])
def test_typestate_properties_are_watched(missing: int, kind: str) -> None:
    stem = EXAMPLES / "typestate" / "ppc32-be" / f"driver-MISSING-{missing}"
    spec = with_typestates(load_spec(f"{stem}.yaml"), ["lock"])
    verdict = search(lambda: load_program(f"{stem}.sym.elf", spec), Question("cegar", timeout=SECONDS)).verdict
    assert verdict.kind == kind, verdict.headline
    assert kind == "proved" or verdict.about == "lock"


def steps_of(subject: Program) -> Steps:
    return Steps(subject, Blocks(subject), OutcomeTable(subject))


def test_the_claim_is_inductive_and_not_vacuous() -> None:
    """The proof holds as it is, and no longer when any region, or all that is known of the constants, is left out."""
    subject = program("air/ppc32-be/scsi-queue-fix-O1")
    verdict = cegar(subject, SECONDS, must_recheck=False)
    assert verdict.kind == "proved" and isinstance(verdict.proof, Proof)
    nodes = verdict.proof.nodes
    assert not recheck(subject, verdict.proof, steps_of(subject), entry_state(subject), 20.0)
    shorter = Proof(tuple(node for node in nodes if node is not nodes[len(nodes) // 2]))
    assert recheck(subject, shorter, steps_of(subject), entry_state(subject), 20.0)
    weaker = Proof(tuple(dataclasses.replace(node, literals=()) for node in nodes))
    assert recheck(subject, weaker, steps_of(subject), entry_state(subject), 20.0)


def test_a_wrong_claim_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploration that overlooks every error does not get past the check of its claim."""
    monkeypatch.setattr(Engine, "_search", _overlooking)
    verdict = cegar(program("air/ppc32-be/scsi-queue-bug-O1"), SECONDS, must_recheck=True)
    assert verdict.kind == "unknown" and verdict.reason.startswith("self-check failed")


def _overlooking(self: Engine) -> Verdict:
    from mcveto.engines.cegar.constants import Constants, ImageBytes
    from mcveto.engines.cegar.reachability import Reachability, reachable

    constants = Constants(ImageBytes(self._program.space), dict(self._program.registers), {}, ())
    first = self._first(constants)
    assert not isinstance(first, Verdict)
    return self._proved(reachable(Reachability(self._post, self._tick, first, constants).explore()))


def test_a_limit_of_time_holds() -> None:
    verdict = cegar(program("air/ppc32-be/memname-fix-O0"), 0.01, treatment=Treatment.SEMI)
    assert verdict.headline == "UNKNOWN(time-out)"
    assert verdict.statistics["seconds"] < 20


def test_recursion_that_is_too_deep_is_unknown() -> None:
    verdict = cegar(program("recursion/x86-32/ackermann-safe-O1"), 5.0)
    assert verdict.kind in ("unknown", "proved")
    verdict = cegar(program("recursion/x86-32/ackermann-bug-O1"), 5.0)
    assert verdict.kind in ("unknown", "violated")
