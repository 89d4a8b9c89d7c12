"""Textual P-code for vectors: repeated lines, computed numbers, lanes; and instructions that it defines as a whole.

    let e = 1 << z             a name for a number
    for i in k                 the lines up to `end`, with i = 0, 1, ... k - 1
    if q                       the lines up to `end` if the number is not 0
    %x{i}:{e} = ...            {...} is replaced by its value
    split %a q{n} {e} {k}      %a0, %a1, ... become the k lowest lanes, of e bytes each
    join z{d} %r {e} {k}       the lanes %r0, %r1, ... of e bytes each, from the lowest up, the rest of z{d} 0

Expressions are Python's, over the names given so far and the fields of the instruction, or `mnemonic` and `last` (its
last byte) where it is an entry of the overlay; `$name` is left to snippet.py. An instruction defined as a whole is an
entry of the data file:

    [[instruction]]
    id = "ushl"
    word = "0q1s1110zz1mmmmm010001nnnnnddddd if q or z < 3"      its encoding, as in `checked` (see overlay.py)
    form = "lanes"                                               optional: lines around `code`, from [form]
    code = '''...'''
    evidence = "..."
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcveto.late_methods import dataclass

from .encoding import Encoding, read_encoding

_NUMBER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Definition:
    """An instruction whose P-code is ours as a whole."""

    id: str
    encoding: Encoding
    code: str

    def expanded(self, word: int) -> str:
        return expand(self.code, self.encoding.values(word))


def read_definition(entry: Mapping[str, str], forms: Mapping[str, str]) -> Definition:
    unknown = entry.keys() - {"id", "word", "form", "code", "evidence"}
    if unknown or not entry.get("evidence"):
        raise ValueError(f"instruction {entry.get('id')} has unknown fields {sorted(unknown)} or no evidence")
    code = in_form(entry["code"], entry.get("form", ""), forms)
    return Definition(entry["id"], read_encoding(f"{entry['id']} {entry['word']}"), code)


def in_form(code: str, form: str, forms: Mapping[str, str]) -> str:
    """The lines of the form, with `code` in place of the line `body`."""
    around = forms[form] if form else "body"
    return "\n".join(code if line.strip() == "body" else line for line in around.splitlines())


def expand(text: str, names: Mapping[str, int | str]) -> str:
    """Plain P-code text (see snippet.py)."""
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    return "\n".join(_expanded([line for line in lines if line], dict(names)))


def _expanded(lines: list[str], names: dict[str, Any]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        word, _, rest = line.partition(" ")
        at += 1
        if word == "let":
            name, _, expression = rest.partition("=")
            names[name.strip()] = _value(expression, names)
        elif word in ("for", "if"):
            end = _end(lines, at)
            name, _, expression = rest.partition(" in ") if word == "for" else ("", "", rest)
            turns = _value(expression, names)
            for turn in range(turns if word == "for" else bool(turns)):
                yield from _expanded(lines[at:end], {**names, name: turn} if name else names)
            at = end + 1
        else:
            plain = _NUMBER.sub(lambda found: str(_value(found[1], names)), line)
            yield from _lanes(plain) if word in ("split", "join") else (plain,)


def _value(expression: str, names: Mapping[str, Any]) -> Any:
    return eval(expression.strip(), {"__builtins__": {}}, dict(names))


def _end(lines: list[str], start: int) -> int:
    depth = 1
    for at in range(start, len(lines)):
        word = lines[at].partition(" ")[0]
        depth += (word in ("for", "if")) - (word == "end")
        if depth == 0:
            return at
    raise ValueError(f"no end for the line before {lines[start]!r}")


def _lanes(line: str) -> Iterator[str]:
    word, first, second, size_text, count_text = line.split()
    size, count = int(size_text), int(count_text)
    if word == "split":
        for lane in range(count):
            yield f"{first}{lane}:{size} = SUBPIECE {second}, {lane * size}:4"
        return
    low = f"{second}0"
    for lane in range(1, count):
        wider = f"{second}.{lane}"
        yield f"{wider}:{size * (lane + 1)} = PIECE {second}{lane}, {low}"
        low = wider
    yield f"{first} = INT_ZEXT {low}"
