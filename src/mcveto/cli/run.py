"""`mcveto run`: execute a binary with given or random inputs.

First line on stdout: HALTED, EXITED(code), TARGET, FAULT(kind), ASSUMPTION-FAILED, LIMIT or UNSUPPORTED(reason). Exit
code 0 when the program ended (also by a fault of its own), 10 when a target was reached, 5 when we do not know how it
goes on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import MAX_SEED, parse_range, program_options, read_spec
from mcveto.errors import UsageError

if TYPE_CHECKING:
    from mcveto.machine.emulator import Machine, Outcome
    from mcveto.program.inputs import InputSource
    from mcveto.program.program import Program

_DEEPEST_INDENTATION = 16


@click.command()
@program_options
@click.option("--inputs", "inputs_text", default="", metavar="V,V,…", help="Input values in the order consumed.")
@click.option(
    "--seed",
    type=click.IntRange(0, MAX_SEED),
    default=0,
    help="Draws inputs that are not given, and (if not 0) unspecified registers and memory.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(0, (1 << 63) - 1),
    default=10_000_000,
    show_default=True,
    help="Stop after this many instructions.",
)
@click.option("--trace", "show_trace", is_flag=True, help="Print every instruction executed, calls indented.")
@click.option("--accesses", is_flag=True, help="Print the memory accesses too (implies --trace).")
@click.option("--registers", is_flag=True, help="Print the registers at the end.")
@click.option("--read", "reads", multiple=True, metavar="ADDRESS:SIZE", help="Print memory at the end.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
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
    """Execute BINARY with given or random inputs.

    The run starts at the entry and ends at a halt, a target, a fault, or where the entry returns. Exit code: 0 the
    program ended, 10 a target was reached, 5 it is not known how the program goes on.
    """
    from mcveto.cli.outcome import EXIT_CODES, headline, outcome_name
    from mcveto.machine.compiled import CompiledMachine
    from mcveto.program.exits import run_to_end
    from mcveto.program.inputs import InputSource, parse_inputs
    from mcveto.program.program import load_program
    from mcveto.report.json_file import require_writable

    source = InputSource(parse_inputs(inputs_text), seed)
    require_writable(json_file)
    program = load_program(binary, read_spec(**options))
    windows = [_window(program, text) for text in reads]
    machine = program.machine(source, seed, log_accesses=accesses, make=CompiledMachine)
    outcome = run_to_end(program, machine, max_steps)
    show_trace = show_trace or accesses
    if json_file != "-":
        print(headline(outcome, program.decoder.row.code_address(outcome.pc)))
        for number, item in enumerate(source.consumed):
            print(f"input {number}: {item.value} ({item.bits} bits, {item.where})")
        for note in _notes(program, source):
            print(f"note: {note}")
        if show_trace:
            _print_trace(program, machine, accesses)
        if registers:
            _print_registers(machine)
        for address, size in windows:
            print(f"memory {address:#x}: {_content(machine, address, size).hex(' ')}")
    if json_file is not None:
        from mcveto.report.json_file import write_json

        result = _result(program, machine, outcome, source, seed)
        result["memory"] = [
            {"address": address, "size": size, "bytes": _content(machine, address, size).hex()}
            for address, size in windows
        ]
        if show_trace:
            result["trace"] = _trace_items(program, machine, accesses)
        write_json(json_file, result)
    return EXIT_CODES[outcome_name(outcome)]


def _notes(program: Program, source: InputSource) -> list[str]:
    notes = list(program.notes)
    if source.unused:
        notes.append(f"{source.unused} of the given inputs were not used")
    unchecked = sorted({prop.name for prop in program.spec.properties if prop.name != "reach"})
    if unchecked:
        notes.append(f"a run does not check the properties {', '.join(unchecked)}")
    return notes


def _window(program: Program, text: str) -> tuple[int, int]:
    address, size = parse_range(text, "--read")
    start = program.address(address)
    at = start
    while at < start + size:
        region = program.space.region_at(at)
        if region is None:
            ranges = ", ".join(f"{r.start:#x}-{r.end:#x}" for r in program.space.regions[:6])
            raise UsageError(f"--read: nothing is mapped at {at:#x}", f"mapped: {ranges}")
        at = region.end
    return start, size


def _content(machine: Machine, address: int, size: int) -> bytes:
    content = machine.memory.peek(address, size)
    assert content is not None
    return content


def _print_trace(program: Program, machine: Machine, accesses: bool) -> None:
    from mcveto.machine.pcode import Transfer

    code_address = program.decoder.row.code_address
    depth = 0
    for number, step in enumerate(machine.trace):
        indentation = "  " * min(depth, _DEEPEST_INDENTATION)
        text = _text(program, step.pc, step.bytes)
        print(f"{number:>8}  {code_address(step.pc):#010x}  {step.bytes.hex():<20} {indentation}{text}")
        if step.transfer is Transfer.CALL:
            depth += 1
        elif step.transfer is Transfer.RETURN:
            depth = max(depth - 1, 0)
        if accesses:
            for access in machine.trace.accesses(number):
                direction = "write" if access.is_write else "read"
                print(f"{'':>12}{direction} {access.size} bytes at {access.address:#x}: {access.value:#x}")


def _text(program: Program, pc: int, code: bytes) -> str:
    hook = program.hooks.get(pc)
    return (hook if hook is not None else program.decoder.decode(pc, code)).text


def _trace_items(program: Program, machine: Machine, accesses: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for number, step in enumerate(machine.trace):
        item: dict[str, Any] = {"pc": step.pc, "bytes": step.bytes.hex(), "text": _text(program, step.pc, step.bytes)}
        if accesses:
            item["accesses"] = [
                {"address": a.address, "size": a.size, "value": a.value, "write": a.is_write}
                for a in machine.trace.accesses(number)
            ]
        items.append(item)
    return items


def _print_registers(machine: Machine) -> None:
    row = machine.decoder.row
    for name in (*row.general, *row.flags):
        print(f"{name:>8} = {machine.read(name):#x}")


def _result(program: Program, machine: Machine, outcome: Outcome, source: InputSource, seed: int) -> dict[str, Any]:
    from mcveto.cli.main import VERSION
    from mcveto.cli.outcome import outcome_name, reason

    row = program.decoder.row
    return {
        "schema": "mcveto-run-1",
        "mcveto": VERSION,
        "binary": {"path": program.image.path, "sha256": program.image.sha256, "isa": program.image.isa},
        "outcome": outcome_name(outcome),
        "detail": reason(outcome),
        "fault": None if outcome.fault is None else outcome.fault.label,
        "address": outcome.address,
        "pc": outcome.pc,
        "steps": outcome.steps,
        "inputs": [{"value": item.value, "bits": item.bits, "where": item.where} for item in source.consumed],
        "registers": {name: machine.read(name) for name in (*row.general, *row.flags)},
        "assumptions": list(program.assumptions),
        "notes": _notes(program, source),
        "seed": seed,
        "command": ["mcveto", *sys.argv[1:]],
    }
