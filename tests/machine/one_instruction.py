"""One instruction from a given state to an expected outcome, with and without one entry of the semantics overlay.

A family's table has at least one `Example` per overlay entry. The tests demand the expected outcome with the whole
overlay, and for one of them any other outcome when the entry is taken out: an entry that does nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import Decoder, decoder_for
from mcveto.machine.memory import Memory, RegionSpec
from mcveto.machine.pcode import FreshOrigin, Transfer

CODE, DATA = 0x1000, 0x2000


@dataclass(frozen=True)
class Example:
    """`after` lists registers that must have these values; `fresh` is what undefined values come out as."""

    id: str
    isa: str
    word: str
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    memory: str = ""
    memory_after: str | None = None
    fault: str = ""
    transfer: Transfer = Transfer.FALL
    target: int | None = None
    fresh: int | None = None

    def __str__(self) -> str:
        return f"{self.id}-{self.isa}-{self.word}"


def outcome(example: Example, decoder: Decoder) -> dict[str, object]:
    """What happened, in the terms an example expects it."""
    row = decoder.row
    code = b"".join(int(word, 16).to_bytes(4, "big" if row.big_endian else "little") for word in example.word.split())
    content = bytes.fromhex(example.memory)
    regions = [RegionSpec("code", CODE, 0x100, 5, code), RegionSpec("data", DATA, 0x100, 6, content)]
    memory = Memory(regions, row.address_bits, row.big_endian)

    def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
        return usual if example.fresh is None else example.fresh & (1 << bits) - 1

    domain = ConcreteDomain(memory, fresh)
    for name, value in example.before.items():
        domain.registers[decoder.layout.by_name[name].number] = value
    try:
        step = Interpreter[int](decoder).execute(decoder.decode(CODE, code), domain)
    except Fault as fault:
        return {"fault": fault.kind.label}
    except Unsupported:
        return {"fault": "unsupported"}
    cells = {name: domain.read_register(decoder.layout.by_name[name]) for name in example.after}
    return {
        "fault": "",
        "transfer": step.transfer,
        "target": step.target,
        "after": cells,
        "memory": bytes(memory.regions[1].data[: len(content)]).hex(),
    }


def expected(example: Example) -> dict[str, object]:
    if example.fault:
        return {"fault": example.fault}
    size = 4 * len(example.word.split())
    return {
        "fault": "",
        "transfer": example.transfer,
        "target": CODE + size if example.target is None else example.target,
        "after": dict(example.after),
        "memory": bytes.fromhex(example.memory if example.memory_after is None else example.memory_after).hex(),
    }


@contextmanager
def without(decoder: Decoder, identifier: str) -> Iterator[None]:
    """The decoder with one overlay entry taken out."""
    overlay = decoder.overlay
    kept = overlay.defects
    overlay.defects = [defect for defect in kept if defect.id != identifier]
    decoder.forget()
    try:
        yield
    finally:
        overlay.defects = kept
        decoder.forget()


def check(example: Example) -> None:
    assert outcome(example, decoder_for(example.isa)) == expected(example)


def matters(identifier: str, examples: Iterable[Example]) -> bool:
    """Whether some example of the entry comes out otherwise without the entry."""
    for example in examples:
        if example.id == identifier:
            decoder = decoder_for(example.isa)
            with without(decoder, identifier):
                if outcome(example, decoder) != expected(example):
                    return True
    return False
