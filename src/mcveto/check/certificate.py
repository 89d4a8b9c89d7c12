"""The certificate of a proof: a versioned JSON file that a person can read and `mcveto check` re-proves.

It claims: in every run of the binary from the entry state the spec describes, whenever control is at one of the listed
*locations* the state satisfies that location's invariant; control is nowhere else; no location is a target. Nothing in
the file is believed: the binary is read again, and every sentence of the claim is an obligation of the checker.

A location is a program counter with the code found there, the stack and frame pointer (or "any"), and the return
addresses that calls still expect, innermost last. Its invariant is a list of alternatives, each a list of conditions
that hold together, in SMT-LIB (QF_ABV) over the registers' names and the memory `mem`. `steps` names where control can
be next: other locations, or "halt"; `refuted` are program counters to which the code alone could lead and the invariant
says it does not.

Where `frames` is null, no call string is kept (recursion): then a location lists its calls and returns apart from its
other steps, each with the return address that is pending in the activation, and the claim is about the paths along
these edges on which returns match calls.

A proof that follows paths speaks of what was read earlier: `history` names variables that change only where a step has
`notes`. They are the proof's alone. No run depends on them, so it may choose what they hold.

The seal is a checksum: it finds a damaged file early. It proves nothing, and the checker does not rely on it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from mcveto.check.records import Procedure, Record
from mcveto.errors import InputFileError

FORMAT = "mcveto-certificate-3"
ANY = "any"
HALT = "halt"


class Binary(Record):
    name: str
    sha256: str
    isa: str


class Question(Record):
    """The spec's addresses as they were understood; the checker resolves them again and compares."""

    entry: str
    targets: tuple[str, ...]
    halts: tuple[str, ...]
    replaced: tuple[str, ...]
    """Functions that the spec replaces: inputs and assumptions."""
    properties: tuple[str, ...]


class Edge(Record):
    """A call or return where no call string is kept: to which location, and the return address that is pending."""

    to: str
    expecting: str


class History(Record):
    """A variable of the proof alone, which remembers something of the past of a run: `bits` wide, or of 0 bits if it
    is a whole memory. It begins as the register or memory named `begins`, or as anything. If as anything and no note
    changes it, what is claimed with it is claimed for all values, and used for every address that a step reads."""

    name: str
    bits: int
    begins: str


class Note(Record):
    """What a step to `to` writes down: `value` is another variable of the history, a number, or fresh!K: the K-th value
    that the step leaves open."""

    to: str
    name: str
    value: str


class Location(Record, omit_defaults=True):
    id: str
    pc: str
    code: tuple[str, ...]
    """One line per instruction: its bytes, a blank, its text. Empty where the spec replaces a function."""
    stack_pointer: str
    frame_pointer: str
    frames: tuple[str, ...] | None
    invariant: tuple[tuple[str, ...], ...]
    steps: tuple[str, ...]
    refuted: tuple[str, ...]
    calls: tuple[Edge, ...] = ()
    returns: tuple[Edge, ...] = ()
    notes: tuple[Note, ...] = ()


class Source(Record):
    """A text that the question rests on: a property file, the library models, or a While program."""

    kind: str
    name: str
    sha256: str
    text: str


class Certificate(Record, omit_defaults=True):
    format: str
    mcveto: str
    binary: Binary
    spec: dict[str, Any]
    """As in a spec file, without the name of the binary."""
    sources: tuple[Source, ...]
    events: tuple[str, ...]
    """Where events of typestate properties happen, beyond what their files say: NAME=KIND:ADDRESS."""
    question: Question
    assumptions: tuple[str, ...]
    history: tuple[History, ...]
    start: tuple[str, ...]
    locations: tuple[Location, ...]
    procedures: tuple[Procedure, ...] = ()
    """Instead of locations: every path is followed from one procedure to the next (see `check.procedures`)."""
    watched: tuple[int, ...] | None = None
    """With memory-safety or no-fault: how many pending calls and heap blocks are watched, more are unsupported; then
    the instructions that may leave the object whose address they are given, which the assumptions list."""
    seal: str = ""


def source(kind: str, name: str, text: str) -> Source:
    return Source(kind=kind, name=name, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def sealed(certificate: Certificate) -> Certificate:
    """The certificate with the checksum of everything else."""
    content = msgspec.json.encode(msgspec.structs.replace(certificate, seal=""))
    return msgspec.structs.replace(certificate, seal=hashlib.sha256(content).hexdigest())


def to_text(certificate: Certificate) -> str:
    return msgspec.json.format(msgspec.json.encode(certificate), indent=1).decode() + "\n"


def from_text(text: str | bytes, name: str = "certificate") -> Certificate:
    """Raises InputFileError for anything that is not a certificate of this version."""
    try:
        version = msgspec.json.decode(text, type=dict[str, Any]).get("format")
        if version != FORMAT:
            raise InputFileError(f"{name} is not a certificate of this version", f"its format must be {FORMAT}")
        return msgspec.json.decode(text, type=Certificate)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{name} is not a certificate: {error}") from None
