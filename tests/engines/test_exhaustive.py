"""On programs whose sixteen runs can all be made, the engines never say anything else than these runs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from mcveto.engines.bmc import bmc
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.symex import symex
from mcveto.verdict import Verdict

from .random_programs import RandomProgram, exhaustive, programs


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
