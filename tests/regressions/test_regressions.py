"""Every program that once got a wrong verdict is asked about again, in every way there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.judge import choices
from tests.campaign.regressions import load, replayed

FILES = sorted(Path(__file__).parent.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_longer_wrong(path: Path) -> None:
    assert replayed(load(path), choices()) == []
