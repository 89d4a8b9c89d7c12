"""The semantics overlay: what SLEIGH leaves undefined, stale or wrong, corrected as data.

Each defect is one entry of `data/<family>.toml` with the evidence for it:

    [[defect]]
    id = "div-error"                        # unique; the tests are keyed by it
    isa = ["x86-32"]                        # optional: default all instruction sets of the family
    mnemonic = "I?DIV"                      # regular expression, whole SLEIGH mnemonic, case-insensitive
    word = "divw"                           # optional regular expression, name of the checked encoding (below)
    operands = "..."                        # optional regular expression, whole operand text
    bytes = "..."                           # optional regular expression, prefix of the hexadecimal bytes
    mode = 0                                # optional: only in this decoding mode
    evidence = "where the manual says so, and what SLEIGH does instead"
    bind = { divisor = "INT_DIV.in1" }      # optional names for varnodes of existing operations
    place = "before INT_DIV"                # start | end | whole | loads | before S | after S | instead of S | from S
                                            # (loads: all that follows the last load is replaced)
    code = '''...'''                        # textual P-code, see snippet.py
    undefined = ["AF"]                      # registers that become fresh values at the end
    zero_extend = true                      # 32-bit general register results clear the upper half (x86-64)
    unsupported = "reason"                  # fail closed
    guards_division = true                  # this entry makes a zero divisor impossible
    form = "lanes"                          # optional: lines around the code, from [form]

A selector S is OPCODE, OPCODE#n (n-th, from 0; negative: from the end) or OPCODE#last; in `bind` it is followed by .in0
.in1 .in2 or .out. `operand n` in `bind` is the n-th operand (from 0): a register, or what the only load loads.
Entries apply in file order, each to the result of the one before. A division that no entry guards gets a TRAP
`unsupported` for a zero divisor: P-code does not say what it means.

CALLOTHER operations not listed under [callother] (value "nop" or "trap KIND") are unsupported.

A file for fixed 32-bit words may list the encodings that were reviewed and tested, one per line:

    checked = '''
    lwzu  100001 ttttt aaaaa dddddddddddddddd  if a != 0 and a != t
    '''

0 and 1 must match, a letter names a field, a condition on the fields may follow. Any other word is unsupported before
SLEIGH sees it, so that reserved bits, invalid forms and untested instructions fail closed. An entry's `word` is a
regular expression for the name of the encoding (SLEIGH's mnemonics are aliases that depend on the operands), and its
code may use the fields as constants ($a, $t).

Code may repeat lines and work on lanes of vectors, and a file may define instructions as a whole, whose SLEIGH P-code
and defects are then ignored: see template.py.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from mcveto.late_methods import dataclass

from ..faults import FaultKind, Unsupported
from ..pcode import DIVISIONS, FreshOrigin, Op, Space, Varnode
from .encoding import read_encoding
from .snippet import TEMPORARY_BASE, SnippetAssembler, SnippetError
from .table import DATA, IsaRow
from .template import Definition, expand, in_form, read_definition

_FIELDS = {
    "id",
    "isa",
    "mnemonic",
    "operands",
    "bytes",
    "word",
    "mode",
    "evidence",
    "bind",
    "place",
    "code",
    "undefined",
    "zero_extend",
    "unsupported",
    "guards_division",
    "form",
}
_MEMORY_TEMPORARIES = TEMPORARY_BASE << 2
_GUARD_TEMPORARY = Varnode(Space.UNIQUE, TEMPORARY_BASE - 64, 1)


class LazyPattern:
    """A regular expression that ignores case, compiled when it is first needed: most never are."""

    __slots__ = ("_compiled", "_words", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled: re.Pattern[str] | None = None
        # Names to choose from need no expression at all.
        plain = pattern.replace("|", "").isalnum()
        self._words = frozenset(pattern.lower().split("|")) if plain else None

    def fullmatch(self, text: str) -> bool:
        if self._words is not None:
            return text.lower() in self._words
        return self._expression().fullmatch(text) is not None

    def match(self, text: str) -> bool:
        return self._expression().match(text) is not None

    def _expression(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, re.IGNORECASE)
        return self._compiled


@dataclass(frozen=True, slots=True)
class Defect:
    id: str
    mnemonic: LazyPattern
    operands: LazyPattern | None
    encoding: LazyPattern | None
    word: LazyPattern | None
    mode: int | None
    evidence: str
    bind: tuple[tuple[str, str], ...]
    place: str
    code: str
    undefined: tuple[str, ...]
    zero_extend: bool
    unsupported: str
    guards_division: bool

    def matches(self, mnemonic: str, operands: str, code: bytes, word: str, mode: int) -> bool:
        return (
            (self.mode is None or self.mode == mode)
            and self.mnemonic.fullmatch(mnemonic)
            and (self.word is None or self.word.fullmatch(word))
            and (self.operands is None or self.operands.fullmatch(operands))
            and (self.encoding is None or self.encoding.match(code.hex()))
        )


class Overlay:
    def __init__(self, row: IsaRow, assembler: SnippetAssembler, registers: dict[str, Varnode]) -> None:
        raw = _load(row.overlay)
        self.callother: dict[str, str] = dict(raw.get("callother", {}))
        self._row = row
        self._assembler = assembler
        self._registers = registers
        self.defects = [
            _read(entry, raw.get("form", {}))
            for entry in raw.get("defect", [])
            if row.name in entry.get("isa", [row.name])
        ]
        self._candidates: dict[str, tuple[Defect, ...]] = {}
        self.definitions: list[Definition] = [
            read_definition(entry, raw.get("form", {})) for entry in raw.get("instruction", [])
        ]
        self.checked = [read_encoding(line) for line in raw.get("checked", "").strip().splitlines()]
        # By the six bits that are the major opcode on the machines concerned; only to search less.
        self._by_opcode = [
            [encoding for encoding in self.checked if (opcode << 26 ^ encoding.value) & encoding.mask & 63 << 26 == 0]
            for opcode in range(64)
        ]

    def forget(self) -> None:
        """Forgets which entries concern which mnemonic; to be called when `defects` was changed."""
        self._candidates.clear()

    def checked_encoding(self, code: bytes) -> tuple[str, dict[str, Varnode]]:
        """Name and fields of the checked encoding `code` starts with; raises Unsupported if listed ones do not fit."""
        if not self.checked:
            return "", {}
        word = int.from_bytes(code[:4], "big" if self._row.big_endian else "little")
        for encoding in self._by_opcode[word >> 26]:
            if encoding.matches(word):
                return encoding.name, encoding.constants(word)
        raise Unsupported(f"instruction word {word:#010x}, not among the checked encodings")

    def apply(self, ops: list[Op], mnemonic: str, operands: str, code: bytes, mode: int = 0) -> list[Op]:
        """The corrected operations of one instruction; raises Unsupported where the overlay says so."""
        candidates = self._candidates.get(mnemonic)
        if candidates is None:
            candidates = tuple(d for d in self.defects if d.mnemonic.fullmatch(mnemonic))
            self._candidates[mnemonic] = candidates
        word, fields = self.checked_encoding(code)
        definition = self._definition(code)
        if definition is not None:
            return definition
        ops = _with_explicit_memory(ops, self._row.address_bytes)
        guarded = False
        for number, defect in enumerate(candidates):
            if not defect.matches(mnemonic, operands, code, word, mode):
                continue
            if defect.unsupported:
                raise Unsupported(f"{defect.unsupported} ({mnemonic} {operands})")
            if defect.code:
                ops = self._splice(ops, defect, 16 * number, fields, mnemonic, operands, code)
            for name in defect.undefined:
                register = self._registers[name]
                zero = Varnode(Space.CONST, 0, register.size)
                origin = Varnode(Space.CONST, FreshOrigin.UNDEFINED, 1)
                ops = [*ops, Op("FRESH", register, (zero, origin))]
                if name in self._row.one_bit:
                    one = Varnode(Space.CONST, 1, register.size)
                    ops.append(Op("INT_AND", register, (register, one)))
            if defect.zero_extend:
                ops = self._zero_extended(ops)
            guarded = guarded or defect.guards_division
        return ops if guarded else _with_division_guards(ops)

    def _definition(self, code: bytes) -> list[Op] | None:
        """The operations of an instruction that the data file defines as a whole."""
        if not self.definitions:
            return None
        word = int.from_bytes(code[:4], "big" if self._row.big_endian else "little")
        for definition in self.definitions:
            if definition.encoding.matches(word):
                return self._assembler.assemble(definition.expanded(word), {})
        return None

    def _splice(
        self,
        ops: list[Op],
        defect: Defect,
        first_temporary: int,
        fields: dict[str, Varnode],
        mnemonic: str,
        operands: str,
        code: bytes,
    ) -> list[Op]:
        bound = dict(fields)
        for name, selector in defect.bind:
            if selector.startswith("operand "):
                bound[name] = self._operand(ops, operands, int(selector.removeprefix("operand ")), defect)
                continue
            where, _, slot = selector.rpartition(".")
            op = ops[_find(ops, where, defect)]
            varnode = op.output if slot == "out" else op.inputs[int(slot.removeprefix("in"))]
            if varnode is None:
                raise Unsupported(f"overlay {defect.id}: {selector} has no value")
            bound[name] = varnode
        names: dict[str, int | str] = {"mnemonic": mnemonic, "last": code[-1]}
        try:
            added = self._assembler.assemble(expand(defect.code, names), bound, first_temporary)
        except SnippetError:
            raise Unsupported(f"overlay {defect.id} does not fit this form") from None
        where, _, selector = defect.place.rpartition(" ")
        if defect.place == "whole":
            return added
        if defect.place == "loads":
            loads = [index + 1 for index, op in enumerate(ops) if op.opcode == "LOAD"]
            return replaced(ops, loads[-1] if loads else 0, len(ops), added)
        if defect.place == "start":
            return replaced(ops, 0, 0, added)
        if defect.place == "end":
            return replaced(ops, len(ops), len(ops), added)
        at = _find(ops, selector, defect)
        first, last = {
            "before": (at, at),
            "after": (at + 1, at + 1),
            "instead of": (at, at + 1),
            "from": (at, len(ops)),
        }[where]
        return replaced(ops, first, last, added)

    def _operand(self, ops: list[Op], operands: str, number: int, defect: Defect) -> Varnode:
        texts = [text.strip() for text in operands.split(",")]
        register = self._registers.get(texts[number]) if number < len(texts) else None
        if register is not None:
            return register
        loaded = [op.output for op in ops if op.opcode == "LOAD"]
        if len(loaded) != 1 or loaded[0] is None:
            raise Unsupported(f"overlay {defect.id} does not fit this form")
        return loaded[0]

    def _zero_extended(self, ops: list[Op]) -> list[Op]:
        wide = {self._registers[name].offset: self._registers[name] for name in self._row.general}
        written = {
            op.output.offset
            for op in ops
            if op.output is not None and op.output.space is Space.REGISTER and op.output.size == 4
        }
        extensions = [
            Op("INT_ZEXT", wide[offset], (Varnode(Space.REGISTER, offset, 4),))
            for offset in sorted(written & wide.keys())
        ]
        return [*ops, *extensions]


def _load(family: str) -> dict[str, Any]:
    """The family's data file, after the tables of the file it names under `definitions`."""
    raw = tomllib.loads((DATA / f"{family}.toml").read_text())
    if "definitions" in raw:
        more = tomllib.loads((DATA / f"{raw['definitions']}.toml").read_text())
        raw |= {**more, "defect": more.get("defect", []) + raw["defect"]}
    return raw


