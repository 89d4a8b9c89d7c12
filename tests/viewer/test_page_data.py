"""The data of the pages says what is so: of code, runs, decisions and counterexamples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcveto.counterexamples.finder import Request
from mcveto.counterexamples.machine_code import machine_counterexamples
from mcveto.program.program import load_program
from mcveto.program.spec import PropertySpec, load_spec
from mcveto.property.attach import attach, with_typestates
from mcveto.property.ghost import watch
from mcveto.property.library import find_typestate
from mcveto.verdict import Verdict, VerdictInput
from mcveto.viewer.code import Code
from mcveto.viewer.page_data import empty_pages, machine_pages, verdict_pages
from tests.viewer import samples
from tests.viewer.samples import EXAMPLES


def test_the_demo_is_told_with_its_inputs_and_its_condition() -> None:
    pages = samples.demo_pages()
    assert pages.keys() == empty_pages("", (), "").keys()
    assert [item["value"] for item in pages["inputs"]] == ["103", "32", "25"]
    assert [item["character"] for item in pages["inputs"]] == ["g", "", ""]
    assert [item["text"] for item in pages["why"]] == ["961*in0 + 31*in1 + in2 = 0x186a0"]
    assert any("0x8048110" in line and "35 instructions" in line for line in pages["story"])


def test_the_run_of_the_demo_step_by_step() -> None:
    pages = samples.demo_pages()
    (run,) = pages["runs"]
    assert run["total"] == len(run["steps"]) == 35
    assert run["end"] == "0x8048110"
    values = dict(run["registers"])
    for step in run["steps"]:
        values.update(step["set"])
    assert values["EAX"] == hex(100_000)
    assert [step["input"] for step in run["steps"] if step["input"] is not None] == [0, 1, 2]
    (trace,) = pages["traces"]
    assert len(trace["states"]) == 36
    kinds = [state["kind"] for state in trace["states"]]
    assert (kinds[0], kinds.count("call"), kinds.count("exit")) == ("start", 4, 3)
    assert trace["states"][-1]["stack"] == ["0x8048110", "0x8048160"]


@pytest.mark.parametrize(
    "name", ["demo/demo", "fig10/x86-32/slam1", "recursion/x86-64/sum-safe", "typestate/ppc32-be/driver-MISSING-1"]
)
def test_blocks_are_a_partition_that_nothing_jumps_into(name: str) -> None:
    path = EXAMPLES / f"{name}.yaml"
    if not path.is_file():
        path = sorted(path.parent.glob("*.yaml"))[0]
    functions = Code(load_program(None, load_spec(str(path)))).record()
    addresses = [line[0] for function in functions for block in function["blocks"] for line in block["lines"]]
    assert len(addresses) == len(set(addresses)) > 5
    starts = {block["at"] for function in functions for block in function["blocks"]}
    for function in functions:
        assert function["entry"] in starts
        for block in function["blocks"]:
            assert block["at"] == block["lines"][0][0]
            for kind, target in block["out"]:
                assert target in starts or kind in ("return", "computed") or target not in addresses, (kind, target)


def test_a_typestate_violation_shows_the_automaton_along_the_run() -> None:
    spec = load_spec(str(EXAMPLES / "typestate" / "x86-32" / "driver-MISSING-1.yaml"))
    binary = str(EXAMPLES / "typestate" / "x86-32" / "driver-MISSING-1.sym.elf")
    attached = attach(load_program(binary, with_typestates(spec, ["lock"])))
    inputs = (VerdictInput(1 << 31, 32, "call of 0x8048160"),)
    verdict = Verdict("violated", "lock", "locked while held", inputs, ("emulator",))
    pages = verdict_pages(verdict, attached, version="0", command=(), targets=())
    states = pages["traces"][0]["states"]
    assert [state["state"] for state in states if state["changes"]] == ["held", "locked-twice"]
    assert states[0]["state"] == "free" and states[-1]["changes"]
    assert any("free → held at lock; held → locked-twice at lock" in line for line in pages["story"])
    assert [item["text"] for item in pages["why"]] == ["in0 <s 0", "in0 != 0"]
    # What stands for errors of the property is not in the file, and not code.
    listed = [
        line[0] for function in pages["code"]["functions"] for block in function["blocks"] for line in block["lines"]
    ]
    segments = attached.program.image.segments
    assert all(any(item.address <= int(at, 16) < item.end for item in segments) for at in listed)
    (lock,) = [function for function in pages["code"]["functions"] if function["name"] == "lock"]
    assert len(lock["blocks"]) == 1


def test_inputs_that_violate_nothing_are_not_shown_as_a_run() -> None:
    program = load_program(None, load_spec(str(EXAMPLES / "demo" / "demo.yaml")))
    inputs = tuple(VerdictInput(value, 8, "call of 0x8048100") for value in (1, 2, 3))
    verdict = Verdict("violated", "reach", "0x8048110 is reached", inputs, at=0x8048110)
    pages = verdict_pages(verdict, attach(program), version="0", command=(), targets=())
    assert pages["traces"] == pages["runs"] == pages["why"] == []
    assert any("the run is not shown" in note for note in pages["notes"])


def test_who_overwrote_the_return_address() -> None:
    pages = samples.searched("fig10/x86-32/ex.yaml", "paper")
    assert pages["verdict"]["about"] == "return-address"
    assert any("the last to write there was MOV" in line for line in pages["story"])


def test_reads_find_what_was_written_at_an_address_from_the_input() -> None:
    program = load_program(None, load_spec(str(EXAMPLES / "bugs" / "x86-32" / "overflow-bug-O0.yaml")))
    inputs = tuple(VerdictInput(value, 32, "call of 0x8048180") for value in (8, 1))
    verdict = Verdict("violated", "reach", "", inputs, at=0x8048190)
    pages = verdict_pages(verdict, attach(program), version="0", command=(), targets=())
    assert pages["why"][-1]["text"] == "in1 != 0x600d, where 4*in0 + 0x80491c0 = 0x80491e0"


def test_a_model_has_all_its_traces_in_full() -> None:
    pages = samples.model_sample()
    assert [len(trace["states"]) - 1 for trace in pages["traces"]] == [trace["length"] for trace in pages["traces"]]
    assert len(pages["traces"]) == 2
    assert all(trace["error"] in pages["automata"][0]["errors"] for trace in pages["traces"])


def test_counterexamples_of_a_binary_have_runs_and_reasons() -> None:
    folder = EXAMPLES / "typestate" / "x86-32"
    spec = replace(load_spec(str(folder / "driver-MISSING-1.yaml")), properties=())
    program = load_program(str(folder / "driver-MISSING-1.sym.elf"), spec)
    automaton = find_typestate("lock")
    found = machine_counterexamples(program, automaton, {}, Request(), 60.0)
    watched = watch(program, automaton)
    verdict = Verdict("violated", about="lock")
    pages = machine_pages(found, verdict, watched, automaton, version="0", command=())
    first, second = pages["traces"]
    assert (first["status"], first["error"], first["means"]) == ("confirmed", "locked-twice", "locked while held")
    assert [state["state"] for state in first["states"] if state["changes"]] == ["held", "locked-twice"]
    run = pages["runs"][first["run"]]
    assert {state["at"] for state in first["states"][:-1]} <= {step["at"] for step in run["steps"]}
    assert second["status"] == "infeasible" and "never reached" in second["reason"] and second["run"] is None
    assert pages["inputs"] == first["inputs"] and len(pages["inputs"]) == 1
    assert pages["code"]["executed"]


def test_unknown_says_what_to_try() -> None:
    pages = samples.unknown_pages()
    assert any("--timeout" in line for line in pages["tries"])
    assert "neither a proof nor a violation" in pages["story"][0]


def test_the_case_of_a_switch_is_a_decision() -> None:
    spec = load_spec(str(EXAMPLES / "typestate" / "x86-32" / "commands-MISSING-1.yaml"))
    program = load_program(None, replace(spec, halt=(), properties=(PropertySpec("reach", spec.halt),)))
    inputs = tuple(VerdictInput(value, 32, "call of 0x80481c0") for value in (3, 0))
    verdict = Verdict("violated", "reach", "", inputs, at=0x80481D0)
    pages = verdict_pages(verdict, attach(program), version="0", command=(), targets=())
    assert [item["text"] for item in pages["why"]] == ["in0 <u 7", "in0[29:0] = 3"]
