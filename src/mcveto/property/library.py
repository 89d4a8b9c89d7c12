"""The properties that come with mcveto, as data files in `library/`; found by name, or by path like any other."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mcveto.errors import UsageError
from mcveto.property.typestate import Typestate
from mcveto.property.typestate_parser import parse_typestate, read_typestate_text

SUFFIX = ".fsm"
_FOLDER = Path(__file__).parent / "library"


def library_names() -> list[str]:
    return sorted(entry.name.removesuffix(SUFFIX) for entry in _FOLDER.iterdir() if entry.name.endswith(SUFFIX))


def find_typestate(name: str) -> Typestate:
    """The automaton in the file `name`, or the bundled one of that name (with or without .fsm)."""
    source = find_typestate_source(name)
    return parse_typestate(source.text, source.path)


class TypestateSource(NamedTuple):
    path: str
    text: str


def find_typestate_source(name: str) -> TypestateSource:
    """The file of an automaton, not read yet."""
    if _is_file(name):
        return TypestateSource(name, read_typestate_text(name))
    bundled = name.removesuffix(SUFFIX)
    if bundled in library_names():
        text = (_FOLDER / f"{bundled}{SUFFIX}").read_text(encoding="utf-8")
        return TypestateSource(f"{bundled}{SUFFIX}", text)
    raise UsageError(f"there is no property file '{name[:100]}'", f"a path, or one of {', '.join(library_names())}")


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False
