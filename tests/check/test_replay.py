"""Replay: violations are repeated by every machine, and what does not repeat or agree is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import mcveto
from mcveto.check import replay as replay_module
from mcveto.check.counterexample import Counterexample, UndefinedValue, counterexample
from mcveto.check.lockstep import CannotFollow
from mcveto.check.native_follower import NativeFollower
from mcveto.check.reference_run import turns_of
from mcveto.check.replay import confirmed, replay
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.errors import UsageError
from mcveto.program.program import Program, load_program
from mcveto.program.spec import PropertySpec, Spec
from mcveto.verdict import Verdict, VerdictInput

from .machines import broken, named

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = (104, 0, 56)
# Inputs that violate what the example's spec says, found once and for all.
VIOLATIONS: dict[str, tuple[str, tuple[int, ...]]] = {
    "demo/demo": ("reach", DEMO),
    "machine/tricks/return-overwrite": ("return-address", ()),
    "machine/tricks/push-return": ("return-address", ()),
    "fig10/x86-32/smc2": ("reach", ()),
    "fig10/x86-32/smc1-REACH-1": ("reach", ()),
}


def program(name: str) -> Program:
    return mcveto.load(spec=str(EXAMPLES / f"{name}.yaml"))


def example(about: str, values: tuple[int, ...], bits: int = 8) -> Counterexample:
    return counterexample(about, [VerdictInput(value, bits, "call of 0x0") for value in values])


def native_runs() -> bool:
    subject = program("demo/demo")
    follower = NativeFollower(subject)
    try:
        from mcveto.check.reference_run import ReferenceRun

        follower.begin(ReferenceRun(subject, example("reach", DEMO)).machine)
    except CannotFollow:
        return False
    finally:
        follower.close()
    return True


def found_violation(name: str) -> Counterexample:
    """The engine's own counterexample, for programs without inputs that could be written down here."""
    from mcveto.check.counterexample import counterexample_of

    verdict = mcveto.verify(program(name), timeout=100)
    assert verdict.kind == "violated", verdict.headline
    return counterexample_of(verdict)


@pytest.mark.parametrize("name", [name for name, (_, values) in VIOLATIONS.items() if values])
def test_a_violation_is_confirmed(name: str) -> None:
    about, values = VIOLATIONS[name]
    result = replay(program(name), example(about, values))
    assert result.confirmed_by[:2] == ("emulator", "unicorn")
    assert ("native" in result.confirmed_by) == native_runs()
    assert result.violation is not None and result.violation.about == about


@pytest.mark.parametrize("name", [name for name, (_, values) in VIOLATIONS.items() if not values])
def test_self_modifying_code_and_wrong_returns_are_confirmed(name: str) -> None:
    result = replay(program(name), found_violation(name))
    assert result.problem == ""
    assert result.confirmed_by[:2] == ("emulator", "unicorn")


@pytest.mark.parametrize("name", ["fig10/ppc32-be/clobber", "fig10/ppc32-be/store-REACH-1"])
def test_other_instruction_sets_are_confirmed_by_unicorn(name: str) -> None:
    result = replay(program(name), found_violation(name))
    assert result.confirmed_by[:2] == ("emulator", "unicorn")
    assert "does not run ppc32-be" in str(result.comparisons[1])


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((104, 0, 57), "the run ends at 0x8048120: halted"),
        ((104, 0), "the run asks for more than the 2 inputs given"),
    ],
)
def test_inputs_that_do_not_violate(values: tuple[int, ...], why: str) -> None:
    result = replay(program("demo/demo"), example("reach", values))
    assert (result.confirmed, result.confirmed_by, result.problem) == (False, (), why)
    assert result.comparisons == ()


def test_another_violation_than_claimed() -> None:
    result = replay(program("demo/demo"), example("return-address", DEMO))
    assert result.problem == "the run violates reach, not return-address (0x8048110 is reached)"


def test_a_property_that_cannot_be_replayed() -> None:
    with pytest.raises(UsageError, match="cannot be replayed"):
        counterexample("typestate", [])


def test_a_run_that_is_too_long() -> None:
    assert replay(program("demo/demo"), example("reach", DEMO), max_steps=34).problem == "no violation in 34 steps"
    assert replay(program("demo/demo"), example("reach", DEMO), [], max_steps=35).confirmed_by == ("emulator",)


@pytest.mark.parametrize(
    ("fault", "at", "shown"),
    [
        ("register", 6, "in step 5 (MOV EDI,EAX at 0x8048140): EDI is 0x1 instead of 0x0"),
        ("pc", 3, "the program counter is 0x8048136 instead of 0x8048134"),
        ("memory", 1, "in step 0 (PUSH EDI at 0x8048130): memory 0x7ffeeff8 is 00000000 instead of"),
        ("stop", 2, "the outcome is the signal SIGSEGV instead of a step to 0x8048132"),
    ],
)
def test_the_first_difference_is_named(fault: str, at: int, shown: str) -> None:
    subject = program("demo/demo")
    if fault == "memory":
        found = replay(subject, replace(example("reach", DEMO), registers=(("EDI", 7),)), [broken(fault, at)])
    else:
        found = replay(subject, example("reach", DEMO), [broken(fault, at)])
    assert not found.confirmed and found.confirmed_by == ()
    assert shown in found.problem


