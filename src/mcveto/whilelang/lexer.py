"""Text to tokens, each with its line and column. ASCII and mathematical spellings mean the same."""

from __future__ import annotations

import re
from typing import NamedTuple

from mcveto.errors import InputFileError
from mcveto.whilelang.syntax import Position

MAX_SOURCE_BYTES = 1 << 20
MAX_DIGITS = 200

KEYWORDS = frozenset(
    {"assert", "assume", "else", "false", "if", "input", "invariant", "Mem", "memory", "proc", "returns", "skip"}
    | {"theory", "true", "U", "while"}
)
# What people may write, and the one spelling used inside.
_SPELLINGS = {
    "∧": "∧",
    "&&": "∧",
    "and": "∧",
    "∨": "∨",
    "||": "∨",
    "or": "∨",
    "¬": "¬",
    "!": "¬",
    "not": "¬",
    "→": "→",
    "->": "→",
    "↔": "↔",
    "<->": "↔",
    "≠": "≠",
    "!=": "≠",
    "≤": "≤",
    "<=": "≤",
    "≥": "≥",
    ">=": "≥",
    "==": "=",
    "·": "*",
    "⊤": "true",
    "⊥": "false",
}
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<number>0[xX][0-9a-fA-F]+|[0-9]+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol><->|->|:=|<<|>>|<=|>=|!=|==|&&|\|\||[-+*/%&|^~=<>!(){}\[\],;¬∧∨→↔≠≤≥·⊤⊥])""",
    re.VERBOSE | re.ASCII,
)


class Token(NamedTuple):
    """`kind` is number, name, end, or the keyword or symbol itself."""

    kind: str
    text: str
    at: Position


def tokens(source: str, path: str) -> list[Token]:
    """The tokens of a file, the last of kind `end`; raises InputFileError."""
    result: list[Token] = []
    line, line_start, position = 1, 0, 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        at = Position(line, position - line_start + 1)
        if match is None:
            raise error(path, at, f"unexpected character {source[position]!r}")
        position = match.end()
        text = match[0]
        if match.lastgroup == "newline":
            line, line_start = line + 1, position
        elif match.lastgroup == "number":
            if len(text) > MAX_DIGITS:
                raise error(path, at, "a number with too many digits")
            following = source[position : position + 1]
            if following.isalnum() or following == "_":
                raise error(path, at, f"'{text}{following}' is neither a number nor a name")
            result.append(Token("number", text, at))
        elif match.lastgroup in ("name", "symbol"):
            spelled = _SPELLINGS.get(text, text)
            plain_name = match.lastgroup == "name" and spelled == text and text not in KEYWORDS
            result.append(Token("name" if plain_name else spelled, text, at))
    result.append(Token("end", "", Position(line, position - line_start + 1)))
    return result


def error(path: str, at: Position, message: str, hint: str = "") -> InputFileError:
    return InputFileError(f"{path}:{at.line}:{at.column}: {message}", hint)
