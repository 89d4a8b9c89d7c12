"""Partners of a search for invariants, in a process of their own where there is a processor for it.

They begin by taking turns in the same process: what is decided in tenths of a second is decided there, the same way
each time. When the first turn that is measured in seconds comes, the process is divided. The child goes on with the
partners from where they are, confirms or checks what they find as the search itself would, and hands over an answer
that needs nothing more; the parent goes on with the invariants alone, and looks now and then whether there is one. A
child that dies or needs too much memory is no loss: the parent still has the partners as they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mcveto.engines.beside import Beside
from mcveto.limits import Send
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.engines.alongside import Alongside

Turn = Callable[[float | None], Verdict | None]
# Seconds of a turn in the child.
TURN_SECONDS = 4.0
IDLE_SECONDS = 0.05


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
        self._beside = Beside(memory_mb)
        self._is_divided = False

    @property
    def is_apart(self) -> bool:
        return self._beside.is_running

    def __call__(self, seconds: float | None) -> Verdict | None:
        """What is found in a turn, or was found meanwhile."""
        if seconds is not None and not self._is_divided and self._beside.can_start():
            self._is_divided = True
            self._beside.start(self._work, max(0.1, self._remaining()))
        if self._beside.is_running or self._beside.answer is not None:
            return self.look()
        return self._turn(seconds)

    def look(self, seconds: float = 0.0) -> Verdict | None:
        """What the child has found, or finds in so many seconds."""
        self._beside.look(seconds)
        answer = self._beside.answer
        if answer is None or (answer.kind == "unknown" and not answer.is_internal_error):
            return None
        return replace(answer, is_finished=True)

    def close(self) -> None:
        self._beside.close()

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
