"""Changes of drivers are what they claim to be, and wrong verdicts on changed drivers are noticed."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from . import driver_campaign
from .c_campaign import Counts
from .driver_campaign import large_driver, native_violation, run_driver
from .driver_mutations import mutated


def test_one_line_is_changed() -> None:
    for seed, kind in enumerate(large_driver.KINDS):
        text = large_driver.program(seed, 60, kind, False)
        changed, what = mutated(text, random.Random(seed))
        assert mutated(text, random.Random(seed)) == (changed, what)
        pairs = list(zip(text.splitlines(), changed.splitlines(), strict=True))
        assert [f"{old.strip()} -> {new.strip()}" for old, new in pairs if old != new] == [what]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "layers"])
def test_native_runs_find_a_mistake(kind: str, tmp_path: Path) -> None:
    text = large_driver.program(1, 60, kind, False)
    assert not native_violation(tmp_path, text, 1.0, 1)
    assert native_violation(tmp_path, re.sub(r"spin_unlock\w*\([^)]*\);", ";", text), 1.0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("said", "reason"), [("proved", ""), ("unknown", "self-check failed: a step does not hold")])
def test_a_wrong_proof_is_noticed_and_kept(
    said: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(spec: Path, engine: str, seconds: float, seed: int) -> dict[str, Any]:
        return {"verdict": said, "reason": reason}

    monkeypatch.setattr(driver_campaign, "verdict", always)
    counts = Counts()
    for seed in range(8):
        run_driver(seed, 1.0, 1.0, tmp_path, counts)
    # A proof is wrong of some; a refused one of any.
    assert len(counts.wrong) > 0 and (len(counts.wrong) == counts.programs) == bool(reason)
    assert len(list(tmp_path.iterdir())) == len(counts.wrong)
