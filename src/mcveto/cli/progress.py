"""Progress on stderr while a search runs: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from typing import TextIO

from mcveto.search import SearchProgress

TERMINAL_SECONDS = 0.2
PLAIN_SECONDS = 5.0
_ERASE_LINE = "\r\x1b[K"


class ProgressDisplay:
    def __init__(self, stream: TextIO | None = None, silent: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._silent = silent
        self._is_terminal = self._stream.isatty()
        self._interval = TERMINAL_SECONDS if self._is_terminal else PLAIN_SECONDS
        self._next = self._interval
        self._is_drawn = False

    def show(self, progress: SearchProgress) -> None:
        if self._silent or progress.seconds < self._next:
            return
        self._next = progress.seconds + self._interval
        if self._is_terminal:
            self._write(_ERASE_LINE + progress_line(progress)[: _columns() - 1])
            self._is_drawn = True
        else:
            self._write(progress_line(progress) + "\n")

    def clear(self) -> None:
        if self._is_drawn:
            self._write(_ERASE_LINE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._silent = True  # nobody is looking any more; the search goes on


def progress_line(progress: SearchProgress) -> str:
    counts = progress.counts
    if not counts.get("concrete_runs"):
        states = f"{counts['nodes']} states of paths" if counts.get("nodes") else "first run"
        return f"mcveto: {progress.seconds:.0f} s, {states}"
    frontier = f", frontier {progress.frontier}" if progress.frontier else ""
    return (
        f"mcveto: {progress.seconds:.0f} s, {counts['concrete_runs']} runs{frontier}, {counts.get('nodes', 0)} nodes, "
        f"{counts.get('refinements', 0)} refinements"
    )


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns
