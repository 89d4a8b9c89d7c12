"""Damaged binaries are ordinary input: no crash, hang, traceback or memory blow-up."""

import collections
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "fuzz_worker.py"
MAX_CPU_SECONDS = 2.0
MAX_MEGABYTES = 300
SILENCE_SECONDS = 60  # wall clock, generous because the machine may be busy


def run_batch(seed: int, first: int, count: int, folder: Path) -> collections.Counter[str]:
    """Outcomes of `count` mutants; fails on the first that is anything but loaded or refused."""
    command = [sys.executable, str(WORKER), str(seed), str(first), str(count), str(folder)]
    outcomes: collections.Counter[str] = collections.Counter()
    begun = -1
    with (
        (folder / "stderr").open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        for line in lines_of(process, SILENCE_SECONDS):
            if line is None:
                process.kill()
                pytest.fail(f"mutant {seed}/{begun} hangs")
            report = json.loads(line)
            if "begin" in report:
                begun = report["begin"]
                continue
            label = f"mutant {seed}/{report['end']} of {report['file']}"
            assert report["outcome"] in ("loaded", "refused"), f"{label}: {report['outcome']}"
            assert report["seconds"] <= MAX_CPU_SECONDS, f"{label} took {report['seconds']:.1f} s"
            assert report["mb"] <= MAX_MEGABYTES, f"{label}: {report['mb']} MB"
            outcomes[report["outcome"]] += 1
        code = process.wait()
    assert code == 0, f"mutant {seed}/{begun}: died with {code}: {(folder / 'stderr').read_text()[-2000:]}"
    assert sum(outcomes.values()) == count
    return outcomes


def lines_of(process: subprocess.Popen[bytes], patience: float) -> Iterator[bytes | None]:
    """The lines that a process prints; None when it says nothing for too long."""
    assert process.stdout is not None
    descriptor, pending = process.stdout.fileno(), b""
    while True:
        if not select.select([descriptor], [], [], patience)[0]:
            yield None
            return
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        yield from lines


@pytest.mark.parametrize("batch", range(2))
def test_damaged_files(batch: int, tmp_path: Path) -> None:
    outcomes = run_batch(1, 150 * batch, 150, tmp_path)
    assert outcomes["loaded"] > 10
    assert outcomes["refused"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(24))
def test_many_damaged_files(batch: int, tmp_path: Path) -> None:
    outcomes = run_batch(2, 500 * batch, 500, tmp_path)
    assert outcomes["loaded"] > 30
    assert outcomes["refused"] > 30
