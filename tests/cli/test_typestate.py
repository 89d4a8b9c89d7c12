"""`mcveto verify --property FILE.fsm` from the command line, on bundled binaries."""

from __future__ import annotations

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
