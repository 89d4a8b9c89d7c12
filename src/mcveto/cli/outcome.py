"""The outcome of a run as a line of text, a JSON word and an exit code."""

from __future__ import annotations

from mcveto.machine.emulator import Outcome
from mcveto.machine.faults import FaultKind

EXIT_CODES = {
    "halted": 0,
    "exited": 0,
    "fault": 0,
    "assumption-failed": 0,
    "target": 10,
    "limit": 5,
    "unsupported": 5,
}


def outcome_name(outcome: Outcome) -> str:
    """The kind of outcome; a failed assumption is told apart from the faults of the machine."""
    return "assumption-failed" if outcome.fault is FaultKind.ASSUMPTION_FAILED else outcome.kind


def headline(outcome: Outcome, address: int) -> str:
    """The first line on stdout; `address` is the outcome's program counter without its mode bit."""
    name = outcome_name(outcome)
    after = f"after {outcome.steps} steps"
    where = f"at {address:#x} {after}"
    match name:
        case "fault":
            assert outcome.fault is not None
            data = "" if outcome.address is None else f", address {outcome.address:#x}"
            return f"FAULT({outcome.fault.label}) {where}{data}"
        case "unsupported":
            return f"UNSUPPORTED({reason(outcome)}) {after}"
        case "exited":
            return f"EXITED({outcome.detail}) {where}"
    return f"{name.upper()} {where}"


def reason(outcome: Outcome) -> str:
    return outcome.detail.removeprefix("unsupported: ")
