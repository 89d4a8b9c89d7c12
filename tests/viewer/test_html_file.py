"""The one file: nothing in the data gets out of its block, the policy fits, and a missing front end is said at once."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from mcveto.cli import verify
from mcveto.cli.main import run_command_line
from mcveto.errors import UsageError
from mcveto.viewer import html_file
from tests.viewer import samples


@pytest.fixture
def front_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_file, "_front_end", lambda: ("start();", "body { margin: 0 }"))


@pytest.mark.usefixtures("front_end")
def test_the_data_survives_and_cannot_leave_its_block() -> None:
    pages = samples.hostile_pages()
    html = html_file.html_text(pages)
    (block,) = re.findall(r'<script type="application/json" id="pages">(.*?)</script>', html, re.DOTALL)
    assert not re.search(r"[<>&\u2028\u2029]", block)
    assert json.loads(block)["story"][0].startswith(pages["story"][0][:40])
    outside = html.replace(block, "")
    assert outside.count("<script") == outside.count("</script>") == 2
    assert "onerror" not in outside.replace("&quot;&gt;&lt;img src=x onerror", "")


@pytest.mark.usefixtures("front_end")
def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    html = html_file.html_text(samples.unknown_pages())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    for content in ("start();", "body { margin: 0 }"):
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_without_the_front_end_nothing_is_searched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(html_file, "files", lambda package: tmp_path)
    monkeypatch.setattr(verify, "search", lambda *arguments: pytest.fail("the search began"))
    spec = str(samples.EXAMPLES / "demo" / "demo.yaml")
    assert run_command_line(["verify", "--spec", spec, "--report", str(tmp_path / "x.html")]) == 2
    error = capsys.readouterr().err
    assert "make web" in error and error.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


def test_a_script_that_would_end_its_element_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_file, "_front_end", lambda: ("'</SCRIPT>'", ""))
    with pytest.raises(UsageError, match="make web"):
        html_file.html_text(samples.unknown_pages())
