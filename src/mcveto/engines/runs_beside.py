"""Random runs in a second process, as long as the first one thinks.

What a simulation of large code needs a minute to doubt, and another to find an input for, a run on the emulator often
shows in seconds; and a simulation needs one processor only. What the runs find ends it at its next report.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from mcveto.dpg.auto_ends import Decided
from mcveto.engines.beside import Beside
from mcveto.engines.random_runs import random_runs
from mcveto.limits import Send
from mcveto.program.program import Program
from mcveto.verdict import Verdict

Tell = Callable[[dict[str, float | int], str], None]


class RunsBeside:
    """To be left like a file: the runs end with what they accompany."""

    def __init__(self, program: Program, seconds: float, seed: int, memory_mb: int | None) -> None:
        self._beside = Beside(memory_mb)
        if self._beside.can_start():

            def work(send: Send) -> Verdict:
                return random_runs(program, seconds, seed, lambda counts, place: None, math.inf)

            self._beside.start(work, None if math.isinf(seconds) else max(0.1, seconds))

    def __enter__(self) -> RunsBeside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._beside.close()

    @property
    def are_running(self) -> bool:
        return self._beside.is_running

    def look(self, seconds: float = 0.0) -> Verdict | None:
        """A violation that the runs have shown, or show in so many seconds."""
        self._beside.look(seconds)
        answer = self._beside.answer
        return replace(answer, found_by="runs") if answer is not None and answer.kind == "violated" else None

    def watched(self, tell: Tell) -> Tell:
        """The same report, which raises `Decided` once the runs have shown a violation."""

        def tell_and_look(counts: dict[str, float | int], place: str) -> None:
            tell(counts, place)
            found = self.look()
            if found is not None:
                raise Decided(found)

        return tell_and_look
