"""Child processes that do not outlive the process that needs them.

A child holds its parent's pipes open: a caller that reads our output to its end would wait for a child that nobody
waits for any more. So every child asks the system to be killed when its parent dies, however that happens.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """To be called first in a forked child; `parent` may have died before that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def pool_of_forks(jobs: int) -> ProcessPoolExecutor:
    """Processes that know what their parent knew when it first gave them work."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), die_with, (os.getpid(),))
