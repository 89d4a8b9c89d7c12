"""Imports that the spec binds: the cells through which they are called hold what stands for the functions.

A dynamically linked file calls another module through cells that the system's loader fills in. Nobody knows what is in
them; but where the spec says which function of ours stands for an import, the call ends up there, whatever the address.
So the cell of such an import holds the address of its stand-in. All other bytes that the file leaves open are taken
out of the memory map: reading one is neither a fault nor a guess but unsupported, as every access to another module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from mcveto.program.entry_state import Span
from mcveto.program.image.model import Image, Segment
from mcveto.program.undetermined import Undetermined


def with_bound_imports(
    image: Image, undetermined: Undetermined, bound: Collection[int], data: Mapping[int, int] | None = None
) -> Image:
    """The image with the cells of the stand-ins `bound` filled in and without its other unspecified bytes.

    `data` are cells with the addresses that they hold. It is the image itself if nothing of it has a stand-in."""
    word = undetermined.word_bytes
    cells = {
        at: marker
        for start, end in image.unspecified
        for at in range(start, end - word + 1, word)
        if (marker := undetermined.marker_of(at)) in bound and marker is not None
    }
    # Where stubs are of several instructions, the stand-in is at the stub, and its cell is never read.
    if not cells and not any(address in bound for address in image.imports.values()):
        return image
    cells.update(data or {})
    holes = _without(image.unspecified, [(at, at + word) for at in cells])
    undetermined.close(holes)
    order = "big" if undetermined.is_big_endian else "little"
    segments = []
    for segment in image.segments:
        content = bytearray(segment.content)
        for at, marker in cells.items():
            if segment.address <= at and at + word <= segment.end:
                offset = at - segment.address
                content.extend(bytes(max(0, offset + word - len(content))))
                content[offset : offset + word] = marker.to_bytes(word, order)  # type: ignore[arg-type]
        segments += _around(replace(segment, content=bytes(content)), holes)
    return replace(image, segments=tuple(segments), unspecified=(), _cache={})


def _without(spans: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    result = list(spans)
    for low, high in taken:
        result = [
            part
            for start, end in result
            for part in ((start, min(end, low)), (max(start, high), end))
            if part[0] < part[1]
        ]
    return result


def _around(segment: Segment, holes: Iterable[Span]) -> list[Segment]:
    """What is left of a segment outside the holes."""
    return [
        replace(
            segment,
            address=start,
            size=end - start,
            content=segment.content[start - segment.address : end - segment.address],
        )
        for start, end in _without([(segment.address, segment.end)], holes)
    ]
