"""Runs the campaign over drivers that were changed at random, for a given time.

    python tools/driver_campaign.py --seconds 600 [--first 0] [--limit 60] [--running 3] [--keep FOLDER]

Prints counts per engine and build. What is wrong is kept in the folder and makes the exit code 1. Needs `ziglang`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.campaign.command_line import campaign  # noqa: E402
from tests.campaign.driver_campaign import run_driver  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Changed drivers against random native runs.")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one verdict")
    parser.add_argument("--running", type=float, default=3.0, help="seconds of native runs for one driver")
    return campaign(
        parser, lambda seed, options, counts: run_driver(seed, options.limit, options.running, options.keep, counts)
    )


if __name__ == "__main__":
    sys.exit(main())
