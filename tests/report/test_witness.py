"""Witnesses: a violation's waypoints are those of a run of the program; a proof's invariants hold in runs of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.smtlib_parser import parse
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.report.drcov import read_drcov
from tests.cli.conftest import Call, call, complain

__all__ = ["call", "complain"]


def entries(call: Call, tmp_path: Path, *arguments: str) -> tuple[int, list[dict[str, Any]], list[tuple[int, int]]]:
    """Exit code, the entries of the witness, and the blocks that were covered."""
    witness, coverage = tmp_path / "witness.yml", tmp_path / "coverage.log"
    result = call(*arguments, "--witness", witness, "--coverage", coverage)
    found = yaml.safe_load(witness.read_text()) if witness.exists() else []
    for entry in found:
        metadata = entry["metadata"]
        assert metadata["format_version"] == "2.0"
        assert metadata["producer"]["name"] == "mcveto"
        assert list(metadata["task"]["input_file_hashes"]) == metadata["task"]["input_files"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creation_time"])
    return result.code, found, list(read_drcov(coverage.read_bytes()).blocks)


def waypoints(entry: dict[str, Any]) -> list[dict[str, Any]]:
    assert entry["entry_type"] == "violation_sequence"
    return [point["waypoint"] for segment in entry["content"] for point in segment["segment"]]


def returned(points: list[dict[str, Any]]) -> list[int]:
    """The values that input functions return, by the constraints."""
    values = []
    for point in points:
        if point["type"] == "function_return":
            match = re.search(r"#(x[0-9a-f]+|b[01]+)\)$", point["constraint"]["value"])
            assert match
            values.append(int(match[1][1:], 16 if match[1][0] == "x" else 2))
    return values


def branches(program: Program, values: list[int], end: int) -> tuple[list[tuple[int, bool]], list[int]]:
    """Conditional branches of a run up to `end` and whether they were taken, and every address executed."""
    machine = program.machine(InputSource(values, 0))
    machine.run(5_000)
    found: list[tuple[int, bool]] = []
    executed: list[int] = []
    for step in machine.trace:
        executed.append(step.pc)
        text = program.decoder.decode(step.pc, step.bytes).text if step.bytes else ""
        if re.match(r"J(?!MP)|b(eq|ne|lt|gt|le|ge)", text):
            found.append((step.pc, step.transfer is Transfer.JUMP))
    return found, executed


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_a_violation_is_a_run(call: Call, tmp_path: Path, target: str) -> None:
    path = f"examples/typestate/{target}/requests-MISSING-2"
    code, found, covered = entries(
        call, tmp_path, "counterexamples", f"{path}.sym.elf", "--spec", f"{path}.yaml", "--property", "lock"
    )
    assert code == 10
    assert len(found) == 2
    program = load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))
    every: set[int] = set()
    for entry in found:
        points = waypoints(entry)
        assert points[-1]["type"] == "target" and "constraint" not in points[-1]
        assert all(point["type"] != "target" for point in points[:-1])
        values = returned(points)
        assert 47 in values
        taken = [
            (point["location"]["address"], point["constraint"]["value"] == "true")
            for point in points
            if point["type"] == "branching"
        ]
        expected, executed = branches(program, values, points[-1]["location"]["address"])
        assert taken == expected[: len(taken)] and len(taken) >= 5
        assert points[-1]["location"]["address"] in executed
        every.update(executed)
    # Coverage: only what some run executed, and each of its first steps.
    inside = {address for start, size in covered for address in range(start, start + size)}
    assert {start for start, _ in covered} <= every
    assert program.entry in inside


def test_a_proof_holds_in_runs(call: Call, tmp_path: Path) -> None:
    """At every address of the witness, its invariant is true in the emulator's state."""
    spec = "examples/fig10/x86-32/ex5.yaml"
    code, (entry,), covered = entries(call, tmp_path, "verify", "--spec", spec, "--strategy", "paper")
    assert code == 0
    assert entry["entry_type"] == "invariant_set"
    invariants = [item["invariant"] for item in entry["content"]]
    assert {item["type"] for item in invariants} <= {"loop_invariant", "location_invariant"}
    claims = {item["location"]["address"]: item["value"] for item in invariants}
    assert len(claims) == len(invariants)
    assert covered
    program = load_program(None, load_spec(spec))
    layout = program.decoder.layout
    names: dict[str, Term] = {cell.name: t.var(cell.name, cell.bits) for cell in layout.cells}
    names["mem"] = t.memory("mem", program.space.address_bits)
    parsed = {address: parse(text, names) for address, text in claims.items()}
    tested = 0
    for seed in range(4):
        machine = program.machine(InputSource((), seed), seed)
        for _ in range(300):
            claim = parsed.get(machine.pc)
            if claim is not None:
                registers = dict(machine.registers)

                def value(variable: Term, registers: dict[int, int] = registers) -> int:
                    return registers.get(layout.by_name[str(variable.data)].number, 0)

                def byte(_: Term, address: int, memory: Any = machine.memory) -> int:
                    found = memory.peek(address, 1)
                    return found[0] if found else 0

                assert Evaluator(value, byte).value(claim) == 1, f"{machine.pc:#x}"
                tested += 1
            if machine.step() is not None:
                break
    assert tested > 20


def test_no_witness_of_what_is_not_known(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "witness.yml"
    result = call("verify", "--spec", "examples/demo/demo.yaml", "--timeout", "0.001", "--witness", file)
    assert result.code == 5
    assert not file.exists()
    assert "no witness is written" in result.err


def test_refusals(complain: Call, tmp_path: Path) -> None:
    model = ("counterexamples", "examples/models/fig2.pds", "--property", "examples/models/fig2.fsm")
    for option in ("--witness", "--coverage"):
        assert complain(*model, option, tmp_path / "x").code == 2
    for option in ("--sarif", "--witness", "--coverage"):
        assert complain("verify", "--spec", "examples/demo/demo.yaml", option, tmp_path / "no" / "x").code == 2
        assert complain("verify", "--spec", "examples/demo/demo.yaml", option, "-").code == 2


def test_a_proof_along_paths_is_closed(call: Call, tmp_path: Path) -> None:
    """Its invariants speak of registers, memory and values that they bind themselves."""
    import z3

    spec = "examples/drivers/x86-32/lock-safe-O0.yaml"
    code, (entry,), _ = entries(call, tmp_path, "verify", "--spec", spec, "--engine", "symex")
    assert code == 0
    program = load_program(None, load_spec(spec))
    names: dict[str, Any] = {cell.name: z3.BitVec(cell.name, cell.bits) for cell in program.decoder.layout.cells}
    names["mem"] = z3.Array("mem", z3.BitVecSort(32), z3.BitVecSort(8))
    for item in entry["content"]:
        # Anything that is not declared, nor bound, is an error.
        (claim,) = z3.parse_smt2_string(f"(assert {item['invariant']['value']})", decls=names)
        assert claim.sort() == z3.BoolSort()
    assert any("exists" in item["invariant"]["value"] for item in entry["content"])
