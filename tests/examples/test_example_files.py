"""The files of the examples belong together: no manifest, binary or spec is missing, left over or stale."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from elftools.elf.elffile import ELFFile

REPOSITORY = Path(__file__).resolve().parent.parent.parent
ROOT = REPOSITORY / "examples"
SPECS = sorted(p for p in ROOT.rglob("*.yaml") if p.with_suffix(".elf").exists())


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    found = importlib.util.spec_from_file_location("build_examples", REPOSITORY / "tools" / "build_examples.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module


def segments(path: Path) -> list[tuple[int, int, int, bytes]]:
    with path.open("rb") as file:
        return [
            (s["p_vaddr"], s["p_memsz"], s["p_flags"], s.data())
            for s in ELFFile(file).iter_segments()
            if s["p_type"] == "PT_LOAD"
        ]


def test_manifests_and_files_agree(builder: ModuleType) -> None:
    targets = builder.read_targets(ROOT / "targets.toml")
    expected: set[Path] = set()
    for manifest in ROOT.rglob("build.toml"):
        for build in builder.read_builds(manifest, targets):
            endings = [".elf", ".sym.elf", *([".yaml"] if build.spec is not None else [])]
            files = [build.folder / (build.name + ending) for ending in endings]
            assert not expected.intersection(files), "two programs of the same name"
            expected.update(files)
            for source in build.sources:
                assert (build.folder / source).is_file()
    assert {*ROOT.rglob("*.elf"), *SPECS} == expected


@pytest.mark.parametrize("path", SPECS, ids=lambda p: str(p.relative_to(ROOT).with_suffix("")))
def test_spec_fits_the_stripped_binary(path: Path) -> None:
    spec: dict[str, Any] = yaml.safe_load(path.read_text())
    stripped, named = path.with_suffix(".elf"), path.with_suffix(".sym.elf")
    assert spec["binary"] == stripped.name
    assert segments(stripped) == segments(named)
    executable = [(a, a + size) for a, size, flags, _ in segments(stripped) if flags & 1]
    with stripped.open("rb") as file:
        elf = ELFFile(file)
        assert elf.get_section_by_name(".symtab") is None
        assert spec["entry"] == elf["e_entry"]
    code = [
        *spec["halt"],
        *spec.get("inputs", {}).get("calls", {}),
        *(a for p in spec.get("properties", []) if isinstance(p, dict) for a in p.get("reach", ())),
    ]
    for address in code:
        assert any(low <= address < high for low, high in executable), f"{address:#x} is not code"
    if spec.get("expected") == "violated":
        known = {"reach", "return-address", "memory-safety", "no-fault"}
        assert set(spec["expected_properties"]) <= known


def test_every_row_of_the_paper_is_there() -> None:
    rows = tomllib.loads((ROOT / "fig10" / "paper.toml").read_text())["row"]
    assert len(rows) == 29
    outcomes = {"proof": "proved", "counterexample": "violated", "AE violation": "violated"}
    for row in rows:
        spec = yaml.safe_load((ROOT / "fig10" / "x86-32" / f"{row['program']}.yaml").read_text())
        assert spec["expected"] == outcomes.get(row["outcome"], spec["expected"])
        if row["outcome"] == "AE violation":
            assert spec["expected_properties"] == ["return-address"]


def test_layouts_keep_code_and_data_apart() -> None:
    manifests = {m.parent: tomllib.loads(m.read_text())["program"] for m in ROOT.rglob("build.toml")}
    both = 0
    for folder, programs in manifests.items():
        for program in programs:
            for target in program["targets"]:
                for variant in program.get("variants", {"": []}):
                    name = program["name"].format(target=target, variant=variant)
                    flags = [f for _, _, f, _ in segments(folder / f"{name}.elf")]
                    writable_code = any(f & 2 and f & 1 for f in flags)
                    assert writable_code == (program.get("layout") == "rwx"), name
                    both += writable_code
    assert both >= 5


def test_unknown_symbol_is_refused(builder: ModuleType) -> None:
    with pytest.raises(builder.BuildError, match="missing"):
        builder.resolve({"halt": ["@missing"]}, {"halt": 1}, "program")
    assert builder.resolve({"@f": ["@f+0x10", 3]}, {"f": 0x8048000}, "p") == {0x8048000: [0x8048010, 3]}


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the cross compiler")
def test_rebuild_gives_the_same_bytes(builder: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert builder.main(["--check", str(ROOT / "demo"), str(ROOT / "machine" / "tiny")]) == 0
    assert "6 files, 0 different" in capsys.readouterr().out
