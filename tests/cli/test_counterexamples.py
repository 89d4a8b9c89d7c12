"""`mcveto counterexamples` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

FIG2 = ("counterexamples", "examples/models/fig2.pds", "--property", "examples/models/fig2.fsm")


def test_running_example(call: Call) -> None:
    result = call(*FIG2)
    assert result.code == 10
    lines = result.out.splitlines()
    assert lines[:2] == ["VIOLATED(fig2)", "2 counterexamples, and that is all of them"]
    assert "     3 call   s0 s3 m1" in lines
    assert "every violation passes s1, where e2 happens" in lines
    assert "    as counterexample 1 up to step 3, then" in lines


def test_refinement_of_figure_1(call: Call, tmp_path: Path) -> None:
    """The lines suggested for policy 1, put into its file, leave no violation."""
    result = call("counterexamples", "examples/models/fig1.pds", "--property", "examples/models/fig1-policy1.fsm")
    lines = result.out.splitlines()
    at = lines.index("every violation passes 1, where seteuid(0) happens")
    suggested = [line.strip() for line in lines[at + 2 : at + 5]]
    assert suggested == ["event seteuid", "states allowed", "quiet -> allowed on seteuid(0)"]
    refined = tmp_path / "refined.fsm"
    refined.write_text(Path("examples/models/fig1-policy1.fsm").read_text() + "\n".join(suggested) + "\n")
    assert call("counterexamples", "examples/models/fig1.pds", "--property", refined).first == "PROVED"


def test_json(call: Call) -> None:
    result = call(*FIG2, "--json", "-")
    record = json.loads(result.out)
    assert record["schema"] == "mcveto-counterexamples-1"
    assert (record["verdict"], record["exhaustive"], record["count"], record["more"]) == ("violated", True, 2, 0)
    first, second = record["counterexamples"]
    assert [state["stack"] for state in first["states"]][-1] == ["s4", "m1"]
    # The second one is rebuilt from the first and what differs.
    states = first["states"]
    rebuilt = [*states[: second["same_start"]], *second["states"], *states[len(states) - second["same_end"] :]]
    assert [" ".join(state["stack"]) for state in rebuilt] == [
        *("m0", "s0 m1", "s1 m1", "s0 s3 m1", "s5 s3 m1", "s6 s3 m1", "s4 s3 m1", "s3 m1", "s4 m1"),
    ]
    assert len(rebuilt) == second["length"] + 1


def test_cap(call: Call) -> None:
    arguments = ("counterexamples", "examples/models/ftpd.pds", "--property", "open-before-setresuid")
    lines = call(*arguments, "--count", 3).out.splitlines()
    assert lines[1] == "10 counterexamples, and that is all of them"
    assert "… and 7 more" in lines
    assert sum(line.startswith("counterexample ") for line in lines) == 3
    short = call(*arguments, "--max-length", 7).out.splitlines()
    assert "or more (traces of more than 7 steps are left out)" in short[1]


def test_binary(call: Call, tmp_path: Path) -> None:
    path = "examples/typestate/x86-32/driver-MISSING-1"
    model = tmp_path / "driver.pds"
    result = call(
        *("counterexamples", f"{path}.sym.elf", "--spec", f"{path}.yaml", "--property", "lock"),
        *("--model", model, "--json", tmp_path / "out.json"),
    )
    assert result.code == 10
    assert result.first == "VIOLATED(lock)"
    assert "these are all, up to rounds of loops and unnecessary recursion" in result.out
    assert "infeasible: trace" in result.out
    assert "not data: every branch may go either way" in result.out
    record = json.loads((tmp_path / "out.json").read_text())
    (entry,) = record["counterexamples"]
    assert entry["inputs"][0]["value"] >= 2**31
    assert entry["states"][1]["address"] > 0
    # The model that was written says the same of itself, whatever it is called.
    model = model.rename(tmp_path / "driver.txt")
    again = call("counterexamples", model, "--property", "lock")
    assert again.first == "VIOLATED(lock)"
    assert "2 counterexamples" in again.out


def test_binary_without_violation(call: Call) -> None:
    path = "examples/typestate/x86-32/driver-MISSING-0"
    result = call("counterexamples", f"{path}.sym.elf", "--spec", f"{path}.yaml", "--property", "lock")
    assert (result.code, result.first) == (0, "PROVED")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no-such.pds", "--property", "lock"], 3, "cannot read no-such.pds"),
        (["examples/models/fig2.pds", "--property", "none"], 2, "there is no property file 'none'"),
        (["examples/models/fig2.pds", "--property", "lock", "--recursion", "0"], 2, "neither minimum nor"),
        (["examples/models/fig2.pds", "--property", "lock", "--timeout", "nan"], 2, "time limit"),
        (["examples/models/fig2.pds", "--property", "lock", "--event", "lock=none"], 2, "are for binaries"),
        (["examples/models/fig2.fsm", "--property", "lock"], 3, "fig2.fsm"),
        (["examples/models/fig2.pds"], 2, "--property"),
    ],
)
def test_complaints(complain: Call, arguments: list[str], code: int, message: str) -> None:
    result = complain("counterexamples", *arguments)
    assert result.code == code
    assert message in result.err
