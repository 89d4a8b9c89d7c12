"""Work in a process of its own, beside a search that goes on: it hands over an answer, and is no loss if it dies.

The process is divided, so that the child has all that is known already. It is not begun where there is no second
processor, or where the search holds much memory already; both together may have what one may have alone, and if they
need more it is the child that ends.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from mcveto.limits import ResourceLimits, Send, Watch, resident_mb, start_limited
from mcveto.verdict import Verdict

# Seconds between two looks at the child.
LOOK_SECONDS = 0.02
# Of the memory allowed, or of so many megabytes, for a process that is divided.
SHARE_OF_MEMORY = 0.3
MOST_MEMORY = 4000.0


class Beside:
    def __init__(self, memory_mb: int | None) -> None:
        self._memory_mb = memory_mb or MOST_MEMORY
        self._watch: Watch | None = None
        self._looked = 0.0
        self.answer: Verdict | None = None
        """What the child said when it ended by itself."""

    @property
    def is_running(self) -> bool:
        return self._watch is not None

    def can_start(self) -> bool:
        has_processors = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else False
        return has_processors and resident_mb(os.getpid()) < SHARE_OF_MEMORY * self._memory_mb

    def start(self, work: Callable[[Send], Verdict], seconds: float | None) -> None:
        self._watch = start_limited(work, ResourceLimits(seconds))

    def look(self, seconds: float = 0.0) -> None:
        """Takes the answer that is there, or comes in so many seconds; ends a child that must not go on."""
        end = time.monotonic() + seconds
        while self._watch is not None and ((now := time.monotonic()) < end or now - self._looked > LOOK_SECONDS):
            self._looked = now
            ready, _, _ = select.select([self._watch.reader], [], [], max(0.0, min(LOOK_SECONDS, end - now)))
            if self._watch.look(bool(ready)):
                result = self._watch.result
                self.answer = result if isinstance(result, Verdict) else None
                self.close()
            elif self._watch.resident_mb + resident_mb(os.getpid()) > self._memory_mb:
                self.close()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
