"""`mcveto check`: re-proves a certificate about a binary, trusting neither the engine that wrote it nor its steps.

First line on stdout: PROVED, REJECTED(<obligation>) or UNKNOWN(<obligation>). Exit code 0 proved, 5 rejected or not
decided, 2 usage, 3 unreadable input file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mcveto.check.certificate import Certificate
    from mcveto.check.discharge import Checked
    from mcveto.program.image import Image


MAX_BYTES = 1 << 28


@click.command()
@click.argument("proof")
@click.argument("binary")
@click.option("--spec", "spec_file", metavar="FILE", help="Require that the certificate answers this spec.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME|FILE",
    help="With --spec: typestate automata.",
)
@click.option("--event", "events", multiple=True, metavar="NAME=KIND:ADDRESS", help="With --spec: as in verify.")
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes (default: one per processor).")
@click.option(
    "--timeout",
    type=click.FloatRange(0.001, 86400),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds for one obligation.",
)
@click.option("--second-solver", is_flag=True, help="Bitwuzla must agree with Z3 on all it is asked.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
@click.option("--quiet", is_flag=True, help="Print only the first line.")
def command(
    proof: str,
    binary: str,
    spec_file: str | None,
    properties: tuple[str, ...],
    events: tuple[str, ...],
    jobs: int | None,
    timeout: float,
    second_solver: bool,
    json_file: str | None,
    quiet: bool,
) -> int:
    """Check that the certificate PROOF proves its claim about BINARY."""
    from mcveto.check.discharge import Effort, check
    from mcveto.report.json_file import require_writable, write_json

    require_writable(json_file)
    certificate = _read(proof)
    image = _load(certificate, binary)
    problem = "" if spec_file is None else _other_question(spec_file, properties, events, certificate, image)
    if problem:
        checked = None
    else:
        checked = check(certificate, image, Effort(jobs or os.cpu_count() or 1, timeout, second_solver))
        problem = checked.problem
    word = "UNKNOWN" if checked is not None and checked.undecided else "REJECTED"
    headline = f"{word}({problem})" if problem else "PROVED"
    if json_file is not None:
        write_json(json_file, _record(certificate, checked, problem))
    if json_file != "-":
        _print(headline, certificate, checked, quiet)
    return 5 if problem else 0


def _read(path: str) -> Certificate:
    from pathlib import Path

    from mcveto.check.certificate import from_text
    from mcveto.errors import InputFileError

    try:
        if not Path(path).is_file():
            raise InputFileError(f"cannot read certificate {path}: no such file")
        if Path(path).stat().st_size > MAX_BYTES:
            raise InputFileError(f"certificate {path} is larger than {MAX_BYTES} bytes")
        return from_text(Path(path).read_bytes(), path)
    except (OSError, ValueError) as error:
        raise InputFileError(f"cannot read certificate {path}: {error}") from None


def _load(certificate: Certificate, binary: str) -> Image:
    """What the certificate is about: a binary, or the translation of a While program."""
    from mcveto.program.image import load_image

    if certificate.binary.isa == "while":
        from mcveto.program.while_program import while_program
        from mcveto.whilelang.parser import parse
        from mcveto.whilelang.source import load_module

        sources = [source for source in certificate.sources if source.kind == "while"]
        theory = parse(sources[0].text, sources[0].name).theory if sources else None
        return while_program(load_module(binary, theory), binary).image
    arch, base = certificate.spec.get("arch"), certificate.spec.get("base")
    return load_image(
        binary, arch=arch if isinstance(arch, str) else None, base=base if isinstance(base, int) else None
    )


def _other_question(
    spec_file: str, properties: tuple[str, ...], events: tuple[str, ...], certificate: Certificate, image: Image
) -> str:
    """What differs between the question of a spec file and that of the certificate, or ""."""
    from mcveto.program.spec import load_spec
    from mcveto.program.spec_mapping import spec_mapping
    from mcveto.property.attach import event_text, parse_event, typestate_sources, with_typestates

    spec = with_typestates(load_spec(spec_file), properties)
    if image.imports:
        # What is bound without being named: models of imports, `main` and its arguments.
        from mcveto.program.program import make_program

        wanted = spec_mapping(make_program(image, spec).spec)
    else:
        wanted = spec_mapping(spec)
    found = certificate.spec
    differ = {key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key)}
    texts = [source.text for source in certificate.sources if source.kind == "typestate"]
    if [source.text for source in typestate_sources(spec)] != texts:
        differ.add("property files")
    if tuple(event_text(parse_event(event)) for event in events) != certificate.events:
        differ.add("events")
    return f"it answers another spec: {', '.join(sorted(differ))} differ" if differ else ""


def _print(headline: str, certificate: Certificate, checked: Checked | None, quiet: bool) -> None:
    from mcveto.errors import one_line

    print(one_line(headline))
    if quiet or headline != "PROVED":
        return
    asked = certificate.question
    reach = f"reach {' '.join(asked.targets)}, " if "reach" in asked.properties else ""
    properties = ", ".join(name for name in asked.properties if name != "reach")
    print(one_line(f"checked: {reach}{properties}, from {asked.entry}, halts {' '.join(asked.halts) or 'none'}"))
    for assumption in certificate.assumptions:
        print(one_line(f"assumption: {assumption}"))
    if checked is not None:
        size = f"{len(certificate.locations)} locations"
        if certificate.procedures:
            size = f"{len(certificate.procedures)} procedures"
        print(f"statistics: {checked.seconds:.2f} s, {size}, {checked.obligations} obligations")


def _record(certificate: Certificate, checked: Checked | None, problem: str) -> dict[str, Any]:
    from mcveto.cli.main import VERSION

    undecided = checked is not None and checked.undecided
    return {
        "schema": "mcveto-check-1",
        "mcveto": VERSION,
        "binary": {"path": certificate.binary.name, "sha256": certificate.binary.sha256},
        "result": ("unknown" if undecided else "rejected") if problem else "proved",
        "reason": problem or None,
        "assumptions": list(certificate.assumptions),
        "locations": len(certificate.locations),
        "obligations": checked.obligations if checked is not None else 0,
        "seconds": round(checked.seconds, 3) if checked is not None else 0.0,
    }
