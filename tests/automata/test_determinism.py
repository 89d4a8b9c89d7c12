"""The same calls give the same answers under any hash seed: states and symbols here are strings, whose hash
values differ from process to process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mcveto

SCRIPT = """
import random
from mcveto.automata.frontier import Near, closest_frontiers
from mcveto.automata.incremental_reachability import IncrementalReachability
from mcveto.automata.lightest_configurations import lightest
from mcveto.automata.nwa import NWA
from mcveto.automata.nwa_emptiness import shortest_run
from mcveto.automata.nwa_intersection import intersect
from mcveto.automata.nwa_to_pds import executed_configurations, start_configurations, steps, to_pds
from mcveto.automata.nwa_to_pds import with_any_stack
from mcveto.automata.pautomaton import configuration_set
from mcveto.automata.post_star import weighted_post_star
from mcveto.automata.regular_sets import complement
from mcveto.automata.semirings import BOOLEAN, MIN_PLUS
from mcveto.automata.witness import path_from_sources

for seed in range(12):
    rng = random.Random(seed)
    name = lambda: "state" + str(rng.randrange(8))
    graph = IncrementalReachability()
    graph.add_start("state0")
    graph.add_target("state7")
    nwa = NWA()
    nwa.add_state("state0", initial=True)
    nwa.add_state("state7", final=True)
    for _ in range(14):
        u, v = name(), name()
        nwa.add_internal(u, "i", v)
        graph.add_internal(u, v)
        c, e = name(), name()
        nwa.add_call(c, "c", e)
        graph.add_call(c, e)
        x, r = name(), name()
        nwa.add_return(x, c, "r", r)
        graph.add_return(x, c, r)
    run = shortest_run(nwa)
    print(run, graph.shortest_path())
    graph.split("state3", "twin")
    graph.remove_internal("state3", "state7")
    print(graph.shortest_path(), graph.work)
    print(list(intersect(nwa, nwa, lambda a, b: a).transitions())[:50])
    pds = to_pds(nwa)
    start = configuration_set(start_configurations(nwa))
    post = weighted_post_star(pds, start, MIN_PLUS, steps)
    for answer in lightest(post.configurations, MIN_PLUS, 20):
        print(answer, path_from_sources(post, MIN_PLUS, answer.configuration))
    executed = configuration_set(executed_configurations(nwa, [shortest_run(nwa, ["state0"])]))
    for near in Near:
        print(closest_frontiers(pds, start, with_any_stack(nwa, ["state7"]), executed, 5, near, steps))
    print(lightest(complement(executed, pds.controls, pds.symbols), BOOLEAN, 10))
"""


def output(seed: str) -> str:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": str(Path(mcveto.__file__).parents[1]),
    }
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_results_do_not_depend_on_hash_seeds() -> None:
    first = output("1")
    assert len(first) > 10_000
    assert first == output("2") == output("3")
