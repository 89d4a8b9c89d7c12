"""Where events are, in the spec and on the command line: bundled automata on a binary without symbols."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mcveto.program.image import load_image

from .conftest import ROOT, Call

BINARY = "examples/typestate/x86-32/driver-MISSING-1"


@pytest.fixture
def addresses() -> dict[str, int]:
    return dict(load_image(str(ROOT / f"{BINARY}.sym.elf")).symbols)


def spec_file(folder: Path, **typestate: object) -> Path:
    """The example's spec, for the stripped file, with a property."""
    content = yaml.safe_load((ROOT / f"{BINARY}.yaml").read_text())
    content["binary"] = str(ROOT / f"{BINARY}.elf")
    content["properties"] = [typestate]
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_in_the_spec(call: Call, tmp_path: Path, addresses: dict[str, int]) -> None:
    events = {
        "lock": addresses["lock"],
        "unlock": [hex(addresses["unlock"])],
        "end": f"return:{addresses['main']:#x}",
    }
    spec = spec_file(tmp_path, typestate="lock", events=events)
    result = call("verify", "--spec", spec)
    assert (result.code, result.first) == (10, "VIOLATED(lock)")
    assert f"lock at {addresses['lock']:#x}, unlock at {addresses['unlock']:#x}" in result.out
    # The property of the spec need not be named again.
    listed = call("counterexamples", "--spec", spec, "--max", "1")
    assert (listed.code, listed.first) == (10, "VIOLATED(lock)")
    # The command line has the last word: a lock that is never taken is not held.
    assert call("verify", "--spec", spec, "--event", "lock=none", "--event", "unlock=none").code == 0


def test_the_kind_is_that_of_the_automaton(call: Call, addresses: dict[str, int]) -> None:
    """`end` is the return of a function unless somebody says otherwise."""
    places = {"lock": "lock", "unlock": "unlock", "end": "main"}
    options = [text for event, name in places.items() for text in ("--event", f"{event}={addresses[name]:#x}")]
    result = call("verify", f"{BINARY}.elf", "--spec", f"{BINARY}.yaml", "--property", "lock", *options)
    assert result.code == 10
    returns = [word for word in result.out.split("\n") if "watches" in word]
    assert f"end at {addresses['main']:#x}" not in returns[0] and "end at 0x" in returns[0]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ({"lok": 1}, "no property has an event 'lok'"),
        ([1], "must be a mapping"),
        ({"lock": "jump:3"}, "is not KIND:ADDRESS"),
        ({"lock": None}, "needs an address"),
        ({"lock": {"a": 1}}, "must be a non-negative number"),
        ({"lock": "nowhere"}, "no symbol 'nowhere'"),
        ({"lock": 0}, "is not code"),
    ],
)
def test_complaints(complain: Call, tmp_path: Path, events: object, message: str) -> None:
    spec = spec_file(tmp_path, typestate="lock", events=events)
    result = complain("verify", "--spec", spec)
    assert result.code == 2
    assert message in result.err


def test_a_property_is_needed(complain: Call, tmp_path: Path) -> None:
    assert "say --property" in complain("counterexamples", f"{BINARY}.elf", "--spec", f"{BINARY}.yaml").err
    assert "say --property" in complain("counterexamples", "examples/models/fig2.pds").err
    spec = spec_file(tmp_path, typestate="lock", evnts={})
    assert "did you mean 'events'" in complain("verify", "--spec", spec).err
