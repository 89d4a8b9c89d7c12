"""Proofs of the example programs, made once per test session."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from mcveto.certify import certificate_of
from mcveto.check.certificate import Certificate, sealed
from mcveto.dpg.driver import Driver, Limits, Method
from mcveto.dpg.location import Fold
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

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
    return certificate_of(program, verdict.proof, "test") if verdict.proof is not None else None


def as_data(certificate: Certificate) -> dict[str, Any]:
    """The certificate as a plain structure that a test may change."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(certificate))
    return data


def from_data(data: dict[str, Any]) -> Certificate:
    """The changed structure as a certificate whose seal fits again."""
    return sealed(msgspec.convert(data, Certificate))
