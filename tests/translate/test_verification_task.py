"""The C as verifiers see it, compiled with sanitizers and run: the inputs of counterexamples reach an error, nothing
does in programs that are correct; what the C does not follow is an error, too."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import mcveto
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.translate.to_c import CTranslation

from .running import WARNINGS, write

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc and its sanitizers")

EXAMPLES = Path(__file__).parents[2] / "examples"
ERROR, CUT, END = 41, 42, 0
# Values before the run begins are drawn; what the run then asks for are the inputs (from the command line, then drawn).
HARNESS = """
#define main task_main
#include "program.c"
#undef main
#include <stdio.h>
static int running, used, given;
static char **values;
static unsigned drawn = 1;
static unsigned draw(void) {
  drawn = drawn * 1664525u + 1013904223u;
  return drawn >> 8 & 3 ? drawn >> 16 & 7 : drawn;
}
unsigned __VERIFIER_nondet_uint(void) {
  return running && used < given ? (unsigned)strtoul(values[used++], 0, 0) : draw();
}
unsigned short __VERIFIER_nondet_ushort(void) { return (unsigned short)__VERIFIER_nondet_uint(); }
unsigned char __VERIFIER_nondet_uchar(void) { return (unsigned char)__VERIFIER_nondet_uint(); }
void __VERIFIER_error(void) { _Exit(mc_cut ? 42 : 41); }
int main(int count, char **arguments) {
  drawn = (unsigned)strtoul(arguments[1], 0, 0);
  values = arguments + 2;
  given = count - 2;
  mc_reset();
  running = 1;
  mc_run();
  (void)task_main;
}
"""


def example(name: str) -> Program:
    return load_program(None, replace(load_spec(str(EXAMPLES / f"{name}.yaml")), stack=1 << 14))


def compiled(program: Program, folder: Path, *flags: str) -> Path:
    write(CTranslation(program), folder / "program.c")
    source, output = folder / "harness.c", folder / "task"
    source.write_text(HARNESS)
    sanitized = [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-Wno-return-type",
        "-DMC_VERIFIER_ERROR",
        *flags,
    ]
    done = subprocess.run(
        ["gcc", *WARNINGS, *sanitized, str(source), "-o", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:2000]
    return output


def run(task: Path, seed: int, inputs: Sequence[int] = ()) -> int:
    command = [str(task), str(seed), *map(str, inputs)]
    # The stack is never freed, and need not be.
    done = subprocess.run(command, env={"ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, check=False, timeout=60)
    assert done.returncode in (END, ERROR, CUT), done.stderr[:2000]
    return done.returncode


@pytest.mark.parametrize(
    "name",
    [
        "air/ppc32-be/memname-bug-O0",
        *(
            pytest.param(f"air/ppc32-be/{name}", marks=pytest.mark.slow)
            for name in ("scsi-queue-bug-O1", "disk-timer-bug-O2", "net-transmit-bug-O0", "message-post-bug-O1")
        ),
    ],
)
def test_a_counterexample_reaches_the_error(name: str, tmp_path: Path) -> None:
    program = example(name)
    verdict = mcveto.verify(program, timeout=60)
    assert verdict.kind == "violated"
    inputs = [item.value for item in verdict.inputs if "call of" in item.where]
    assert run(compiled(program, tmp_path), 1, inputs) == ERROR


@pytest.mark.parametrize(
    "name",
    [
        "air/ppc32-be/memname-fix-O1",
        *(
            pytest.param(f"air/ppc32-be/{name}", marks=pytest.mark.slow)
            for name in ("scsi-queue-fix-O0", "disk-timer-fix-O2", "net-transmit-fix-O1", "message-post-fix-O0")
        ),
    ],
)
def test_correct_programs_reach_no_error(name: str, tmp_path: Path) -> None:
    task = compiled(example(name), tmp_path)
    draw = random.Random(name)
    assert {run(task, draw.getrandbits(32)) for _ in range(60)} == {END}


def test_a_return_to_another_place_is_an_error_unless_it_is_followed(tmp_path: Path) -> None:
    """0x41 makes the function overwrite its return address with the target: only who follows it gets there."""
    program = example("machine/tricks/return-overwrite")
    assert run(compiled(program, tmp_path), 1, [0x41]) == CUT
    assert run(compiled(program, tmp_path, "-DMC_FOLLOW"), 1, [0x41]) == ERROR
