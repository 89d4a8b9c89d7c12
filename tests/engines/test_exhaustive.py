"""On programs whose sixteen runs can all be made, the engines never say anything else than these runs."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings

from mcveto.engines.bmc import bmc
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.symex import symex
from mcveto.verdict import Verdict

from .random_programs import DATA, RandomProgram, exhaustive, programs


def answer(engine: str, program: RandomProgram) -> Verdict:
    loaded = program.load()
    if engine == "bmc":
        return bmc(loaded, 20.0)
    if engine == "simulation":
        return simulate(loaded, 20.0)
    return symex(loaded, 20.0, merges=engine == "symex-merging")


@pytest.mark.parametrize("engine", ["symex", "symex-merging", "bmc", "simulation"])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_engine_agrees_with_all_runs(engine: str, program: RandomProgram) -> None:
    check(engine, program)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["symex", "symex-merging", "bmc", "simulation"])
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_engine_agrees_with_all_runs_of_many(engine: str, program: RandomProgram) -> None:
    check(engine, program)


def check(engine: str, program: RandomProgram) -> None:
    ends = exhaustive(program.load())
    verdict = answer(engine, program)
    assert "self-check" not in verdict.reason, verdict.reason
    bad = ends & {"target", "return-address"}
    if verdict.kind == "violated":
        assert bad
    elif verdict.kind == "proved":
        assert not bad and "limit" not in ends and "unsupported" not in ends
    elif engine == "simulation":
        pass  # it forgets things on purpose, and then knows nothing
    elif "unsupported" not in ends and "limit" not in ends and not program.writable_code:
        pytest.fail(f"not decided: {verdict.headline}; the runs end as {sorted(ends)}")


@pytest.mark.parametrize("engine", ["symex", "symex-merging", "bmc", "simulation"])
def test_a_fork_keeps_what_its_block_stored_before_a_store_to_many_cells(engine: str) -> None:
    code = (
        b"\xc6\x05" + struct.pack("<IB", DATA, 1)  # mov byte [DATA], 1
        + b"\x0f\xb6\xc8"  # movzx ecx, al
        + b"\xc6\x81" + struct.pack("<IB", DATA + 0x100, 5)  # mov byte [ecx + DATA + 0x100], 5
        + b"\x83\xf8\x07\x74\x05"  # cmp eax, 7; je +5
        + b"\xe9" + struct.pack("<i", 0x800 - 27)  # jmp HALT
        + b"\x80\x3d" + struct.pack("<IB", DATA, 1)  # cmp byte [DATA], 1
        + b"\x0f\x84" + struct.pack("<i", 0x810 - 40)  # je TARGET
        + b"\xe9" + struct.pack("<i", 0x800 - 45)  # jmp HALT
    )  # fmt: skip
    program = RandomProgram(code, b"\xc3", bytes(0x1000), False)
    assert exhaustive(program.load()) == {"halted", "target"}
    assert answer(engine, program).kind == "violated"
