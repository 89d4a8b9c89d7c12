"""Before a proof is printed: it is written down as a certificate, the independent checker re-proves that, and we say
whether anything happens in the runs it speaks of.

A claim that the checker refutes is a defect of ours: UNKNOWN(self-check failed: …), exit code 70. A claim it cannot
decide in the time left is not a verdict either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.check.certificate import Certificate
    from mcveto.dpg.graph import Graph
    from mcveto.program.program import Program
    from mcveto.search import Question

FAILED = "self-check failed: "
# One obligation of the self-check may take this long; `mcveto check` allows more.
OBLIGATION_SECONDS = 20.0


def supported(program: Program, verdict: Verdict, graph: Graph, question: Question, seconds: float) -> Verdict:
    """The verdict with what supports it, or UNKNOWN if it does not stand."""
    if verdict.kind != "proved":
        return replace(verdict, is_internal_error=verdict.is_internal_error or verdict.reason.startswith(FAILED))
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

        checked = check(certificate, program.image, Effort(timeout=min(OBLIGATION_SECONDS, seconds)))
        if checked.undecided:
            return replace(verdict, kind="unknown", reason=f"self-check: {checked.problem}", proof=None)
        if checked.problem:
            return _refused(verdict, checked.problem, text)
        support["obligations"] = checked.obligations
    happens, warnings = vacuity(program, graph, certificate)
    return replace(verdict, proof=None, certificate=text, support=support | happens, warnings=warnings)


def _refused(verdict: Verdict, problem: str, certificate: str) -> Verdict:
    return replace(
        verdict,
        kind="unknown",
        reason=f"{FAILED}{problem}",
        proof=None,
        certificate=certificate,
        is_internal_error=True,
    )


def vacuity(program: Program, graph: Graph, certificate: Certificate) -> tuple[dict[str, object], tuple[str, ...]]:
    """What the runs that were made show to be reachable, and warnings where a proof may rest on nothing happening."""
    from mcveto.dpg.runs import Ending

    runs = {witness.run.number: witness.run for node in graph.nodes.values() for witness in node.witnesses}
    endings = Counter(run.ending for run in runs.values())
    code_address = program.decoder.row.code_address
    assumed = {pc for pc, hook in program.hooks.items() if hook.mnemonic == "assume"}
    met = {
        code_address(visit.location.pc)
        for run in runs.values()
        for visit, following in zip(run.visits, [*run.visits[1:], None], strict=True)
        if visit.location.pc in assumed and (following is not None or run.ending is Ending.HALTED)
    }
    visited = {code_address(visit.location.pc) for run in runs.values() for visit in run.visits}
    missed = sorted({code_address(pc) for pc in assumed if code_address(pc) in visited} - met)
    entered = any(run.steps for run in runs.values())
    halted = endings[Ending.HALTED] > 0
    warnings: list[str] = []
    if not entered:
        warnings.append("no instruction was executed at the entry: the proof rests on nothing happening")
    elif not halted and not any("halt" in location.steps for location in certificate.locations):
        warnings.append("no run can reach a halt or return from the entry: all loop for ever or end in a fault")
    elif not halted:
        how = ", ".join(f"{count} by {ending.value}" for ending, count in sorted(endings.items(), key=str))
        warnings.append(f"no run that was made reached a halt (ended: {how})")
    warnings += [f"the assumption at {at:#x} held in no run that was made" for at in missed]
    happens: dict[str, object] = {
        "entry_reached": entered,
        "halt_reached": halted,
        "assumptions_met": None if not assumed else not missed and bool(met),
    }
    return happens, tuple(warnings)
