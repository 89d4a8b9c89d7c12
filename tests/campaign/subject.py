"""A random program as bytes, and the question about it: can the target be reached, does every return match its call?

Memory is one page of code, one of data and a small stack. Inputs are bytes at the start of the data page, or the
results of an input function of a few bits: few enough to try all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from mcveto.program.image.model import Image, Permission, Segment
from mcveto.program.program import Program, make_program
from mcveto.program.spec import InputCall, InputMemory, PropertySpec, Spec

from .items import CODE, CODE_SIZE, DATA, DATA_SIZE, END_ADDRESSES

STACK = 4096


@dataclass(frozen=True)
class Subject:
    isa: str
    code: bytes
    writable: bool
    """Whether the code page can be written."""
    input_bytes: int = 0
    input_bits: int = 0
    """Of every call of the input function; 0 if there is none."""

    def record(self) -> dict[str, Any]:
        return {
            "isa": self.isa,
            "code": _lines(self.code),
            "writable": self.writable,
            "input_bytes": self.input_bytes,
            "input_bits": self.input_bits,
        }


def _lines(code: bytes) -> list[str]:
    """The code in hexadecimal, what is repeated up to the end of the page only once (at most four bytes)."""
    used = len(code)
    while used > 8 and code[used - 8 : used - 4] == code[-4:]:
        used -= 4
    return [code[at : min(at + 32, used)].hex() for at in range(0, used, 32)]


def subject_of(record: dict[str, Any]) -> Subject:
    code = bytes.fromhex("".join(record["code"]))
    code += code[-4:] * ((CODE_SIZE - len(code)) // 4)
    return Subject(record["isa"], code, record["writable"], record["input_bytes"], record["input_bits"])


@cache
def _spec(input_bytes: int, input_bits: int) -> Spec:
    return Spec(
        entry=CODE,
        stack=STACK,
        input_calls=(InputCall(END_ADDRESSES["input"], input_bits),) if input_bits else (),
        input_memory=(InputMemory(DATA, input_bytes),) if input_bytes else (),
        halt=(END_ADDRESSES["halt"],),
        properties=(PropertySpec("reach", (END_ADDRESSES["target"],)),),
    )


def program_of(subject: Subject) -> Program:
    permissions = Permission(7 if subject.writable else 5)
    image = Image(
        path="random",
        sha256=hashlib.sha256(subject.code).hexdigest(),
        format="raw",
        isa=subject.isa,
        entry=CODE,
        base=CODE,
        segments=(
            Segment(CODE, CODE_SIZE, subject.code, permissions, "code"),
            Segment(DATA, DATA_SIZE, b"", Permission(6), "data"),
        ),
    )
    return make_program(image, _spec(subject.input_bytes, subject.input_bits))
