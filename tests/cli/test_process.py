"""The command as a process of its own: start-up time, closed pipes, interrupts, the demo."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "mcveto"]
USUAL_START_OF_PYTHON = 0.02
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def best_time(command: list[str]) -> float:
    """Processor time, best of five: what the command costs, whatever else the machine does."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [(["--version"], 0.15), (["run", "--spec", "examples/machine/tiny/tiny.yaml"], 0.5)],
    ids=["version", "run"],
)
def test_start_up(arguments: list[str], limit: float) -> None:
    best = best_time([*COMMAND, *arguments])
    empty = best_time([sys.executable, "-c", "pass"])
    if empty > 0.1 or os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1):
        # Even processor time grows when processes fight for the caches.
        assert best < 4 * limit
        pytest.skip("the machine is too busy to measure")
    assert best < limit * max(empty / USUAL_START_OF_PYTHON, 1)


def test_version() -> None:
    from importlib.metadata import version

    from mcveto.cli.main import VERSION

    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"mcveto {VERSION}\n")
    assert version("mcveto") == VERSION


def runs(program: str) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    return result


def test_commands_that_do_not_need_them_import_no_heavy_libraries() -> None:
    program = (
        "import sys; from mcveto.cli.main import run_command_line;"
        "assert run_command_line(['run', '--spec', 'examples/machine/tiny/tiny.yaml']) == 0;"
        "heavy = {'z3', 'lief', 'bitwuzla', 'rich', 'elftools', 'unicorn', 'msgspec'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    runs(program)


def test_what_gets_ready_for_a_search_imports_no_slow_libraries() -> None:
    program = (
        "import sys; from importlib import import_module; from mcveto.ahead import _NEEDED;"
        "[import_module(name) for name in _NEEDED];"
        "slow = {'importlib.resources', 'tempfile', 'yaml', 'click', 'z3', 'lief', 'msgspec'} & set(sys.modules);"
        "assert not slow, slow"
    )
    runs(program)


def test_what_waits_for_the_end_is_called() -> None:
    """The process is not taken to pieces when it ends, unless somebody has asked to be called then."""
    program = (
        "import atexit, sys; from mcveto.cli import main; sys.argv[1:] = ['models'];"
        "atexit.register(print, 'the end') if ASKED else None; main.main()"
    )
    for asked in (False, True):
        result = runs(program.replace("ASKED", str(asked)))
        assert result.stdout.endswith("the end\n") is asked
        assert "malloc" in result.stdout


def test_closed_pipe() -> None:
    arguments = [*COMMAND, "disasm", "examples/demo/demo.elf", "--pcode", "--count", "100"]
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(arguments, cwd=ROOT, env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*COMMAND, "disasm", "examples/demo/demo.elf"],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert result.returncode == 70
    assert result.stderr.startswith("mcveto: cannot write the output: ")
    assert result.stderr.count("\n") == 1


def interruptible() -> None:
    """A test run in the background inherits an ignored SIGINT; the command must not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupt(tmp_path: Path) -> None:
    loop = tmp_path / "loop.bin"
    loop.write_bytes(b"\xeb\xfe")
    arguments = ["run", str(loop), "--arch", "x86-32", "--base", "0x1000", "--entry", "0x1000"]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--max-steps", str(1 << 62)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    )
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (out, err, process.returncode) == ("", "mcveto: interrupted\n", 130)


def test_output_that_is_not_unicode() -> None:
    result = subprocess.run(
        [*COMMAND, "run", "--help"],
        cwd=ROOT,
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_demo(tmp_path: Path) -> None:
    wrapper = tmp_path / "mcveto"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mcveto "$@"\n')
    wrapper.chmod(0o755)
    result = subprocess.run(
        ["bash", "examples/demo/demo.sh", str(wrapper)], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "TARGET at 0x8048110" in result.stdout
