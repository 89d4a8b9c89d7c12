"""A counterexample as a folder that a person can use without mcveto.

README.txt            what this is, and how to repeat it
counterexample.json   everything, for programs (and for `mcveto replay`)
inputs.bin            the inputs in the order consumed, each in whole bytes, little-endian
trace.txt             every instruction executed, with what it changed
run.sh                repeats the violation: in gdb if the program can run here, else in Unicorn
replay.gdb            stops a process at the violation (x86 ELF executables)
replay_unicorn.py     repeats the violation in Unicorn
a copy of the binary
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcveto.check.cex_gdb import gdb_script
from mcveto.check.cex_unicorn import unicorn_script
from mcveto.check.counterexample import Counterexample, counterexample
from mcveto.check.recording import Recording, trace_text
from mcveto.errors import InputFileError, UsageError
from mcveto.program.program import Program
from mcveto.program.spec import Spec, parse_spec
from mcveto.program.spec_mapping import spec_mapping
from mcveto.verdict import Verdict, VerdictInput

SCHEMA = "mcveto-counterexample-1"
VERDICT_SCHEMA = "mcveto-verdict-1"
FILE = "counterexample.json"
_MAX_JSON_BYTES = 64 << 20


def write_folder(folder: Path, verdict: Verdict, recording: Recording, version: str) -> None:
    """Writes all files; raises UsageError where that is not possible."""
    program = recording.program
    binary = Path(program.image.path)
    files: dict[str, str | bytes | None] = {
        FILE: json.dumps(_record(verdict, recording, version), indent=1) + "\n",
        "inputs.bin": b"".join(_input_bytes(item) for item in recording.example.inputs),
        "trace.txt": trace_text(recording),
        "replay.gdb": gdb_script(recording) if is_static_executable(program) and not program.image.imports else None,
        "replay_unicorn.py": unicorn_script(recording),
    }
    files["run.sh"] = _run_script(binary.name, files)
    files["README.txt"] = _readme(verdict, recording, binary.name, files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if content is None:
                (folder / name).unlink(missing_ok=True)
            else:
                (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        copy = folder / binary.name
        if not copy.exists() or not copy.samefile(binary):
            copy.write_bytes(binary.read_bytes())
        for name in ("run.sh", binary.name):
            (folder / name).chmod(0o755)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from None


def is_static_executable(program: Program) -> bool:
    """Whether the kernel maps the file as our loader does."""
    if program.image.format != "elf":
        return False
    try:
        with Path(program.image.path).open("rb") as stream:
            head = stream.read(20)
    except OSError:
        return False
    order = ">" if len(head) > 5 and head[5] == 2 else "<"
    return len(head) == 20 and struct.unpack_from(f"{order}H", head, 16)[0] == 2


def read_counterexample(path: Path) -> tuple[Counterexample, Spec | None, str | None]:
    """A counterexample folder, its JSON file, or a result of `verify --json`: (what it is, its spec, binary's hash)."""
    file = path / FILE if path.is_dir() else path
    try:
        content = file.read_bytes()
        raw = json.loads(content) if len(content) <= _MAX_JSON_BYTES else None
    except OSError as error:
        raise InputFileError(f"cannot read {file}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict) or raw.get("schema") not in (SCHEMA, VERDICT_SCHEMA):
        raise InputFileError(f"{file} is no counterexample", "give a folder of --cex or a file of verify --json")
    if raw["schema"] == VERDICT_SCHEMA and raw.get("verdict") != "violated":
        raise UsageError(f"{file} holds no violation", f"its verdict is {str(raw.get('verdict'))[:20]}")
    try:
        inputs = [VerdictInput(_int(item["value"]), _int(item["bits"]), str(item["where"])) for item in raw["inputs"]]
        sha256 = raw["binary"].get("sha256")
        about = str(raw["property"])
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputFileError(f"{file} is not complete") from None
    spec = parse_spec(raw["spec"], str(file)) if isinstance(raw.get("spec"), dict) else None
    return counterexample(about, inputs), spec, sha256 if isinstance(sha256, str) else None


def _int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def _record(verdict: Verdict, recording: Recording, version: str) -> dict[str, Any]:
    program, violation = recording.program, recording.violation
    image = program.image
    return {
        "schema": SCHEMA,
        "mcveto": version,
        "binary": {"path": Path(image.path).name, "sha256": image.sha256, "isa": image.isa},
        "spec": _spec_record(program),
        "property": verdict.about,
        "reason": verdict.reason,
        "inputs": [{"value": item.value, "bits": item.bits, "where": item.where} for item in verdict.inputs],
        "steps": violation.steps,
        "pc": violation.pc,
        "confirmed_by": list(verdict.confirmed_by),
        "assumptions": list(verdict.assumptions),
    }


def _spec_record(program: Program) -> dict[str, Any]:
    """The spec in the form that a spec file has."""
    spec, image = program.spec, program.image
    arch = spec.arch if spec.arch is not None else (image.isa if image.format not in ("elf", "pe") else None)
    whole = spec_mapping(replace(spec, arch=arch, entry=program.entry))
    return {"binary": Path(image.path).name, **whole}


def _input_bytes(item: VerdictInput) -> bytes:
    size = -(-item.bits // 8)
    return (item.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _run_script(binary: str, files: dict[str, str | bytes | None]) -> str:
    lines = ["#!/bin/sh", "# Repeats the violation; exit code 0 if it is reproduced.", 'cd "$(dirname "$0")" || exit 1']
    if files["replay.gdb"] is not None:
        command = f"exec gdb -q -nx -batch -x replay.gdb './{binary}'"
        lines += ['if [ "$(uname -m)" = x86_64 ] && command -v gdb >/dev/null; then', f"  {command}", "fi"]
    if files["replay_unicorn.py"] is not None:
        lines += ["if python3 -c 'import unicorn' 2>/dev/null; then", '  exec python3 replay_unicorn.py "$@"', "fi"]
    lines += ['echo "neither gdb (on x86-64) nor Python with unicorn is installed; see README.txt" >&2', "exit 1"]
    return "\n".join(lines) + "\n"


def _readme(verdict: Verdict, recording: Recording, binary: str, files: dict[str, str | bytes | None]) -> str:
    violation = recording.violation
    lines = [
        f"{binary}: the property {violation.about} is violated.",
        f"{violation.detail[0].upper()}{violation.detail[1:]}, after {violation.steps} instructions.",
        "",
        "Inputs, in the order consumed (then what else the run depends on):",
        *(f"  {item.value} ({item.bits} bits, {item.where})" for item in verdict.inputs),
        *([] if verdict.inputs else ["  none"]),
        "",
        "This holds under the assumptions",
        *(f"  {assumption}" for assumption in verdict.assumptions),
        "",
        f"It was run on: {', '.join(verdict.confirmed_by)}.",
        "",
        "To repeat it: ./run.sh",
        "trace.txt shows every instruction of the run, counterexample.json holds everything for programs,",
        "inputs.bin the inputs alone (in whole bytes, little-endian).",
    ]
    if files["replay.gdb"] is not None:
        lines.append(f"In gdb, stopped at the violation: gdb -x replay.gdb ./{binary} (remove the last lines to stay)")
    else:
        lines.append("There is no gdb script: the file is not a static x86 executable at a fixed address.")
    if files["replay_unicorn.py"] is not None:
        lines.append("In Unicorn, on any computer: python3 replay_unicorn.py --trace")
    else:
        lines.append(
            "There is no script for Unicorn: it lacks the instruction set, or a value that it cannot be given."
        )
    return "\n".join(lines) + "\n"
