"""One question, answered by mcveto; the counterpart of `angr_task.py`, with the same clock.

    python bench/peers/mcveto_task.py SPEC ENGINE SECONDS MEGABYTES

Everything is imported before the clock starts, as for angr; loading the binary counts. The search runs in its watched
process as it does for `mcveto verify`.
"""

from __future__ import annotations

import json
import sys
import time

import bitwuzla  # noqa: F401
import pypcode  # noqa: F401
import unicorn  # noqa: F401
import yaml  # noqa: F401
import z3  # type: ignore[import-untyped]  # noqa: F401

import mcveto.certify
import mcveto.certify_paths
import mcveto.check.discharge
import mcveto.check.native_follower
import mcveto.check.qemu_follower
import mcveto.check.replay
import mcveto.dpg.auto_driver
import mcveto.engines.alongside
import mcveto.engines.bmc
import mcveto.engines.portfolio
import mcveto.program.image.elf
import mcveto.property.attach
import mcveto.self_check  # noqa: F401
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.search import Question, search


def main(spec: str, engine: str, seconds: str, megabytes: str) -> None:
    started = time.monotonic()
    question = Question(engine, timeout=float(seconds), memory_mb=int(megabytes))
    verdict = search(lambda: load_program(None, load_spec(spec)), question).verdict
    result = {
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "seconds": time.monotonic() - started,
        "cpu": verdict.statistics["cpu_seconds"],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
