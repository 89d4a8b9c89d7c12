"""A Python script that repeats a counterexample in Unicorn, for instruction sets that can be followed there.

The script is data (memory, registers, the path, what replaced functions return) and one loop that executes instruction
by instruction and stops where the engine leaves the path.
"""

from __future__ import annotations

import base64
import pprint
import zlib
from typing import Any

from mcveto.check.recording import Changes, Recording
from mcveto.check.unicorn_follower import page_protections

_SCRIPT = '''#!/usr/bin/env python3
"""Repeats a counterexample in Unicorn (pip install unicorn); --trace prints the address of every instruction.

Exit code 0: the violation is reproduced; 1: it is not.
"""
import base64
import sys
import zlib

from unicorn import Uc, UcError

DATA = @DATA@


def main():
    engine = Uc(DATA["architecture"], DATA["mode"])
    if DATA["processor"] is not None:
        engine.ctl_set_cpu_model(DATA["processor"])
    for start, size, protection in DATA["pages"]:
        engine.mem_map(start, size, protection)
    for start, content in DATA["memory"]:
        engine.mem_write(start, zlib.decompress(base64.b64decode(content)))
    set_registers(engine, DATA["registers"])
    replaced = iter(DATA["replaced"])
    for number, (at, until, count) in enumerate(DATA["steps"]):
        if "--trace" in sys.argv[1:]:
            print(f"{number:>7}  {at:#x}")
        if count == 0:  # a function that the spec replaces
            changes, writes, pc = next(replaced)
            for address, content in writes:
                engine.mem_write(address, content)
            set_registers(engine, changes)
        else:
            pc = execute(engine, at, until, count)
        path = DATA["steps"]
        expected = path[number + 1][0] if number + 1 < len(path) else DATA["end"]
        if pc & DATA["mask"] != expected & DATA["mask"]:
            print(f"NOT REPRODUCED: after step {number} at {at:#x} control is at {pc:#x} instead of {expected:#x}")
            return 1
    print(f"{len(DATA['steps'])} steps; {DATA['violation']}")
    print("REPRODUCED")
    return 0


def execute(engine, at, until, count):
    for attempt in range(2):  # an instruction that overwrites itself is started again
        try:
            engine.emu_start(at, until, count=count)
        except UcError as error:
            if attempt == 0:
                print(f"(at {at:#x}: {error})")
        for start, end in DATA["code"]:
            engine.ctl_remove_cache(start, end)
        pc = engine.reg_read(DATA["program_counter"])
        if pc != at & DATA["mask"]:
            break
    return pc


def set_registers(engine, changes):
    for register, mask, value in changes:
        engine.reg_write(register, engine.reg_read(register) & ~mask | value)


sys.exit(main())
'''


def unicorn_script(recording: Recording) -> str | None:
    """The script, or None if Unicorn does not have the instruction set or cannot be set as the run needs it."""
    from mcveto.check.unicorn_registers import UnicornIsa, unicorn_isa

    program = recording.program
    row = program.decoder.row
    thumb = bool(program.entry & row.mode_mask) and row.overlay == "arm"
    isa: UnicornIsa | None = unicorn_isa(program.image.isa, row.general, thumb)
    if isa is None or recording.example.undefined:
        return None
    if any(recording.initial.registers.get(name, 0) for name in ("FS_OFFSET", "GS_OFFSET")):
        return None
    if any(name not in isa.registers for name, value in recording.example.registers if value):
        return None

    def raw(changes: Changes) -> list[tuple[int, int, int]]:
        assert isa is not None
        found = []
        for name, value in changes:
            bits = isa.registers.get(name)
            if bits is not None:
                mask = ((1 << bits.bits) - 1) << bits.low
                found.append((bits.register, mask | bits.fixed, value << bits.low | bits.fixed))
        return found

    steps = []
    for step in recording.steps:
        at = row.code_address(step.pc)
        unit = len(step.code) > 4 and row.overlay == "arm"
        until = row.code_address(step.next_pc) if unit else at + len(step.code)
        steps.append((step.pc, until, 0 if step.pc in program.hooks else 8 if unit else 1))
    regions = recording.initial.memory.regions
    data: dict[str, Any] = {
        "violation": recording.violation.detail,
        "architecture": isa.architecture,
        "mode": isa.mode,
        "processor": isa.processor,
        "program_counter": isa.program_counter,
        "mask": row.address_mask & ~row.mode_mask,
        "end": recording.violation.pc,
        "pages": page_protections(regions),
        "code": [(region.start, region.end) for region in regions if region.permissions & 1],
        "registers": [*isa.status, *raw(tuple(recording.initial.registers.items()))],
        "replaced": [(raw(visit.changes), list(visit.writes), visit.next_pc) for visit in recording.hooks],
        "steps": steps,
        "memory": [
            (region.start, base64.b64encode(zlib.compress(bytes(region.data), 9)).decode()) for region in regions
        ],
    }
    return _SCRIPT.replace("@DATA@", pprint.pformat(data, width=118, compact=True, sort_dicts=False))
