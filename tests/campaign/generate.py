"""Random programs: a main part and up to three functions, made of the features that verifiers get wrong.

Whether the target can be reached is left to chance, except for the last check: it compares a register with a constant
that is taken from the values the register can have there (violated) or from right beside them (safe unless something
else is wrong), so that both answers are frequent and neither is easy.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from . import encode_arm, encode_powerpc, encode_riscv, encode_x86
from .items import CONDITIONS, DATA, Encoder, Item, assemble
from .subject import Subject, program_of
from .truth import Executor, all_runs

_MODULES = (encode_x86, encode_powerpc, encode_riscv, encode_arm)
ENCODERS: dict[str, Encoder] = {isa: encoder for module in _MODULES for isa, encoder in module.ENCODERS.items()}
_NATIVE = {isa: module.native for module in _MODULES for isa in module.ENCODERS}
_SET_FLAGS = {isa: module.SET_FLAGS for module in _MODULES for isa in module.ENCODERS}
ISAS = tuple(ENCODERS)
# Where in the code of `set` its lowest byte (RISC-V: bits 4-11 of the constant) can be overwritten.
_PATCH = {"x86-32": 1, "x86-64": 1, "ppc32-be": 7, "riscv32": 7, "riscv64": 7, "arm": 0}
_CHECK = "check"
_SCRATCH_AREA = 0x40
# So many programs are made to find one in which register 0 has so many values at the last check.
_ATTEMPTS, _DIFFERENT = 4, 4
# Runs that are looked at to choose the program, and then the constant of its last check.
_SAMPLE, _ALL = 64, 1100


@dataclass(frozen=True)
class RandomProgram:
    isa: str
    items: tuple[Item, ...]
    writable: bool
    input_bytes: int
    input_bits: int
    flavour: str

    def subject(self) -> Subject:
        code, _ = assemble(ENCODERS[self.isa], self.items)
        return Subject(self.isa, code, self.writable, self.input_bytes, self.input_bits)


class _Generator:
    def __init__(self, rng: random.Random, isa: str) -> None:
        self.rng = rng
        self.isa = isa
        self._names = count()
        self.functions: list[Item] = []
        self.writable = False
        self.calls_input = rng.random() < 0.4
        self.input_bytes = 0 if self.calls_input and rng.random() < 0.8 else 1
        self.input_bits = 0 if not self.calls_input else 3 if self.input_bytes else rng.choice((3, 4, 4, 5))
        self._inputs_left = 0 if not self.calls_input else 1 if self.input_bytes else 2
        self._loops = 0

    def name(self) -> str:
        return f"L{next(self._names)}"

    def register(self) -> int:
        return self.rng.randrange(4)

    def constant(self) -> int:
        rng = self.rng
        return rng.choice((0, 1, 2, 3, rng.randrange(16), rng.randrange(256), 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))

    def native(self) -> Item:
        return ("native", _NATIVE[self.isa](self.rng, self.isa))

    def arithmetic(self, registers: tuple[int, ...] = (0, 1, 2, 3)) -> Item:
        """One instruction that writes one of the registers."""
        rng = self.rng
        target, source = rng.choice(registers), self.register()
        kind = rng.randrange(10)
        if kind < 4:
            return (rng.choice(("add", "sub", "and", "or", "xor", "mul", "add", "xor")), target, source)
        if kind < 7:
            return (rng.choice(("addi", "andi", "ori", "xori")), target, rng.randrange(128))
        if kind < 8:
            return (rng.choice(("shl", "shr", "sar")), target, rng.randrange(1, 9))
        return ("move", target, source) if kind == 8 else ("addi", target, -rng.randrange(1, 100))

    def straight(self, registers: tuple[int, ...] = (0, 1, 2, 3)) -> list[Item]:
        if len(registers) == 4:
            return [
                self.native() if self.rng.random() < 0.4 else self.arithmetic() for _ in range(self.rng.randrange(1, 5))
            ]
        return [self.arithmetic(registers) for _ in range(self.rng.randrange(1, 4))]

    def input(self) -> list[Item]:
        register = self.register()
        if self._inputs_left and (self.rng.random() < 0.7 or not self.input_bytes):
            self._inputs_left -= 1
            return [("input", register)]
        if self.input_bytes:
            return [("read", register, self.rng.randrange(self.input_bytes))]
        return [("read", register, _SCRATCH_AREA)]

    def branch(self, name: str) -> Item:
        rng = self.rng
        kind = rng.randrange(8)
        if kind == 0:
            return ("flag", rng.randrange(16), name)
        if kind < 4:
            return ("if", rng.choice(CONDITIONS), self.register(), self.register(), name)
        return ("ifi", rng.choice(CONDITIONS), self.register(), self.constant(), name)

    def condition(self, depth: int) -> list[Item]:
        other, end = self.name(), self.name()
        one, two = self.some(depth - 1), self.some(depth - 1) if self.rng.random() < 0.5 else []
        return [self.branch(other), *one, ("jump", end), ("label", other), *two, ("label", end)]

    def loop(self, depth: int) -> list[Item]:
        """Counts a register (or a byte of memory) down; the body leaves it alone."""
        rng = self.rng
        start = self.name()
        at_most = rng.choice((1, 3, 7, 7, 15))
        setup: list[Item] = (
            [*self.input(), ("move", 3, self.register())] if rng.random() < 0.7 else [("set", 3, at_most)]
        )
        if rng.random() < 0.3 and self._loops == 0:
            self._loops += 1
            cell = _SCRATCH_AREA + 0x30 + rng.randrange(8)
            body = self.some(depth - 1)
            down: list[Item] = [("read", 3, cell), ("addi", 3, -1), ("write", 3, cell), ("ifi", "ne", 3, 0, start)]
            first: list[Item] = [("andi", 3, at_most), ("addi", 3, 1), ("write", 3, cell)]
            return [*setup, *first, ("label", start), *body, *down]
        body = self.straight((0, 1, 2))
        if rng.random() < 0.4:
            skip = self.name()
            body += [
                ("ifi", rng.choice(CONDITIONS), rng.randrange(3), self.constant(), skip),
                *self.straight((0, 1, 2)),
            ]
            body.append(("label", skip))
        head: list[Item] = [("andi", 3, at_most), ("addi", 3, 1), ("label", start)]
        if rng.random() < 0.5:
            return [*setup, *head, *body, ("addi", 3, -1), ("ifi", "ne", 3, 0, start)]
        limit = rng.randrange(1, at_most + 4)
        return [*setup, *head, *body, ("addi", 3, 1), ("ifi", rng.choice(("ltu", "lt")), 3, limit, start)]

    def call(self, depth: int) -> list[Item]:
        """A call of a new function, or two of the same."""
        name = self.name()
        self.functions += [("label", name), ("enter",), *self.some(depth - 1), ("leave",)]
        if self.rng.random() < 0.3:
            register = self.register()
            return [("addr", register, name, 0), ("callr", register)]
        again: list[Item] = [*self.straight(), ("call", name)] if self.rng.random() < 0.4 else []
        return [("call", name), *again]

    def recursion(self, depth: int) -> list[Item]:
        name, end = self.name(), self.name()
        before, after = self.straight((0, 1, 2)), self.straight((0, 1, 2))
        self.functions += [("label", name), ("enter",), ("ifi", "eq", 3, 0, end), ("addi", 3, -1), *before]
        self.functions += [("call", name), *after, ("label", end), ("leave",)]
        return [*self.input(), ("move", 3, self.register()), ("andi", 3, self.rng.choice((1, 3, 7))), ("call", name)]

    def pointer(self, depth: int) -> list[Item]:
        """A store through an address that depends on a register, and a load from a fixed place."""
        rng = self.rng
        size = rng.choice((8, 16, 32))
        a, b, c = rng.sample(range(4), 3)
        area = DATA + _SCRATCH_AREA
        mask = (
            rng.choice((4, 12, 28, 60))
            if size == 32
            else rng.choice((6, 14, 30))
            if size == 16
            else rng.choice((3, 7, 31))
        )
        bound: list[Item] = [] if rng.random() < 0.15 and size == 8 else [("andi", b, mask)]
        store: list[Item] = [*bound, ("set", c, area), ("add", c, b), (f"store{size}", a, c, 0)]
        load: list[Item] = [("set", c, area), (f"load{rng.choice((8, 32))}", b, c, 4 * rng.randrange(8))]
        return [*store, *self.straight(), *load]

    def computed(self, depth: int) -> list[Item]:
        """A jump table; sometimes the index reaches beyond it."""
        rng = self.rng
        table, end = self.name(), self.name()
        a, b = rng.sample(range(4), 2)
        cases = [self.name() for _ in range(rng.choice((2, 4)))]
        mask = len(cases) - 1 if rng.random() < 0.85 else 2 * len(cases) - 1
        items: list[Item] = [*self.input(), ("move", b, self.register()), ("andi", b, mask), ("shl", b, 3)]
        items += [("addr", a, table, 0), ("add", a, b), ("jumpr", a), ("label", table)]
        items += [("slot", name) for name in cases]
        for name in cases:
            items += [("label", name), *self.straight(), ("jump", end)]
        return [*items, ("label", end)]

    def modification(self, depth: int) -> list[Item]:
        """Overwrites the constant of an instruction, or a whole instruction, before or after it first runs."""
        rng = self.rng
        self.writable = True
        patched = self.name()
        a, b = rng.sample(range(4), 2)
        if rng.random() < 0.5:
            value: list[Item] = [("andi", a, rng.choice((1, 7, 63)))] if rng.random() < 0.8 else []
            write: list[Item] = [*value, ("addr", b, patched, _PATCH[self.isa]), ("store8", a, b, 0)]
            victim: list[Item] = [("label", patched), ("set", rng.randrange(4), rng.choice((0, 5, 200)))]
        else:
            other, over = self.name(), self.name()
            same = "load8", "store8"
            if not self.isa.startswith("x86"):
                same = "load32", "store32"
            kinds = ("add", "or", "and", "sub", "xor")
            target, source = self.register(), self.register()
            write = [("jump", over), ("label", other), (rng.choice(kinds), target, source), ("label", over)]
            write += [("addr", b, other, 1 if self.isa == "x86-64" else 0), (same[0], a, b, 0)]
            write += [("addr", b, patched, 1 if self.isa == "x86-64" else 0), (same[1], a, b, 0)]
            victim = [("label", patched), (rng.choice(kinds), target, source)]
        skip = self.name()
        guarded = [self.branch(skip), *write, ("label", skip)] if rng.random() < 0.6 else write
        if rng.random() < 0.3:
            return [*victim, *guarded, *self.straight()]
        if rng.random() < 0.3 and self._loops == 0:
            self._loops += 1
            cell, again = _SCRATCH_AREA + 0x38, self.name()
            down: list[Item] = [("read", 3, cell), ("addi", 3, 1), ("write", 3, cell), ("ifi", "ltu", 3, 3, again)]
            return [("label", again), *victim, *guarded, *down]
        return [*guarded, *self.straight()[:1], *victim]

    def smash(self, depth: int) -> list[Item]:
        """A function that overwrites its return address: with where it goes anyway, or elsewhere, or sometimes."""
        rng = self.rng
        name, back, skip = self.name(), self.name(), self.name()
        where = rng.choice((back, back, "target", self.name()))
        a = self.register()
        body: list[Item] = [self.branch(skip), ("addr", a, where, 0), ("smash", a, rng.choice((0, 0, 0, 1, 2)))]
        self.functions += [("label", name), ("enter",), *self.straight(), *body, ("label", skip), ("leave",)]
        return [("call", name), ("label", back)]

    def check(self) -> list[Item]:
        return [("ifi", "eq", self.register(), self.rng.randrange(256), "target")]

    def some(self, depth: int) -> list[Item]:
        if depth <= 0:
            return self.straight()
        items: list[Item] = []
        for _ in range(self.rng.randrange(1, 3)):
            items += self.feature(depth)
        return items

    def feature(self, depth: int) -> list[Item]:
        simple = (lambda _: self.straight(), lambda _: self.input(), self.condition, self.condition, self.pointer)
        if depth < 2:
            return self.rng.choice(simple)(depth)
        rich: tuple[Callable[[int], list[Item]], ...] = tuple(FLAVOURS[name].__get__(self) for name in FLAVOURS)
        return self.rng.choice((*simple, *rich))(depth)

    def program(self, flavour: str) -> RandomProgram:
        rng = self.rng
        start: list[Item] = [("native", _SET_FLAGS[self.isa])]
        start += [("set", register, self.constant()) for register in range(4)]
        body = [*self.input(), *self.some(1)] if rng.random() < 0.6 else self.input()
        body += FLAVOURS[flavour].__get__(self)(2)
        if rng.random() < 0.5:
            body += self.feature(2)
        if rng.random() < 0.2:
            body += self.check()
        if rng.random() < 0.4:
            body += self.some(1)
        last: list[Item] = [("label", _CHECK), ("ifi", "eq", 0, 0, "target"), ("jump", "halt")]
        items = [*start, *body, *last, *self.functions]
        return RandomProgram(self.isa, tuple(items), self.writable, self.input_bytes, self.input_bits, flavour)


def _values_at_check(program: RandomProgram, runs: int) -> Counter[int]:
    """The values register 0 has at the last check, for some inputs or for all."""
    _, labels = assemble(ENCODERS[program.isa], program.items)
    loaded = program_of(program.subject())
    values = Counter[int]()
    for _, result in all_runs(loaded, Executor(loaded, labels[_CHECK]), runs):
        if result.kind == "stop":
            values[result.first_register & 0xFFFFFFFF] += 1
    return values


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _with_check(rng: random.Random, program: RandomProgram, values: Counter[int]) -> RandomProgram:
    """Chooses the last check: one that few of the values pass, or one that none passes but only just."""
    ordered = sorted(values) or [0]
    signed = sorted(map(_signed, ordered))
    rarest = min(values.values(), default=0)
    if rng.random() < 0.4:
        rare = [value for value in ordered if values[value] == rarest]
        passes = [("eq", rng.choice(rare)), ("geu", ordered[-1]), ("ltu", ordered[0] + 1)]
        passes += [("ge", signed[-1]), ("lt", signed[0] + 1)]
        condition, chosen = rng.choice((passes[0], *passes))
    else:
        near = (value & 0xFFFFFFFF for v in ordered for value in (v - 1, v + 1, v ^ 0x80))
        beside = [value for value in near if value not in values] or [ordered[0]]
        fails = [("ltu", ordered[0]), ("geu", ordered[-1] + 1), ("lt", signed[0]), ("ge", signed[-1] + 1)]
        condition, chosen = rng.choice((*(("eq", rng.choice(beside)) for _ in range(4)), *fails))
    at = program.items.index(("label", _CHECK)) + 1
    check: Item = ("ifi", condition, 0, chosen & 0xFFFFFFFF, "target")
    return replace(program, items=(*program.items[:at], check, *program.items[at + 1 :]))


FLAVOURS: dict[str, Callable[[_Generator, int], list[Item]]] = {
    "arithmetic": lambda generator, depth: [*generator.straight(), *generator.condition(1), *generator.straight()],
    "loop": _Generator.loop,
    "call": _Generator.call,
    "recursion": _Generator.recursion,
    "pointer": _Generator.pointer,
    "computed": _Generator.computed,
    "modification": _Generator.modification,
    "smash": _Generator.smash,
}


def random_program(isa: str, seed: int) -> RandomProgram:
    """The program of a seed, always the same one; of a few, the first in which the inputs matter."""
    rng = random.Random(f"{isa}/{seed}")
    flavour = rng.choice(tuple(FLAVOURS))
    candidates: list[tuple[RandomProgram, Counter[int]]] = []
    for _ in range(_ATTEMPTS):
        program = _Generator(rng, isa).program(flavour)
        candidates.append((program, _values_at_check(program, _SAMPLE)))
        if len(candidates[-1][1]) >= _DIFFERENT:
            break
    program, _ = max(candidates, key=lambda candidate: len(candidate[1]))
    return _with_check(rng, program, _values_at_check(program, _ALL))
