"""The library models: which there are, what they assume, and their text as a module of the While language."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mcveto.late_methods import dataclass

if TYPE_CHECKING:  # the language is loaded where a model is used
    from mcveto.whilelang.syntax import Module, Procedure


@dataclass(frozen=True, slots=True)
class Model:
    """`ends`: the function never returns; `heap`: it needs the heap's region; `same_as`: another name for it;
    `wide`: its result has 64 bits also where words have 32, and fits into one; `ctype`: it needs the tables of
    characters."""

    name: str
    assumes: tuple[str, ...]
    ends: bool = False
    heap: bool = False
    same_as: str | None = None
    wide: bool = False
    ctype: bool = False


FILES = ("library.w", "models.toml")


def source(name: str) -> str:
    """The text of one of the files of which the models are made."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def models() -> dict[str, Model]:
    """Every model by the name of its function."""
    raw = tomllib.loads(source("models.toml"))
    return {
        name: Model(
            name,
            tuple(item.get("assumes", ())),
            item.get("ends", False),
            item.get("heap", False),
            item.get("same_as"),
            item.get("wide", False),
            item.get("ctype", False),
        )
        for name, item in raw.items()
    }


@cache
def library(bits: int) -> Module:
    """The models' procedures in numbers of an address's width."""
    from mcveto.whilelang.parser import parse

    return parse(source("library.w"), "library.w", f"u{bits}")


def procedure(name: str, bits: int) -> Procedure:
    return library(bits).procedure(name)
