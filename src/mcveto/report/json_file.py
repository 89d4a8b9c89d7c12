"""Writing a JSON result to a file or, as `-`, to standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mcveto.errors import UsageError


def write_json(destination: str, result: dict[str, Any]) -> None:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n"
    if destination == "-":
        sys.stdout.write(text)
        return
    try:
        Path(destination).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {destination}: {error.strerror}") from None
