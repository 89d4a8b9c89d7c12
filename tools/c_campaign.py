"""Runs the campaign over compiled C for a given time.

    python tools/c_campaign.py --seconds 600 [--first 0] [--limit 10] [--count 8] [--keep FOLDER]

Prints counts per engine and build. What is wrong is kept in the folder and makes the exit code 1. Needs `ziglang`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.campaign.c_campaign import run_file  # noqa: E402
from tests.campaign.command_line import campaign  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Random compiled C against native runs of every input.")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for one verdict")
    parser.add_argument("--count", type=int, default=8, help="programs in one file, which is compiled twice")
    return campaign(
        parser, lambda seed, options, counts: run_file(seed, options.count, options.limit, options.keep, counts)
    )


if __name__ == "__main__":
    sys.exit(main())
