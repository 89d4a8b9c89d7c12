"""Runs the soundness campaign for a given time: random programs with known truth against every engine.

    python tools/campaign.py --seconds 600 [--isa x86-32]... [--first 0] [--limit 1.0] [--per-program 2]

Prints counts per engine and instruction set. Every wrong verdict is shrunk, saved under tests/regressions and makes
the exit code 1.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.campaign.campaign import Wrong, minimal, run_campaign, save  # noqa: E402
from tests.campaign.generate import ISAS  # noqa: E402
from tests.campaign.items import to_text  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Random programs with known truth against every engine.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to run")
    parser.add_argument("--isa", action="append", choices=ISAS, help="only these instruction sets")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed; make test uses those below 1000")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for one verdict")
    parser.add_argument("--per-program", type=int, default=2, help="engines and strategies asked about one program")
    options = parser.parse_args()

    def report(wrong: Wrong) -> None:
        answered = wrong.answered
        print(f"WRONG: {wrong.program.isa} seed {wrong.seed} {'/'.join(answered.choice)}: {answered.wrong}", flush=True)
        smallest = minimal(wrong, 4 * options.limit)
        print(f"  {save(smallest, wrong)}")
        for line in to_text(smallest.items):
            print(f"    {line}", flush=True)

    counts = run_campaign(
        itertools.count(options.first),
        isas=tuple(options.isa or ISAS),
        seconds=options.limit,
        per_program=options.per_program,
        until=time.monotonic() + options.seconds,
        on_wrong=report,
    )
    for line in counts.lines():
        print(line)
    for dispute in counts.disputed:
        print(f"disputed truth: {dispute}")
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
