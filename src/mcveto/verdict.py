"""The answer to a question about a binary: proved, violated or unknown, with what supports it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mcveto.late_methods import dataclass

if TYPE_CHECKING:
    from mcveto.dpg.evidence import Evidence
    from mcveto.dpg.history import History
    from mcveto.dpg.proof import Proof
    from mcveto.dpg.summaries.summary import ProcedureProof
    from mcveto.engines.record import PathProof

EXIT_CODES = {"proved": 0, "violated": 10, "unknown": 5}
EXIT_INTERNAL = 70

# What is counted, in the order reported; a verdict leaves out what does not apply to the way it was found.
STATISTICS = (
    "seconds",
    "cpu_seconds",
    "peak_rss_mb",
    "concrete_runs",
    "symbolic_runs",
    "iterations",
    "refinements",
    "predicates",
    "lemmas",
    "solver_calls",
    "instructions_executed",
    "locations",
    "nodes",
)


SELF_CHECK_FAILED = "self-check failed: "


def self_check_reason(problem: str) -> str:
    """Why a proof is not believed: a defect of ours if it was refuted, none if nobody could decide it."""
    return f"self-check: {problem}" if problem.endswith(" unknown") else f"{SELF_CHECK_FAILED}{problem}"


@dataclass(frozen=True, slots=True)
class VerdictInput:
    """One value the counterexample depends on, in the order consumed."""

    value: int
    bits: int
    where: str


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: str
    """"proved", "violated" or "unknown"."""
    about: str = ""
    """The property that is violated."""
    reason: str = ""
    inputs: tuple[VerdictInput, ...] = ()
    confirmed_by: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    statistics: dict[str, float | int] = field(default_factory=dict)
    at: int | None = None
    """The address of what violates the property: the target, or the return."""
    aftermath: tuple[str, ...] = ()
    """What can happen after the violation, if that was asked."""
    path: tuple[str, ...] = ()
    """The instructions that lead to the violation, as assembly, where the engine tells them."""
    is_internal_error: bool = False
    """Unknown because of a defect of our own."""
    is_finished: bool = False
    """Whether it has been confirmed or checked already, by the process that found it."""
    proof: Proof | PathProof | ProcedureProof | None = None
    """What the engine claims, until it is written down as the certificate."""
    evidence: Evidence | None = None
    """What the runs behind a proof show to be reachable."""
    certificate: str = ""
    """The proof as a file (see `check.certificate`), also of a claim that the self-check refused."""
    support: dict[str, object] = field(default_factory=dict)
    """How a proof was checked, and what happens in the runs it speaks of."""
    warnings: tuple[str, ...] = ()
    found_by: str = ""
    """The engine that found it, where it is not the one that was asked."""
    violation: dict[str, object] = field(default_factory=dict)
    """What a forbidden access or a fault was: instruction, access, region, distance."""
    history: History | None = None
    """What happened in the search, if that was to be written down."""
    executed: tuple[tuple[int, int], ...] = ()
    """Blocks of code (address, size) that the concrete runs of the search executed."""
    followed: tuple[tuple[int, int], ...] = ()
    """Blocks that its symbolic paths went through."""

    @property
    def headline(self) -> str:
        match self.kind:
            case "proved":
                return "PROVED"
            case "violated":
                return f"VIOLATED({self.about})"
        return f"UNKNOWN({self.reason})"

    @property
    def exit_code(self) -> int:
        return EXIT_INTERNAL if self.is_internal_error else EXIT_CODES[self.kind]
