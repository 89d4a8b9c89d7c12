"""Options that several commands share: which binary, in which entry state."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from mcveto.errors import UsageError
from mcveto.program.spec import (
    MAX_INPUT_MEMORY,
    UNDEFINED,
    InputCall,
    InputMemory,
    PointerArgument,
    PropertySpec,
    Spec,
    load_spec,
)

F = TypeVar("F", bound=Callable[..., Any])

ADDRESS_HINT = "addresses are written 0x8049000, symbol or symbol+0x10"
_NUMBER_LIKE = re.compile(r"[-+]?[0-9]\w*", re.ASCII)
MAX_SEED = (1 << 64) - 1


def parse_address(text: str) -> int | str:
    """A number as a number, anything else for the image to resolve."""
    text = text.strip()
    if not text:
        raise UsageError("an address is empty", ADDRESS_HINT)
    if not _NUMBER_LIKE.fullmatch(text):
        return text
    value = _integer(text)
    if value is None or value < 0:
        raise UsageError(f"'{text[:40]}' is not an address", ADDRESS_HINT)
    return value


def parse_number(text: str, what: str) -> int:
    value = _integer(text.strip())
    if value is None or value < 0:
        raise UsageError(f"{what} must be a non-negative number, not '{text[:40]}'", "e.g. 0x400000")
    return value


def parse_range(text: str, what: str) -> tuple[int | str, int]:
    """ADDRESS:SIZE."""
    address, colon, size_text = text.rpartition(":")
    size = _integer(size_text.strip())
    if not colon or size is None or not 1 <= size <= MAX_INPUT_MEMORY:
        raise UsageError(
            f"{what}: '{text[:60]}' is not ADDRESS:SIZE", f"e.g. 0x804a000:4; SIZE is 1 to {MAX_INPUT_MEMORY}"
        )
    return parse_address(address), size


def _integer(text: str) -> int | None:
    """Decimal or 0x; neither octal nor underscores nor thousands of digits."""
    if not re.fullmatch(r"[-+]?(0[xX][0-9a-fA-F]{1,64}|[0-9]{1,64})", text, re.ASCII):
        return None
    return int(text, 16 if "x" in text.lower() else 10)


def input_call(text: str) -> InputCall:
    """ADDRESS or ADDRESS:BITS, with an s behind the bits if the value is signed."""
    address, colon, kind = text.rpartition(":")
    if not colon:
        return InputCall(parse_address(text))
    match = re.fullmatch(r"([0-9]{1,2})(s?)", kind.strip(), re.ASCII)
    if match is None or not 1 <= int(match[1]) <= 64:
        raise UsageError(f"--input: '{text[:60]}' is not ADDRESS:BITS", "e.g. read_byte:8, or 0x8049050:16s if signed")
    return InputCall(parse_address(address), int(match[1]), bool(match[2]))


def pointer_argument(text: str) -> PointerArgument:
    """N:SIZE, numbers above 0."""
    match = re.fullmatch(r"([0-9]{1,3}):([0-9]{1,9})", text.strip(), re.ASCII)
    if match is None or not int(match[1]) or not int(match[2]):
        raise UsageError(f"--pointer: '{text[:60]}' is not N:SIZE", "e.g. 3:16, the third argument points to 16 bytes")
    return PointerArgument(int(match[1]), int(match[2]))


def binary_options(function: F) -> F:
    """BINARY and how to load it."""
    return _decorated(
        function,
        click.argument("binary", required=False),
        click.option("--spec", "spec_file", metavar="FILE", help="Spec file (YAML); may name the binary."),
        click.option("--arch", metavar="ISA", help="Instruction set, for files that do not say."),
        click.option("--base", metavar="NUMBER", help="Where to load what can be moved."),
    )


def program_options(function: F) -> F:
    """BINARY and the options that describe its entry state; pass all of them on to `read_spec`."""
    function = _decorated(
        function,
        click.option("--entry", metavar="ADDRESS", help="Where execution starts (default: the file's entry)."),
        click.option(
            "--input",
            "input_calls",
            metavar="ADDRESS[:BITS]",
            help="Function whose calls return an input of BITS bits (32; 8s: signed).",
            multiple=True,
        ),
        click.option("--input-register", "input_registers", metavar="NAME", help="Input at entry.", multiple=True),
        click.option("--input-memory", metavar="ADDRESS:SIZE", help="Input bytes at entry.", multiple=True),
        click.option(
            "--pointer",
            "pointers",
            metavar="N:SIZE",
            help="The entry's argument N points to SIZE bytes of their own.",
            multiple=True,
        ),
        click.option(
            "--assume", metavar="ADDRESS", help="Function whose argument is assumed to be non-zero.", multiple=True
        ),
        click.option("--halt", "halts", metavar="ADDRESS", help="Execution ends here.", multiple=True),
        click.option("--target", "targets", metavar="ADDRESS", help="The address asked about.", multiple=True),
        click.option("--undefined", help=f"What functions do that the file does not define: {' or '.join(UNDEFINED)}."),
        click.option("--stack", metavar="BYTES", help="Size of the stack (1 MiB)."),
    )
    return binary_options(function)


def _decorated(function: F, *decorators: Callable[[F], F]) -> F:
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def read_binary_spec(*, spec_file: str | None, arch: str | None, base: str | None) -> Spec:
    """The spec file with what the command line says about loading."""
    spec = load_spec(spec_file) if spec_file is not None else Spec()
    return replace(
        spec,
        arch=arch if arch is not None else spec.arch,
        base=parse_number(base, "--base") if base is not None else spec.base,
    )


def read_spec(
    *,
    spec_file: str | None,
    arch: str | None,
    base: str | None,
    entry: str | None,
    input_calls: tuple[str, ...],
    input_registers: tuple[str, ...],
    input_memory: tuple[str, ...],
    pointers: tuple[str, ...],
    assume: tuple[str, ...],
    halts: tuple[str, ...],
    targets: tuple[str, ...],
    undefined: str | None,
    stack: str | None,
) -> Spec:
    """The spec file with what the command line adds or overrides."""
    spec = read_binary_spec(spec_file=spec_file, arch=arch, base=base)
    reach = (PropertySpec("reach", tuple(parse_address(target) for target in targets)),) if targets else ()
    memory = (InputMemory(*parse_range(text, "--input-memory")) for text in input_memory)
    stack_size = parse_number(stack, "--stack") if stack is not None else spec.stack
    if stack_size == 0:
        raise UsageError("--stack must be positive", "e.g. 1048576")
    if undefined is not None and undefined not in UNDEFINED:
        raise UsageError(f"--undefined is '{undefined[:60]}'", f"one of {', '.join(UNDEFINED)}")
    return replace(
        spec,
        entry=parse_address(entry) if entry is not None else spec.entry,
        input_calls=(*spec.input_calls, *map(input_call, input_calls)),
        input_registers=(*spec.input_registers, *input_registers),
        input_memory=(*spec.input_memory, *memory),
        pointers=(*spec.pointers, *map(pointer_argument, pointers)),
        assume=(*spec.assume, *map(parse_address, assume)),
        halt=(*spec.halt, *map(parse_address, halts)),
        properties=(*spec.properties, *reach),
        undefined=undefined if undefined is not None else spec.undefined,
        stack=stack_size,
    )
