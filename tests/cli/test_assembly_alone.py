"""One routine as assembly text and nothing else: who it calls is not defined, its arguments are whatever they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.program.exits import run_to_end
from mcveto.program.inputs import InputSource
from mcveto.program.program import load_program
from mcveto.program.spec import PointerArgument, Spec, parse_spec
from mcveto.program.spec_mapping import spec_mapping

from .conftest import Call

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")

POWERPC = """
set_label:
	stwu %r1,-32(%r1)
	mflr %r0
	stw %r30,24(%r1)
	stw %r31,28(%r1)
	stw %r0,36(%r1)
	mr %r31,%r3
	mr %r30,%r5
	bl enter_critical
	cmpwi %cr7,%r31,0
	bne %cr7,.L2
	bl exit_critical
	li %r0,7
	stb %r0,0(%r30)
	RETURN
.L2:
	bl exit_critical
	li %r0,0
	stb %r0,0(%r30)
.L1:
	lwz %r0,36(%r1)
	lwz %r30,24(%r1)
	lwz %r31,28(%r1)
	mtlr %r0
	addi %r1,%r1,32
	blr
"""
X86 = """
put:
	movl 8(%esp), %eax
	movl 4(%esp), %ecx
	movl %ecx, 4(%eax)
	ret
"""
EVENTS = (
    "--property",
    "lock",
    "--event",
    "lock=enter_critical",
    "--event",
    "unlock=exit_critical",
    "--event",
    "end=none",
)


def routine(folder: Path, is_fixed: bool) -> Path:
    path = folder / "routine.s"
    path.write_text(POWERPC.replace("RETURN", "b .L1" if is_fixed else ""))
    return path


@pytest.mark.parametrize("engine", ["dpg", "cegar"])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_undefined_functions_are_events(call: Call, tmp_path: Path, engine: str, is_fixed: bool) -> None:
    text = routine(tmp_path, is_fixed)
    result = call("verify", text, "--entry", "set_label", *EVENTS, "--pointer", "3:1", "--engine", engine)
    assert result.first == ("PROVED" if is_fixed else "VIOLATED(lock)")
    assert "argument 3 of the entry points to 1 bytes of their own" in result.out
    assert "functions replaced by the spec change no register but their result" in result.out


def test_a_pointer_of_which_nothing_is_said_may_point_to_the_return_address(call: Call, tmp_path: Path) -> None:
    result = call("verify", routine(tmp_path, True), "--entry", "set_label", *EVENTS)
    assert result.first == "VIOLATED(return-address)"
    assert "say so: --pointer 3:SIZE" in result.out + result.err


@pytest.mark.parametrize("engine", ["dpg", "cegar", "symex", "bmc"])
def test_of_an_undefined_function_the_answer_says_what_can_be_said(call: Call, tmp_path: Path, engine: str) -> None:
    """What the hint proposes is possible, and enough."""
    text = tmp_path / "routine.s"
    text.write_text(POWERPC.replace("RETURN", "b .L1").replace("cmpwi %cr7,%r31,0", "bl get_state\n\tcmpwi %cr7,%r3,0"))
    common = ("verify", text, "--entry", "set_label", *EVENTS, "--pointer", "3:1", "--engine", engine)
    result = call(*common)
    assert result.code == 5 and "jump to import get_state" in result.first
    hint = next(line for line in result.out.splitlines() if "get_state is not defined in the file" in line)
    assert "--input get_state:32" in hint and "--event EVENT=get_state" in hint
    assert call(*common, "--input", "get_state:32").first == "PROVED"


def test_all_undefined_functions_at_once(call: Call, tmp_path: Path) -> None:
    text, proof = tmp_path / "routine.s", tmp_path / "proof.json"
    calls = "bl get_state\n\tbl print\n\tcmpwi %cr7,%r3,0"
    text.write_text(POWERPC.replace("RETURN", "b .L1").replace("cmpwi %cr7,%r31,0", calls))
    common = ("verify", text, "--entry", "set_label", *EVENTS, "--pointer", "3:1")
    result = call(*common, "--undefined", "returns-anything", "--proof", proof)
    assert result.first == "PROVED"
    assert "return anything, as the spec says: enter_critical, exit_critical, get_state, print" in result.out
    assert call("check", proof, text).first == "PROVED"
    assert call(*common, "--undefined", "unsupported").code == 5
    # What is said of one of them counts.
    result = call(*common, "--undefined", "returns-anything", "--halt", "print")
    assert result.first == "PROVED" and "as the spec says: enter_critical, exit_critical, get_state\n" in result.out
    assert call(*common, "--undefined", "nothing").code == 2


def test_the_wrong_one_is_wrong_whatever_undefined_functions_return(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "routine.s"
    text.write_text(POWERPC.replace("RETURN", "").replace("cmpwi %cr7,%r31,0", "bl get_state\n\tcmpwi %cr7,%r3,0"))
    common = ("verify", text, "--entry", "set_label", *EVENTS, "--pointer", "3:1")
    assert call(*common, "--undefined", "returns-anything").first == "VIOLATED(lock)"


def test_who_waited_in_vain_is_told_why(call: Call, tmp_path: Path) -> None:
    """The names are in the answer also where the time was over for another reason."""
    text = routine(tmp_path, True)
    result = call("verify", text, "--entry", "set_label", "--timeout", "0.001")
    assert result.first.startswith("UNKNOWN(time-out")
    assert "does not define: enter_critical, exit_critical; say what they do" in result.out


def test_the_certificate_says_who_was_assumed(call: Call, tmp_path: Path) -> None:
    text, proof = routine(tmp_path, True), tmp_path / "proof.json"
    assert call("verify", text, "--entry", "set_label", *EVENTS, "--pointer", "3:1", "--proof", proof).code == 0
    assert call("check", proof, text).first == "PROVED"


def test_arguments_on_the_stack(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "put.s"
    text.write_text(X86)
    common = ("verify", text, "--arch", "x86-32", "--entry", "put")
    assert call(*common).first == "VIOLATED(return-address)"
    assert call(*common, "--pointer", "2:8").first == "PROVED"
    program = load_program(str(text), Spec(arch="x86-32", entry="put", pointers=(PointerArgument(2, 4),)))
    assert run_to_end(program, program.machine(InputSource()), 9).kind == "fault"
    program = load_program(str(text), Spec(arch="x86-32", entry="put", pointers=(PointerArgument(2, 8),)))
    assert run_to_end(program, program.machine(InputSource()), 9).kind == "halted"
    # The first argument stays open.
    assert {program.machine(InputSource(), seed).memory.peek(0x7FFEF000, 4) for seed in (1, 2)} != {bytes(4)}
    assert parse_spec(spec_mapping(program.spec)).pointers == program.spec.pointers


@pytest.mark.parametrize("given", ["3", "0:4", "3:0", "r3:4", "99:4", "3:999999999"])
def test_what_is_no_pointer(call: Call, tmp_path: Path, given: str) -> None:
    result = call("verify", routine(tmp_path, True), "--entry", "set_label", *EVENTS, "--pointer", given)
    assert result.code == 2 and ("pointer" in result.err or "points" in result.err)
