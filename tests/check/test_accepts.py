"""Proofs of the examples are accepted, with everything that re-derives them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from mcveto.check.certificate import Certificate, from_text, to_text
from mcveto.check.discharge import Effort, check
from mcveto.check.obligations import Checker
from mcveto.dpg.location import Fold
from mcveto.program.image import load_image
from mcveto.program.program import load_program
from mcveto.program.spec import (
    Argv,
    InputCall,
    InputMemory,
    PointerArgument,
    PropertySpec,
    RegionPermissions,
    Spec,
    load_spec,
    parse_spec,
)
from mcveto.program.spec_mapping import spec_mapping
from mcveto.search import Question, search

from .proofs import EXAMPLES, SMALL, as_data, certificate_for, from_data, program_of

ALL = sorted(
    str(path.relative_to(EXAMPLES).with_suffix(""))
    for path in EXAMPLES.rglob("*.yaml")
    if load_spec(str(path)).expected == "proved"
)


def small(name: str) -> Certificate:
    certificate = certificate_for(name)
    assert certificate is not None
    return certificate


@pytest.mark.parametrize("name", SMALL)
def test_small_proofs(name: str) -> None:
    certificate = from_text(to_text(small(name)))
    checked = check(certificate, program_of(name).image, Effort())
    assert (checked.problem, checked.undecided) == ("", False)
    assert checked.obligations >= len(certificate.locations)


def test_several_processes_and_a_second_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checker, "few", 4)
    name = "fig10/x86-32/share-CASE-0"
    checked = check(small(name), program_of(name).image, Effort(jobs=2, second=True))
    assert checked.problem == "" and checked.obligations > 20


# Where a later bound of an input makes an earlier one superfluous: what was left out must say by which of them.
BOUNDED = ("fig10/x86-32/cars", "fig10/x86-32/fig7a")


@pytest.mark.parametrize("name", [*BOUNDED, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL)])
def test_every_proof(name: str) -> None:
    """As `mcveto verify` finds it, with the example's own properties, and nobody has corrected the certificate."""
    program = program_of(name)
    verdict = search(lambda: program, Question(timeout=60, self_check=False, certificate=True)).verdict
    assert verdict.kind != "violated"
    if verdict.kind == "unknown":
        pytest.skip(f"not proved: {verdict.reason}")
    if not verdict.certificate:
        assert name not in BOUNDED
        pytest.skip(f"no certificate: {verdict.warnings}")
    assert check(from_text(verdict.certificate), program.image, Effort(timeout=120)).problem == ""


HOSTED = Path(__file__).parents[1] / "program" / "images" / "x86-32-hosted-small.elf"


