"""Certificates of explorations and simulations: array terms, joined states, notes, other modules."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from time import process_time
from types import SimpleNamespace

import pytest

from mcveto import certify_paths
from mcveto.check.certificate import Certificate, from_text
from mcveto.check.discharge import Effort, check
from mcveto.program.program import Program, load_program
from mcveto.program.spec import parse_spec
from mcveto.program.undetermined import Undetermined
from mcveto.search import Question, search

from .proofs import as_data, from_data, program_of, proved
from .test_accepts import ALL

# and ecx, 0x3ff; mov byte [ecx+0x2000], 7; mov byte [0x2001], 7; mov al, [ecx+0x2000]; cmp al, 7; je end; target: nop;
# end: ret
TABLE = "81e1ff030000 c6810020000007 c6050120000007 8a8100200000 3c07 7401 90 c3"
TABLE_TARGET = 0x101E
# mov eax, [ecx]; ret; target: nop
ANYWHERE = "8b01 c3 90"


def raw(tmp_path: Path, code: str, target: int, size: int = 0x1000) -> Program:
    """Code at 0x1000 and 0x500 bytes of data behind it."""
    file = tmp_path / "code"
    file.write_bytes(bytes.fromhex(code).ljust(size, b"\x90") + bytes(0x500))
    regions = [
        {"at": 0x1000, "size": size, "permissions": "rx"},
        {"at": 0x1000 + size, "size": 0x500, "permissions": "rw"},
    ]
    spec = {"arch": "x86-32", "base": 0x1000, "entry": 0x1000, "regions": regions, "properties": [{"reach": [target]}]}
    return load_program(str(file), parse_spec(spec, "spec"))


def certified(program: Program, engine: str) -> Certificate:
    verdict = search(lambda: program, Question(engine=engine, timeout=120, self_check=False)).verdict
    assert (verdict.kind, verdict.reason) == ("proved", "") and verdict.certificate
    return from_text(verdict.certificate)


def problem(certificate: Certificate, program: Program) -> str:
    return check(certificate, program.loaded or program.image, Effort()).problem


@pytest.mark.parametrize("engine", ["symex", "bmc"])
def test_memory_that_is_an_array_term(tmp_path: Path, engine: str) -> None:
    program = raw(tmp_path, TABLE, TABLE_TARGET)
    certificate = certified(program, engine)
    assert problem(certificate, program) == ""


def test_a_whole_memory_is_compared(tmp_path: Path) -> None:
    """What is said of all of memory at once is an obligation like any other."""
    # and ecx, 0x3ff; mov byte [ecx+0x2000], 7; jmp on; on: mov al, [ecx+0x2000]; cmp al, 7; je end; target: nop; ret
    program = raw(tmp_path, "81e1ff030000 c6810020000007 eb00 8a8100200000 3c07 7401 90 c3", 0x1019)
    certificate = certified(program, "symex")
    assert problem(certificate, program) == ""
    data = as_data(certificate)
    texts = [
        (location, at)
        for location in data["locations"]
        for at, text in enumerate(location["invariant"][0])
        if text.startswith("(= mem ")
    ]
    assert texts and any(item["name"] == "mem!entry" and item["begins"] == "mem" for item in data["history"])
    for location, at in texts:
        if "#x07" not in location["invariant"][0][at]:
            continue
        changed = from_data({**data, "locations": _with(data, location, at, "#x07", "#x08")})
        assert problem(changed, program)
        dropped = from_data({**data, "locations": _with(data, location, at, location["invariant"][0][at], "true")})
        assert problem(dropped, program)


def _with(data: dict, location: dict, at: int, old: str, new: str) -> list[dict]:  # type: ignore[type-arg]
    conditions = list(location["invariant"][0])
    conditions[at] = conditions[at].replace(old, new)
    changed = {**location, "invariant": [conditions]}
    return [changed if item is location else item for item in data["locations"]]


def test_the_memory_at_entry_is_known_only_if_it_stays(tmp_path: Path) -> None:
    """A variable that begins as the memory and is changed by a note is any memory afterwards."""
    # mov dword [0x2400], 0 ; jmp on; on: cmp byte [0x2100], 0; je end; target: nop; end: ret
    program = raw(tmp_path, "c7050024000000000000 eb00 803d0021000000 7401 90 c3", 0x1015)
    certificate = certified(program, "symex")
    data = as_data(certificate)
    said = "(= (select mem #x00002100) (select past!0 #x00002100))"
    data["history"] = [{"name": "past!0", "bits": 0, "begins": "mem"}]
    for location in data["locations"]:
        kept = [text for text in location["invariant"][0] if "#x00002100" not in text]
        location["invariant"] = [[*kept, said]]
    assert problem(from_data(data), program) == ""
    data["locations"][0]["notes"] = [{"to": data["locations"][0]["steps"][0], "name": "past!0", "value": "mem"}]
    assert problem(from_data(data), program)


SIMULATED = ("air/ppc32-be/scsi-queue-fix-O1", "drivers/x86-32/lock-safe-O2", "air/ppc32-be/lan-interrupt-fix-O1")


@pytest.mark.parametrize("name", SIMULATED)
def test_simulations(name: str) -> None:
    program, certificate = proved(f"simulation {name}")
    assert check(certificate, program.image, Effort()).problem == ""
    assert any(location.notes for location in certificate.locations)


def test_what_a_join_forgets_must_be_noted() -> None:
    """Without its notes a simulation's certificate does not hold."""
    program, certificate = proved(f"simulation {SIMULATED[0]}")
    rejected = 0
    for number, location in enumerate(certificate.locations):
        if location.notes:
            data = as_data(certificate)
            data["locations"][number]["notes"] = []
            rejected += bool(check(from_data(data), program.image, Effort()).problem)
    assert rejected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("true", "false"),
        ("r3", "r4"),
        ("mem", "mem"),
        ("unknown!1", "#x00000000"),
        ("value!0.32", "#x00"),
        ("value!0.32", "value!0.32 value!0.32"),
        ("value!0.32", "value!0.32) (= r3 r3"),
        ("value!0.32", "fresh!1"),
        ("value!0.32", "(! r3 :named fresh!1.32)"),
    ],
)
def test_notes_change_the_history_and_nothing_else(name: str, value: str) -> None:
    program, certificate = proved(f"simulation {SIMULATED[0]}")
    data = as_data(certificate)
    location = next(item for item in data["locations"] if len(item["steps"]) and item["steps"][0] != "halt")
    location["notes"] = [{"to": location["steps"][0], "name": name, "value": value}]
    found = check(from_data(data), program.image, Effort()).problem
    assert "cannot become" in found or "a claim is not" in found or "is not one expression" in found, found


