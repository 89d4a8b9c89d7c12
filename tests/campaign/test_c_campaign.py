"""The campaign over compiled C in small, and that it notices what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from . import c_campaign
from .c_campaign import Counts, run_file

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(6))
def test_no_verdict_is_wrong(seed: int, tmp_path: Path) -> None:
    counts = Counts()
    run_file(seed, 6, 10.0, tmp_path, counts)
    assert counts.programs == 6
    assert counts.wrong == []


@pytest.mark.parametrize("kind", ["proved", "violated"])
def test_a_wrong_verdict_is_noticed_and_kept(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is always said is wrong about some programs."""

    def always(spec: Path, engine: str, seconds: float, seed: int) -> dict[str, Any]:
        return {"verdict": kind, "reason": "", "inputs": [{"value": 0}, {"value": 0}]}

    monkeypatch.setattr(c_campaign, "verdict", always)
    counts = Counts()
    run_file(0, 12, 1.0, tmp_path, counts)
    assert 0 < len(counts.wrong) < 12
    assert len(list(tmp_path.iterdir())) == len(counts.wrong)
    assert all((folder / "program.elf").exists() for folder in tmp_path.iterdir())
