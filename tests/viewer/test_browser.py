"""The pages in a real Chromium (web/test/checks.mjs): what a user does, on real and on made-up results."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcveto.errors import UsageError
from mcveto.viewer.html_file import html_text, require_front_end
from mcveto.viewer.server import PageServer
from tests.viewer import samples

WEB = Path(__file__).parents[2] / "web"
CHECKS = (
    "verdict folding selection shortest_first code invariants deep_links graph large_graph timeline hostile policy "
    "keyboard dark narrow unknown served"
).split()


def _missing() -> str:
    """What the checks need and this machine does not have."""
    try:
        require_front_end()
    except UsageError as error:
        return str(error)
    if shutil.which("node") is None:
        return "node is not installed"
    if _chromium() is None:
        return "chromium is not installed"
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        return "playwright-core is not installed (make web)"
    return ""


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@cache
def _results(folder: str) -> dict[str, dict[str, Any]]:
    proved = samples.searched("fig10/x86-32/blast2.yaml", "auto")
    pages = {
        "demo": samples.demo_pages(),
        "model": samples.model_sample(),
        "proved": proved,
        "timeline": samples.searched("loops/x86-32-O1/lock.yaml", "paper"),
        "large": samples.large_pages(),
        "hostile": samples.hostile_pages(),
        "unknown": samples.unknown_pages(),
    }
    for name, content in pages.items():
        (Path(folder) / f"{name}.html").write_text(html_text(content), encoding="utf-8")
    with PageServer(html_text(pages["demo"])) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = ["node", str(WEB / "test" / "checks.mjs"), folder, str(_chromium()), server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        server.shutdown()
    assert done.returncode == 0, done.stderr[-2000:]
    return {result["name"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("pages"))


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is there")
@pytest.mark.parametrize("name", CHECKS)
def test_in_chromium(name: str, folder: str) -> None:
    result = _results(folder)[name]
    assert result["problem"] is None, result["problem"]


@pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is there")
def test_every_check_of_the_script_is_listed(folder: str) -> None:
    assert sorted(_results(folder)) == sorted(CHECKS)
