"""The programs of `make test` and the truth about them, as a file.

They are the same every time, and nine tenths of such a campaign are making them and running every input. So that is
done once, by `python -m tests.campaign.known`, and again for a few, chosen anew in each run of the tests. When a source
that they are made by has changed, the file is not used until it is written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from .generate import ISAS, RandomProgram, random_program
from .items import from_text, to_text
from .subject import program_of
from .truth import Truth, truth_of

FILE = Path(__file__).with_name("known_programs.json")
PROGRAMS = 50
"""For each instruction set."""
_MADE_BY = ("generate", "items", "subject", "truth", "encode_arm", "encode_powerpc", "encode_riscv", "encode_x86")


def fingerprint() -> str:
    sources = [(Path(__file__).parent / f"{name}.py").read_bytes() for name in _MADE_BY]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


@cache
def _records() -> dict[str, Any]:
    content = json.loads(FILE.read_text())
    records: dict[str, Any] = content["programs"] if content["made_by"] == fingerprint() else {}
    return records


def known(isa: str, seed: int) -> tuple[RandomProgram, Truth] | None:
    """The program of a seed and its truth, if they are in the file."""
    record = _records().get(f"{isa}/{seed}")
    if record is None:
        return None
    program = record["program"]
    return RandomProgram(**{**program, "items": tuple(from_text(program["items"]))}), Truth(**record["truth"])


def made(isa: str, seed: int) -> tuple[RandomProgram, Truth]:
    program = random_program(isa, seed)
    return program, truth_of(program_of(program.subject()))


def recorded(programs: Iterable[tuple[str, int]]) -> str:
    """The text of the file, one line for each program."""
    lines = []
    for isa, seed in programs:
        program, truth = made(isa, seed)
        record = {"program": {**asdict(program), "items": to_text(program.items)}, "truth": asdict(truth)}
        lines.append(f"{json.dumps(f'{isa}/{seed}')}: {json.dumps(record)}")
    return f'{{"made_by": "{fingerprint()}", "programs": {{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    FILE.write_text(recorded((isa, seed) for isa in ISAS for seed in range(PROGRAMS)))