def _read(entry: dict[str, Any], forms: dict[str, str]) -> Defect:
    unknown = entry.keys() - _FIELDS
    if unknown:
        raise ValueError(f"overlay entry {entry.get('id')} has unknown fields {sorted(unknown)}")

    def pattern(name: str) -> LazyPattern | None:
        return LazyPattern(entry[name]) if name in entry else None

    mnemonic = pattern("mnemonic") or (LazyPattern(".*") if "word" in entry else None)
    if mnemonic is None or not entry.get("evidence"):
        raise ValueError(f"overlay entry {entry.get('id')} needs a mnemonic (or word) and evidence")
    return Defect(
        id=entry["id"],
        mnemonic=mnemonic,
        operands=pattern("operands"),
        encoding=pattern("bytes"),
        word=pattern("word"),
        mode=entry.get("mode"),
        evidence=entry["evidence"],
        bind=tuple(entry.get("bind", {}).items()),
        place=entry.get("place", "end"),
        code=in_form(entry.get("code", ""), entry.get("form", ""), forms),
        undefined=tuple(entry.get("undefined", ())),
        zero_extend=entry.get("zero_extend", False),
        unsupported=entry.get("unsupported", ""),
        guards_division=entry.get("guards_division", False),
    )


def _find(ops: list[Op], selector: str, defect: Defect) -> int:
    opcode, _, which = selector.partition("#")
    found = [index for index, op in enumerate(ops) if op.opcode == opcode]
    number = -1 if which == "last" else int(which or 0)
    if not found or not -len(found) <= number < len(found):
        raise Unsupported(f"overlay {defect.id} does not fit this form")
    return found[number]


