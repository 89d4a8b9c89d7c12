"""The options --report and --report-data: pages about a result, as a file for the browser or as data for `view`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pages:
    report: str | None
    data: str | None

    @property
    def are_wanted(self) -> bool:
        return self.report is not None or self.data is not None

    def require(self) -> None:
        """Refuses what could not be written, before the work whose result it is for."""
        from mcveto.report.json_file import require_writable

        require_writable(self.report)
        require_writable(self.data)
        if self.report is not None:
            from mcveto.viewer.html_file import require_front_end

            require_front_end()

    def write(self, pages: dict[str, Any]) -> None:
        from mcveto.report.json_file import write_json, write_text

        if self.data is not None:
            write_json(self.data, pages)
        if self.report is not None:
            from mcveto.viewer.html_file import html_text

            write_text(self.report, html_text(pages))
