"""`mcveto verify --property FILE.fsm` from the command line, on bundled binaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Call

LOCK = ("--property", "lock")
FILES = ("--property", "use-after-close", "--event", "write=none")


def verify(call: Call, target: str, name: str, *options: str) -> tuple[int, str]:
    path = f"examples/typestate/{target}/{name}"
    result = call("verify", f"{path}.sym.elf", "--spec", f"{path}.yaml", *options, "--timeout", "120")
    return result.code, result.out


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_missing_unlock(call: Call, target: str) -> None:
    code, out = verify(call, target, "driver-MISSING-0", *LOCK)
    assert (code, out.splitlines()[0]) == (0, "PROVED")
    assert "checked: lock, return-address" in out
    code, out = verify(call, target, "driver-MISSING-1", *LOCK)
    assert (code, out.splitlines()[:2]) == (10, ["VIOLATED(lock)", "reason: locked while held"])
    assert "confirmed by: emulator" in out


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_files(call: Call, target: str) -> None:
    code, out = verify(call, target, "handles-WRONG-1", *FILES)
    assert (code, out.splitlines()[0]) == (10, "VIOLATED(use-after-close)")
    assert "input 0: 7 " in out
    assert "choice of property use-after-close at 0x" in out


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-32", "ppc32-be", "x86-64", "aarch64"])
def test_every_instruction_set(call: Call, target: str) -> None:
    for name, options, expected in [
        ("driver-MISSING-0", LOCK, 0),
        ("driver-MISSING-1", LOCK, 10),
        ("handles-WRONG-0", FILES, 0),
        ("handles-WRONG-1", FILES, 10),
    ]:
        assert verify(call, target, name, *options)[0] == expected, name


# A driver that takes the variant of a lock which saves the state of interrupts, and gives it back or not.
VARIANT = """
    .text
    .globl main
    .type main, @function
main:
    subl $28, %esp
    movl $8, (%esp)
    call spin_lock_irqsave
    UNLOCK
    xorl %eax, %eax
    addl $28, %esp
    ret
    .size main, .-main
"""
# The variant itself, by the lock that everybody knows.
DEFINED = """
    .type spin_lock_irqsave, @function
spin_lock_irqsave:
    jmp 1f
1:  subl $12, %esp
    movl 16(%esp), %eax
    movl %eax, (%esp)
    call spin_lock
    addl $12, %esp
    ret
    .size spin_lock_irqsave, .-spin_lock_irqsave
"""


@pytest.mark.parametrize("defined", ["", DEFINED])
@pytest.mark.parametrize("is_given_back", [True, False])
def test_variants_of_locks(call: Call, tmp_path: Path, defined: str, is_given_back: bool) -> None:
    """What the file does not define counts as the lock; what it defines, by the lock it takes: not twice."""
    text = tmp_path / "driver.s"
    unlock = "call spin_unlock_irqrestore" if is_given_back else "jmp 2f; call spin_unlock_irqrestore; 2:"
    text.write_text(VARIANT.replace("UNLOCK", unlock) + defined)
    result = call("verify", str(text), "--entry", "main", *LOCK, "--timeout", "60")
    expected = (0, "PROVED") if is_given_back else (10, "VIOLATED(lock)")
    assert (result.code, result.out.splitlines()[0]) == expected
    assert is_given_back or "ends with the lock held" in result.out


# A lock of the file's own, made of a variant that is not in it.
OWN = """
    .type spin_lock, @function
spin_lock:
    subl $12, %esp
    call spin_lock_irqsave
    addl $12, %esp
    ret
    .size spin_lock, .-spin_lock
"""


def test_a_lock_that_is_made_of_a_variant_does_not_count_twice(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "driver.s"
    driver = VARIANT.replace("spin_lock_irqsave", "spin_lock").replace("UNLOCK", "call spin_unlock")
    text.write_text(driver + OWN)
    asked = ("verify", str(text), "--entry", "main", *LOCK, "--timeout", "60")
    result = call(*asked)
    assert (result.code, result.out.splitlines()[0]) == (5, "UNKNOWN(jump to import spin_lock_irqsave)")
    assert "--event EVENT=spin_lock_irqsave" in result.out
    assert call(*asked, "--input", "spin_lock_irqsave:32").code == 0
    assert call(*asked, "--event", "lock=spin_lock_irqsave").code == 0


def test_complaints(complain: Call) -> None:
    stripped = "examples/typestate/x86-32/driver-MISSING-0.elf"
    result = complain("verify", stripped, "--property", "lock")
    assert result.code == 2
    assert "--event lock=call:ADDRESS" in result.err
    assert "one of double-free" in complain("verify", stripped, "--property", "nonsense").err
    assert "no typestate property" in complain("verify", stripped, "--event", "lock=none").err
    assert "is not NAME=KIND:ADDRESS" in complain("verify", stripped, "--event", "lock").err


def test_stripped_binary_with_addresses(call: Call) -> None:
    path = "examples/typestate/x86-32/driver-MISSING-1"
    addresses = {line.split()[2]: line.split()[0] for line in _symbols(f"{path}.sym.elf")}
    result = call(
        *("verify", f"{path}.elf", "--spec", f"{path}.yaml", "--property", "lock"),
        *("--event", f"lock=call:{addresses['lock']}", "--event", f"unlock=call:{addresses['unlock']}"),
        *("--event", f"end=return:{addresses['main']}"),
    )
    assert result.first == "VIOLATED(lock)"


def _symbols(path: str) -> list[str]:
    from mcveto.program.image import load_image

    return [f"{address:#x} T {name}" for name, address in load_image(path).symbols.items()]
