"""Function starts from the unwind tables, which survive stripping. For display only.

The tables are read out of the loaded image, so a file without section headers works too.
"""

import io

from mcveto.program.image.model import Image, address_bits, is_big_endian

MAX_TABLE_BYTES = 16 << 20


def function_starts(image: Image) -> tuple[int, ...]:
    """Sorted start addresses; empty when there is no readable table."""
    if image.frame_table is None:
        return ()
    start, end = image.frame_table
    content = image.read(start, min(end - start, MAX_TABLE_BYTES))
    if not content:
        return ()

    from elftools.dwarf.callframe import FDE, CallFrameInfo
    from elftools.dwarf.structs import DWARFStructs

    word = address_bits(image.isa) // 8
    structs = DWARFStructs(not is_big_endian(image.isa), dwarf_format=32, address_size=word)
    try:
        table = CallFrameInfo(io.BytesIO(content), len(content), start, structs, for_eh_frame=True)
        entries = table.get_entries()
        starts = {entry["initial_location"] for entry in entries if isinstance(entry, FDE)}
    except Exception:
        # A damaged table is ordinary input and the library raises whatever it stumbles over;
        # nothing depends on it.
        return ()
    mask = (1 << 8 * word) - 1
    return tuple(sorted(s & mask for s in starts if isinstance(s, int) and image.segment_at(s & mask)))