def _with_explicit_memory(ops: list[Op], address_bytes: int) -> list[Op]:
    """`ops` with operands at constant addresses loaded and stored: entries see one form of memory access."""
    serial = 0
    index = 0
    while index < len(ops):
        op = ops[index]
        jumps = op.opcode in ("BRANCH", "CBRANCH", "CALL")
        around: tuple[list[Op], list[Op]] = ([], [])
        inputs = list(op.inputs)
        output = op.output
        for position, varnode in enumerate(inputs):
            if varnode.space is Space.RAM and not (jumps and position == 0):
                inputs[position] = Varnode(Space.UNIQUE, _MEMORY_TEMPORARIES + 64 * serial, varnode.size)
                around[0].append(Op("LOAD", inputs[position], (Varnode(Space.CONST, varnode.offset, address_bytes),)))
                serial += 1
        if output is not None and output.space is Space.RAM:
            address = Varnode(Space.CONST, output.offset, address_bytes)
            output = Varnode(Space.UNIQUE, _MEMORY_TEMPORARIES + 64 * serial, output.size)
            around[1].append(Op("STORE", None, (address, output)))
            serial += 1
        if around[0] or around[1]:
            added = [*around[0], Op(op.opcode, output, tuple(inputs)), *around[1]]
            ops = replaced(ops, index, index + 1, added)
            index += len(added)
        else:
            index += 1
    return ops


