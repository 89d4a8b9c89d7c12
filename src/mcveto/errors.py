"""Errors a user can cause, each with its documented exit code.

The command line prints `str(error)`, always one line, and exits with `error.exit_code`.
"""

from typing import ClassVar


def one_line(text: str) -> str:
    """`text` with every control character made visible, so that it cannot break a line or a terminal."""
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in text)


class McvetoError(Exception):
    """A failure with a message for the user and, where there is one, a hint what to do about it."""

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = one_line(message)
        self.hint = one_line(hint)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(McvetoError):
    """The command line or the spec file asks for something that makes no sense."""

    exit_code = 2


class InputFileError(McvetoError):
    """An input file cannot be read or is of a kind that is not supported."""

    exit_code = 3


class InternalError(McvetoError):
    """A defect of mcveto itself."""

    exit_code = 70
