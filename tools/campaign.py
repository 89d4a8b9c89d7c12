"""Runs the soundness campaign for a given time: random programs with known truth against every engine.

    python tools/campaign.py --seconds 600 [--programs 20000] [--jobs 2] [--isa x86-32]... [--first 0] [--limit 1.0]
        [--per-program 2]

Prints counts per engine and instruction set. Every wrong verdict is shrunk, saved under tests/regressions and makes
the exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.campaign.campaign import Counts  # noqa: E402
from tests.campaign.generate import ISAS  # noqa: E402
from tests.campaign.side_by_side import Plan, run_plan  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Random programs with known truth against every engine.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to run")
    parser.add_argument("--programs", type=int, help="how many seeds to take at most")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--isa", action="append", choices=ISAS, help="only these instruction sets")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed; make test uses those below 1000")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for one verdict")
    parser.add_argument("--per-program", type=int, default=2, help="engines and strategies asked about one program")
    options = parser.parse_args()

    def progress(counts: Counts) -> None:
        print(next(counts.lines()), file=sys.stderr, flush=True)

    plan = Plan(
        options.first,
        options.programs,
        options.seconds,
        options.limit,
        options.per_program,
        tuple(options.isa or ISAS),
        options.jobs,
    )
    counts = run_plan(plan, progress)
    for line in counts.lines():
        print(line)
    for dispute in counts.disputed:
        print(f"disputed truth: {dispute}")
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
