"""`mcveto trace`: the symbolic path constraint of a run.

The run that the given inputs take is executed symbolically; what it depended on is printed, one conjunct a line: the
step, the instruction, why the condition is needed, and the condition in terms of the inputs.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from mcveto.cli.options import program_options, read_spec


@click.command()
@program_options
@click.option("--inputs", "inputs_text", default="", metavar="V,V,…", help="Input values in the order consumed.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Draws inputs that are not given.")
@click.option(
    "--max-steps",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    help="Stop after this many instructions.",
)
@click.option("--smt", is_flag=True, help="Print the path constraint as an SMT-LIB script instead.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON.")
def command(
    binary: str | None, inputs_text: str, seed: int, max_steps: int, smt: bool, json_file: str | None, **options: Any
) -> int:
    """Show the symbolic path constraint of the run BINARY takes with these inputs."""
    from mcveto.logic.infix import pretty
    from mcveto.logic.smtlib import script
    from mcveto.program.inputs import InputSource, parse_inputs
    from mcveto.program.program import load_program

    program = load_program(binary, read_spec(**options))
    source = InputSource(parse_inputs(inputs_text), seed)
    execution = program.concolic(source, seed)
    ending = execution.run(max_steps)
    if smt:
        sys.stdout.write(script([item.term for item in execution.path]))
    elif json_file != "-":
        print(f"{ending} at {execution.pc:#x} after {execution.steps} steps")
        for variable, _, value in execution.fresh_values:
            print(f"{variable.data} = {value} ({variable.width} bits)")
        for item in execution.path:
            print(f"{item.step:>8}  {item.pc:#010x}  {item.kind.value:<7} {pretty(item.term)}")
    if json_file is not None:
        _write_json(json_file, program, execution, ending, source)
    return 5 if ending == "limit" or ending.startswith("unsupported") else 0


def _write_json(json_file: str, program: Any, execution: Any, ending: str, source: Any) -> None:
    from mcveto.cli.main import VERSION
    from mcveto.logic.infix import pretty
    from mcveto.report.json_file import write_json

    write_json(
        json_file,
        {
            "schema": "mcveto-trace-1",
            "mcveto": VERSION,
            "binary": {"path": program.image.path, "sha256": program.image.sha256, "isa": program.image.isa},
            "ending": ending,
            "pc": execution.pc,
            "steps": execution.steps,
            "inputs": [{"value": item.value, "bits": item.bits, "where": item.where} for item in source.consumed],
            "path": [
                {"step": item.step, "pc": item.pc, "kind": item.kind.value, "condition": pretty(item.term)}
                for item in execution.path
            ],
            "assumptions": list(program.assumptions),
            "notes": list(program.notes),
        },
    )
