"""Before a proof is printed: it is written down as a certificate, the independent checker re-proves that, and we say
whether anything happens in the runs it speaks of.

A claim that the checker refutes is a defect of ours: UNKNOWN(self-check failed: …), exit code 70. A claim it cannot
decide in the time left is not a verdict either.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.check.certificate import Certificate
    from mcveto.dpg.evidence import Evidence
    from mcveto.program.program import Program
    from mcveto.search import Question

FAILED = "self-check failed: "
# One obligation of the self-check may take this long; `mcveto check` allows more.
OBLIGATION_SECONDS = 20.0
# From so many locations on, the work is shared between processes.
LARGE = 400


def supported(
    program: Program, verdict: Verdict, question: Question, seconds: float, watched: tuple[str, ...] = ()
) -> Verdict:
    """The verdict with what supports it, or UNKNOWN if it does not stand."""
    if verdict.kind != "proved":
        return replace(verdict, is_internal_error=verdict.is_internal_error or verdict.reason.startswith(FAILED))
    if not has_certificate(program, watched):
        what = "While programs" if program.image.format == "while" else "library models"
        what = f"the typestate properties {', '.join(watched)}" if watched else what
        note = f"no certificate: the checker does not know {what} yet"
        return replace(verdict, proof=None, evidence=None, warnings=(note,))
    if verdict.proof is None and question.engine not in ("dpg", "cegar"):
        return replace(verdict, warnings=(f"engine {question.engine} writes no certificate that could be checked",))
    if verdict.proof is None:
        return _refused(verdict, "no proof was handed over", certificate="")
    from mcveto.certify import certificate_of
    from mcveto.check.certificate import to_text
    from mcveto.cli.main import VERSION

    certificate = certificate_of(program, verdict.proof, VERSION, question.steps == "instruction")
    text = to_text(certificate)
    support: dict[str, object] = {"locations": len(certificate.locations), "obligations": None}
    if question.self_check:
        from mcveto.check.discharge import Effort, check

        jobs = os.cpu_count() or 1 if len(certificate.locations) >= LARGE else 1
        effort = Effort(jobs, timeout=max(1.0, min(OBLIGATION_SECONDS, seconds)))
        checked = check(certificate, program.image, effort)
        if checked.undecided:
            return replace(verdict, kind="unknown", reason=f"self-check: {checked.problem}", proof=None)
        if checked.problem:
            return _refused(verdict, checked.problem, text)
        support["obligations"] = checked.obligations
    happens, warnings = vacuity(verdict.evidence, certificate)
    return replace(verdict, proof=None, evidence=None, certificate=text, support=support | happens, warnings=warnings)


def has_certificate(program: Program, watched: tuple[str, ...]) -> bool:
    """Whether a proof about the program can be written down for the checker."""
    return not watched and not program.spec.models and program.image.format != "while"


def _refused(verdict: Verdict, problem: str, certificate: str) -> Verdict:
    return replace(
        verdict,
        kind="unknown",
        reason=f"{FAILED}{problem}",
        proof=None,
        certificate=certificate,
        is_internal_error=True,
    )


def vacuity(evidence: Evidence | None, certificate: Certificate) -> tuple[dict[str, object], tuple[str, ...]]:
    """What the runs that were made show to be reachable, and warnings where a proof may rest on nothing happening."""
    if evidence is None:
        return {"entry_reached": None, "halt_reached": None, "assumptions_met": None}, ()
    met, missed = evidence.assumptions_met, evidence.assumptions_missed
    warnings: list[str] = []
    if not evidence.entered:
        warnings.append("no instruction was executed at the entry: the proof rests on nothing happening")
    elif not evidence.halted and not any("halt" in location.steps for location in certificate.locations):
        warnings.append("no run can reach a halt or return from the entry: all loop for ever or end in a fault")
    elif not evidence.halted:
        how = ", ".join(f"{count} by {ending}" for ending, count in evidence.endings.items())
        warnings.append(f"no run that was made reached a halt (ended: {how})")
    warnings += [f"the assumption at {at:#x} held in no run that was made" for at in missed]
    happens: dict[str, object] = {
        "entry_reached": evidence.entered,
        "halt_reached": evidence.halted,
        "assumptions_met": not missed if met or missed else None,
    }
    return happens, tuple(warnings)