def test_a_machine_that_cannot_go_on_neither_confirms_nor_contradicts() -> None:
    found = replay(program("demo/demo"), example("reach", DEMO), [broken("cannot", 5), named("other")])
    assert found.confirmed_by == ("emulator", "other")
    assert str(found.comparisons[0]) == "copy: not asked (out of breath)"


def test_the_processor_overrules_unicorn_but_not_the_other_way_round() -> None:
    subject, inputs = program("demo/demo"), example("reach", DEMO)
    found = replay(subject, inputs, [broken("pc", 3, "unicorn"), named("native")])
    assert found.confirmed_by == ("emulator", "native")
    found = replay(subject, inputs, [named("unicorn"), broken("pc", 3, "native")])
    assert not found.confirmed and "native: differs" in found.problem


def test_an_unconfirmed_violation_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = program("demo/demo")
    inputs = tuple(VerdictInput(value, 8, "call of 0x8048100") for value in DEMO)
    verdict = Verdict("violated", "reach", "0x8048110 is reached", inputs)
    assert confirmed(subject, verdict).confirmed_by[:2] == ("emulator", "unicorn")
    assert confirmed(subject, Verdict("proved")) == Verdict("proved")
    other = replace(verdict, about="typestate")
    assert confirmed(subject, other) == other
    wrong = confirmed(subject, replace(verdict, inputs=inputs[:1]))
    assert wrong.headline.startswith("UNKNOWN(self-check failed: the counterexample is not confirmed: the run asks for")
    assert (wrong.inputs, wrong.confirmed_by) == ((), ())
    monkeypatch.setattr(replay_module, "standard_followers", lambda: (broken("pc", 3),))
    assert "self-check failed" in mcveto.verify(subject, timeout=100).headline


def raw(folder: Path, isa: str, code: str, target: int) -> Program:
    file = folder / "blob"
    file.write_bytes(bytes.fromhex(code))
    return load_program(
        str(file), Spec(arch=isa, base=0x1000, entry=0x1000, properties=(PropertySpec("reach", (0x1000 + target,)),))
    )


def test_undefined_values_are_used_at_their_turn(tmp_path: Path) -> None:
    """`shl eax, 2` leaves OF undefined; the loop runs it three times and only the last OF is looked at."""
    # mov eax,1; mov ecx,3; again: shl eax,2; seto dl; dec ecx; jnz again; test dl,dl; jz +1; target: nop; ret
    code = "b801000000 b903000000 c1e002 0f90c2 49 75f7 84d2 7401 90 c3".replace(" ", "")
    subject = raw(tmp_path, "x86-32", code, 0x17)
    undefined = (UndefinedValue(0x100A, 8, 1),)
    turns, found = turns_of(subject, Counterexample("reach", undefined=undefined), 100)
    assert not isinstance(found, str), found
    assert turns == (7,)  # AF, OF and CF may be made up each time
    result = replay(subject, Counterexample("reach", undefined=undefined), [UnicornFollower])
    assert result.confirmed_by == ("emulator", "unicorn")


def test_entry_registers_and_memory_are_set(tmp_path: Path) -> None:
    subject = raw(tmp_path, "x86-32", "85c07501" + "90" + "c3", 4)  # test eax, eax; jnz +1; target: nop; ret
    assert replay(subject, Counterexample("reach")).confirmed_by == ("emulator", "unicorn")
    found = replay(subject, Counterexample("reach", registers=(("EAX", 3),)))
    assert found.problem == "the run ends at 0xffff0000: halted"
    with pytest.raises(UsageError, match="does not have"):
        replay(subject, Counterexample("reach", registers=(("r3", 3),)))
    with pytest.raises(UsageError, match="nothing is mapped"):
        replay(subject, Counterexample("reach", memory=((5, 3),)))


def test_values_are_sorted_by_what_they_are() -> None:
    listed = [
        VerdictInput(1, 32, "register ECX"),
        VerdictInput(2, 8, "memory 0x1014"),
        VerdictInput(-3, 8, "call of read"),
        VerdictInput(4, 32, "unspecified register EAX at entry"),
        VerdictInput(5, 8, "unspecified memory 0x7ffef03c at entry"),
        VerdictInput(1, 1, "undefined value at 0x100a"),
    ]
    found = counterexample("reach", listed)
    assert found.values == [1, 2, -3]
    assert (found.registers, found.memory) == ((("EAX", 4),), ((0x7FFEF03C, 5),))
    assert found.undefined == (UndefinedValue(0x100A, 1, 1),)


@pytest.mark.skipif(not native_runs(), reason="the processor cannot be asked here")
def test_the_process_ends_with_the_replay() -> None:
    subject = program("demo/demo")
    from mcveto.check.reference_run import ReferenceRun

    follower = NativeFollower(subject)
    follower.begin(ReferenceRun(subject, example("reach", DEMO)).machine)
    child = follower._child
    assert child is not None and Path(f"/proc/{child}").exists()
    follower.close()
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.skipif(not native_runs(), reason="the processor cannot be asked here")
def test_a_loader_that_differs_from_the_kernel_is_noticed() -> None:
    """The file behind the program changes: the kernel then loads other bytes than we did."""
    subject = program("demo/demo")
    other = mcveto.load(str(EXAMPLES / "fig10/x86-32/fig9.elf"))
    swapped = replace(subject, image=replace(subject.image, path=other.image.path))
    found = replay(swapped, example("reach", DEMO), [NativeFollower])
    assert not found.confirmed
    assert "the entry state" in found.problem or "has no memory" in str(found.comparisons[0])
