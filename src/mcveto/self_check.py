"""Before a proof is printed: it is written down as a certificate, the independent checker re-proves that, and we say
whether anything happens in the runs it speaks of.

A claim that the checker refutes is a defect of ours: UNKNOWN(self-check failed: …), exit code 70. A claim it cannot
decide in the time left is not a verdict either.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.verdict import SELF_CHECK_FAILED, Verdict

if TYPE_CHECKING:
    from mcveto.check.certificate import Certificate
    from mcveto.dpg.evidence import Evidence
    from mcveto.dpg.proof import Proof
    from mcveto.dpg.summaries.summary import ProcedureProof
    from mcveto.engines.record import PathProof
    from mcveto.property.attach import Attached
    from mcveto.search import Question

# One obligation of the self-check may take this long; `mcveto check` allows more.
OBLIGATION_SECONDS = 20.0
# Of the time left, for what comes after.
RESERVED = 0.1
# Of the time left, for the certificate of an exploration, and for one of its obligations; and, if nobody asked for the
# certificate, seconds, or how many times as long as it took to find, if that is more. One obligation
# then has at least so many seconds, or as many as it took to find.
EXPLORED_SHARE = 0.6
EXPLORED_LONGEST = 0.15
EXPLORED_SECONDS = 6.0
EXPLORED_TIMES = 4.0
EXPLORED_EACH = 0.5
# Seconds to write it, likewise.
EXPLORED_WRITING = 2.0
# Engines whose proof is an inductive invariant, which counts only if it is checked.
INVARIANTS = ("dpg", "cegar")


def supported(attached: Attached, verdict: Verdict, question: Question, seconds: float, taken: float) -> Verdict:
    """The verdict, which took so long to find, with what supports it; or UNKNOWN if it does not stand."""
    if verdict.kind != "proved":
        return replace(
            verdict, is_internal_error=verdict.is_internal_error or verdict.reason.startswith(SELF_CHECK_FAILED)
        )
    engine = verdict.found_by or question.engine
    if verdict.proof is None and engine not in INVARIANTS:
        warning = f"no certificate: what engine {engine} did cannot be written as one"
        if engine == "simulation" and not question.certificate:
            warning = f"no certificate: that of engine {engine} is long: --proof FILE writes and checks it"
        return replace(verdict, warnings=(warning,))
    if verdict.proof is None:
        return _refused(verdict, "no proof was handed over", certificate="")
    from mcveto.check.certificate import to_text

    is_extra = engine not in INVARIANTS and not question.certificate
    writing = max(EXPLORED_WRITING, taken) if is_extra else math.inf
    certificate = _certificate(attached, verdict.proof, question, seconds=writing)
    if certificate is None:
        hint = " and is not checked" if question.certificate else ": --proof FILE writes and checks it"
        warning = f"no certificate: that of engine {engine} is long{hint}"
        return replace(verdict, proof=None, warnings=(warning,))
    text = to_text(certificate)
    support: dict[str, object] = {"locations": len(certificate.locations), "obligations": None}
    if question.self_check or certificate.procedures:
        from mcveto.check.discharge import Effort, check

        image = attached.program.loaded or attached.program.image
        # What was explored has been checked in its own way (see `engines.recheck`): this must not cost the answer.
        share, longest = (1 - RESERVED, 1.0) if engine in INVARIANTS else (EXPLORED_SHARE, EXPLORED_LONGEST)
        most = share * seconds
        each = max(1.0, min(OBLIGATION_SECONDS, longest * seconds))
        if is_extra:
            most = min(most, max(EXPLORED_SECONDS, EXPLORED_TIMES * taken))
            each = min(each, max(EXPLORED_EACH, taken))
        effort = Effort(jobs=os.cpu_count() or 1, timeout=each, seconds=max(1.0, most), hasty=is_extra)
        checked = check(certificate, image, effort)
        if checked.problem and not checked.undecided and engine not in INVARIANTS:
            # What was left out as not needed may have been: then with all of it.
            whole = _certificate(attached, verdict.proof, question, is_whole=True, seconds=writing)
            if whole is not None:
                certificate, text = whole, to_text(whole)
                checked = check(certificate, image, effort)
        if checked.undecided and engine not in INVARIANTS:
            warning = f"the certificate is not checked: {checked.problem}"
            return replace(verdict, proof=None, certificate=text, support=support, warnings=(warning,))
        if checked.undecided:
            return replace(verdict, kind="unknown", reason=f"self-check: {checked.problem}", proof=None)
        if checked.problem:
            return _refused(verdict, checked.problem, text)
        support["obligations"] = checked.obligations
    happens, warnings = vacuity(verdict.evidence, certificate)
    return replace(verdict, proof=None, evidence=None, certificate=text, support=support | happens, warnings=warnings)


def _certificate(
    attached: Attached,
    proof: Proof | PathProof | ProcedureProof,
    question: Question,
    is_whole: bool = False,
    seconds: float = math.inf,
) -> Certificate | None:
    from mcveto.certify import certificate_of, context_of
    from mcveto.cli.main import VERSION
    from mcveto.dpg.proof import Proof
    from mcveto.dpg.summaries.summary import ProcedureProof

    context = context_of(attached)
    if isinstance(proof, Proof | ProcedureProof):
        return certificate_of(attached.program, proof, VERSION, question.steps == "instruction", context)
    from mcveto.certify_paths import certificate_of_paths, is_long

    if is_long(proof) and not question.certificate:
        return None
    return certificate_of_paths(attached.program, proof, VERSION, context, is_whole, seconds)


def _refused(verdict: Verdict, problem: str, certificate: str) -> Verdict:
    return replace(
        verdict,
        kind="unknown",
        reason=f"{SELF_CHECK_FAILED}{problem}",
        proof=None,
        certificate=certificate,
        is_internal_error=True,
    )


def _cannot_halt(certificate: Certificate) -> bool:
    return not any("halt" in location.steps for location in certificate.locations)


def vacuity(evidence: Evidence | None, certificate: Certificate) -> tuple[dict[str, object], tuple[str, ...]]:
    """What the runs that were made show to be reachable, and warnings where a proof may rest on nothing happening."""
    if evidence is None:
        return {"entry_reached": None, "halt_reached": None, "assumptions_met": None}, ()
    met, missed = evidence.assumptions_met, evidence.assumptions_missed
    warnings: list[str] = []
    if not evidence.entered:
        warnings.append("no instruction was executed at the entry: the proof rests on nothing happening")
    elif not evidence.halted and not certificate.procedures and _cannot_halt(certificate):
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
