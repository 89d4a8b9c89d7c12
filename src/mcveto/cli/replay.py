"""`mcveto replay`: run a counterexample again, in our emulator, in Unicorn, and on this computer's processor.

First line on stdout: CONFIRMED(<property>) or NOT CONFIRMED(<reason>). Exit code 10 if the violation is confirmed, 5 if
it is not; 2 and 3 as everywhere.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import program_options, read_spec
from mcveto.errors import UsageError

if TYPE_CHECKING:
    from mcveto.check.replay import Replay
    from mcveto.program.program import Program
    from mcveto.program.spec import Spec

EXIT_CONFIRMED = 10
EXIT_NOT_CONFIRMED = 5


@click.command()
@click.argument("cex")
@program_options
@click.option(
    "--max-steps", type=click.IntRange(0, 1 << 40), default=1_000_000, show_default=True, help="Limit of steps."
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
def command(cex: str, binary: str | None, max_steps: int, json_file: str | None, **options: Any) -> int:
    """Run the counterexample CEX of BINARY again.

    CEX is a folder written by verify --cex, or a file written by verify --json; a file does not hold what was asked, so
    give the same options as to verify. A folder has a copy of the binary.
    """
    from mcveto.check.cex_folder import read_counterexample
    from mcveto.check.replay import replay
    from mcveto.errors import one_line
    from mcveto.program.program import load_program
    from mcveto.report.json_file import require_writable, write_json

    require_writable(json_file)
    path = Path(cex)
    example, own_spec, sha256 = read_counterexample(path)
    given = read_spec(**options)
    spec = _merged(given, own_spec)
    program = load_program(binary or _own_binary(path, spec, own_spec), spec)
    if sha256 is not None and sha256 != program.image.sha256:
        raise UsageError(f"the counterexample belongs to another file than {program.image.path}", f"sha256 {sha256}")
    result = replay(program, example, max_steps=max_steps)
    if json_file != "-":
        for line in _lines(program, result, example.about):
            print(one_line(line))
    if json_file is not None:
        write_json(json_file, _record(program, result, example.about))
    return EXIT_CONFIRMED if result.confirmed else EXIT_NOT_CONFIRMED


def _merged(given: Spec, own: Spec | None) -> Spec:
    """What the counterexample says of itself, unless the command line describes the program."""
    if own is None:
        return given
    described = (
        given.path,
        given.entry,
        given.input_calls,
        given.input_registers,
        given.input_memory,
        given.pointers,
        given.properties,
    )
    if any(described):
        return given
    return replace(own, arch=given.arch or own.arch, base=given.base if given.base is not None else own.base)


def _own_binary(path: Path, spec: Spec, own: Spec | None) -> str | None:
    if own is None or own.binary is None or spec.path != own.path:
        return None
    folder = path if path.is_dir() else path.parent
    return str(folder / own.binary)


def _lines(program: Program, result: Replay, about: str) -> list[str]:
    if result.confirmed:
        lines = [f"CONFIRMED({about})"]
    else:
        lines = [f"NOT CONFIRMED({result.problem})"]
    if result.violation is not None:
        lines.append(f"reason: {result.violation.detail}, after {result.violation.steps} steps")
        lines.append("emulator: agrees")
    lines += [str(item) for item in result.comparisons]
    return [*lines, *(f"assumption: {assumption}" for assumption in program.assumptions)]


def _record(program: Program, result: Replay, about: str) -> dict[str, Any]:
    from mcveto.cli.main import VERSION

    violation = result.violation
    return {
        "schema": "mcveto-replay-1",
        "mcveto": VERSION,
        "binary": {"path": program.image.path, "sha256": program.image.sha256, "isa": program.image.isa},
        "confirmed": result.confirmed,
        "property": about,
        "reason": result.problem or (violation.detail if violation is not None else None),
        "steps": violation.steps if violation is not None else None,
        "pc": violation.pc if violation is not None else None,
        "confirmed_by": list(result.confirmed_by),
        "machines": [
            {
                "name": item.name,
                "agrees": item.agrees,
                "skipped": item.skipped or None,
                "steps": item.steps,
                "difference": None if item.difference is None else str(item.difference),
            }
            for item in result.comparisons
        ],
        "assumptions": list(program.assumptions),
        "notes": list(program.notes),
        "command": ["mcveto", *sys.argv[1:]],
    }
