"""Options that several commands share: which binary, in which entry state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from mcveto.errors import UsageError
from mcveto.program.spec import InputCall, PropertySpec, Spec, load_spec

F = TypeVar("F", bound=Callable[..., Any])


def parse_address(text: str) -> int | str:
    """A number as a number, anything else for the image to resolve."""
    try:
        value = int(text, 0)
    except ValueError:
        return text
    if value < 0:
        raise UsageError(f"{text} is not an address", "addresses are written 0x8049000, symbol or symbol+0x10")
    return value


def parse_number(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    value = parse_address(text)
    if isinstance(value, str):
        raise UsageError(f"{what} must be a number, not '{text}'", "e.g. 0x400000")
    return value


def program_options(function: F) -> F:
    """BINARY and the options that describe its entry state; pass all of them on to `read_spec`."""
    for decorate in reversed(
        [
            click.argument("binary", required=False),
            click.option("--spec", "spec_file", metavar="FILE", help="Spec file (YAML); may name the binary."),
            click.option("--arch", metavar="ISA", help="Instruction set, for files that do not say."),
            click.option("--base", metavar="ADDRESS", help="Where to load what can be moved."),
            click.option("--entry", metavar="ADDRESS", help="Where execution starts."),
            click.option(
                "--input", "input_calls", multiple=True, metavar="ADDRESS", help="Function that returns an input."
            ),
            click.option("--halt", "halts", multiple=True, metavar="ADDRESS", help="Execution ends here."),
            click.option("--target", "targets", multiple=True, metavar="ADDRESS", help="The address asked about."),
        ]
    ):
        function = decorate(function)
    return function


def read_spec(
    *,
    spec_file: str | None,
    arch: str | None,
    base: str | None,
    entry: str | None,
    input_calls: tuple[str, ...],
    halts: tuple[str, ...],
    targets: tuple[str, ...],
) -> Spec:
    """The spec file with what the command line adds or overrides."""
    spec = load_spec(spec_file) if spec_file else Spec()
    reach = (PropertySpec("reach", tuple(parse_address(target) for target in targets)),) if targets else ()
    return replace(
        spec,
        arch=arch or spec.arch,
        base=parse_number(base, "--base") if base is not None else spec.base,
        entry=parse_address(entry) if entry is not None else spec.entry,
        input_calls=(*spec.input_calls, *(InputCall(parse_address(call)) for call in input_calls)),
        halt=(*spec.halt, *(parse_address(halt) for halt in halts)),
        properties=(*spec.properties, *reach),
    )
