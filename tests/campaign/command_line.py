"""What the campaigns over compiled programs have in common: seeds one after the other for a given time, and counts."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from .c_campaign import Counts


def campaign(parser: argparse.ArgumentParser, run: Callable[[int, argparse.Namespace, Counts], None]) -> int:
    """Runs `run` for seed after seed; prints counts and what is wrong, which makes the exit code 1."""
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to run")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--keep", type=Path, default=Path("wrong-verdicts"), help="where wrong ones are kept")
    options = parser.parse_args()
    counts = Counts()
    until = time.monotonic() + options.seconds
    for seed in itertools.count(options.first):
        if time.monotonic() >= until:
            break
        before = len(counts.wrong)
        run(seed, options, counts)
        for wrong in counts.wrong[before:]:
            print("WRONG:", wrong, flush=True)
    print("\n".join(counts.lines()))
    return 1 if counts.wrong else 0
