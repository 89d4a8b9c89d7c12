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
# Unicorn's PowerPC is big-endian only, and its big-endian ARM fetches instructions big-endian, too.
NOT_IN_UNICORN = ("ppc32-le", "arm-be8")
SHADOWED = ("x86-32", "x86-64", "ppc32-be")  # where the shadow stack of return addresses is kept


def programs() -> Iterator[tuple[Path, str, list[dict[str, Any]]]]:
    """(spec file, target, known runs) for everything built."""
    for manifest in sorted(ROOT.rglob("build.toml")):
        table = tomllib.loads(manifest.read_text())
        if "models" in table.get("spec", {}):
            continue  # library models are no machine code
        for program in table["program"]:
            for target in program["targets"]:
                for variant in program.get("variants", {"": []}):
                    name = program["name"].format(target=target, variant=variant)
                    if ("spec" in program or "spec" in table) and target not in NOT_IN_UNICORN:
                        runs = program.get("runs", [{"inputs": [], "ends": "halt"}])
                        yield manifest.parent / f"{name}.yaml", target, runs


PROGRAMS = [pytest.param(*p, id=str(p[0].relative_to(ROOT).with_suffix(""))) for p in programs()]


@pytest.mark.parametrize(("path", "target", "runs"), PROGRAMS)
def test_known_runs(path: Path, target: str, runs: list[dict[str, Any]], boot: Callable[..., Any]) -> None:
    spec = yaml.safe_load(path.read_text())
    seen: set[str] = set()
    for run in runs:
        machine = boot(path)
        ended = machine.run(run["inputs"], run.get("memory", []))
        assert ended == run["ends"], f"{run}: at {machine.pc:#x} after {machine.steps} steps"
        if ended == "halt" and "expected_result" in spec:
            result = spec["expected_result"]
            assert machine.word(result["at"], result.get("size", 4)) == result["value"]
        if machine.wrong_return:
            seen.add("return-address")
        elif ended == "reach":
            seen.add("reach")
    if spec.get("expected") == "violated":
        expected = set(spec["expected_properties"])
        assert seen and seen <= expected, "a run shows the violation, and no run shows another"
    elif "expected" in spec:
        assert spec["expected"] == "proved"
        assert not seen


def test_every_violation_is_shown_where_it_can_be() -> None:
    shadowed = [p.values[0] for p in PROGRAMS if p.values[1] in SHADOWED]
    specs = [yaml.safe_load(path.read_text()) for path in shadowed if isinstance(path, Path)]
    verdicts = [spec.get("expected") for spec in specs]
    assert verdicts.count("violated") >= 20
    assert verdicts.count("proved") >= 25


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="x86-64 Linux only")
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
        assert len(content) < 40_000, binary
        for marker in (b"/home", b"/root", b"/tmp", b"/usr", b".zig-cache"):
            assert marker not in content, binary
