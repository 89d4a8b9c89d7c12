"""Witnesses in the shape of SV-COMP's witness format 2.0 (YAML), with addresses where that has lines.

A violation is a `violation_sequence`: segments of waypoints in the order of the run. The first one assumes the entry
state, then come the values that input functions return and the branches that are taken, at last the target. A proof is
an `invariant_set`: what holds at the addresses of a certificate, as SMT-LIB over the registers and `mem`.

What differs from the format for C: `location` has `address` (and `function`, if the file has symbols) for `line` and
`column`; `format` is `smt_lib`; the language is `machine code`, and the task names the instruction set. The time of
creation is that of SOURCE_DATE_EPOCH if that is set.
"""

from __future__ import annotations

import os
import shlex
import time
import uuid
from collections.abc import Iterable
from typing import Any

from mcveto.report.result import Block, Invariant, Module, Reported, ReportedRun

FORMAT_VERSION = "2.0"
EXPRESSIONS = "smt_lib"
MAX_WAYPOINTS = 20_000


def witness_entries(reported: Reported) -> list[dict[str, Any]]:
    """One entry for each counterexample, or one with the invariants of a proof; none if there is neither."""
    if reported.module is None or not reported.module.isa:
        return []
    if reported.kind == "violated":
        return [
            _entry(reported, reported.module, "violation_sequence", _sequence(reported, run)) for run in reported.runs
        ]
    if reported.kind == "proved" and reported.invariants:
        content = [_invariant(reported.module, item) for item in reported.invariants]
        return [_entry(reported, reported.module, "invariant_set", content)]
    return []


def witness_text(reported: Reported) -> str:
    import yaml

    entries = witness_entries(reported)
    return yaml.dump(entries, Dumper=_dumper(), sort_keys=False, width=120, allow_unicode=True)


class Hexadecimal(int):
    """A number that is written in hexadecimal."""


def _dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    Dumper.add_representer(
        Hexadecimal, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:int", f"{value:#x}")
    )
    return Dumper


def _entry(reported: Reported, module: Module, kind: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "") or time.time())
    data_model = {32: "ILP32", 64: "LP64"}.get(module.address_bits, "unknown")
    return {
        "entry_type": kind,
        "metadata": {
            "format_version": FORMAT_VERSION,
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, repr((module.sha256, reported.command, kind, content)))),
            "creation_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
            "producer": {
                "name": "mcveto",
                "version": reported.version,
                "command_line": shlex.join(reported.command),
            },
            "task": {
                "input_files": [module.path],
                "input_file_hashes": {module.path: module.sha256},
                "specification": _specification(reported),
                "data_model": data_model,
                "language": "machine code",
                "instruction_set": module.isa,
            },
        },
        "content": content,
    }


def _specification(reported: Reported) -> str:
    """What was asked, as the format writes it: G ! call(reach_error()) is about an address here."""
    parts = []
    for item in reported.properties:
        if item.name == "reach":
            parts += [f"G ! reach({place:#x})" for place in item.places]
        else:
            parts.append(f"G ! {item.name}")
    return " & ".join(f"CHECK( init({reported.module.entry:#x}), LTL({part}) )" for part in parts if reported.module)


def _sequence(reported: Reported, run: ReportedRun) -> list[dict[str, Any]]:
    module = reported.module
    assert module is not None
    points = []
    entry = _entry_constraint(module, run)
    if entry:
        points.append(_waypoint(module, "assumption", module.entry, entry))
    steps = [point for block in run.blocks for point in _points_of(module, block)]
    if len(steps) > MAX_WAYPOINTS:
        steps = [point for point in steps if point["type"] != "branching"][:MAX_WAYPOINTS]
    points += steps
    points.append(_waypoint(module, "target", run.at, None))
    return [{"segment": [{"waypoint": point}]} for point in points]


def _points_of(module: Module, block: Block) -> Iterable[dict[str, Any]]:
    if block.result is not None:
        register, bits, value = block.result
        yield _waypoint(module, "function_return", block.next_pc, _equals(register, module.address_bits, bits, value))
    if block.way in ("branch", "no branch"):
        yield _waypoint(module, "branching", block.last_pc, "true" if block.way == "branch" else "false")


def _waypoint(module: Module, kind: str, pc: int, constraint: str | None) -> dict[str, Any]:
    point: dict[str, Any] = {"type": kind, "action": "follow"}
    if constraint is not None:
        point["constraint"] = {"value": constraint, "format": EXPRESSIONS}
    point["location"] = _location(module, pc)
    return point


def _location(module: Module, pc: int) -> dict[str, Any]:
    location: dict[str, Any] = {"file_name": module.path, "address": Hexadecimal(pc)}
    name, _ = module.name_of(pc)
    if name:
        location["function"] = name
    return location


def _entry_constraint(module: Module, run: ReportedRun) -> str:
    parts = [_equals(name, bits, bits, value) for name, bits, value in run.registers]
    parts += [f"(= (select mem #x{address:0{module.address_bits // 4}x}) #x{byte:02x})" for address, byte in run.memory]
    return parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})" if parts else ""


def _equals(register: str, width: int, bits: int, value: int) -> str:
    bits = min(bits, width)
    name = register if register.isidentifier() else f"|{register}|"
    left = name if bits == width else f"((_ extract {bits - 1} 0) {name})"
    value &= (1 << bits) - 1
    right = f"#x{value:0{bits // 4}x}" if bits % 4 == 0 else f"#b{value:0{bits}b}"
    return f"(= {left} {right})"


def _invariant(module: Module, item: Invariant) -> dict[str, Any]:
    return {
        "invariant": {
            "type": "loop_invariant" if item.is_loop_head else "location_invariant",
            "location": _location(module, item.pc),
            "value": item.text,
            "format": EXPRESSIONS,
        }
    }
