"""Proofs of the example programs, made once per test session."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec

from mcveto.certify import certificate_of
from mcveto.check.certificate import Certificate, from_text, sealed
from mcveto.dpg.driver import Driver, Limits, Method
from mcveto.dpg.location import Fold
from mcveto.dpg.proof import Proof
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec, parse_spec
from mcveto.program.while_program import while_program
from mcveto.property.attach import attach, with_typestates
from mcveto.search import Question, search
from mcveto.whilelang.source import load_module

EXAMPLES = Path(__file__).parents[2] / "examples"

# Small proofs of many kinds: loops, calls, inputs, overlapping and self-modifying code, five instruction sets.
SMALL = (
    "fig10/ppc32-be/ex6",
    "fig10/ppc32-be/store-REACH-0",
    "fig10/x86-32/clobber-CASE-9",
    "fig10/x86-32/instraliasing-REACH-0",
    "fig10/x86-32/share-CASE-0",
    "fig10/x86-32/slam1",
    "fig10/x86-32/smc1-unbounded",
    "fig10/x86-32/store-REACH-0",
    "machine/tricks/aarch64",
    "machine/tricks/call-pop",
    "machine/tricks/mips-delay",
    "machine/tricks/riscv-overlap",
    "machine/tricks/smc-next",
    "machine/tricks/x86-64",
)


@cache
def program_of(name: str) -> Program:
    return load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))


@cache
def certificate_for(name: str, seconds: float = 240.0, fold: Fold = Fold.FRAME) -> Certificate | None:
    """The certificate of an example's proof; None if none is found in time."""
    program = program_of(name)
    limits = Limits()
    limits.seconds = seconds
    verdict = Driver(program, limits, method=Method(fold=fold)).run()
    return certificate_of(program, verdict.proof, "test") if isinstance(verdict.proof, Proof) else None


# Proofs of other kinds, by a name that says how each is found.
TYPESTATES = {"typestate/x86-32/driver-MISSING-0": "lock", "typestate/ppc32-be/driver-MISSING-0": "lock"}
EXPLORED = ("symex", "bmc")
KINDS = (
    *(f"dpg {name}" for name in SMALL),
    *(f"pc {name}" for name in ("machine/tricks/mips-delay", "machine/tricks/aarch64", "recursion/x86-32/gcd-safe-O1")),
    *(f"typestate {name}" for name in TYPESTATES),
    *(f"while {name}" for name in ("no_alias", "countdown", "swap")),
    *(f"{engine} {name}" for engine in EXPLORED for name in ("fig10/ppc32-be/ex6", "machine/tricks/smc-next")),
    *(f"{engine} {name}" for engine in EXPLORED for name in ("fig10/x86-32/instraliasing-REACH-0",)),
    "model strlen",
)


@cache
def proved(kind: str) -> tuple[Program, Certificate]:
    """A program as the checker derives it, and the certificate of its proof."""
    way, _, name = kind.partition(" ")
    program, question = _asked(way, name)
    verdict = search(lambda: program, question).verdict
    assert (verdict.kind, verdict.reason, verdict.warnings) == ("proved", "", ()), (kind, verdict)
    return attach(program).program, from_text(verdict.certificate)


def _asked(way: str, name: str) -> tuple[Program, Question]:
    question = Question(timeout=300, self_check=False)
    if way == "while":
        return while_program(load_module(str(EXAMPLES / "while" / f"{name}.w"), "s32"), f"{name}.w"), question
    if way == "model":
        return measuring(), question
    if way == "typestate":
        spec = with_typestates(load_spec(str(EXAMPLES / f"{name}.yaml")), [TYPESTATES[name]])
        return load_program(str(EXAMPLES / f"{name}.sym.elf"), spec), question
    if way == "pc":
        return program_of(name), replace(question, fold="pc")
    return program_of(name), replace(question, engine=way)


# push TEXT; call strlen; add esp, 4; cmp eax, 9; jne end; target: nop; end: ret; strlen at 0x1020, TEXT at 0x1030
MEASURE = "68 30100000 e8 16000000 83c404 83f809 7501 90 c3"


@cache
def measuring() -> Program:
    """A program that measures the text "abc" with a library model, and compares with 9."""
    content = bytes.fromhex(MEASURE).ljust(0x20, b"\x90") + b"\xc3".ljust(16, b"\x90") + b"abc\0"
    raw = {
        "arch": "x86-32",
        "base": 0x1000,
        "entry": 0x1000,
        "models": {0x1020: "strlen"},
        "regions": [{"at": 0x1000, "size": len(content), "permissions": "rx"}],
        "properties": [{"reach": [0x1012]}],
    }
    file = Path(mkdtemp()) / "measure"
    file.write_bytes(content)
    return load_program(str(file), parse_spec(raw, "spec"))


def as_data(certificate: Certificate) -> dict[str, Any]:
    """The certificate as a plain structure that a test may change."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(certificate))
    return data


def from_data(data: dict[str, Any]) -> Certificate:
    """The changed structure as a certificate whose seal fits again."""
    return sealed(msgspec.convert(data, Certificate))
