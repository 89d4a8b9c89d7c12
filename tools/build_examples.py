"""Rebuilds the bundled example binaries from their sources, and the spec files that go with them.

Every folder below `examples/` that holds a `build.toml` is one set of programs. The file names sources,
targets (rows of `examples/targets.toml`), compiler variants and a spec in which `@symbol` stands for an
address; a `[spec]` of the whole file is what its programs have in common. For each program, target and
variant this writes

    NAME.elf       stripped, what users and tests verify
    NAME.sym.elf   the same code with its symbol table, for reading along
    NAME.yaml      the spec, every `@symbol` replaced by its address, so that it fits the stripped file

Builds are deterministic (no build id, no paths, no timestamps): `--check` rebuilds into a scratch folder and
compares. Needs `ziglang` (see requirements-examples.lock); using the examples needs no compiler.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parent.parent / "examples"
COMMON_FLAGS = [
    *("-g0", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-fno-pie", "-fno-sanitize=undefined"),
    *("-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
    *("-Wall", "-Wextra", "-Werror", "-Wl,--build-id=none", "-Wl,-e,_start", "-Wl,--no-gc-sections"),
]
SYMBOL = re.compile(r"@([A-Za-z_.$][\w.$]*)(?:\+(0x[0-9a-fA-F]+|\d+))?")


class BuildError(Exception):
    """One line saying which program cannot be built and why."""


class Address(int):
    """An integer that is written in hexadecimal in spec files."""


class SpecDumper(yaml.SafeDumper):
    pass


def _represent_address(dumper: yaml.SafeDumper, value: Address) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:int", f"{value:#x}")


SpecDumper.add_representer(Address, _represent_address)


@dataclasses.dataclass(frozen=True)
class Target:
    triple: str
    flags: tuple[str, ...]
    page: int


@dataclasses.dataclass(frozen=True)
class Build:
    """One binary: a program for one target in one variant."""

    folder: Path
    name: str
    sources: tuple[str, ...]
    target: Target
    flags: tuple[str, ...]
    layout: str
    spec: Mapping[str, Any] | None
    comment: str


def read_targets(path: Path) -> dict[str, Target]:
    table = tomllib.loads(path.read_text())
    return {
        name: Target(row["triple"], tuple(row.get("flags", [])), row.get("page", 0x1000)) for name, row in table.items()
    }


def read_builds(manifest: Path, targets: Mapping[str, Target]) -> Iterator[Build]:
    """The builds one `build.toml` asks for, in file order."""
    table = tomllib.loads(manifest.read_text())
    for program in table["program"]:
        for target in program["targets"]:
            if target not in targets:
                raise BuildError(f"{manifest}: no target {target!r} in targets.toml")
            variants: Mapping[str, list[str]] = program.get("variants", {"": []})
            for variant, flags in variants.items():
                name = program["name"].format(target=target, variant=variant)
                spec = {**table.get("spec", {}), **program.get("spec", {})}
                yield Build(
                    folder=manifest.parent,
                    name=name,
                    sources=tuple(program["sources"]),
                    target=targets[target],
                    flags=(*table.get("flags", []), *program.get("flags", []), *flags),
                    layout=program.get("layout", "wx"),
                    spec=spec or None,
                    comment=program.get("comment", ""),
                )


def compile_and_link(build: Build, output: Path, *, strip: bool) -> None:
    layout = ROOT / "layouts" / f"{build.layout}.ld"
    command = [
        *(sys.executable, "-m", "ziglang", "cc", "-target", build.target.triple),
        *COMMON_FLAGS,
        f"-Wl,-z,max-page-size={build.target.page}",
        *build.target.flags,
        *build.flags,
        *(["-s"] if strip else []),
        *build.sources,
        *("-T", str(layout), "-o", str(output)),
    ]
    done = subprocess.run(command, cwd=build.folder, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not output.exists():
        raise BuildError(f"{build.folder.name}/{build.name}: the compiler failed\n{done.stderr.strip()}")


def loadable(path: Path) -> list[tuple[int, int, int, bytes]]:
    """What the loader sees: address, memory size, flags and bytes of each loadable segment."""
    with path.open("rb") as file:
        return [
            (segment["p_vaddr"], segment["p_memsz"], segment["p_flags"], segment.data())
            for segment in ELFFile(file).iter_segments()
            if segment["p_type"] == "PT_LOAD"
        ]


def read_symbols(path: Path) -> dict[str, int]:
    """Addresses by name. Bit 0 of ARM symbols says Thumb and is no part of the address."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        mask = ~1 if elf["e_machine"] == "EM_ARM" else ~0
        if table is None:
            raise BuildError(f"{path.name}: no symbol table (-Os and -Oz make the compiler driver strip)")
        return {symbol.name: symbol["st_value"] & mask for symbol in table.iter_symbols() if symbol.name}


