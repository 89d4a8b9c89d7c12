"""Runs the campaign over compiled C for a given time.

    python tools/c_campaign.py --seconds 600 [--first 0] [--limit 10] [--count 8] [--keep FOLDER]

Prints counts per engine and build. What is wrong is kept in the folder and makes the exit code 1. Needs `ziglang`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.campaign.c_campaign import Counts, run_file  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Random compiled C against native runs of every input.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to run")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for one verdict")
    parser.add_argument("--count", type=int, default=8, help="programs in one file, which is compiled twice")
    parser.add_argument("--keep", type=Path, default=Path("wrong-verdicts"), help="where wrong ones are kept")
    options = parser.parse_args()
    counts = Counts()
    until = time.monotonic() + options.seconds
    for seed in itertools.count(options.first):
        if time.monotonic() >= until:
            break
        before = len(counts.wrong)
        run_file(seed, options.count, options.limit, options.keep, counts)
        for wrong in counts.wrong[before:]:
            print("WRONG:", wrong, flush=True)
    print("\n".join(counts.lines()))
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
