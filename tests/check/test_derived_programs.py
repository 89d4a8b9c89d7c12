"""Certificates about more than a binary and its spec: typestate properties, library models, While programs.

The checker derives ghost state, models and the lowered program from the texts in the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcveto.check.certificate import Certificate, from_text, source
from mcveto.check.discharge import Effort, check
from mcveto.cli.main import run_command_line
from mcveto.machine.pcode import Instruction
from mcveto.program.image import Image
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.program.while_program import while_program
from mcveto.property import ghost
from mcveto.property.attach import parse_event, with_typestates
from mcveto.search import Question, search
from mcveto.whilelang.parser import parse

from .proofs import EXAMPLES, as_data, from_data, proved

LOCKING = EXAMPLES / "typestate" / "x86-32" / "driver-MISSING-0"


def typestate() -> tuple[Certificate, Image]:
    program, certificate = proved("typestate typestate/x86-32/driver-MISSING-0")
    return certificate, program.image


def model() -> tuple[Certificate, Image]:
    program, certificate = proved("model strlen")
    return certificate, program.image


def lowered() -> tuple[Certificate, Image]:
    program, certificate = proved("while no_alias")
    return certificate, program.image


KINDS: dict[str, Callable[[], tuple[Certificate, Image]]] = {"typestate": typestate, "model": model, "while": lowered}


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_proved_again(kind: str) -> None:
    certificate, image = KINDS[kind]()
    checked = check(certificate, image, Effort())
    assert (checked.problem, checked.undecided) == ("", False)
    assert kind in {item.kind for item in certificate.sources}


def rejected(kind: str, change: Callable[[dict[str, Any]], None]) -> str:
    certificate, image = KINDS[kind]()
    data = as_data(certificate)
    change(data)
    return check(from_data(data), image, Effort()).problem


def with_text(data: dict[str, Any], at: int, old: str, new: str) -> None:
    """Another text, with its own hash."""
    item = data["sources"][at]
    assert old in item["text"]
    changed = source(item["kind"], item["name"], item["text"].replace(old, new, 1))
    item.update({"text": changed.text, "sha256": changed.sha256})


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_texts_there_is_no_question(kind: str) -> None:
    assert rejected(kind, lambda data: data.update(sources=[]))
    assert rejected(kind, lambda data: data["sources"][0].update(kind="other"))
    assert rejected(kind, lambda data: data["sources"].append(data["sources"][0]))
    assert rejected(kind, lambda data: data["sources"][0].update(text=data["sources"][0]["text"] + " "))
    assert rejected(kind, lambda data: data["sources"][0].update(sha256="0" * 64))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("held -> free         on unlock", "held -> held on unlock"),
        ("start free", "start held"),
        ("held -> free ", "held -> locked-twice "),
        ("call acquire |", "reach 0x8048190 |"),
        ("automaton lock", "automaton unlock"),
    ],
)
def test_another_property(old: str, new: str) -> None:
    assert rejected("typestate", lambda data: with_text(data, 0, old, new))


def test_a_property_that_watches_less() -> None:
    """The same automaton with events elsewhere: the ghost updates are not where the proof assumes them."""
    assert rejected("typestate", lambda data: data.update(events=["lock=none"]))
    assert rejected("typestate", lambda data: data.update(events=["unlock=reach:0x8048190"]))
    assert rejected("typestate", lambda data: data["question"].update(targets=[]))
    assert rejected("typestate", lambda data: data["question"].update(properties=["return-address"]))
    assert rejected("typestate", lambda data: data["spec"].update(properties=[]))


def test_another_model() -> None:
    assert "texts" in rejected("model", lambda data: with_text(data, 0, "r := dst", "r := src"))
    assert rejected("model", lambda data: data["spec"].update(models={"0x1020": "memcpy"}))
    assert rejected("model", lambda data: data["spec"].pop("models"))


def test_another_while_program() -> None:
    text = lowered()[0].sources[0].text
    program = while_program(parse(text.replace("1", "2"), "other.w"))
    assert "another binary" in check(lowered()[0], program.image, Effort()).problem
    assert rejected("while", lambda data: with_text(data, 0, "1", "2"))
    assert rejected("while", lambda data: data["spec"].update(entry="0x10000000"))


def test_events_are_in_the_certificate() -> None:
    folder = EXAMPLES / "typestate" / "x86-32" / "handles-WRONG-0"
    program = load_program(f"{folder}.sym.elf", with_typestates(load_spec(f"{folder}.yaml"), ["use-after-close"]))
    verdict = search(lambda: program, Question(timeout=200, events=(parse_event("write=none"),))).verdict
    assert verdict.kind == "proved" and isinstance(verdict.support["obligations"], int)
    certificate = from_text(verdict.certificate)
    assert certificate.events == ("write=none",)
    assert certificate.question.properties == ("return-address", "use-after-close")
    assert check(certificate, program.image, Effort()).problem == ""


def test_an_engine_with_broken_ghost_state_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's program never moves the automaton; the checker derives its own."""
    spec = with_typestates(load_spec(f"{LOCKING.with_name('driver-MISSING-1')}.yaml"), ["lock"])
    program = load_program(f"{LOCKING.with_name('driver-MISSING-1')}.sym.elf", spec)
    original = ghost._Compiler._instrumented
    calls: list[int] = []

    def lost(self: Any, instruction: Instruction, place: Any, update: Any, *rest: Any) -> Instruction:
        # The first compilation is the engine's; the tested process makes another one for the checker.
        calls.append(1)
        return original(self, instruction, place, [] if len(calls) <= 3 else update, *rest)

    monkeypatch.setattr(ghost._Compiler, "_instrumented", lost)
    verdict = search(lambda: program, Question(timeout=200)).verdict
    assert verdict.kind == "unknown" and verdict.reason.startswith("self-check failed: ")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proof, binary, spec = str(tmp_path / "proof.json"), f"{LOCKING}.sym.elf", f"{LOCKING}.yaml"
    arguments = ["--spec", spec, "--property", "lock"]
    assert run_command_line(["verify", binary, *arguments, "--proof", proof, "--quiet"]) == 0
    assert run_command_line(["check", proof, binary, *arguments, "--jobs", "1"]) == 0
    assert run_command_line(["check", proof, binary, "--spec", spec]) == 5
    assert "properties, property files differ" in capsys.readouterr().out
    mine = tmp_path / "lock.fsm"
    mine.write_text(typestate()[0].sources[0].text + "\n# another text\n")
    assert run_command_line(["check", proof, binary, "--spec", spec, "--property", str(mine)]) == 5
    assert run_command_line(["check", proof, binary, *arguments, "--event", "lock=none"]) == 5
    assert "events differ" in capsys.readouterr().out


def test_while_programs_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proof, file = str(tmp_path / "proof.json"), str(EXAMPLES / "while" / "no_alias.w")
    assert run_command_line(["while", "verify", file, "--theory", "s32", "--proof", proof]) == 0
    assert run_command_line(["check", proof, file]) == 0
    assert run_command_line(["check", proof, str(EXAMPLES / "while" / "swap.w")]) == 5
    assert "another binary" in capsys.readouterr().out
