"""What the runs of a search show to be reachable: a proof in which nothing happens should say so.

Runs are the witnesses of the graph's nodes; a run that is nobody's witness any more is not counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mcveto.late_methods import dataclass

if TYPE_CHECKING:
    from mcveto.dpg.graph import Graph
    from mcveto.program.program import Program


@dataclass(frozen=True, slots=True)
class Evidence:
    entered: bool
    """Some run executed an instruction."""
    endings: dict[str, int]
    """How many runs ended how."""
    halted: bool
    assumptions_met: tuple[int, ...]
    """Addresses of `assume` functions that some run came back from."""
    assumptions_missed: tuple[int, ...]
    """Those that runs called and none came back from."""


def evidence_of(program: Program, graph: Graph) -> Evidence:
    from mcveto.dpg.runs import Ending

    runs = {witness.run.number: witness.run for node in graph.nodes.values() for witness in node.witnesses}
    code_address = program.decoder.row.code_address
    assumed = {pc for pc, hook in program.hooks.items() if hook.mnemonic == "assume"}
    called: set[int] = set()
    met: set[int] = set()
    for run in runs.values():
        for number, visit in enumerate(run.visits):
            if visit.location.pc in assumed:
                called.add(code_address(visit.location.pc))
                if number + 1 < len(run.visits) or run.ending is Ending.HALTED:
                    met.add(code_address(visit.location.pc))
    endings = Counter(run.ending.value for run in runs.values())
    return Evidence(
        entered=any(run.steps for run in runs.values()),
        endings=dict(sorted(endings.items())),
        halted=endings[Ending.HALTED.value] > 0,
        assumptions_met=tuple(sorted(met)),
        assumptions_missed=tuple(sorted(called - met)),
    )
