"""Turns with explorations decide what ends, leave open what does not, and never say more than the explorations do."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

import mcveto
from mcveto.engines import alongside, record
from mcveto.engines.alongside import Alongside
from mcveto.engines.simulation import size
from mcveto.engines.simulation.simulate import Simulation, no_search_for_cycles
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec
from mcveto.verdict import Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
FIG10 = EXAMPLES / "fig10" / "x86-32"
AIR = EXAMPLES / "air" / "ppc32-be"


def program(name: str) -> Program:
    return mcveto.load(spec=str(FIG10 / f"{name}.yaml"))


def test_the_first_turn_decides_what_ends_soon() -> None:
    found = Alongside(program("ex6"), 60.0).turn(None)
    assert found is not None
    assert (found.kind, found.found_by) == ("proved", "symex")


def test_a_violation_is_found() -> None:
    found = Alongside(program("simp_bad"), 60.0).turn(None)
    assert found is not None
    assert (found.kind, found.found_by) == ("violated", "symex")


def test_an_unbounded_loop_stays_open() -> None:
    turns = Alongside(program("barber"), 60.0)
    assert turns.turn(None) is None
    assert turns.turn(0.5) is None


def test_the_same_turns_find_the_same() -> None:
    # Among all that other tests have left, a search for cycles may take longer than a question to the solver may.
    with no_search_for_cycles():
        first, second = (Alongside(program("underflow"), 60.0).turn(None) for _ in range(2))
    assert first is not None and second is not None
    assert first.inputs == second.inputs


def test_code_of_some_size_is_simulated_when_others_had_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alongside, "SIMULATIONS", ((0.0, 0.0, 0.5, 5_000),))
    driver = mcveto.load(spec=str(AIR / "raid-poll-fix-O1.yaml"))
    small = Alongside(driver, 60.0)
    assert small.turn(0.0) is None
    monkeypatch.setattr(alongside, "SIMULATIONS", ((0.0, 0.0, 0.5, size.SMALL),))
    found = Alongside(driver, 60.0).turn(0.0)
    assert found is not None
    assert (found.kind, found.found_by) == ("proved", "simulation")


def test_a_simulation_that_cannot_tell_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def cannot_tell(_: Simulation, until: float) -> Verdict:
        asked.append(until - time.monotonic())
        return Verdict("unknown", reason="may be reached")

    monkeypatch.setattr(Simulation, "advance", cannot_tell)
    monkeypatch.setattr(alongside, "SIMULATIONS", ((0.0, 0.0, 0.5, 0), (0.0, 0.0, 0.9, 0)))
    turns = Alongside(program("cars-signed"), 60.0)
    assert turns.turn(0.0) is None and turns.turn(0.0) is None
    assert [round(seconds / 60, 1) for seconds in asked] == [0.5]


@pytest.mark.parametrize(("bytes_of_code", "times"), [(size.MEDIUM, 2), (size.CONSIDERABLE, 3)])
def test_only_much_code_is_simulated_to_the_end(
    bytes_of_code: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In less there is more to be hoped for from invariants, which need the time."""
    asked: list[Simulation] = []
    monkeypatch.setattr(Simulation, "advance", lambda simulation, until: asked.append(simulation))
    monkeypatch.setattr(size, "is_large", lambda program, least: bytes_of_code >= least)
    at_once = tuple((0.0, 0.0, 0.0, least) for *_, least in alongside.SIMULATIONS)
    monkeypatch.setattr(alongside, "SIMULATIONS", at_once)
    turns = Alongside(program("cars-signed"), 60.0)
    for _ in range(3):
        assert turns._simulated() is None
    assert len(asked) == times
    assert len(set(map(id, asked))) == 1, "it goes on where it was"


# ecx = 0; do { [0x2000 + ecx] = ecx; ecx++; } while (ecx != 3000); if ([0x2005] != 5) target; hlt
ONE_RUN = "31c9 888900200000 41 81f9b80b0000 75f1 803d0520000005 7501 f4 90"
# edx = input(); ecx = 0; do { the same } while (ecx != edx); if (ecx != edx) target; hlt
ASKED = "e822000000 89c2 31c9 888900200000 41 39d1 75f5 39d1 7501 f4 90"


@pytest.mark.parametrize(("code", "is_followed"), [(ONE_RUN, True), (ASKED, False)], ids=["one run", "asked"])
def test_the_only_run_there_is_is_followed_to_its_end(code: str, is_followed: bool, tmp_path: Path) -> None:
    content = bytes.fromhex(code)
    file = tmp_path / "blob"
    file.write_bytes(content.ljust(0x2000, b"\xc3"))
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(0x1027),) if not is_followed else (),
        halt=(0x1000 + len(content) - 2,),
        regions=(RegionPermissions(0x1000, 0x1000, "rx"), RegionPermissions(0x2000, 0x1000, "rw")),
        properties=(PropertySpec("reach", (0x1000 + len(content) - 1,)),),
    )
    turns = Alongside(load_program(str(file), spec), 60.0)
    given: list[float] = []

    class Recorded:
        got_stuck = False

        def advance(self, states: float = 0, until: float = 0) -> None:
            given.append(until - time.monotonic())

    turns._explorations = {"runs": turns._explorations["runs"], "bmc": Recorded()}  # type: ignore[dict-item]
    turns._attempts["cegar"] = 0
    assert turns.turn(1.0) is None and turns.turn(1.0) is None
    assert [seconds > 10 for seconds in given] == [is_followed, False]


def test_a_bulky_proof_is_not_final(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Alongside(program("ex6"), 60.0).turn(None)
    assert alongside.is_final(found)
    monkeypatch.setattr(record, "BULKY", -1)
    assert found is not None and not alongside.is_final(found)
    simulated = replace(found, found_by="simulation")
    unrecorded = replace(simulated, proof=None)
    assert [alongside.is_final(verdict) for verdict in (simulated, unrecorded)] == [True, True]
    assert [alongside.is_final(verdict, must_record=True) for verdict in (simulated, unrecorded)] == [True, False]


def test_a_counted_turn_ends_where_states_take_long() -> None:
    asked: list[float] = []

    class Slow:
        got_stuck = False

        def advance(self, states: float = 0, until: float = 0) -> None:
            asked.append(states)
            end = time.process_time() + 0.15 * states
            while time.process_time() < end:
                pass

    assert alongside._counted(Slow(), 600) is None  # type: ignore[arg-type]
    assert asked == [1] * len(asked) and len(asked) <= 5


def test_routines_are_simulated_for_a_moment_in_the_first_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    monkeypatch.setattr(Simulation, "advance", lambda _, until: given.append(until - time.monotonic()))
    monkeypatch.setattr(alongside, "LONGEST_COUNTED", 0.0)
    for name, count in (("ex6", 0), ("barber", 1)):
        given.clear()
        turns = Alongside(program(name), 60.0)
        assert turns.turn(None) is None and turns._simulations
        assert len(given) == count and all(seconds <= 0.6 for seconds in given)
