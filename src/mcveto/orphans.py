"""Child processes that do not outlive the process that needs them.

A child holds its parent's pipes open: a caller that reads our output to its end would wait for a child that nobody
waits for any more. So every child asks the system to be killed when its parent dies, however that happens.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """To be called first in a forked child; `parent` may have died before that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def in_forks(jobs: int, function: Callable[[T], R], items: Iterable[T], at_once: int = 1) -> Iterator[R | None]:
    """What `function` makes of each item, in processes that know what this one knows and get so many `at_once`; None
    if one was killed."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), die_with, (os.getpid(),))
    try:
        yield from pool.map(function, items, chunksize=at_once)
    except BrokenProcessPool:
        yield None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
