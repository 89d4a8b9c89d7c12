"""The parts of a certificate that are about procedures (see `check.procedures`)."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of the file; a key that is not known is an error."""


class Frame(Record):
    """Memory that an activation keeps: below the address `below`, and from `above` bytes over the stack pointer it
    begins with on; but not the ranges `written` (start and end)."""

    below: str
    above: str
    written: tuple[tuple[str, str], ...] = ()


class Procedure(Record):
    """Activations that begin at `pc`: what they require, ensure and keep.

    Conditions are as in locations; `|expected return|` is the address that the activation is to return to, and in
    `ensures` names that start with `after` speak of the state behind the return."""

    pc: str
    requires: tuple[str, ...]
    ensures: tuple[str, ...]
    frame: Frame | None