def replaced(ops: list[Op], first: int, last: int, added: list[Op]) -> list[Op]:
    """`ops` with [first, last) replaced; relative branches of `ops` keep their destinations.

    A branch to the first replaced position lands on the first added operation, so that a guard put before an
    operation is never jumped over.
    """
    growth = len(added) - (last - first)
    moved: list[Op] = []
    for index, op in enumerate(ops):
        if first <= index < last:
            continue
        here = index if index < first else index + growth
        if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.CONST:
            target = index + signed(op.inputs[0])
            if first < target < last:
                raise Unsupported("overlay replaces the target of a branch within the instruction")
            there = target if target <= first else target + growth
            jump = op.inputs[0]._replace(offset=(there - here) & ((1 << 8 * op.inputs[0].size) - 1))
            op = Op(op.opcode, op.output, (jump, *op.inputs[1:]))
        moved.append(op)
    return [*moved[:first], *added, *moved[first:]]


def signed(varnode: Varnode) -> int:
    """The constant a varnode holds, read as a signed number."""
    sign = 1 << (8 * varnode.size - 1)
    return (varnode.offset ^ sign) - sign


def _with_division_guards(ops: list[Op]) -> list[Op]:
    guards = [index for index, op in enumerate(ops) if op.opcode in DIVISIONS]
    for index in reversed(guards):
        divisor = ops[index].inputs[1]
        if divisor.space is Space.CONST and divisor.offset != 0:
            continue
        zero = Varnode(Space.CONST, 0, divisor.size)
        kind = Varnode(Space.CONST, FaultKind.UNSUPPORTED, 1)
        guard = [
            Op("INT_EQUAL", _GUARD_TEMPORARY, (divisor, zero)),
            Op("TRAP", None, (kind, _GUARD_TEMPORARY)),
        ]
        ops = replaced(ops, index, index, guard)
    return ops
