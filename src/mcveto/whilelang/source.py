"""Reading a file of the While language."""

from __future__ import annotations

import stat
from pathlib import Path

from mcveto.errors import InputFileError
from mcveto.whilelang.lexer import MAX_SOURCE_BYTES
from mcveto.whilelang.parser import parse
from mcveto.whilelang.syntax import Module


def read_source(path: str) -> str:
    """The text of a file; raises InputFileError."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise InputFileError(f"cannot read {path}: it is not a regular file")
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_SOURCE_BYTES + 1)
        if len(content) > MAX_SOURCE_BYTES:
            raise InputFileError(f"{path} is larger than {MAX_SOURCE_BYTES} bytes")
        return content.decode("utf-8")
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path} is not text", "a While program is UTF-8 text") from None
    except ValueError:
        raise InputFileError(f"cannot read {path!r}: not a valid path") from None


def load_module(path: str, theory: str | None = None) -> Module:
    """The module in a file, in its own number theory or in `theory`; raises InputFileError or UsageError."""
    return parse(read_source(path), path, theory)