def test_an_invariant_cannot_speak_of_what_a_step_leaves_open() -> None:
    program, certificate = proved(f"simulation {SIMULATED[0]}")
    data = as_data(certificate)
    location = next(item for item in data["locations"] if item["steps"] and item["steps"][0] != "halt")
    data["history"].append({"name": "extra!0", "bits": 32, "begins": ""})
    location.setdefault("notes", []).append({"to": location["steps"][0], "name": "extra!0", "value": "fresh!1.32"})
    assert check(from_data(data), program.image, Effort()).problem == ""
    data["locations"][0]["invariant"][0].append("(= fresh!1.32 #x00000000)")
    assert "is not a condition on the state" in check(from_data(data), program.image, Effort()).problem


@pytest.mark.parametrize(("code", "target"), [(ANYWHERE, 0x1003), ("a100700000 c3 90", 0x1006)])
def test_accesses_to_other_modules(tmp_path: Path, code: str, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another module may be, an access that is no more than a fault elsewhere is unsupported."""
    program = raw(tmp_path, code, target)
    certificate = certified(program, "symex")
    assert problem(certificate, program) == ""
    monkeypatch.setattr(Undetermined, "foreign_ranges", lambda self: [(0x7000, 0x8000)])
    assert "something outside the file" in problem(certificate, program)


def test_jumps_to_other_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """and ecx, 0xfff; add ecx, 0x7000; jmp ecx: a fault, unless another module may be there"""
    program = raw(tmp_path, "81e1ff0f0000 81c100700000 ffe1", 0x1100)
    certificate = certified(program, "symex")
    assert problem(certificate, program) == ""
    monkeypatch.setattr(Undetermined, "foreign_ranges", lambda self: [(0x7000, 0x7001)])
    assert "does not hold" in problem(certificate, program)


def test_how_much_is_watched_is_in_the_certificate() -> None:
    program = program_of(next(name for name in ALL if name.startswith("memory/x86-32/")))
    certificate = certified(program, "symex")
    assert certificate.watched is not None
    assert problem(certificate, program) == ""
    for watched in ([0, 1], [33, 1], [1, 0], [1, 33]):
        assert "can be watched" in problem(from_data({**as_data(certificate), "watched": watched}), program)
    more = {**as_data(certificate), "watched": [certificate.watched[0] + 1, certificate.watched[1]]}
    assert problem(from_data(more), program) in ("", "its assumptions are not those of the program")


def straight(tmp_path: Path, length: int) -> float:
    """Processor seconds for a certificate of so many locations, each a single instruction."""
    program = raw(tmp_path, "90" * length + "c3 90", 0x1000 + length + 1, length + 0x100)
    pointer = next(
        value for cell, value in program.registers.items() if program.decoder.layout.cells[cell].name == "ESP"
    )
    returns = f"(= (concat (select mem #x{pointer + 3:08x}) (select mem #x{pointer + 2:08x}) "
    returns += f"(select mem #x{pointer + 1:08x}) (select mem #x{pointer:08x})) #x{program.return_sentinel:08x})"
    data = as_data(certified(program, "symex"))
    (location, *_) = data["locations"]
    data["locations"] = [
        {
            **location,
            "id": f"L{at}",
            "pc": hex(0x1000 + at),
            "code": ["90 NOP" if at < length else "c3 RET"],
            "invariant": [[returns]],
            "steps": [f"L{at + 1}" if at < length else "halt"],
            "refuted": [],
            "notes": [],
        }
        for at in range(length + 1)
    ]
    data["start"] = ["L0"]
    started = process_time()
    assert problem(from_data(data), program) == ""
    return process_time() - started


@pytest.mark.slow
def test_ten_thousand_locations_take_linear_time(tmp_path: Path) -> None:
    short, long = straight(tmp_path, 1250), straight(tmp_path, 10_000)
    assert long < 20 * max(short, 0.5)


def test_writing_that_takes_too_long_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody asked for the certificate."""
    monkeypatch.setattr(certify_paths, "time", SimpleNamespace(monotonic=count(0, 1000).__next__))
    question = Question("symex", timeout=60)
    hasty = search(lambda: program_of("fig10/x86-32/ex8"), question).verdict
    assert (hasty.kind, hasty.certificate) == ("proved", "")
    assert hasty.warnings == ("no certificate: that of engine symex is long: --proof FILE writes and checks it",)
    asked = search(lambda: program_of("fig10/x86-32/ex8"), replace(question, certificate=True)).verdict
    assert (asked.kind, asked.warnings) == ("proved", ()) and asked.certificate
