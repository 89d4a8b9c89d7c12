"""Summaries prove recursion of any depth, and nothing else: code that breaks what callers rely on is not proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.certify import certificate_of
from mcveto.check.certificate import Certificate, Frame, sealed
from mcveto.check.discharge import Effort, check
from mcveto.dpg.summaries.prove import verdict_by_summaries
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec, load_spec

EXAMPLES = Path(__file__).parents[2] / "examples" / "recursion"
SECONDS = 600.0

# sub esp,4; mov [esp],7; xor ebx,ebx; call input; mov ecx,esp; push ecx; push eax; call f; add esp,8; cmp [esp],7;
# jne bad; test ebx,ebx; jne bad; test eax,eax; jne bad; back: add esp,4; ret
START = "83ec04c704240700000031dbe82400000089e15150e81c00000083c408833c2407750c85db750885c0750483c404c3"
# bad: call target; hlt; input: ret; then f(n, p), which calls itself with n - 1 until n is 0; target: hlt
SAFE = "e81b000000f4c38b44240485c07501c3488b4c24085150e8ebffffff83c408c3f4"
BROKEN = {
    # the innermost writes into the frame of the first caller
    "pointer": "e825000000f4c38b44240485c0750b8b4c2408c70108000000c3488b4c24085150e8e1ffffff83c408c3f4",
    # one of 50,000 does
    "rare pointer": "e82c000000f4c38b44240485c07501c33d50c30000750a8b4c2408c70108000000488b4c24085150e8daffffff83c408c3f4",
    # the innermost returns to another place
    "return address": "e822000000f4c38b44240485c07508c704242f100000c3488b4c24085150e8e4ffffff83c408c3f4",
    # one of 50,000 does
    "rare return address": "e829000000f4c38b44240485c07501c33d50c300007507c704242f100000488b4c24085150e8ddffffff83c408c3f4",
    # the innermost returns with something pushed
    "unbalanced": "e81c000000f4c38b44240485c0750250c3488b4c24085150e8eaffffff83c408c3f4",
    # one of 50,000 pops an argument
    "rarely unbalanced": "e825000000f4c38b44240485c07501c33d50c300007503c20400488b4c24085150e8e1ffffff83c408c3f4",
    # the innermost leaves all activations at once
    "long jump": "e821000000f4c38b44240485c075078b642408ebe7c3488b4c24085150e8e5ffffff83c408c3f4",
    # one of 50,000 does
    "rare long jump": "e828000000f4c38b44240485c07501c33d50c3000075068b642408ebdf488b4c24085150e8deffffff83c408c3f4",
    # one of 50,000 changes a register that the first caller relies on
    "saved register": "e823000000f4c38b44240485c07501c33d50c30000750143488b4c24085150e8e3ffffff83c408c3f4",
    # one of 50,000 writes above its arguments
    "caller frame": "e82a000000f4c38b44240485c07501c33d50c300007508c744240c08000000488b4c24085150e8dcffffff83c408c3f4",
    # one of 50,000 returns something else
    "result": "e826000000f4c38b44240485c07501c3488b4c24085150e8ebffffff83c408817c240450c30000750140c3f4",
    # one of 30,000 writes at a distance that depends on its argument
    "far up": "e82f000000f4c38b44240485c07501c33d30750000750d8d0cc48d0c81c7410c08000000488b4c24085150e8d7ffffff83c408c3f4",
}


def program_of(tmp_path: Path, code: str) -> Program:
    file = tmp_path / "blob"
    content = bytes.fromhex(START + code)
    file.write_bytes(content)
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(0x1035),),
        regions=(RegionPermissions(0x1000, len(content), "rx"),),
        properties=(PropertySpec("reach", (0x1000 + len(content) - 1,)),),
    )
    return load_program(str(file), spec)


def example(name: str) -> Program:
    return load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))


def certificate(program: Program) -> Certificate:
    verdict = verdict_by_summaries(program, SECONDS)
    assert verdict is not None and verdict.kind == "proved" and verdict.proof is not None
    return certificate_of(program, verdict.proof, "test")


def problem(program: Program, claim: Certificate) -> str:
    return check(claim, program.image, Effort(timeout=60)).problem


def test_recursion_is_proved_and_the_checker_agrees(tmp_path: Path) -> None:
    program = program_of(tmp_path, SAFE)
    claim = certificate(program)
    assert len(claim.procedures) == 1 and claim.locations == ()
    assert problem(program, claim) == ""


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_breaks_the_callers_is_not_proved(name: str, tmp_path: Path) -> None:
    assert verdict_by_summaries(program_of(tmp_path, BROKEN[name]), SECONDS) is None


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_the_checker_refuses_the_claims_of_the_unbroken_program(name: str, tmp_path: Path) -> None:
    """The same claims about code that breaks them."""
    broken = program_of(tmp_path, BROKEN[name])
    (tmp_path / "other").mkdir()
    safe = program_of(tmp_path / "other", SAFE)
    claim = certificate(safe)
    moved = certificate_about(broken, claim)
    assert problem(broken, moved)


def certificate_about(program: Program, claim: Certificate) -> Certificate:
    """The same procedures, said of another program."""
    from mcveto.dpg.summaries.summary import ProcedureProof
    import msgspec

    empty = certificate_of(program, ProcedureProof(()), "test")
    return sealed(msgspec.structs.replace(empty, procedures=claim.procedures))
