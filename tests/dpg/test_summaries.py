"""Summaries prove recursion of any depth, and nothing else: code that breaks what callers rely on is not proved."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcveto.certify import certificate_of
from mcveto.check.certificate import Certificate, sealed
from mcveto.check.discharge import Effort, check
from mcveto.check.records import Frame
from mcveto.dpg.summaries import prove
from mcveto.dpg.summaries.directed_inputs import inputs_into
from mcveto.dpg.summaries.prove import verdict_by_summaries
from mcveto.dpg.summaries.state import Frame as Frame_
from mcveto.dpg.summaries.summary import ProcedureProof
from mcveto.dpg.summaries.tables import Tables
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
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
    "rare pointer": "e82c000000f4c38b44240485c07501c33d50c30000750a8b4c2408c70108"
    "000000488b4c24085150e8daffffff83c408c3f4",
    # the innermost returns to another place
    "return address": "e822000000f4c38b44240485c07508c704242f100000c3488b4c24085150e8e4ffffff83c408c3f4",
    # one of 50,000 does
    "rare return address": "e829000000f4c38b44240485c07501c33d50c300007507c704242f100000"
    "488b4c24085150e8ddffffff83c408c3f4",
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
    "far up": "e82f000000f4c38b44240485c07501c33d30750000750d8d0cc48d0c81c7"
    "410c08000000488b4c24085150e8d7ffffff83c408c3f4",
}


# Those that no sample run meets, and one that all do; the others take longer without showing more.
QUICK = ("pointer", "rare pointer", "rare return address", "rarely unbalanced", "rare long jump", "saved register")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in sorted(BROKEN)]


def program_of(folder: Path, code: str, inputs: tuple[InputCall, ...] = (InputCall(0x1035),)) -> Program:
    file = folder / "blob"
    content = bytes.fromhex(START + code)
    file.write_bytes(content)
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_calls=inputs,
        regions=(RegionPermissions(0x1000, len(content), "rx"),),
        properties=(PropertySpec("reach", (0x1000 + len(content) - 1,)),),
    )
    return load_program(str(file), spec)


def example(name: str) -> Program:
    return load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))


def certificate(program: Program) -> Certificate:
    verdict = verdict_by_summaries(program, SECONDS)
    assert verdict is not None and verdict.kind == "proved" and isinstance(verdict.proof, ProcedureProof)
    return certificate_of(program, verdict.proof, "test")


def problem(program: Program, claim: Certificate, seconds: float = 120) -> str:
    """Why the checker refuses; also if it cannot decide in so many seconds per obligation."""
    return check(claim, program.image, Effort(timeout=seconds)).problem


def recorded_tables(patch: pytest.MonkeyPatch) -> list[Tables]:
    """The tables that are made from now on."""
    made: list[Tables] = []

    class Recorded(Tables):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    patch.setattr(prove, "Tables", Recorded)
    return made


Proved = tuple[Program, Certificate]


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Proved:
    program = program_of(tmp_path_factory.mktemp("safe"), SAFE)
    return program, certificate(program)


def changed(claim: Certificate, **changes: object) -> Certificate:
    """The certificate with other claims about its procedure, and a seal that fits."""
    (procedure,) = claim.procedures
    other = msgspec.structs.replace(procedure, **changes)
    return sealed(msgspec.structs.replace(claim, procedures=(other,)))


def test_recursion_is_proved_and_the_checker_agrees(proved: Proved) -> None:
    program, claim = proved
    assert len(claim.procedures) == 1 and claim.locations == ()
    assert problem(program, claim) == ""


@pytest.mark.parametrize("name", NAMES)
def test_what_breaks_the_callers_is_not_proved(name: str, tmp_path: Path) -> None:
    verdict = verdict_by_summaries(program_of(tmp_path, BROKEN[name]), SECONDS)
    assert verdict is None or verdict.kind == "violated"


@pytest.mark.parametrize("name", NAMES)
def test_the_checker_refuses_the_same_claims_about_broken_code(name: str, proved: Proved, tmp_path: Path) -> None:
    broken = program_of(tmp_path, BROKEN[name])
    empty = certificate_of(broken, ProcedureProof(()), "test")
    assert problem(broken, sealed(msgspec.structs.replace(empty, procedures=proved[1].procedures)))


def test_the_checker_refuses_lies(proved: Proved) -> None:
    program, claim = proved
    (procedure,) = claim.procedures
    lies: list[dict[str, object]] = [
        {"ensures": (*procedure.ensures, "false")},
        {"requires": (*procedure.requires, "false")},
        {"ensures": (*procedure.ensures, "(= |after EAX| #x00000001)")},
        {"pc": "0x1000"},
    ]
    for lie in lies:
        assert problem(program, changed(claim, **lie), 5), lie


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_checker_refuses_what_is_too_weak_or_too_strong(proved: Proved) -> None:
    program, claim = proved
    frame = claim.procedures[0].frame
    assert frame is not None
    changes: list[dict[str, object]] = [
        {"requires": ()},
        {"ensures": ()},
        {"frame": None},
        {"frame": Frame(below=frame.below, above="0x0", written=(("0x0", "0xffffffff"),))},
        {"frame": Frame(below="0xffffffff", above="0x0", written=())},
        {"pc": "0x1037"},
    ]
    for change in changes:
        assert problem(program, changed(claim, **change), 5), change


def test_the_checker_refuses_what_is_no_claim(proved: Proved) -> None:
    program, claim = proved
    (procedure,) = claim.procedures
    for text in ("(= |after EAX| EAX)", "true) (assert false", "nonsense", ""):
        assert problem(program, changed(claim, requires=(*procedure.requires, text)), 5), text
    twice = sealed(msgspec.structs.replace(claim, procedures=(procedure, procedure)))
    assert "twice" in problem(program, twice)
    assert problem(program, sealed(msgspec.structs.replace(claim, procedures=())))


def test_a_deep_violation_is_found_through_a_summary() -> None:
    """id(n) = n, so the target needs n = 25; sample runs are not that lucky for certain, a model is."""
    verdict = verdict_by_summaries(example("x86-32/deep-id-bug-O0"), SECONDS)
    assert verdict is not None and verdict.kind == "violated"
    assert [item.value for item in verdict.inputs] == [25]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/deep-*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_examples_are_never_answered_wrongly(path: Path) -> None:
    spec = load_spec(str(path))
    program = load_program(None, spec)
    verdict = verdict_by_summaries(program, SECONDS)
    if verdict is not None:
        assert verdict.kind == ("violated" if "-bug-" in path.name else "proved")
        if isinstance(verdict.proof, ProcedureProof):
            assert problem(program, certificate_of(program, verdict.proof, "test")) == ""


@pytest.mark.parametrize(
    "name", ["ppc32-be/deep-id-safe-O0", pytest.param("x86-64/deep-id-safe-O0", marks=pytest.mark.slow)]
)
def test_other_calling_conventions(name: str) -> None:
    program = example(name)
    assert problem(program, certificate(program)) == ""


def test_frames_agree_with_their_shortcuts() -> None:
    """What is surely kept is kept, and a word that is left free is kept nowhere."""
    generator = random.Random(1)
    pointer = t.var("ESP", 32)
    frame = Frame_((0x7000_0000, 0x7010_0000), 8, ((0x8000, 0x8010), (0x9000, 0x9001)))
    for _ in range(2000):
        sp = generator.randrange(0x7000_0000, 0x7010_0000)
        size = generator.choice((1, 2, 4, 8))
        near = generator.choice((sp, 0x7000_0000, 0x7010_0000, 0x8000, 0x8010, 0x9000, 0, 0xFFFF_FFFF))
        number = (near + generator.randrange(-12, 13)) & 0xFFFF_FFFF
        address = generator.choice((t.const(number, 32), t.add(pointer, t.const(number - sp, 32))))
        evaluator = Evaluator(lambda variable, sp=sp: sp, lambda memory, where: 0)  # type: ignore[misc]
        bytes_kept = [bool(evaluator.value(frame.keeps(t.add(address, t.const(i, 32)), pointer))) for i in range(size)]
        if number + size <= 1 << 32 and frame.surely_keeps(address, size, pointer):
            assert all(bytes_kept)
        if evaluator.value(frame.leaves_free(address, size, pointer)):
            assert not any(bytes_kept)


@pytest.mark.parametrize(
    "name",
    [
        "x86-32/deep-pell-safe-O0",
        *(pytest.param(f"{isa}/deep-pell-safe-O0", marks=pytest.mark.slow) for isa in ("x86-64", "ppc32-be")),
    ],
)
def test_tables_hold_what_the_function_returns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recorded_tables(monkeypatch)
    program = example(name)
    assert problem(program, certificate(program)) == ""
    (table,) = made
    numbers = [0, 1]
    for _ in range(30):
        numbers.append(2 * numbers[-1] + numbers[-2])
    assert {arguments[0] for _, arguments in table.rows} == set(range(21))
    for (_, (argument,)), results in table.rows.items():
        assert list(results.values()) == [numbers[argument]]


def test_input_functions_may_have_different_widths(tmp_path: Path) -> None:
    """The numbers of sample runs are drawn for the widest, also where a narrow one is called."""
    other = InputCall(0x1034, bits=32)
    subject = program_of(tmp_path, SAFE, (InputCall(0x1035, bits=8), other))
    verdict = verdict_by_summaries(subject, SECONDS)
    assert verdict is not None and verdict.kind == "proved"


def test_inputs_that_the_program_does_not_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every directed input of the example begins an activation: it is at most 20, and small ones come first."""
    found: list[list[int]] = []

    def recorded(*arguments: Any) -> list[list[int]]:
        found.extend(inputs_into(*arguments))
        return list(found)

    monkeypatch.setattr(prove, "inputs_into", recorded)
    verdict_by_summaries(example("x86-32/deep-pell-bug-O0"), SECONDS)
    assert len(found) > 5 and all(value <= 20 for (value,) in found) and len(set(map(tuple, found))) == len(found)
    assert max(value for (value,) in found[:2]) <= 2
