"""`mcveto disasm`: the instructions at an address, as the machine decodes them, optionally with their P-code."""

from __future__ import annotations

from typing import Any

import click

from mcveto.cli.options import parse_address, parse_number


@click.command()
@click.argument("binary")
@click.option("--arch", metavar="ISA", help="Instruction set, for files that do not say.")
@click.option("--base", metavar="ADDRESS", help="Where to load what can be moved.")
@click.option("--at", "start_text", metavar="ADDRESS", help="Where to start (default: the entry).")
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="How many instructions.")
@click.option("--pcode", is_flag=True, help="Also print each instruction's P-code, overlay applied.")
def command(binary: str, arch: str | None, base: str | None, start_text: str | None, count: int, pcode: bool) -> int:
    """Show the instructions of BINARY from an address on."""
    from mcveto.errors import UsageError
    from mcveto.machine.isa import decoder_for
    from mcveto.program.image import load_image

    image = load_image(binary, arch=arch, base=parse_number(base, "--base"))
    decoder = decoder_for(image.isa)
    row = decoder.row
    if start_text is not None:
        wanted = parse_address(start_text)
        pc = image.resolve(wanted) if isinstance(wanted, str) else wanted
        if isinstance(wanted, str) and wanted in image.thumb_symbols:
            pc |= row.mode_mask
    elif image.entry is not None:
        pc = image.entry | (row.mode_mask if image.thumb_entry else 0)
    else:
        raise UsageError(f"{binary} names no entry", "give --at ADDRESS")
    image.require_address(row.code_address(pc), "address")
    names = {address: name for name, address in sorted(image.symbols.items(), reverse=True)}
    for _ in range(count):
        address = row.code_address(pc)
        code = _bytes_at(image, address, row.longest_unit(pc))
        if not code:
            break
        if address in names:
            print(f"{names[address]}:")
        pc += _print_one(decoder, pc, code, pcode)
    return 0


def _bytes_at(image: Any, address: int, longest: int) -> bytes:
    for size in range(longest, 0, -1):
        content: bytes | None = image.read(address, size)
        if content is not None:
            return content
    return b""


def _print_one(decoder: Any, pc: int, code: bytes, pcode: bool) -> int:
    from mcveto.machine.faults import Unsupported
    from mcveto.machine.pcode_text import readable_op

    try:
        instruction = decoder.decode(pc, code)
    except Unsupported as error:
        step: int = min(decoder.row.alignment, len(code))
        print(f"{pc:#010x}  {code[:step].hex():<20} .byte            ; {error.what}")
        return step
    print(f"{pc:#010x}  {instruction.bytes.hex():<20} {instruction.text}")
    if pcode:
        for op in instruction.ops:
            print(f"{'':>12}{readable_op(decoder.layout, op)}")
    return int(instruction.size)
