"""Reads the text files users write: properties and models."""

from __future__ import annotations

from pathlib import Path

from mcveto.errors import InputFileError


def read_text(path: str, what: str, most_bytes: int) -> str:
    """The text of a file that is to hold a `what`; raises InputFileError."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "not a valid path"
        raise InputFileError(f"cannot read {path}: {reason}") from None
    if len(content) > most_bytes:
        raise InputFileError(f"{path} is too large for a {what} ({len(content)} bytes)")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InputFileError(f"{path} is not text", f"a {what} file is UTF-8") from None
