"""The little language random programs are written in: a list of items, each a line such as `add 0 1`.

Four registers 0-3 hold data (0 is also where input functions return); scratch registers belong to the encoders. Every
item has the same rough meaning on every machine, but its exact effect, and its flags, are the machine's own: the truth
about a program is found by running it. Any item can be left out and the rest still assembles, which is what shrinking
needs.

    label NAME          set R IMM           addr R NAME OFFSET    move R S
    add|sub|and|or|xor|mul R S              addi|andi|ori|xori|shl|shr|sar R IMM
    load8|load16|load32 R S OFFSET          store8|store16|store32 R S OFFSET        (S is the address)
    read R OFFSET       write R OFFSET      (a byte of the data area, at a constant place)
    input R             (one call of the input function; the result goes to R)
    if COND R S NAME    ifi COND R IMM NAME   flag N NAME   (branch on the flags as they are)
    jump NAME           jumpr R             slot NAME       (a jump that takes exactly 8 bytes)
    call NAME           callr R             enter   leave   (a function's beginning and its return)
    smash R WORDS       (overwrites the return address, or a word WORDS above it)
    native HEX          (instructions of this machine alone)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Item = tuple[str | int, ...]
CODE, CODE_SIZE = 0x10000, 0x1000
DATA, DATA_SIZE = 0x20000, 0x1000
CONDITIONS = ("eq", "ne", "lt", "ge", "ltu", "geu")
ENDS = ("halt", "target", "input")
SLOT = 8
# Where the pieces every program ends with are: behind everything else, so that labels never move.
END_ADDRESSES = {"halt": CODE + 0xF00, "target": CODE + 0xF10, "input": CODE + 0xF20}


@dataclass(frozen=True)
class Encoder:
    """How a machine writes an item: `encode(item, address, labels)`; sizes must not depend on the labels."""

    isa: str
    encode: Callable[[Item, int, Mapping[str, int]], bytes]
    trap: bytes
    """An instruction that faults: what follows a program, and what is at the addresses where runs end."""


class TooLong(Exception):
    """The program does not fit into its memory."""


def assemble(encoder: Encoder, items: Sequence[Item]) -> tuple[bytes, dict[str, int]]:
    """Code from `CODE` on, and the addresses of the labels; a label that is missing is where the run halts."""
    labels: dict[str, int] = dict(END_ADDRESSES)
    for item in items:
        for argument in item[1:]:
            if isinstance(argument, str) and item[0] != "native":
                labels.setdefault(argument, END_ADDRESSES["halt"])
    at = CODE
    for item in items:
        if item[0] == "label":
            labels[str(item[1])] = at
        else:
            at += len(encoder.encode(item, at, labels))
    code = bytearray()
    for item in items:
        if item[0] != "label":
            code += encoder.encode(item, CODE + len(code), labels)
    if CODE + len(code) > END_ADDRESSES["halt"]:
        raise TooLong
    return (bytes(code) + encoder.trap * CODE_SIZE)[:CODE_SIZE], labels


def to_text(items: Sequence[Item]) -> list[str]:
    return [" ".join(map(str, item)) for item in items]


def from_text(lines: Sequence[str]) -> list[Item]:
    return [_item(line.split()) for line in lines]


def _item(words: list[str]) -> Item:
    if words[0] == "native":
        return tuple(words)
    return tuple(int(word) if word.lstrip("-").isdigit() else word for word in words)