@pytest.mark.parametrize("engine", [["dpg", "--strategy", "paper"], ["symex"]])
def test_a_dynamically_linked_program(engine: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The library is not in the file: functions of it are models, whose text is part of the certificate."""
    from mcveto.cli.main import run_command_line as run

    proof = str(tmp_path / "proof.json")
    asked = ["--property", "no-fault", "--engine", *engine, "--proof", proof, "--quiet"]
    assert run(["verify", str(HOSTED), *asked]) == 0
    assert run(["check", proof, str(HOSTED), "--quiet"]) == 0
    assert capsys.readouterr().out == "PROVED\nPROVED\n"
    data = json.loads(Path(proof).read_text())
    assert any("malloc" in source["text"] for source in data["sources"])
    sure = next(way for place in data["locations"] for way in place["invariant"] if way)
    sure[0] = "false"
    Path(proof).write_text(to_text(from_data(data)))
    assert run(["check", proof, str(HOSTED), "--quiet"]) == 5


def without_call_strings(certificate: Certificate) -> Certificate:
    """The same proof in the form that matches returns by nested edges instead of call strings."""
    data = as_data(certificate)
    frames = {location["id"]: location["frames"] for location in data["locations"]}
    for location in data["locations"]:
        here, steps = location["frames"], location["steps"]
        others = [name for name in steps if name != "halt"]
        location["calls"] = [{"to": n, "expecting": frames[n][-1]} for n in others if len(frames[n]) > len(here)]
        location["returns"] = [{"to": n, "expecting": here[-1]} for n in others if len(frames[n]) < len(here)]
        location["steps"] = [name for name in steps if name == "halt" or frames[name] == here]
        location["frames"] = None
    return from_data(data)


NESTED = ("fig10/x86-32/slam1", "fig10/x86-32/share-CASE-0", "fig10/ppc32-be/ex6")


@pytest.mark.parametrize("name", NESTED)
def test_proofs_without_call_strings(name: str) -> None:
    nested = without_call_strings(small(name))
    assert check(nested, program_of(name).image, Effort()).problem == ""


@pytest.mark.parametrize("kind", ["calls", "returns"])
@pytest.mark.parametrize("name", NESTED)
def test_a_missing_or_wrong_nested_edge_is_found(name: str, kind: str) -> None:
    program = program_of(name)
    nested = without_call_strings(small(name))
    numbers = [number for number, location in enumerate(nested.locations) if getattr(location, kind)]
    assert numbers
    for number in numbers[:3]:
        missing = as_data(nested)
        missing["locations"][number][kind] = []
        assert check(from_data(missing), program.image, Effort()).problem
        wrong = as_data(nested)
        for edge in wrong["locations"][number][kind]:
            edge["expecting"] = hex(int(edge["expecting"], 16) + 1)
        assert check(from_data(wrong), program.image, Effort()).problem


@pytest.mark.parametrize(
    ("name", "has_calls"),
    [("machine/tricks/aarch64", False), ("machine/tricks/mips-delay", True), ("machine/tricks/smc-next", False)],
)
def test_proofs_of_the_pc_fold(name: str, has_calls: bool) -> None:
    certificate = certificate_for(name, fold=Fold.PC)
    assert certificate is not None
    assert all(location.frames is None for location in certificate.locations)
    assert any(location.calls for location in certificate.locations) == has_calls
    assert check(certificate, program_of(name).image, Effort()).problem == ""
    for number, location in enumerate(certificate.locations):
        for kind in ("calls", "returns"):
            if getattr(location, kind):
                data = as_data(certificate)
                data["locations"][number][kind] = []
                assert check(from_data(data), program_of(name).image, Effort()).problem


def test_the_whole_spec_is_in_the_certificate() -> None:
    """All fields, so that the checker answers the same question; a new field must be added to `spec_mapping`."""
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry="start+0x10",
        input_calls=(InputCall(0x1010, 7, True), InputCall("read")),
        input_registers=("ECX",),
        input_memory=(InputMemory(0x1020, 4),),
        pointers=(PointerArgument(3, 16),),
        assume=(0x1030,),
        halt=("stop", 0x1040),
        undefined="returns-anything",
        stack=8192,
        objects="separate",
        regions=(RegionPermissions(0x1000, 16, "rx"),),
        models=((0x1060, "memcpy"),),
        argv=Argv(2, 8),
        properties=(PropertySpec("reach", (0x1050, "error")), PropertySpec("return-address")),
    )
    left_out = {"path", "binary", "expected", "notes"}
    assert all(getattr(spec, field.name) for field in fields(Spec) if field.name not in left_out)
    mapping = spec_mapping(spec)
    again = parse_spec(mapping, "again")
    assert spec_mapping(again) == mapping
    numbers = parse_spec({"entry": 0x1000, "stack": 8192, "base": 0x1000}, "numbers")
    for field in fields(Spec):
        if field.name not in left_out:
            assert type(getattr(again, field.name)) is type(getattr(spec, field.name)), field.name
            assert bool(getattr(again, field.name)), field.name
    assert (numbers.stack, numbers.base) == (again.stack, again.base)


def test_regions_of_the_spec(tmp_path: Path) -> None:
    """mov eax, 1; ret; target: nop, in code that the spec makes unwritable"""
    file = tmp_path / "blob"
    file.write_bytes(bytes.fromhex("b801000000 c3 90"))
    region = RegionPermissions(0x1000, 7, "rx")
    target = PropertySpec("reach", (0x1006,))
    spec = Spec(arch="x86-32", base=0x1000, entry=0x1000, regions=(region,), properties=(target,))
    program = load_program(str(file), spec)
    verdict = search(lambda: program, Question(timeout=120)).verdict
    assert verdict.kind == "proved"
    image = load_image(str(file), arch="x86-32", base=0x1000)
    certificate = from_text(verdict.certificate)
    assert check(certificate, image, Effort()).problem == ""
    data = as_data(certificate)
    del data["spec"]["regions"]
    assert check(from_data(data), image, Effort()).problem == "its assumptions are not those of the program"
