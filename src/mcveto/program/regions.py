"""Permissions that the spec gives to parts of the image, instead of those of the file.

A raw blob says nothing about what may be written or executed, so it is all of it. Whoever knows better says so: code
that cannot be overwritten is far easier to reason about. A region must lie inside the image; pages are not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcveto.errors import UsageError
from mcveto.program.image.model import Image, Permission, Segment

_LETTERS = {"r": Permission.READ, "w": Permission.WRITE, "x": Permission.EXECUTE}


def with_permissions(image: Image, regions: Iterable[tuple[int, int, str]]) -> Image:
    """The image with the permissions of [start, end) replaced, region by region; raises UsageError."""
    segments = list(image.segments)
    for start, end, letters in regions:
        if sum(max(0, min(end, s.end) - max(start, s.address)) for s in segments) != end - start:
            raise UsageError(f"region {start:#x}-{end:#x} is not wholly inside the image")
        permissions = Permission(0)
        for letter in letters:
            permissions |= _LETTERS[letter]
        segments = [part for segment in segments for part in _divided(segment, start, end, permissions)]
    return replace(image, segments=tuple(segments), _cache={})


def _divided(segment: Segment, start: int, end: int, permissions: Permission) -> list[Segment]:
    """The segment in up to three parts, the one inside [start, end) with other permissions."""
    low, high = max(start, segment.address), min(end, segment.end)
    if low >= high:
        return [segment]
    parts = [
        (segment.address, low, segment.permissions),
        (low, high, permissions),
        (high, segment.end, segment.permissions),
    ]
    return [
        Segment(
            first, last - first, segment.content[first - segment.address : last - segment.address], rights, segment.name
        )
        for first, last, rights in parts
        if first < last
    ]
