"""Loads and stores of words in byte-addressed memory (TR1669 section 3.4, "Byte-Addressable Memory").

The report spells a 32-bit access out as four byte accesses; here a load or store of n bytes is one node,
because nearly every read meets a write at a constant distance and is answered when built: the whole word, a
part of it, or a word put together from several writes. A store whose distance to the load is not a constant
may alias: it stops the search and the rest stays a load from there. So does LOOK_BACK, which bounds the
work per load; longer histories need an index of cells, which is the caller's.

Addresses wrap modulo 2^address_width. One byte has no byte order, and is filed as little-endian.
"""

from __future__ import annotations

import mcveto.logic.linear as linear
import mcveto.logic.pieces as pieces
from mcveto.logic.node import Term, WidthError, const, intern

LOOK_BACK = 64
OVERWRITE_LIMIT = 4
JOIN_LIMIT = 16  # bytes


def _check(mem: Term, address: Term, nbytes: int) -> None:
    if mem.width or not mem.address_width:
        raise WidthError("a memory is needed")
    if address.width != mem.address_width:
        raise WidthError(f"address of width {address.width} into memory of address width {mem.address_width}")
    if nbytes < 1 or nbytes > 1 << mem.address_width:
        raise WidthError(f"an access of {nbytes} bytes in memory of address width {mem.address_width}")


def base_of(mem: Term) -> Term:
    """The memory that was stored to."""
    while mem.op == "store":
        mem = mem.args[0]
    return mem


def load(mem: Term, address: Term, nbytes: int, big_endian: bool) -> Term:
    """The nbytes bytes at address as one word."""
    _check(mem, address, nbytes)
    size = 1 << mem.address_width
    found: list[Term | None] | None = None  # per byte, in address order, once the word comes from several places
    steps = 0
    while mem.op == "store" and steps < LOOK_BACK:
        steps += 1
        before, where, value = mem.args
        offset = linear.distance(address, where)
        if offset is None:  # match a load that may alias the store, result a load from here
            break
        stored = value.width >> 3
        if found is None:
            if offset + nbytes <= stored and (nbytes == 1 or mem.data == big_endian):
                # match a load inside what was stored, result that part of the value
                start = stored - offset - nbytes if mem.data else offset
                return pieces.extract(value, 8 * (start + nbytes) - 1, 8 * start)
            if offset < stored or size - offset < nbytes:
                found = [None] * nbytes
            # else match a load beside what was stored, result the load before the store
        if found is not None:
            # match a load that overlaps what was stored, result the bytes of both
            missing = False
            for i in range(nbytes):
                if found[i] is None:
                    at = (offset + i) % size
                    if at < stored:
                        at = stored - 1 - at if mem.data else at
                        found[i] = pieces.extract(value, 8 * at + 7, 8 * at)
                    else:
                        missing = True
            if not missing:
                break
        mem = before
    if found is None:
        return _residual(mem, address, nbytes, big_endian)
    parts = [
        _residual(mem, linear.add(address, const(i, address.width)), 1, False) if part is None else part
        for i, part in enumerate(found)
    ]
    return pieces.row(parts if big_endian else parts[::-1])


def _residual(mem: Term, address: Term, nbytes: int, big_endian: bool) -> Term:
    return intern("load", (mem, address), 8 * nbytes, (nbytes, big_endian and nbytes > 1))


def narrow_load(word: Term, low: int, nbytes: int) -> Term:
    """The nbytes bytes of a loaded word that start at its byte of significance `low`."""
    total, big_endian = word.data
    mem, address = word.args
    offset = total - low - nbytes if big_endian else low
    return load(mem, linear.add(address, const(offset, address.width)), nbytes, big_endian)


def join_loads(left: Term, right: Term) -> Term | None:
    """One load for two neighbouring words (left in the more significant bits), or None."""
    mem, high = left.args
    if right.args[0] is not mem:
        return None
    low = right.args[1]
    (m, left_big), (n, right_big) = left.data, right.data
    if m + n > 1 << mem.address_width:
        return None
    gap = linear.distance(high, low)
    if gap is None:
        return None
    if gap == n and not left_big and not right_big:  # match load(p+n) ++ load(p), little-endian
        return _residual(mem, low, m + n, False)
    if gap == -m % (1 << mem.address_width) and (m == 1 or left_big) and (n == 1 or right_big):
        return _residual(mem, high, m + n, True)  # match load(p) ++ load(p+m), big-endian
    return None


def store(mem: Term, address: Term, value: Term, big_endian: bool) -> Term:
    """Memory after writing value at address."""
    nbytes, rest = divmod(value.width, 8)
    if rest:
        raise WidthError(f"a stored value must be whole bytes, not {value.width} bits")
    _check(mem, address, nbytes)
    big_endian = big_endian and nbytes > 1
    for _ in range(OVERWRITE_LIMIT):
        # match a store over a store it covers, result only the later one
        if mem.op != "store":
            break
        offset = linear.distance(mem.args[1], address)
        if offset is None or offset + (mem.args[2].width >> 3) > nbytes:
            break
        mem = mem.args[0]
    joined = _join_stores(mem, address, value, big_endian)
    if joined is not None:
        return joined
    if value.op == "load" and value.args == (mem, address) and value.data[1] == big_endian:
        return mem  # match storing what is there, result the memory itself
    return intern("store", (mem, address, value), 0, big_endian, mem.address_width)


def _join_stores(mem: Term, address: Term, value: Term, big_endian: bool) -> Term | None:
    """One store for the last one and this one, if they write neighbouring parts of one value side by side."""
    if mem.op != "store" or value.op == "const" or mem.args[2].op == "const":
        return None
    before, where, earlier = mem.args
    m, n = earlier.width >> 3, value.width >> 3
    if m + n > min(JOIN_LIMIT, 1 << mem.address_width):
        return None
    gap = linear.distance(address, where)
    if gap == m:
        low, high, start = earlier, value, where
    elif gap == -n % (1 << mem.address_width):
        low, high, start = value, earlier, address
    else:
        return None
    # match storing x[7:0] at p, then x[15:8] at p+1, result storing x[15:0] at p, little-endian (and
    # the dual)
    if not big_endian and not mem.data:
        merged = pieces.merge(high, low)
        if merged is not None:
            return store(before, start, merged, False)
    if (big_endian or n == 1) and (mem.data or m == 1):
        merged = pieces.merge(low, high)
        if merged is not None:
            return store(before, start, merged, True)
    return None
