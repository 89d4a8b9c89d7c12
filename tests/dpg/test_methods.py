"""The choices the paper leaves open: folds, frontiers, aliasing; and what comes after a violation."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcveto
from mcveto.dpg.after_violation import explore
from mcveto.dpg.driver import Driver, Limits, Method
from mcveto.dpg.fold_policy import DEEPEST_UNFOLDED, run_with_fold
from mcveto.dpg.frontiers import FrontierChoice, frontiers
from mcveto.dpg.location import Fold
from mcveto.dpg.nested_graph import NestedGraph
from mcveto.dpg.runs import CallStringTooLong, Choices
from mcveto.program.program import Program
from mcveto.verdict import Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"

# Programs that every method decides in a second or so.
EASY = (
    "fig10/x86-32/clobber-CASE-4",
    "fig10/x86-32/ex5",
    "fig10/x86-32/fig5-gap",
    "fig10/x86-32/fig9",
    "fig10/x86-32/instraliasing-REACH-1",
    "fig10/x86-32/jmp",
    "fig10/x86-32/smc1-REACH-1",
    "machine/tricks/overlap",
    "machine/tricks/overlap-input",
    "machine/tricks/return-overwrite",
    "machine/tricks/smc-next",
    "machine/tricks/riscv-overlap",
)
METHODS = {
    "pc": Method(fold=Fold.PC),
    "all": Method(frontier=FrontierChoice.ALL),
    "start": Method(frontier=FrontierChoice.CLOSEST_TO_START, closest=2),
    "target": Method(frontier=FrontierChoice.CLOSEST_TO_TARGET, closest=2),
    "pc-all": Method(fold=Fold.PC, frontier=FrontierChoice.ALL),
    "pc-target": Method(fold=Fold.PC, frontier=FrontierChoice.CLOSEST_TO_TARGET),
    "symbolic": Method(symbolic_aliasing=True),
    "pc-symbolic": Method(fold=Fold.PC, symbolic_aliasing=True),
}


def load(name: str) -> Program:
    return mcveto.load(spec=str(EXAMPLES / f"{name}.yaml"))


def check(program: Program, verdict: Verdict) -> None:
    assert verdict.kind == program.spec.expected, verdict.headline
    if verdict.kind == "violated":
        assert verdict.about in program.spec.notes["expected_properties"]
        assert verdict.confirmed_by


# Every program with half of the methods and every method with half of the programs; all of them in the slow tier.
PAIRS = [
    pytest.param(name, method, marks=[] if (row + column) % 2 == 0 else pytest.mark.slow)
    for row, name in enumerate(EASY)
    for column, method in enumerate(METHODS)
]


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_every_method_decides_rightly(name: str, method: str) -> None:
    program = load(name)
    check(program, Driver(program, Limits(seconds=100), method=METHODS[method]).run())


def test_the_chosen_frontiers_lead_from_what_ran_into_what_did_not() -> None:
    program = load("fig10/x86-32/ex5")
    driver = Driver(program, Limits(seconds=100), method=Method(fold=Fold.PC))
    driver._execute(Choices(seed=0))
    graph = driver.graph
    assert isinstance(graph, NestedGraph)
    everything = frontiers(graph, FrontierChoice.ALL, 1)
    assert len(everything) > 1
    for choice in (FrontierChoice.CLOSEST_TO_START, FrontierChoice.CLOSEST_TO_TARGET):
        nearest = frontiers(graph, choice, 2)
        assert len(nearest) == 2
        assert {item.edge for item in nearest} <= {item.edge for item in everything}
    for item in everything:
        assert item.witness in graph.nodes[item.edge.source].witnesses


def test_auto_gives_up_call_strings_where_recursion_is_deep() -> None:
    program = load("machine/tricks/stack-overflow")
    with pytest.raises(CallStringTooLong):
        Driver(program, Limits(seconds=100), method=Method(deepest_recursion=DEEPEST_UNFOLDED)).run()
    check(program, run_with_fold(program, "auto", Limits(seconds=200), 0, False, lambda progress: None, Method()))


@pytest.mark.parametrize("seed", range(3))
def test_after_a_violation_control_goes_where_the_return_address_says(seed: int) -> None:
    """Fig. 9: the return of foo goes back to main or into bar, and so ERR is reached."""
    program = load("fig10/x86-32/fig9")
    verdict = Driver(program, Limits(seconds=100), seed).run()
    assert verdict.about == "return-address" and verdict.at is not None
    after = explore(program, Limits(seconds=100), seed, verdict.at, lambda progress: None)
    assert len(after.returns_to) == 2 and after.is_complete
    assert after.verdict.about == "reach" and after.verdict.kind == "violated"
    assert all(line for line in after.lines(verdict.at))
