"""Writing a JSON result to a file or, as `-`, to standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from mcveto.errors import UsageError, one_line


def require_writable(destination: str | None) -> None:
    """Refuses a destination that cannot be written, before the work whose result it is for."""
    if destination is None or destination == "-":
        return
    try:
        path = Path(destination)
        if path.is_dir():
            raise UsageError(f"cannot write {destination}: is a directory", "name a file")
        folder = path.parent
        if not folder.is_dir():
            raise UsageError(f"cannot write {destination}: there is no folder {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"cannot write {destination}: permission denied")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {destination}: {_reason(error)}") from None


def require_folder(destination: str) -> None:
    """Refuses a folder that cannot be made or written to."""
    try:
        path = Path(destination)
        existing = path if path.exists() else path.absolute().parent
        if not existing.is_dir():
            raise UsageError(f"cannot write into {destination}: {existing} is not a folder")
        if not os.access(existing, os.W_OK):
            raise UsageError(f"cannot write into {destination}: permission denied")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write into {destination}: {_reason(error)}") from None


def write_json(destination: str, result: dict[str, Any]) -> None:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(encodable(result)), indent=2).decode() + "\n"
    write_text(destination, text)


def write_text(destination: str, text: str) -> None:
    if destination == "-":
        sys.stdout.write(text)
        return
    try:
        Path(destination).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {destination}: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "not a valid path"


def encodable(value: Any) -> Any:
    """`value` with what JSON cannot hold (bytes of a path that are not UTF-8) made visible."""
    if isinstance(value, str):
        return value if value.isprintable() or value.isascii() else one_line(value)
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [encodable(item) for item in value]
    return value
