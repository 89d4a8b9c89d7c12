"""No process outlives the command that started it, however that ends: it would keep the caller's pipes open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
ENGINES = ("dpg", "symex", "bmc", "cegar", "simulation", "portfolio", "runs")
# Two processes of the checker that take longer than anybody waits, in a search that is ended by its limit.
SLOW_CHECK = """
import multiprocessing, os, sys, time
import mcveto.check.discharge as discharge
from mcveto.limits import ResourceLimits, run_limited

def slow(number):
    open(sys.argv[1] + str(os.getpid()), "w").close()
    time.sleep(60)
    return "", "", 0

class Everywhere:
    locations = range(8)
    few = 1

discharge._check_place = slow
run_limited(lambda send: list(discharge._results(Everywhere(), discharge.Effort(jobs=2))), ResourceLimits(seconds=3.0))
"""


def living(group: int) -> list[int]:
    """The processes of a group, without those that are dead and not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and int(its_group) == group and state not in "ZX":
            found.append(int(entry.name))
    return found


def left_over(group: int) -> list[int]:
    """What still lives a moment later; it is ended here."""
    until = time.monotonic() + 5
    while (found := living(group)) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_limit_leaves_nothing_behind(engine: str) -> None:
    spec = "examples/fig10/x86-32/cars-signed.yaml"
    command = [sys.executable, "-m", "mcveto", "verify", "--spec", spec, "--engine", engine, "--timeout", "1"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=ENVIRONMENT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        process.communicate(timeout=60)
    finally:
        left = left_over(process.pid)
    assert process.returncode in (0, 5)
    assert not left


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ended_by", ["limit", "kill"])
def test_a_parallel_check_leaves_nothing_behind(ended_by: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_CHECK, str(tmp_path) + "/"],
        env=ENVIRONMENT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        until = time.monotonic() + 30
        while len(list(tmp_path.iterdir())) < 2 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        both = len(living(process.pid)) >= 4  # the command, its search, and the two that check
        if ended_by == "kill":
            process.kill()
        process.communicate(timeout=30)
    finally:
        left = left_over(process.pid)
    assert both
    assert not left
