"""The inputs of a violation name all that it depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcveto
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputMemory, PropertySpec, Spec
from mcveto.verdict import Verdict, VerdictInput

BASE = 0x1000


def program(tmp_path: Path, code: str, target: int, **spec: object) -> Program:
    file = tmp_path / "blob"
    file.write_bytes(bytes.fromhex(code))
    reach = PropertySpec("reach", (BASE + target,))
    return load_program(
        str(file),
        Spec(arch="x86-32", base=BASE, entry=BASE, properties=(reach,), **spec),  # type: ignore[arg-type]
    )


def violation(subject: Program, seed: int) -> Verdict:
    verdict = mcveto.verify(subject, timeout=60, seed=seed)
    assert verdict.headline == "VIOLATED(reach)"
    return verdict


@pytest.mark.parametrize("seed", [0, 1])
def test_unspecified_register(tmp_path: Path, seed: int) -> None:
    subject = program(tmp_path, "85 c0 75 01 90 c3", 4)  # test eax, eax; jnz; target: nop
    assert violation(subject, seed).inputs == (VerdictInput(0, 32, "unspecified register EAX at entry"),)


@pytest.mark.parametrize("seed", [0, 1])
def test_unspecified_memory(tmp_path: Path, seed: int) -> None:
    subject = program(tmp_path, "80 7c 24 40 05 75 01 90 c3", 7)  # cmp byte [esp+0x40], 5; jne; target: nop
    (item,) = violation(subject, seed).inputs
    assert (item.value, item.bits) == (5, 8)
    assert item.where == "unspecified memory 0x7ffef03c at entry"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_listed_inputs_come_first_and_can_be_run(tmp_path: Path, seed: int) -> None:
    # cmp ecx, 1234; jne; cmp byte [0x100f], 77; jne; target: nop; ret; a byte
    code = "81 f9 d2 04 00 00 75 0a 80 3d 14 10 00 00 4d 75 01 90 c3 90 90"
    memory = (InputMemory(BASE + 0x14, 1),)
    subject = program(tmp_path, code, 17, input_registers=("ECX",), input_memory=memory)
    inputs = violation(subject, seed).inputs
    assert inputs == (VerdictInput(1234, 32, "register ECX"), VerdictInput(77, 8, "memory 0x1014"))
    assert subject.machine(InputSource([item.value for item in inputs])).run(100).kind == "target"
