"""`mcveto verify`: output, exit codes, JSON, refusals, limits that hold, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FIG10 = "examples/fig10/x86-32"
KEYS = [
    "schema",
    "mcveto",
    "binary",
    "verdict",
    "reason",
    "property",
    "inputs",
    "confirmed_by",
    "assumptions",
    "warnings",
    "stats",
    "proof",
    "command",
    "seed",
    "at",
    "after_violation",
    "violation",
    "path",
]
STATISTICS = [
    "seconds",
    "cpu_seconds",
    "peak_rss_mb",
    "concrete_runs",
    "symbolic_runs",
    "iterations",
    "refinements",
    "predicates",
    "lemmas",
    "solver_calls",
    "instructions_executed",
    "locations",
    "nodes",
]


@pytest.fixture(scope="session")
def hard(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A question that only time ends: x := 1664525 x + 1013904223 visits all numbers, the one before 1 last."""
    factor, summand = 1664525, 1013904223
    last = (1 - summand) * pow(factor, -1, 1 << 32) % (1 << 32)
    code = bytes.fromhex("bb01000000 e81a000000 85c0 7415")  # mov ebx, 1; again: call input; test eax, eax; jz end
    code += b"\x69\xdb" + factor.to_bytes(4, "little")  # imul ebx, ebx, factor
    code += b"\x81\xc3" + summand.to_bytes(4, "little")  # add ebx, summand
    code += b"\x81\xfb" + last.to_bytes(4, "little")  # cmp ebx, last
    code += bytes.fromhex("75e3 90 c3 c3")  # jne again; target: nop; end: ret; input: ret
    file = tmp_path_factory.mktemp("hard") / "blob"
    file.write_bytes(code)
    options = "--arch x86-32 --base 0x1000 --entry 0x1000 --input 0x1024 --target 0x1022"
    return [str(file), *options.split()]


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcveto", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def mcveto(*arguments: str, **environment: str) -> tuple[int, str, str]:
    process = start(*arguments, **environment)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def verify_json(*arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
    code, out, err = mcveto("verify", *arguments, "--json", "-", **environment)
    assert err == ""
    return code, json.loads(out)


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    stats = {k: v for k, v in record["stats"].items() if k not in ("seconds", "cpu_seconds", "peak_rss_mb")}
    return {**record, "stats": stats}


def test_violated() -> None:
    code, out, err = mcveto("verify", "--spec", "examples/demo/demo.yaml")
    lines = out.splitlines()
    assert code == 10
    assert lines[0] == "VIOLATED(reach)"
    assert lines[1] == "reason: 0x8048110 is reached"
    assert [line for line in lines if line.startswith("input ")][2].endswith("(8 bits, call of 0x8048100)")
    assert any(line.startswith("confirmed by: emulator, unicorn") for line in lines)
    assert lines[-1].startswith("statistics: ")
    assert err == ""


def test_reported_inputs_repeat_the_violation() -> None:
    _, record = verify_json("--spec", "examples/demo/demo.yaml")
    from mcveto.program.inputs import InputSource
    from mcveto.program.program import load_program
    from mcveto.program.spec import load_spec

    program = load_program(None, load_spec(str(ROOT / "examples/demo/demo.yaml")))
    machine = program.machine(InputSource([item["value"] for item in record["inputs"]]))
    assert machine.run(10_000).kind == "target"


def test_proved() -> None:
    code, out, _ = mcveto("verify", "--spec", f"{FIG10}/ex6.yaml")
    assert code == 0
    assert out.splitlines()[:2] == ["PROVED", "checked: reach 0x8048180, return-address"]
    assert "assumption: the stack is " in out


def test_quiet_prints_the_first_line_only() -> None:
    assert mcveto("verify", "--spec", f"{FIG10}/ex6.yaml", "--quiet") == (0, "PROVED\n", "")


def test_options_instead_of_a_spec() -> None:
    code, out, _ = mcveto(
        "verify", f"{FIG10}/fig9.elf", "--entry", "0x8048109", "--input", "0x8048100", "--halt", "0x8048104"
    )
    assert code == 10
    assert out.startswith("VIOLATED(return-address)\nreason: return at 0x")
    assert "checked: return-address\n" in out


def test_target_option_is_what_is_asked() -> None:
    arguments = ("examples/demo/demo.sym.elf", "--halt", "0x8048120", "--input", "0x8048100")
    code, record = verify_json(*arguments, "--entry", "0x8048130", "--target", "0x8048110")
    assert (code, record["property"]) == (10, "reach")


def test_json_of_a_violation(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    code, out, _ = mcveto("verify", "--spec", "examples/demo/demo.yaml", "--json", str(file), "--seed", "3")
    record = json.loads(file.read_text())
    assert (code, out.splitlines()[0]) == (10, "VIOLATED(reach)")
    assert list(record) == KEYS
    assert list(record["stats"]) == STATISTICS
    assert record["verdict"] == "violated"
    assert record["property"] == "reach"
    assert record["confirmed_by"][:2] == ["emulator", "unicorn"]
    assert record["seed"] == 3
    assert record["command"][:2] == ["mcveto", "verify"]
    assert record["binary"]["path"] == "examples/demo/demo.elf"
    assert len(record["binary"]["sha256"]) == 64
    assert [sorted(item) for item in record["inputs"]] == [["bits", "value", "where"]] * 3
    assert all(0 <= item["value"] < 1 << item["bits"] for item in record["inputs"])
    assert record["stats"]["seconds"] > 0 and record["stats"]["cpu_seconds"] > 0
    assert 10 < record["stats"]["peak_rss_mb"] < 4000


def test_json_of_a_proof() -> None:
    code, record = verify_json("--spec", f"{FIG10}/ex6.yaml")
    assert code == 0
    assert list(record) == KEYS
    assert (record["verdict"], record["reason"], record["property"]) == ("proved", None, None)
    assert (record["inputs"], record["confirmed_by"]) == ([], [])
    assert record["proof"]["obligations"] > 0 and record["proof"]["file"] is None
    assert record["stats"]["lemmas"] is None
    assert record["assumptions"]


@pytest.mark.parametrize("spec", ["examples/demo/demo.yaml", f"{FIG10}/fig7a.yaml", f"{FIG10}/smc2.yaml"])
def test_same_command_same_result(spec: str) -> None:
    first, second = (verify_json("--spec", spec, "--seed", "1", PYTHONHASHSEED=str(number)) for number in (1, 2))
    assert first[0] == second[0]
    assert json.dumps(without_times(first[1])) == json.dumps(without_times(second[1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bitwise", "semi"], "--bitwise is for engine cegar"),
        (["--engine", "cegar", "--bitwise", "nonsense"], "there is no bitwise 'nonsense'"),
        (["--engine", "nonsense"], "there is no engine 'nonsense'"),
        (["--strategy", "nonsense"], "there is no strategy 'nonsense'"),
        (["--steps", "giant"], "there is no steps 'giant'"),
        (["--property", "nothing.fsm"], "nothing.fsm"),
        (["--unwind", "3"], "--unwind is for engine bmc"),
        (["--timeout", "0"], "the time limit must be a positive number of seconds"),
        (["--timeout", "nan"], "the time limit must be a positive number of seconds"),
        (["--memory", "-1"], "the memory limit must be a positive number of megabytes"),
        (["--target", "nowhere"], "nowhere"),
        (["--json", "/nonexistent/result.json"], "cannot write /nonexistent/result.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refused_in_one_line(arguments: list[str], message: str) -> None:
    code, out, err = mcveto("verify", "--spec", "examples/demo/demo.yaml", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("mcveto: ") and err.count("\n") == 1
    assert message in err


def test_reach_without_a_target_is_refused() -> None:
    code, _, err = mcveto("verify", "examples/demo/demo.elf", "--property", "reach")
    assert code == 2
    assert "property reach needs an address" in err


def test_unreadable_file() -> None:
    code, out, err = mcveto("verify", "pyproject.toml")
    assert (code, out) == (3, "")
    assert err.startswith("mcveto: ") and err.count("\n") == 1


def test_timeout_holds(hard: list[str]) -> None:
    started = time.monotonic()
    mcveto("verify", "--engine", "cegar")
    start_up = time.monotonic() - started
    code, record = verify_json(*hard, "--timeout", "1")
    assert time.monotonic() - started < 10 + 2 * start_up
    assert (code, record["verdict"], record["reason"]) == (5, "unknown", "time-out")
    assert record["stats"]["seconds"] < 5


def test_timeout_reports_what_is_known(hard: list[str]) -> None:
    _, record = verify_json(*hard, "--timeout", "8")
    assert record["reason"] == "time-out"
    # On a busy machine, the exploration that has the first turn is all there is time for.
    assert record["stats"]["concrete_runs"] or record["stats"]["symbolic_runs"]
    assert record["stats"]["nodes"] >= 1
    assert record["assumptions"]


def test_a_memory_limit_that_is_enough_changes_nothing() -> None:
    code, record = verify_json("--spec", "examples/demo/demo.yaml", "--timeout", "60", "--memory", "1000")
    assert (code, record["verdict"]) == (10, "violated")


def test_memory_limit_holds(hard: list[str]) -> None:
    code, record = verify_json(*hard, "--timeout", "60", "--memory", "70")
    assert (code, record["verdict"], record["reason"]) == (5, "unknown", "memory limit of 70 MB")
    assert record["stats"]["peak_rss_mb"] < 120
    assert record["stats"]["seconds"] < 60


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_interrupt_reports_what_is_known(hard: list[str], number: signal.Signals, reason: str) -> None:
    process = start("verify", *hard, "--timeout", "100")
    child = _wait_for_child(process.pid)
    time.sleep(1)
    process.send_signal(number)
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 5
    assert out.splitlines()[0] == f"UNKNOWN({reason})"
    assert "statistics: " in out
    assert not Path(f"/proc/{child}").exists()


def test_crash_of_the_search_is_an_internal_error(hard: list[str]) -> None:
    process = start("verify", *hard, "--timeout", "100", "--quiet")
    # The first child may die while it only gets ready; then another one does the work.
    for _ in range(2):
        os.kill(_wait_for_child(process.pid), signal.SIGSEGV)
        try:
            process.wait(timeout=5)
            break
        except subprocess.TimeoutExpired:
            continue
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 70
    assert out == "UNKNOWN(internal error: the search died of SIGSEGV)\n"


def test_search_dies_with_its_parent(hard: list[str]) -> None:
    process = start("verify", *hard, "--timeout", "100")
    child = _wait_for_child(process.pid)
    time.sleep(0.5)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(child)


def test_plain_progress_lines_when_not_on_a_terminal(hard: list[str]) -> None:
    _, out, err = mcveto("verify", *hard, "--timeout", "7")
    assert out.startswith("UNKNOWN(")  # whose time it was that ran out first depends on the machine
    (line,) = err.splitlines()
    assert re.match("mcveto: [5-7] s, ", line)


def test_one_rewritten_line_on_a_terminal(hard: list[str]) -> None:
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcveto", "verify", *hard, "--timeout", "10", "--seed", "1"],
        stdout=subprocess.PIPE,
        stderr=child,
        cwd=ROOT,
    )
    process.communicate(timeout=60)
    os.close(child)
    shown = os.read(parent, 1 << 16).decode()
    os.close(parent)
    assert shown.count("\r\x1b[K") >= 3
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[K")
    assert re.search(r"mcveto: \d+ s, \d+ (runs|states of paths)", shown)  # how far it comes depends on the machine


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _wait_for_child(pid: int) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = _children(pid)
        if found:
            time.sleep(0.3)
            return found[0]
        time.sleep(0.01)
    raise AssertionError("no search was started")


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
