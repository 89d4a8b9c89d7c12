"""Path search is incremental: what an iteration of the driver costs hardly grows with the graph."""

from __future__ import annotations

import struct
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from mcveto.dpg.driver import Driver, Limits, Progress
from mcveto.program.image import load_image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import PropertySpec, RegionPermissions, Spec

BASE = 0x10000


def counting_loop(folder: Path, turns: int) -> Program:
    """eax = 0; while (eax < turns) eax++; if (eax != turns) ERR: a loop that is refined turn by turn."""
    limit = struct.pack("<I", turns)
    code = b"".join(
        (
            b"\x31\xc0",  # 0: xor eax, eax
            b"\x3d" + limit,  # 2: cmp eax, turns
            b"\x73\x03",  # 7: jae 12
            b"\x40",  # 9: inc eax
            b"\xeb\xf6",  # 10: jmp 2
            b"\x3d" + limit,  # 12: cmp eax, turns
            b"\x75\x01",  # 17: jne 20
            b"\xc3",  # 19: ret
            b"\x90\xc3",  # 20: ERR
        )
    )
    path = folder / "loop.bin"
    path.write_bytes(code)
    spec = Spec(regions=(RegionPermissions(BASE, len(code), "rx"),), properties=(PropertySpec("reach", (BASE + 20,)),))
    return make_program(load_image(path, arch="x86-32", base=BASE, entry=BASE), spec)


class Enough(Exception):
    pass


def iterations(folder: Path) -> list[tuple[int, float]]:
    """For each iteration of one search the number of nodes and its processor time."""
    samples: list[tuple[int, float]] = []

    def report(progress: Progress) -> None:
        samples.append((progress.nodes, time.process_time()))
        if progress.nodes >= 1310:
            raise Enough

    driver = Driver(counting_loop(folder, 1700), Limits(seconds=600), report=report, speculate=False)
    with suppress(Enough):
        driver.run()
    return [(nodes, after - before) for (nodes, before), (_, after) in pairwise(samples)]


def test_an_iteration_does_not_get_slower_with_the_graph(tmp_path: Path) -> None:
    """All 1,200 nodes are parts of five locations here, so that even the edges of one node grow with the graph.

    The search is the same every time, so that what an iteration takes at least, in several of them, is its cost without
    what else the machine does.
    """
    runs = [iterations(tmp_path) for _ in range(3)]
    nodes = [number for number, _ in runs[0]]
    assert all([number for number, _ in run] == nodes for run in runs)
    costs = [min(seconds for _, seconds in same) for same in zip(*runs, strict=True)]

    def mean_at(wanted: int) -> float:
        return fmean(cost for number, cost in zip(nodes, costs, strict=True) if abs(number - wanted) < 100)

    assert mean_at(1200) <= 2 * mean_at(200)
