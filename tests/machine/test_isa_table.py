"""The instruction-set table is consistent with SLEIGH's registers."""

from __future__ import annotations

import pypcode
import pytest

from mcveto.machine.isa import decoder_for, isa_rows
from mcveto.machine.isa.sleigh import _language
from mcveto.program.image import ISAS, address_bits, is_big_endian

ROWS = sorted(isa_rows())


def test_the_image_loader_and_the_table_know_the_same_instruction_sets() -> None:
    assert sorted(ISAS) == ROWS
    for name, row in isa_rows().items():
        assert (address_bits(name), is_big_endian(name)) == (row.address_bits, row.big_endian)


@pytest.mark.parametrize("isa", ROWS)
def test_every_named_register_is_a_cell_of_its_own(isa: str) -> None:
    decoder = decoder_for(isa)
    row = decoder.row
    for name in (*row.general, *row.flags, *row.one_bit, row.stack_pointer, row.frame_pointer):
        (piece,) = decoder.layout.named(name)
        assert (piece.cell.name, piece.low, piece.bits) == (name, 0, piece.cell.bits)


@pytest.mark.parametrize("isa", ROWS)
def test_cells_do_not_overlap_and_cover_every_register(isa: str) -> None:
    layout = decoder_for(isa).layout
    for below, above in zip(layout.cells, layout.cells[1:], strict=False):
        assert below.offset + below.size <= above.offset
    for name, (_, size) in sorted(layout.names.items()):
        assert sum(piece.bits for piece in layout.named(name)) == 8 * size, name


@pytest.mark.parametrize("isa", ROWS)
def test_calling_convention_registers_exist(isa: str) -> None:
    decoder = decoder_for(isa)
    row = decoder.row
    names = [*row.return_registers, *(name for name in row.arguments if not name.startswith("stack+"))]
    if not row.pushes_return_address:
        names.append(row.return_address)
    assert all(name in decoder.layout.names for name in names)


def test_a_language_is_the_one_that_pypcode_finds_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {row.sleigh: pypcode.ArchLanguage.from_id(row.sleigh) for row in isa_rows().values()}
    _language.cache_clear()
    # Found where it is looked for first, not by reading the descriptions of every machine.
    monkeypatch.setattr(pypcode.ArchLanguage, "from_id", lambda name: None)
    for name, language in wanted.items():
        found = _language(name)
        assert language is not None
        assert (found.id, found.slafile_path, found.pspec_path) == (name, language.slafile_path, language.pspec_path)
