"""The pages in a real Chromium (web/test/checks.mjs): what a user does, on real and on made-up results."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.viewer.html_file import html_text, require_front_end
from mcveto.viewer.server import PageServer
from tests.viewer import samples

WEB = Path(__file__).parents[2] / "web"
CHECKS = [
    "verdict",
    "folding",
    "selection",
    "shortest_first",
    "code",
    "invariants",
    "deep_links",
    "graph",
    "large_graph",
    "timeline",
    "hostile",
    "policy",
    "keyboard",
    "dark",
    "narrow",
    "unknown",
    "served",
]


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


@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is there")
def test_in_chromium(tmp_path: Path) -> None:
    pages = {
        "demo": samples.demo_pages(),
        "model": samples.model_sample(),
        "proved": samples.searched("fig10/x86-32/blast2.yaml", "auto"),
        "timeline": samples.searched("loops/x86-32-O1/lock-safe.yaml", "paper"),
        "large": samples.large_pages(),
        "hostile": samples.hostile_pages(),
        "unknown": samples.unknown_pages(),
    }
    for name, content in pages.items():
        (tmp_path / f"{name}.html").write_text(html_text(content), encoding="utf-8")
    with PageServer(html_text(pages["demo"])) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = ["node", str(WEB / "test" / "checks.mjs"), str(tmp_path), str(_chromium()), server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
        server.shutdown()
    assert done.returncode == 0, done.stderr[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    failed = {result["name"]: result["problem"] for result in results if result["problem"] is not None}
    assert not failed, failed
    assert [result["name"] for result in results] == CHECKS
