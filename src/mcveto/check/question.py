"""Obligation 1 of a certificate: the file is whole, and speaks of this binary, this spec, these assumptions.

The program and the question are derived again, from the binary and the texts in the certificate, by what gives programs
and properties their meaning.
"""

from __future__ import annotations

import re

from mcveto.check import certificate as file
from mcveto.check.certificate import Certificate
from mcveto.errors import McvetoError
from mcveto.program.image import Image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import parse_spec
from mcveto.property.attach import attach_sources, parse_event
from mcveto.property.library import TypestateSource
from mcveto.whilelang.models import catalogue

PROPERTIES = ("reach", "return-address")
KNOWN = (*PROPERTIES, "typestate", "memory-safety", "no-fault")
_NUMBER = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)")


class Rejected(Exception):
    """The certificate does not prove what it claims; says why."""


def number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise Rejected(f"'{text}' is not a number")
    return int(text, 16)


def read_program(certificate: Certificate, image: Image) -> Program:
    """Obligation 1: the program that the certificate speaks of, and the same question."""
    if certificate.format != file.FORMAT or file.sealed(certificate).seal != certificate.seal:
        raise Rejected("the seal does not fit: the file was changed or damaged")
    if image.sha256 != certificate.binary.sha256 or image.isa != certificate.binary.isa:
        raise Rejected("it is about another binary")
    try:
        program, typestates = _derived_program(certificate, image)
    except McvetoError as error:
        raise Rejected(str(error)) from None
    if program.image.unspecified:
        raise Rejected("the file depends on code or data that is not in it")
    _require_same_question(certificate, program, typestates)
    return program


def _derived_program(certificate: Certificate, image: Image) -> tuple[Program, tuple[str, ...]]:
    """The program as the binary, the spec and the texts describe it, and the names of its typestate properties."""
    given = [item.text for item in certificate.sources if item.kind in ("typestate", "while")]
    if image.format == "while":
        from mcveto.program.while_program import while_program
        from mcveto.whilelang.parser import parse

        program = while_program(parse("".join(given), certificate.binary.name), certificate.binary.name)
        expected = [file.source("while", certificate.binary.name, program.image.text)]
        if program.image.sha256 != image.sha256 or certificate.spec or certificate.events:
            raise Rejected("it is about another While program")
        typestates: tuple[str, ...] = ()
    else:
        spec = parse_spec(certificate.spec, "the certificate's spec")
        named = [str(item.argument) for item in spec.properties if item.name == "typestate"]
        if len(named) != len(given) or any(item.name not in KNOWN for item in spec.properties):
            raise Rejected("its property files are not those of its spec")
        files = [TypestateSource(*item) for item in zip(named, given, strict=True)]
        expected = [file.source("typestate", *item) for item in files]
        expected += [file.source("model", item, catalogue.source(item)) for item in catalogue.FILES if spec.models]
        events = tuple(map(parse_event, certificate.events))
        attached = attach_sources(make_program(image, spec), files, events, certificate.watched)
        program, typestates = attached.program, attached.names
    if certificate.sources != tuple(expected):
        raise Rejected("its texts are not those that the question rests on")
    return program, typestates


def _require_same_question(certificate: Certificate, program: Program, typestates: tuple[str, ...]) -> None:
    asked = certificate.question
    for what, found, claimed in (
        ("entry", [program.entry], [asked.entry]),
        ("targets", program.targets, asked.targets),
        ("halts", program.halts, asked.halts),
        ("replaced functions", program.hooks, asked.replaced),
    ):
        if sorted(found) != list(map(number, claimed)):
            raise Rejected(f"its {what} are not those of its spec")
    named = any(item.name == "reach" for item in program.spec.properties)
    if asked.properties != (*(PROPERTIES if named else PROPERTIES[1:]), *typestates):
        raise Rejected("its properties are not those of its spec")
    if certificate.assumptions != program.assumptions:
        raise Rejected("its assumptions are not those of the program")
