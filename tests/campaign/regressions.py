"""Programs on which a verdict was wrong once, as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .campaign import Ask
from .judge import Choice, ask, judge
from .subject import program_of, subject_of
from .truth import truth_of

SECONDS = 4.0


def load(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def replayed(record: dict[str, Any], asked: list[Choice], ask_with: Ask = ask) -> list[str]:
    """What is wrong with the verdicts of today on a saved program; its truth must be what it was."""
    program = program_of(subject_of(record["subject"]))
    truth = truth_of(program)
    if truth.violations != record["truth"]["violations"]:
        return [f"the truth has changed: {truth.violations}"]
    judged = (judge(program, truth, choice, ask_with(program, choice, SECONDS, 0)) for choice in asked)
    return [item.wrong for item in judged if item.wrong]
