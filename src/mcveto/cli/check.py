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


@click.command()
@click.argument("proof")
@click.argument("binary")
@click.option("--spec", "spec_file", metavar="FILE", help="Require that the certificate answers this spec.")
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes (default: one per processor).")
@click.option(
    "--timeout",
    type=click.FloatRange(0.001, 86400),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds for one obligation.",
)
@click.option("--second-solver", is_flag=True, help="Bitwuzla must agree with Z3 on every obligation.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
@click.option("--quiet", is_flag=True, help="Print only the first line.")
def command(
    proof: str,
    binary: str,
    spec_file: str | None,
    jobs: int | None,
    timeout: float,
    second_solver: bool,
    json_file: str | None,
    quiet: bool,
) -> int:
    """Check that the certificate PROOF proves its claim about BINARY."""
    from mcveto.check.certificate import read_certificate
    from mcveto.check.discharge import Effort, check
    from mcveto.program.image import load_image
    from mcveto.report.json_file import require_writable, write_json

    require_writable(json_file)
    certificate = read_certificate(proof)
    arch, base = certificate.spec.get("arch"), certificate.spec.get("base")
    image = load_image(
        binary, arch=arch if isinstance(arch, str) else None, base=base if isinstance(base, int) else None
    )
    problem = "" if spec_file is None else _other_question(spec_file, certificate)
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


def _other_question(spec_file: str, certificate: Certificate) -> str:
    """What differs between the question of a spec file and that of the certificate, or ""."""
    from mcveto.certify import spec_mapping
    from mcveto.program.spec import load_spec

    wanted, found = spec_mapping(load_spec(spec_file)), certificate.spec
    differ = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
    return f"it answers another spec: {', '.join(differ)} differ" if differ else ""


def _print(headline: str, certificate: Certificate, checked: Checked | None, quiet: bool) -> None:
    from mcveto.errors import one_line

    print(one_line(headline))
    if quiet or headline != "PROVED":
        return
    asked = certificate.question
    reach = f"reach {' '.join(asked.targets)}, " if asked.targets else ""
    print(one_line(f"checked: {reach}return-address, from {asked.entry}, halts {' '.join(asked.halts) or 'none'}"))
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
