"""`mcveto trace`: the symbolic path constraint of a run.

The run that the given inputs take is executed symbolically; what it depended on is printed, one conjunct a line: the
step, the instruction, why the condition is needed, and the condition in terms of the inputs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import MAX_SEED, program_options, read_spec
from mcveto.errors import UsageError

if TYPE_CHECKING:
    from mcveto.logic.terms import Term
    from mcveto.machine.concolic import ConcolicExecution
    from mcveto.machine.emulator import Outcome
    from mcveto.program.inputs import InputSource
    from mcveto.program.program import Program


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
    default=10_000,
    show_default=True,
    help="Stop after this many instructions.",
)
@click.option("--smt", is_flag=True, help="Print the path constraint as an SMT-LIB script and nothing else.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
def command(
    binary: str | None, inputs_text: str, seed: int, max_steps: int, smt: bool, json_file: str | None, **options: Any
) -> int:
    """Show the symbolic path constraint of the run BINARY takes with these inputs.

    Every line is a condition the run depended on: which way a branch went, where an indirect jump led, that an access
    did not fault, that code was not overwritten. Exit codes are those of `mcveto run`.
    """
    from mcveto.cli.outcome import EXIT_CODES, headline, outcome_name
    from mcveto.logic.infix import pretty
    from mcveto.logic.smtlib import script
    from mcveto.program.exits import follow_to_end
    from mcveto.program.inputs import InputSource, parse_inputs
    from mcveto.program.program import load_program
    from mcveto.report.json_file import require_writable, write_json

    if smt and json_file == "-":
        raise UsageError("--smt and --json - both want standard output", "name a file for one of them")
    source = InputSource(parse_inputs(inputs_text), seed)
    require_writable(json_file)
    program = load_program(binary, read_spec(**options))
    execution = program.concolic(source, seed)
    outcome = follow_to_end(program, execution, max_steps)
    code_address = program.decoder.row.code_address
    if smt:
        sys.stdout.write(script([item.term for item in execution.path]))
    elif json_file != "-":
        print(headline(outcome, code_address(outcome.pc)))
        for variable, value in _shown_variables(execution):
            print(f"{variable.data} = {value} ({variable.width} bits)")
        for note in program.notes:
            print(f"note: {note}")
        if source.unused:
            print(f"note: {source.unused} of the given inputs were not used")
        for item in execution.path:
            print(f"{item.step:>8}  {code_address(item.pc):#010x}  {item.kind.value:<7} {pretty(item.term)}")
    if json_file is not None:
        write_json(json_file, _result(program, execution, outcome, source, seed))
    return EXIT_CODES[outcome_name(outcome)]


def _result(
    program: Program, execution: ConcolicExecution, outcome: Outcome, source: InputSource, seed: int
) -> dict[str, Any]:
    from mcveto.cli.main import VERSION
    from mcveto.cli.outcome import outcome_name, reason
    from mcveto.logic.infix import pretty

    return {
        "schema": "mcveto-trace-1",
        "mcveto": VERSION,
        "binary": {"path": program.image.path, "sha256": program.image.sha256, "isa": program.image.isa},
        "outcome": outcome_name(outcome),
        "detail": reason(outcome),
        "fault": None if outcome.fault is None else outcome.fault.label,
        "address": outcome.address,
        "pc": outcome.pc,
        "steps": outcome.steps,
        "inputs": [{"value": item.value, "bits": item.bits, "where": item.where} for item in source.consumed],
        "variables": [
            {"name": str(variable.data), "bits": variable.width, "value": value}
            for variable, value in _shown_variables(execution)
        ],
        "path": [
            {"step": item.step, "pc": item.pc, "kind": item.kind.value, "condition": pretty(item.term)}
            for item in execution.path
        ],
        "assumptions": list(program.assumptions),
        "notes": list(program.notes),
        "seed": seed,
        "command": ["mcveto", *sys.argv[1:]],
    }


def _shown_variables(execution: ConcolicExecution) -> list[tuple[Term, int]]:
    """The inputs, and those undefined values that the path depends on, with their values in this run."""
    from mcveto.logic.terms import free_variables
    from mcveto.machine.pcode import FreshOrigin

    used = set(free_variables([item.term for item in execution.path]))
    return [
        (variable, value)
        for variable, origin, value in execution.fresh_values
        if origin is FreshOrigin.INPUT or variable in used
    ]
