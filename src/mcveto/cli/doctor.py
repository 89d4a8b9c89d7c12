"""`mcveto doctor`: what is installed and whether it works, each by a small real task."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click


def _decode_everything() -> str:
    from mcveto.machine.isa import decoder_for, isa_rows

    for name in isa_rows():
        decoder_for(name)
    return f"{len(isa_rows())} instruction sets"


def _solve(name: str) -> str:
    from mcveto.logic.solver import make_solver
    from mcveto.logic.terms import const, eq, mul, var

    solver = make_solver(name)
    x = var("x", 16)
    solver.add(eq(mul(x, x), const(25, 16)))
    if solver.check(timeout=10) != "sat" or solver.value(x) ** 2 & 0xFFFF != 25:
        raise RuntimeError("a simple equation was not solved")
    return "solves an equation"


def _parse_mach_o() -> str:
    lief: Any = import_module("lief")
    if lief.is_macho(list(b"\xcf\xfa\xed\xfe" + bytes(28))) is not True:
        raise RuntimeError("a Mach-O header was not recognised")
    return "recognises a header"


def _read_elf() -> str:
    from io import BytesIO

    elffile: Any = import_module("elftools.elf.elffile")
    header = b"\x7fELF\1\1\1" + bytes(9) + (2).to_bytes(2, "little") + (3).to_bytes(2, "little") + bytes(32)
    if elffile.ELFFile(BytesIO(header))["e_machine"] != "EM_386":
        raise RuntimeError("an ELF header was not read")
    return "reads a header"


def _emulate() -> str:
    import unicorn
    from unicorn import x86_const

    engine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_32)
    engine.mem_map(0x1000, 0x1000)
    engine.mem_write(0x1000, b"\x40")
    engine.emu_start(0x1000, 0x1001)
    if engine.reg_read(x86_const.UC_X86_REG_EAX) != 1:
        raise RuntimeError("inc eax did not count")
    return "executes"


CHECKS: list[tuple[str, str, Callable[[], str]]] = [
    ("pypcode", "SLEIGH decoding", _decode_everything),
    ("bitwuzla", "first solver", lambda: _solve("bitwuzla")),
    ("z3-solver", "second solver", lambda: _solve("z3")),
    ("lief", "loading Mach-O", _parse_mach_o),
    ("pyelftools", "unwind tables", _read_elf),
    ("unicorn", "confirming runs", _emulate),
]


def _programs() -> list[dict[str, Any]]:
    """Programs that take part where they are installed; nothing is missing without them."""
    from shutil import which

    from mcveto.check.qemu_follower import COMMANDS

    found = [name for name in COMMANDS if which(name) is not None]
    result = f"{', '.join(found)} found" if found else "not installed; Debian: apt-get install qemu-user"
    state = "ok" if len(found) == len(COMMANDS) else "optional"
    return [{"package": "qemu-user", "version": None, "purpose": "confirming runs", "state": state, "result": result}]


@click.command()
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
def command(json_file: str | None) -> int:
    """Say what is installed and whether it works.

    Exit code 0 if everything does, 70 if something is missing or broken.
    """
    from mcveto.cli.main import VERSION
    from mcveto.report.json_file import require_writable, write_json

    require_writable(json_file)
    python = sys.version.split()[0]
    checks: list[dict[str, Any]] = []
    for package, purpose, check in CHECKS:
        checks.append(_examine(package, purpose, check))
    checks += _programs()
    if json_file != "-":
        print(f"mcveto {VERSION}, python {python}")
        for item in checks:
            fine = item["state"] in ("ok", "optional")
            state, installed = item["state"] if fine else item["state"].upper(), item["version"] or "-"
            print(f"{item['package']:<12} {installed:<10} {state:<8} {item['purpose']}: {item['result']}")
    if json_file is not None:
        write_json(json_file, {"schema": "mcveto-doctor-1", "mcveto": VERSION, "python": python, "checks": checks})
    return 0 if all(item["state"] in ("ok", "optional") for item in checks) else 70


def _examine(package: str, purpose: str, check: Callable[[], str]) -> dict[str, Any]:
    item: dict[str, Any] = {"package": package, "version": None, "purpose": purpose}
    try:
        item["version"] = version(package)
        return item | {"state": "ok", "result": check()}
    except PackageNotFoundError:
        return item | {"state": "missing", "result": "not installed; make install brings it"}
    except Exception as error:
        from mcveto.errors import one_line

        return item | {"state": "broken", "result": one_line(f"{type(error).__name__}: {error}")}
