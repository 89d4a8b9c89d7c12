"""The answer to a question about a binary: proved, violated or unknown, with what supports it."""

from __future__ import annotations

from dataclasses import dataclass, field

EXIT_CODES = {"proved": 0, "violated": 10, "unknown": 5}


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
        return EXIT_CODES[self.kind]
