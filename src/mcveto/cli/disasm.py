"""`mcveto disasm`: the instructions at an address, as the machine decodes them, optionally with their P-code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import binary_options, parse_address, read_binary_spec

if TYPE_CHECKING:
    from mcveto.machine.isa import Decoder
    from mcveto.program.image import Image


@click.command()
@binary_options
@click.option("--at", "start_text", metavar="ADDRESS", help="Where to start (default: the entry).")
@click.option("--count", type=click.IntRange(1, 1 << 32), default=20, show_default=True, help="How many instructions.")
@click.option("--pcode", is_flag=True, help="Also print each instruction's P-code, overlay applied.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
def command(
    binary: str | None, start_text: str | None, count: int, pcode: bool, json_file: str | None, **options: Any
) -> int:
    """Show the instructions of BINARY from an address on.

    Bytes that are no instruction, or one outside what is supported, are shown as .byte with the reason; bytes that
    the file does not determine as ??.
    """
    from mcveto.machine.isa import decoder_for
    from mcveto.program.program import entry_pointer, load_binary
    from mcveto.report.json_file import require_writable, write_json

    require_writable(json_file)
    spec = read_binary_spec(**options)
    image = load_binary(binary, spec)
    decoder = decoder_for(image.isa)
    start = parse_address(start_text) if start_text is not None else spec.entry
    pc = entry_pointer(image, decoder, start, "address", "--at ADDRESS")
    items: list[dict[str, Any]] = []
    for item in _items(image, decoder, pc, count, pcode):
        if json_file is not None:
            items.append(item)
        if json_file != "-":
            _print(item)
    if json_file is not None:
        from mcveto.cli.main import VERSION

        result = {
            "schema": "mcveto-disasm-1",
            "mcveto": VERSION,
            "binary": {"path": image.path, "sha256": image.sha256, "isa": image.isa},
            "instructions": items,
            "notes": list(image.notes),
            "command": ["mcveto", *sys.argv[1:]],
        }
        write_json(json_file, result)
    return 0


def _items(image: Image, decoder: Decoder, pc: int, count: int, pcode: bool) -> Iterator[dict[str, Any]]:
    from mcveto.machine.faults import Unsupported
    from mcveto.machine.pcode_text import readable_op

    row = decoder.row
    names = {address: name for name, address in sorted({**image.imports, **image.symbols}.items(), reverse=True)}
    unit = 4 if row.mode_mask and not pc & 1 else row.alignment
    for _ in range(count):
        address = row.code_address(pc)
        if image.segment_at(address) is None:
            return
        code = _bytes_at(image, address, row.longest_unit(pc))
        item: dict[str, Any] = {"pc": pc, "address": address, "label": names.get(address)}
        try:
            instruction = decoder.decode(pc, code) if code else None
            error = "not determined by the file"
        except Unsupported as complaint:
            instruction = None
            error = complaint.what
        if instruction is not None:
            pc += instruction.size
            item |= {"bytes": instruction.bytes.hex(), "text": instruction.text, "unsupported": None}
        else:
            pc += unit
            item |= {"bytes": code[:unit].hex() or "??", "text": ".byte", "unsupported": error}
        if pcode:
            ops = instruction.ops if instruction is not None else ()
            item["pcode"] = [readable_op(decoder.layout, op) for op in ops]
        yield item


def _bytes_at(image: Image, address: int, longest: int) -> bytes:
    for size in range(longest, 0, -1):
        content = image.read(address, size)
        if content is not None:
            return content
    return b""


def _print(item: dict[str, Any]) -> None:
    if item["label"]:
        print(f"{item['label']}:")
    reason = f"            ; {item['unsupported']}" if item["unsupported"] else ""
    print(f"{item['address']:#010x}  {item['bytes']:<20} {item['text']}{reason}")
    for line in item.get("pcode", ()):
        print(f"{'':>12}{line}")
