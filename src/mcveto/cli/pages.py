"""The options --report and --report-data: pages about a result, as a file for the browser or as data for `view`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mcveto.late_methods import dataclass
from mcveto.verdict import Verdict

# Options that describe the program, by the name of their parameter.
_OPTIONS = {
    "spec_file": "--spec",
    "arch": "--arch",
    "base": "--base",
    "entry": "--entry",
    "input_calls": "--input",
    "input_registers": "--input-register",
    "input_memory": "--input-memory",
    "pointers": "--pointer",
    "assume": "--assume",
    "halts": "--halt",
    "targets": "--target",
    "stack": "--stack",
}


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


def run_again(binary: str | None, options: Mapping[str, Any], verdict: Verdict) -> list[str]:
    """The command that makes the run of a violation with `mcveto run`, quoted for a shell; empty if `run` cannot be
    told all. It does not watch properties, so their choices are no input of it."""
    if verdict.kind != "violated":
        return []
    besides = [item for item in verdict.inputs if item.where.startswith(("undefined", "unspecified"))]
    if any(item.value or item.where.startswith("undefined") for item in besides):
        return []  # `run` takes 0 for what is not specified, and the usual value for what is undefined
    left_out = ("undefined", "unspecified", "choice")
    inputs = [item for item in verdict.inputs if not item.where.startswith(left_out)]
    words = ["mcveto", "run", *([binary] if binary is not None else [])]
    for name, option in _OPTIONS.items():
        value = options.get(name)
        for item in value if isinstance(value, tuple) else [value] if value is not None else []:
            words += [option, str(item)]
    if inputs:
        words.append("--inputs=" + ",".join(str(item.value) for item in inputs))
    return [shlex.quote(word) for word in words]
