"""A verdict as the JSON result: every key always present, always in this order, null where it does not apply."""

from __future__ import annotations

from typing import Any

from mcveto.verdict import STATISTICS, Verdict

SCHEMA = "mcveto-verdict-1"


def verdict_record(
    verdict: Verdict,
    *,
    version: str,
    path: str | None,
    sha256: str | None,
    command: list[str],
    seed: int,
    proof_file: str | None = None,
) -> dict[str, Any]:
    proved = verdict.kind == "proved"
    return {
        "schema": SCHEMA,
        "mcveto": version,
        "binary": {"path": path, "sha256": sha256},
        "verdict": verdict.kind,
        "reason": verdict.reason or None,
        "property": verdict.about or None,
        "inputs": [{"value": item.value, "bits": item.bits, "where": item.where} for item in verdict.inputs],
        "confirmed_by": list(verdict.confirmed_by),
        "assumptions": list(verdict.assumptions),
        "warnings": list(verdict.warnings),
        "stats": {name: verdict.statistics.get(name) for name in STATISTICS},
        "proof": {"file": proof_file, **verdict.support, "warnings": list(verdict.warnings)} if proved else None,
        "command": command,
        "seed": seed,
        "at": verdict.at,
        "after_violation": list(verdict.aftermath),
        "violation": verdict.violation or None,
        "path": list(verdict.path),
    }
