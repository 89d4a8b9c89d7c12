"""The bundled examples do what their manifests say, in an emulator that is not ours."""

from __future__ import annotations

import platform
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent / "examples"
NOT_IN_UNICORN = ("ppc32-le",)  # Unicorn's PowerPC is big-endian only


def programs() -> Iterator[tuple[Path, dict[str, Any]]]:
    """(spec file, its program in the manifest) for everything built."""
    for manifest in sorted(ROOT.rglob("build.toml")):
        table = tomllib.loads(manifest.read_text())
        for program in table["program"]:
            for target in program["targets"]:
                for variant in program.get("variants", {"": []}):
                    name = program["name"].format(target=target, variant=variant)
                    if ("spec" in program or "spec" in table) and target not in NOT_IN_UNICORN:
                        yield manifest.parent / f"{name}.yaml", program


def runs() -> Iterator[Any]:
    for path, program in programs():
        for index, run in enumerate(program.get("runs", [{"inputs": [], "ends": "halt"}])):
            yield pytest.param(path, run, id=f"{path.relative_to(ROOT).with_suffix('')}-{index}")


@pytest.mark.parametrize(("path", "run"), list(runs()))
def test_known_run(path: Path, run: dict[str, Any], emulate: Callable[..., Any]) -> None:
    spec = yaml.safe_load(path.read_text())
    outcome = emulate(path, run["inputs"], run.get("memory", []))
    assert outcome.how == run["ends"], f"ended at {outcome.pc:#x} after {outcome.steps} steps"
    if run["ends"] == "halt" and "expected_result" in spec:
        expected = spec["expected_result"]
        assert outcome.word(expected["at"]) == expected["value"]


@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux", reason="an x86-64 Linux program"
)
def test_checksum_on_the_host() -> None:
    folder = ROOT / "machine" / "checksum"
    printed = subprocess.run([folder / "native.elf"], capture_output=True, check=True, timeout=60).stdout
    values = {yaml.safe_load(p.read_text())["expected_result"]["value"] for p in folder.glob("*.yaml")}
    assert values == {int(printed, 16)}


def test_binaries_are_small_and_name_no_paths() -> None:
    binaries = sorted(ROOT.rglob("*.elf"))
    assert binaries
    for binary in binaries:
        content = binary.read_bytes()
        assert len(content) < 12_000, binary
        for marker in (b"/home", b"/root", b"/tmp", b"/usr", b".zig-cache"):
            assert marker not in content, binary