def read_entry(path: Path) -> int:
    with path.open("rb") as file:
        return int(ELFFile(file)["e_entry"])


def resolve(value: Any, symbols: Mapping[str, int], where: str) -> Any:
    """`value` with every `@symbol` or `@symbol+offset` string, also as a key, replaced by an address."""
    if isinstance(value, dict):
        return {resolve(key, symbols, where): resolve(item, symbols, where) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, symbols, where) for item in value]
    if isinstance(value, str) and value.startswith("@"):
        match = SYMBOL.fullmatch(value)
        if match is None or match[1] not in symbols:
            raise BuildError(f"{where}: the spec names {value}, which the binary does not define")
        return Address(symbols[match[1]] + int(match[2] or "0", 0))
    if isinstance(value, int) and not isinstance(value, bool) and value > 0xFFF:
        return Address(value)
    return value


def render_spec(build: Build, named: Path) -> str:
    assert build.spec is not None
    resolved = resolve(dict(build.spec), read_symbols(named), build.name)
    spec: dict[str, Any] = {"binary": f"{Path(build.name).name}.elf", **resolved}
    start = read_entry(named)
    if spec.get("entry") == start - 1:
        spec["entry"] = Address(start)  # as in the ELF header, an odd ARM entry starts in Thumb state
    lines = [f"# {line}".rstrip() for line in build.comment.strip().splitlines()]
    lines.append("# Generated by tools/build_examples.py from build.toml.")
    body = yaml.dump(spec, Dumper=SpecDumper, sort_keys=False, default_flow_style=None, width=110)
    return "\n".join(lines) + "\n" + body


def make(build: Build, scratch: Path) -> dict[Path, bytes]:
    """The files of one build and their contents; nothing in the source tree is touched."""
    stripped, named = scratch / "stripped.elf", scratch / "named.elf"
    compile_and_link(build, stripped, strip=True)
    compile_and_link(build, named, strip=False)
    if loadable(stripped) != loadable(named):
        raise BuildError(f"{build.folder.name}/{build.name}: stripping changed what is loaded")
    files = {
        build.folder / f"{build.name}.elf": stripped.read_bytes(),
        build.folder / f"{build.name}.sym.elf": named.read_bytes(),
    }
    if build.spec is not None:
        files[build.folder / f"{build.name}.yaml"] = render_spec(build, named).encode()
    stripped.unlink()
    named.unlink()
    return files


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="rebuild the bundled example binaries")
    parser.add_argument("folder", nargs="*", type=Path, help="only these example folders (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a rebuild would differ")
    options = parser.parse_args(arguments)
    wanted = {folder.resolve() for folder in options.folder}
    manifests = [m for m in sorted(ROOT.rglob("build.toml")) if not wanted or m.parent in wanted]
    if not manifests:
        print("no build.toml found", file=sys.stderr)
        return 2
    stale = count = 0
    try:
        targets = read_targets(ROOT / "targets.toml")
        with tempfile.TemporaryDirectory() as scratch:
            for manifest in manifests:
                for build in read_builds(manifest, targets):
                    for path, content in make(build, Path(scratch)).items():
                        count += 1
                        if path.exists() and path.read_bytes() == content:
                            continue
                        stale += 1
                        print(("differs: " if options.check else "wrote ") + str(path.relative_to(ROOT)))
                        if not options.check:
                            path.parent.mkdir(exist_ok=True)
                            path.write_bytes(content)
                            path.chmod(0o755 if path.suffix == ".elf" else 0o644)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} files, {stale} {'different' if options.check else 'written'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
