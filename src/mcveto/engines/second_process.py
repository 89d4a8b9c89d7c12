"""Partners of a search for invariants, in a process of their own where there is a processor for it.

They begin by taking turns in the same process: what is decided in tenths of a second is decided there, the same way
each time. When the first turn that is measured in seconds comes, the process is divided. The child goes on with the
partners from where they are, confirms or checks what they find as the search itself would, and hands over an answer
that needs nothing more; the parent goes on with the invariants alone, and looks now and then whether there is one. A
child that dies or needs too much memory is no loss: the parent still has the partners as they were.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.limits import ResourceLimits, Send, Watch, resident_mb, start_limited
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.engines.alongside import Alongside

Turn = Callable[[float | None], Verdict | None]
# Seconds of a turn in the child, and between two looks at it.
TURN_SECONDS = 4.0
LOOK_SECONDS = 0.02
IDLE_SECONDS = 0.05
# Of the memory allowed, or of so many megabytes, for a process that is divided.
SHARE_OF_MEMORY = 0.3
MOST_MEMORY = 4000.0


class Apart:
    def __init__(
        self,
        partners: Alongside,
        turn: Turn,
        finish: Callable[[Verdict], Verdict],
        remaining: Callable[[], float],
        memory_mb: int | None,
    ) -> None:
        """`turn` is that of the partners, of which the first may have been taken; `finish` does all that is to be done
        with a verdict of theirs."""
        self._partners = partners
        self._turn = turn
        self._finish = finish
        self._remaining = remaining
        self._memory_mb = memory_mb or MOST_MEMORY
        self._watch: Watch | None = None
        self._is_divided = False
        self._is_over = False
        self._found: Verdict | None = None
        self._looked = 0.0

    @property
    def is_apart(self) -> bool:
        return self._watch is not None

    def __call__(self, seconds: float | None) -> Verdict | None:
        """What is found in a turn, or was found meanwhile."""
        if seconds is not None and not self._is_divided and self._can_divide():
            self._is_divided = True
            self._watch = start_limited(self._work, ResourceLimits(max(0.1, self._remaining())))
        if self._watch is not None or self._is_over:
            return self.look()
        return self._turn(seconds)

    def look(self, seconds: float = 0.0) -> Verdict | None:
        """What the child has found, or finds in so many seconds."""
        end = time.monotonic() + seconds
        while self._watch is not None and ((now := time.monotonic()) < end or now - self._looked > LOOK_SECONDS):
            self._looked = now
            ready, _, _ = select.select([self._watch.reader], [], [], max(0.0, min(LOOK_SECONDS, end - now)))
            if self._watch.look(bool(ready)):
                result = self._watch.result
                self._is_over = isinstance(result, Verdict)
                if isinstance(result, Verdict) and (result.kind != "unknown" or result.is_internal_error):
                    self._found = replace(result, is_finished=True)
                self.close()
            elif self._watch.resident_mb + resident_mb(os.getpid()) > self._memory_mb:
                self.close()
        return self._found

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _can_divide(self) -> bool:
        has_processors = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else False
        return has_processors and resident_mb(os.getpid()) < SHARE_OF_MEMORY * self._memory_mb

    def _work(self, send: Send) -> Verdict:
        """What the child does."""
        while self._remaining() > 0 and not self._partners.is_over:
            begun = time.monotonic()
            found = self._turn(min(TURN_SECONDS, self._remaining()))
            if found is not None:
                return self._finish(found)
            if time.monotonic() - begun < IDLE_SECONDS:
                time.sleep(IDLE_SECONDS)
        return Verdict("unknown", reason="nothing was found")
