"""A verifier of C programs as an engine: it is given the translation, and what it says is mapped back and replayed.

    --engine 'external:cbmc --trace {file}'        {file}: the C; appended if it is not mentioned
    --engine 'external:… --witness {witness} {file}'   {witness}: a file the tool may write, read like its output

The tool's word is a claim. A violation is reported only if its inputs, replayed on the emulator, reach a target. That
no target is reachable cannot be checked here and stays the tool's claim: UNKNOWN, with the claim in the reason. (The C
treats whatever is not modelled as an error, so that such a claim is not about a part of the program only; returns to
other places than the caller are followed, not reported.)

Inputs are recognised by the variable `mc_taken` that every input passes through, unspecified registers of the entry
state by `mc_chosen`: as assignments in the traces of CBMC, ESBMC and Ultimate, as assumptions in SV-COMP witnesses.
"""

from __future__ import annotations

import ctypes
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mcveto.errors import UsageError
from mcveto.machine.emulator import Outcome
from mcveto.program.exits import run_to_end
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict, VerdictInput

from .to_c import CTranslation

PREFIX = "external:"
_MAX_OUTPUT = 64 << 20
_MAX_STEPS = 10_000_000
_PR_SET_PDEATHSIG = 1

_SAFE = re.compile(
    r"VERIFICATION SUCCESSFUL|Verification result: TRUE|proved your program to be correct|^\s*(TRUE|true\(.*\))\s*$",
    re.MULTILINE,
)
_UNSAFE = re.compile(
    r"VERIFICATION FAILED|Verification result: FALSE|proved your program to be incorrect|^\s*(FALSE|false\(.*\))\s*$",
    re.MULTILINE,
)
_STATE = re.compile(r"\bState \d+ .*\bfunction (\w+)")
_VALUE = re.compile(r"\b(mc_taken|mc_chosen|mc_at)\s*==?\s*\(*\s*(-?(?:0[xX][0-9a-fA-F]+|[0-9]+))")
_WHOLE_STATE = re.compile(r"\bVAL\s*\[")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a tool said: whether an error is reachable (None: it does not know), and with which values."""

    reachable: bool | None
    inputs: tuple[int, ...] = ()
    chosen: tuple[int, ...] = ()
    at: int | None = None
    """The last address its trace mentions."""


def read_claim(output: str) -> Claim:
    """The claim in what a tool printed and in its witness."""
    safe, unsafe = _SAFE.search(output), _UNSAFE.search(output)
    if bool(safe) == bool(unsafe):
        return Claim(None)
    if safe:
        return Claim(False)
    found: dict[str, list[int]] = {"mc_taken": [], "mc_chosen": [], "mc_at": []}
    function = ""
    for line in output.splitlines():
        state = _STATE.search(line)
        if state:
            function = state[1]
        if function == "__CPROVER_initialize":
            continue  # values before main
        whole = _WHOLE_STATE.search(line)
        if whole:
            # Ultimate repeats all variables after each step; only those the step assigned are news.
            step, values = line[: whole.start()], line[whole.start() :]
            assigned = {name for name in found if re.search(rf"\b{name}\s*=[^=]", step)}
        else:
            values, assigned = line, set(found)
        for name, number in _VALUE.findall(values):
            if name in assigned:
                found[name].append(int(number, 0))
    at = found["mc_at"][-1] if found["mc_at"] else None
    return Claim(True, tuple(found["mc_taken"]), tuple(found["mc_chosen"]), at)


def verify_externally(program: Program, engine: str, seconds: float | None) -> Verdict:
    """Runs the tool that `engine` names on the translation and judges its claim."""
    started = time.monotonic()
    if not program.targets:
        raise UsageError("an external tool needs a target", "give --target ADDRESS")
    words = _command(engine)
    translation = CTranslation(program)
    with tempfile.TemporaryDirectory(prefix="mcveto-") as scratch:
        source, witness = Path(scratch) / "program.c", Path(scratch) / "witness"
        with source.open("w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in translation.lines())
        filled = [word.replace("{file}", str(source)).replace("{witness}", str(witness)) for word in words]
        if not any("{file}" in word for word in words):
            filled.append(str(source))
        left = None if seconds is None else max(seconds - (time.monotonic() - started), 0.1)
        output = _run(filled, Path(scratch), left)
        if output is None:
            return _unknown(program, "time-out of the external tool")
        if witness.exists():
            output += "\n" + witness.read_bytes()[:_MAX_OUTPUT].decode("utf-8", errors="replace")
    return judge(program, translation, read_claim(output), words[0])


def judge(program: Program, translation: CTranslation, claim: Claim, tool: str) -> Verdict:
    """The verdict that a claim supports."""
    name = Path(tool).name
    if claim.reachable is None:
        return _unknown(program, f"{name} gave no answer")
    if not claim.reachable:
        return _unknown(program, f"{name} claims that no target is reachable; nothing checks this claim")
    try:
        outcome, consumed = _replay(program, translation, claim)
    except UsageError as error:
        return _unknown(program, f"{name} claims a violation with values that do not fit: {error.message}")
    if outcome.kind == "target":
        return Verdict(
            "violated",
            about="reach",
            inputs=consumed,
            confirmed_by=(name, "emulator"),
            assumptions=program.assumptions,
            statistics={"concrete_runs": 1, "instructions_executed": outcome.steps},
            at=program.decoder.row.code_address(outcome.pc),
        )
    claimed = "" if claim.at is None else f" at {claim.at:#x}"
    end = f"{outcome.kind} at {outcome.pc:#x}" + (f", {outcome.detail}" if outcome.detail else "")
    return _unknown(program, f"{name} claims a violation{claimed} that does not replay: the run ends {end}")


def _replay(program: Program, translation: CTranslation, claim: Claim) -> tuple[Outcome, tuple[VerdictInput, ...]]:
    source = InputSource(claim.inputs)
    machine = program.machine(source)
    layout = program.decoder.layout
    extra: list[VerdictInput] = []
    for name, value in zip(translation.unspecified_registers, claim.chosen, strict=False):
        cell = layout.by_name.get(name)
        if cell is not None:
            machine.registers[cell.number] = value & ((1 << cell.bits) - 1)
            extra.append(VerdictInput(value, cell.bits, f"unspecified register {name} at entry"))
    outcome = run_to_end(program, machine, _MAX_STEPS)
    consumed = [VerdictInput(item.value, item.bits, item.where) for item in source.consumed]
    return outcome, (*consumed, *(item for item in extra if item.value))


def _unknown(program: Program, reason: str) -> Verdict:
    return Verdict("unknown", reason=reason, assumptions=program.assumptions)


def _command(engine: str) -> list[str]:
    try:
        words = shlex.split(engine.removeprefix(PREFIX))
    except ValueError as error:
        raise UsageError(f"--engine: {error}", f"e.g. '{PREFIX}cbmc --trace'") from None
    if not words:
        raise UsageError("--engine external: names no command", f"e.g. '{PREFIX}cbmc --trace'")
    if shutil.which(words[0]) is None:
        raise UsageError(f"there is no command '{words[0]}' to run as an engine", "is it installed and in PATH?")
    return words


def _run(command: list[str], folder: Path, seconds: float | None) -> str | None:
    """What the command prints; None if it takes too long. It does not outlive us."""
    library = ctypes.CDLL(None)

    def die_with_parent() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
            preexec_fn=die_with_parent,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        raise UsageError(f"cannot run '{command[0]}': {error.strerror}") from None
    return done.stdout[:_MAX_OUTPUT].decode("utf-8", errors="replace")
