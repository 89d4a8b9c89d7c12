"""`mcveto translate`: the program in another language; for now C, in the manner of AIR."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from mcveto.cli.options import program_options, read_spec
from mcveto.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mcveto.translate.to_c import Summary


@click.command()
@program_options
@click.option("--to", "language", type=click.Choice(["c"]), required=True, help="The language.")
@click.option("-o", "--output", metavar="FILE", help="Where to write it (default: stdout).")
@click.option(
    "--memory",
    type=click.Choice(["array", "pointers"]),
    default="array",
    show_default=True,
    help="Memory as byte arrays with permissions, or as what C pointers point to.",
)
@click.option("--dispatch", type=click.Choice(["known", "all"]), default="known", show_default=True,
              help="Where indirect jumps can lead: known targets, or every instruction.")  # fmt: skip
@click.option("--property", "properties", multiple=True, metavar="FILE|NAME", help="A typestate automaton to put in.")
@click.option(
    "--event", "events", multiple=True, metavar="NAME=KIND:ADDRESS", help="Where an event of a typestate automaton is."
)
def command(
    binary: str | None,
    language: str,
    output: str | None,
    memory: str,
    dispatch: str,
    properties: tuple[str, ...],
    events: tuple[str, ...],
    **options: Any,
) -> int:
    """Translate BINARY: registers as globals, procedures as functions, instructions as statements.

    Every executable byte is translated or listed, in the file and on stderr, as not translated.
    """
    from mcveto.program.program import load_program
    from mcveto.property.attach import attach, parse_event, with_typestates
    from mcveto.translate.to_c import CTranslation

    spec = with_typestates(read_spec(**options), properties)
    program = attach(load_program(binary, spec), [parse_event(text) for text in events]).program
    translation = CTranslation(program, "pointers" if memory == "pointers" else "array", dispatch_all=dispatch == "all")
    with _opened(output) as stream:
        for line in translation.lines():
            stream.write(line)
            stream.write("\n")
    _report(translation.summary, output)
    return 0


def _opened(output: str | None) -> AbstractContextManager[TextIO]:
    if output is None or output == "-":
        return nullcontext(sys.stdout)
    try:
        return Path(output).open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None


def _report(summary: Summary, output: str | None) -> None:
    """What became of the executable bytes; on stderr, where it does not mix with the C."""
    where = f" to {output}" if output not in (None, "-") else ""
    lines = [f"{summary.instructions} instructions in {summary.procedures} procedures translated{where}"]
    if summary.swept:
        lines.append(f"{summary.swept} of them were only found by sweeping over what nothing refers to")
    if summary.traps:
        lines.append(f"{summary.traps} of them are outside what is modelled and trap")
    if summary.lost_bytes:
        lines.append(f"{summary.lost_bytes} executable bytes are not translated, listed at the head of the C")
    for line in lines:
        print(f"mcveto: {line}", file=sys.stderr)
