"""`mcveto run`: execute a binary with given or random inputs.

First line on stdout: HALTED, EXITED(code), TARGET, FAULT(kind), LIMIT or UNSUPPORTED(reason). Exit code 0 when the
program ended (also by a fault of its own), 10 when a target was reached, 5 when we do not know how it goes on.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from mcveto.cli.options import parse_address, program_options, read_spec
from mcveto.errors import UsageError

EXIT_CODES = {"halted": 0, "exited": 0, "fault": 0, "target": 10, "limit": 5, "unsupported": 5}


@click.command()
@program_options
@click.option("--inputs", "inputs_text", default="", metavar="V,V,…", help="Input values in the order consumed.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    help="Draws inputs that are not given, and (if not 0) unspecified registers and memory.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=0),
    default=10_000_000,
    show_default=True,
    help="Stop after this many instructions.",
)
@click.option("--trace", "show_trace", is_flag=True, help="Print every instruction executed.")
@click.option("--accesses", is_flag=True, help="With --trace: also the memory accesses.")
@click.option("--registers", is_flag=True, help="Print the registers at the end.")
@click.option("--read", "reads", multiple=True, metavar="ADDRESS:SIZE", help="Print memory at the end.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON.")
def command(
    binary: str | None,
    inputs_text: str,
    seed: int,
    max_steps: int,
    show_trace: bool,
    accesses: bool,
    registers: bool,
    reads: tuple[str, ...],
    json_file: str | None,
    **options: Any,
) -> int:
    """Execute BINARY with given or random inputs."""
    from mcveto.machine.compiled import CompiledMachine
    from mcveto.program.exits import with_process_exit
    from mcveto.program.inputs import InputSource, parse_inputs
    from mcveto.program.program import load_program

    program = load_program(binary, read_spec(**options))
    source = InputSource(parse_inputs(inputs_text), seed)
    machine = program.machine(source, seed, log_accesses=accesses, make=CompiledMachine)
    windows = [_window(program, text) for text in reads]
    outcome = with_process_exit(program, machine, machine.run(max_steps))
    quiet = json_file == "-"
    if not quiet:
        print(_headline(outcome))
        for number, item in enumerate(source.consumed):
            print(f"input {number}: {item.value} ({item.bits} bits, {item.where})")
        for note in program.notes:
            print(f"note: {note}")
        if show_trace:
            _print_trace(program, machine, accesses)
        if registers:
            _print_registers(machine)
        for address, size in windows:
            content = machine.memory.peek(address, size)
            print(f"memory {address:#x}: {content.hex(' ') if content is not None else 'not mapped'}")
    if json_file is not None:
        _write_json(json_file, program, machine, outcome, source, seed)
    return EXIT_CODES[outcome.kind]


def _headline(outcome: Any) -> str:
    where = f"at {outcome.pc:#x} after {outcome.steps} steps"
    match outcome.kind:
        case "fault":
            data = "" if outcome.address is None else f", address {outcome.address:#x}"
            return f"FAULT({outcome.fault.label}) {where}{data}"
        case "unsupported":
            return f"UNSUPPORTED({outcome.detail.removeprefix('unsupported: ')}) after {outcome.steps} steps"
        case "exited":
            return f"EXITED({outcome.detail}) {where}"
    return f"{outcome.kind.upper()} {where}"


def _window(program: Any, text: str) -> tuple[int, int]:
    address_text, colon, size_text = text.rpartition(":")
    size = parse_address(size_text)
    if not colon or isinstance(size, str) or not 1 <= size <= 1 << 20:
        raise UsageError(f"'{text}' is not ADDRESS:SIZE", "e.g. 0x804a000:4")
    return program.address(parse_address(address_text)), size


def _print_trace(program: Any, machine: Any, accesses: bool) -> None:
    decode = program.decoder.decode
    for number, step in enumerate(machine.trace):
        hook = program.hooks.get(step.pc)
        instruction = hook if hook is not None else decode(step.pc, step.bytes)
        print(f"{number:>8}  {step.pc:#010x}  {step.bytes.hex():<20} {instruction.text}")
        if accesses:
            for access in machine.trace.accesses(number):
                direction = "write" if access.is_write else "read"
                print(f"{'':>12}{direction} {access.size} bytes at {access.address:#x}: {access.value:#x}")


def _print_registers(machine: Any) -> None:
    row = machine.decoder.row
    for name in (*row.general, *row.flags):
        print(f"{name:>8} = {machine.read(name):#x}")


def _write_json(json_file: str, program: Any, machine: Any, outcome: Any, source: Any, seed: int) -> None:
    from mcveto.cli.main import VERSION
    from mcveto.report.json_file import write_json

    row = program.decoder.row
    result = {
        "schema": "mcveto-run-1",
        "mcveto": VERSION,
        "binary": {"path": program.image.path, "sha256": program.image.sha256, "isa": program.image.isa},
        "outcome": outcome.kind,
        "detail": outcome.detail,
        "fault": None if outcome.fault is None else outcome.fault.label,
        "address": outcome.address,
        "pc": outcome.pc,
        "steps": outcome.steps,
        "inputs": [{"value": item.value, "bits": item.bits, "where": item.where} for item in source.consumed],
        "registers": {name: machine.read(name) for name in (*row.general, *row.flags)},
        "assumptions": list(program.assumptions),
        "notes": list(program.notes),
        "seed": seed,
        "command": ["mcveto", *sys.argv[1:]],
    }
    write_json(json_file, result)
