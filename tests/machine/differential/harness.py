"""Differential testing of the machine's semantics, for any instruction set and any oracle.

One execution is a `Case`: an instruction and a random state. We run it in our interpreter and in an oracle (an emulator
or a processor) and compare registers, memory, next program counter and fault. What the architecture leaves undefined
is found, not listed: where our semantics asked for a fresh value the case is run again with all-zero and all-one
answers, and bits of the outcome that change are set aside.

The memory map of every case is the same: code, a data region that registers like to point into, and a read-only
region above it; everything else is unmapped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from mcveto.machine.concrete import ConcreteDomain, FreshSource, usual_value
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import Decoder, decoder_for
from mcveto.machine.memory import EXECUTE, READ, WRITE, Memory, RegionSpec
from mcveto.machine.pcode import FreshOrigin, Instruction

CODE, CODE_SIZE = 0x20000000, 0x1000
DATA, DATA_SIZE = 0x20100000, 0x1000
READ_ONLY, READ_ONLY_SIZE = DATA + DATA_SIZE, 0x1000
MAX_REPEATS = 80

_MEMORY_FAULTS = frozenset(
    {
        FaultKind.UNMAPPED_READ,
        FaultKind.UNMAPPED_WRITE,
        FaultKind.READ_PERMISSION,
        FaultKind.WRITE_PERMISSION,
    }
)
# Different oracles report an access outside memory in different ways (kind, order of two bad accesses).
MEMORY_FAULT = "memory"


@dataclass(frozen=True, slots=True)
class Case:
    """An instruction and the state to run it in. `repeats`: run until control leaves the instruction (x86 rep)."""

    pc: int
    code: bytes
    registers: Mapping[str, int]
    memory: bytes
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state afterwards, or the fault the instruction ended with (of an oracle also "one|other")."""

    registers: Mapping[str, int]
    memory: bytes
    pc: int
    fault: str = ""


class OracleCannotTell(Exception):
    """The oracle is known to be unable to judge this case; it is skipped and counted."""


class Oracle(Protocol):
    def run(self, case: Case) -> Outcome: ...


def fault_class(fault: Fault) -> str:
    return MEMORY_FAULT if fault.kind in _MEMORY_FAULTS else fault.kind.label


class Emulator:
    """Our side: the interpreter over concrete values."""

    def __init__(self, isa: str, names: Iterable[str]) -> None:
        self.decoder: Decoder = decoder_for(isa)
        self.interpreter: Interpreter[int] = Interpreter(self.decoder)
        self.names = tuple(names)
        self._pieces = {name: self.decoder.layout.named(name) for name in self.names}
        self.bits = {name: sum(piece.bits for piece in pieces) for name, pieces in self._pieces.items()}
        for name, pieces in self._pieces.items():
            if len(pieces) == 1:
                self.bits[name] = min(self.bits[name], self.decoder.layout.significant_bits(pieces[0].cell))
        self._decoded: dict[tuple[int, bytes], Instruction] = {}
        self._read_only = bytes(range(256)) * (READ_ONLY_SIZE // 256)

    def decode(self, case: Case) -> Instruction:
        key = (case.pc, case.code)
        found = self._decoded.get(key)
        if found is None:
            found = self._decoded[key] = self.decoder.decode(case.pc, case.code)
        return found

    def run(self, case: Case, fresh: FreshSource = usual_value) -> Outcome:
        """The outcome of the case; raises Unsupported. A memory fault's address is kept in `last_fault`."""
        instruction = self.decode(case)
        row = self.decoder.row
        memory = Memory(
            [
                RegionSpec("code", CODE, CODE_SIZE, READ | EXECUTE, case.code),
                RegionSpec("data", DATA, DATA_SIZE, READ | WRITE, case.memory),
                RegionSpec("constants", READ_ONLY, READ_ONLY_SIZE, READ, self._read_only),
            ],
            row.address_bits,
            row.big_endian,
        )
        domain = ConcreteDomain(memory, fresh)
        for name, value in case.registers.items():
            self._write(domain, name, value)
        self.last_fault: Fault | None = None
        pc = case.pc
        try:
            for _ in range(MAX_REPEATS if case.repeats else 1):
                target = self.interpreter.execute(instruction, domain).target
                assert isinstance(target, int)
                pc = target
                if pc != case.pc:
                    break
        except Fault as fault:
            self.last_fault = fault
            return Outcome({}, b"", case.pc, fault_class(fault))
        registers = {name: self._read(domain, name) for name in self.names}
        return Outcome(registers, bytes(memory.regions[1].data), pc)

    def _read(self, domain: ConcreteDomain, name: str) -> int:
        value = 0
        for cell, low, bits in self._pieces[name]:
            value = value << bits | domain.registers.get(cell.number, 0) >> low & (1 << bits) - 1
        return value

    def _write(self, domain: ConcreteDomain, name: str, value: int) -> None:
        for cell, low, bits in reversed(self._pieces[name]):
            old = domain.registers.get(cell.number, 0)
            domain.registers[cell.number] = old & ~(((1 << bits) - 1) << low) | (value & (1 << bits) - 1) << low
            value >>= bits


class States:
    """Random states made of the values bugs hide behind."""

    def __init__(self, rng: Random, bits: Mapping[str, int], never_random: Mapping[str, int] | None = None) -> None:
        self._rng = rng
        self._bits = dict(bits)
        self._fixed = dict(never_random or {})
        self._memories = [self._memory() for _ in range(8)]

    def _memory(self) -> bytes:
        content = bytearray(self._rng.randbytes(DATA_SIZE))
        for _ in range(DATA_SIZE // 32):
            at = self._rng.randrange(0, DATA_SIZE, 8)
            content[at : at + 8] = self._rng.choice([b"\0" * 8, b"\xff" * 8, b"\0" * 7 + b"\x80", b"\1" + b"\0" * 7])
        return bytes(content)

    def value(self, bits: int, earlier: list[int]) -> int:
        rng = self._rng
        mask = (1 << bits) - 1
        if bits == 1:
            return rng.getrandbits(1)
        choice = rng.randrange(10)
        if choice < 2:
            value = rng.getrandbits(bits)
        elif choice == 2:
            value = rng.choice([0, 1, -1, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1])
        elif choice == 3:
            value = rng.randrange(-40, 70)
        elif choice == 4:
            value = (1 << rng.randrange(bits)) + rng.randrange(-1, 2)
        elif choice == 5 and earlier:
            value = rng.choice(earlier) + rng.choice([0, 0, 1, -1])
        elif choice == 6:
            value = rng.getrandbits(rng.randrange(1, bits + 1))
        elif bits <= 64:
            value = DATA + rng.randrange(DATA_SIZE) & rng.choice([-1, -16])
        else:
            value = sum(self.value(32, []) << at for at in range(0, bits, 32))
        return value & mask

    def state(self) -> tuple[dict[str, int], bytes]:
        earlier: list[int] = []
        registers: dict[str, int] = {}
        for name, bits in self._bits.items():
            if name in self._fixed:
                registers[name] = self._fixed[name]
                continue
            registers[name] = self.value(bits, earlier)
            if bits > 8:
                earlier.append(registers[name])
        return registers, self._rng.choice(self._memories)


def steered(case: Case, emulator: Emulator, rng: Random, address_registers: tuple[str, ...], tries: int = 6) -> Case:
    """The case with a register moved so that its memory access falls into the data region, if that is easy."""
    for _ in range(tries):
        try:
            outcome = emulator.run(case)
        except Unsupported:
            return case
        fault = emulator.last_fault
        if outcome.fault != MEMORY_FAULT or fault is None or fault.address is None:
            return case
        wanted = DATA + 64 + rng.randrange(0, DATA_SIZE - 128) & rng.choice([-1, -16])
        for name in rng.sample(address_registers, len(address_registers)):
            moved = case.registers[name] + wanted - fault.address & (1 << emulator.bits[name]) - 1
            candidate = replace(case, registers={**case.registers, name: moved})
            try:
                emulator.run(candidate)
            except Unsupported:
                continue
            now = emulator.last_fault
            if now is None or now.address != fault.address:
                case = candidate
                if now is None:
                    return case
                break
        else:
            return case
    return case


@dataclass(slots=True)
class Tally:
    """What came of a run of cases."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    wrong_by_mnemonic: Counter[str] = field(default_factory=Counter)
    closed_by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def executions(self) -> int:
        return self.counts["agree"] + self.counts["undefined"] + self.counts["closed"] + self.counts["wrong"]

    @property
    def agreement(self) -> float:
        """The share of executions that agree outside what is undefined; failing closed does not count as agreeing."""
        return (self.counts["agree"] + self.counts["undefined"]) / max(self.executions, 1)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.wrong += other.wrong
        self.wrong_by_mnemonic += other.wrong_by_mnemonic
        self.closed_by_reason += other.closed_by_reason

    def line(self) -> str:
        c = self.counts
        return (
            f"{self.executions} executions: {c['agree']} agree ({c['both fault']} of them fault on both sides), "
            f"{c['undefined']} agree outside undefined bits, "
            f"{c['closed']} fail closed, {c['wrong']} wrong ({c['skipped']} skipped)"
        )


Excuse = Callable[[Instruction, Case, Outcome], bool]


def judge(case: Case, emulator: Emulator, oracle: Oracle, tally: Tally, excuse: Excuse | None = None) -> str:
    """Runs one case on both sides and files it; returns the verdict.

    `excuse` says, given the instruction, the case and our outcome, where this oracle is known to contradict the manual
    or to be unable to tell: such cases are skipped and counted.
    """
    asked: list[int] = []

    def usual(bits: int, origin: FreshOrigin, value: int) -> int:
        asked.append(bits)
        return value

    try:
        instruction = emulator.decode(case)
        ours = emulator.run(case, usual)
    except Unsupported as error:
        tally.counts["closed"] += 1
        tally.closed_by_reason[error.text or error.what] += 1
        return "closed"
    if excuse is not None and excuse(instruction, case, ours):
        tally.counts["skipped"] += 1
        return "skipped"
    try:
        theirs = oracle.run(case)
    except OracleCannotTell:
        tally.counts["skipped"] += 1
        return "skipped"
    found = differences(ours, theirs)
    if found and asked:
        variants = [
            emulator.run(case, lambda bits, origin, value: 0),
            emulator.run(case, lambda bits, origin, value: (1 << bits) - 1),
        ]
        found = [what for what in found if not _undefined(what, ours, theirs, variants)]
        if not found:
            tally.counts["undefined"] += 1
            return "undefined"
    if not found:
        tally.counts["agree"] += 1
        tally.counts["both fault"] += bool(ours.fault)
        return "agree"
    tally.counts["wrong"] += 1
    tally.wrong_by_mnemonic[instruction.mnemonic] += 1
    if len(tally.wrong) < 50:
        tally.wrong.append(_report(instruction, case, ours, theirs, found))
    return "wrong"


def differences(ours: Outcome, theirs: Outcome) -> list[str]:
    """The names of what differs: "fault", "pc", "memory" or registers. The state after a fault is not compared."""
    if ours.fault or theirs.fault:
        return [] if ours.fault in theirs.fault.split("|") else ["fault"]
    found = [name for name, value in theirs.registers.items() if ours.registers[name] != value]
    if ours.pc != theirs.pc:
        found.append("pc")
    if ours.memory != theirs.memory:
        found.append("memory")
    return found


def _undefined(what: str, ours: Outcome, theirs: Outcome, variants: list[Outcome]) -> bool:
    """Whether the difference lies within bits that follow the fresh values."""
    if what == "fault" or any(variant.fault for variant in variants):
        return False
    values = [_number(what, outcome) for outcome in (ours, theirs, *variants)]
    free = (values[2] ^ values[3]) | (values[0] ^ values[2]) | (values[0] ^ values[3])
    return not (values[0] ^ values[1]) & ~free


def _number(what: str, outcome: Outcome) -> int:
    if what == "pc":
        return outcome.pc
    if what == "memory":
        return int.from_bytes(outcome.memory, "little")
    return outcome.registers[what]


def _report(instruction: Instruction, case: Case, ours: Outcome, theirs: Outcome, found: list[str]) -> str:
    lines = [f"{case.code[: instruction.size].hex()} {instruction.text}: {', '.join(found)}"]
    for what in found:
        if what == "fault":
            lines.append(f"  fault: ours {ours.fault or 'none'}, oracle {theirs.fault or 'none'}")
        elif what == "memory":
            at = next(i for i, (a, b) in enumerate(zip(ours.memory, theirs.memory, strict=True)) if a != b)
            ours_bytes, theirs_bytes = ours.memory[at : at + 8].hex(), theirs.memory[at : at + 8].hex()
            before = case.memory[at : at + 8].hex()
            lines.append(f"  memory {DATA + at:#x}: before {before}, ours {ours_bytes}, oracle {theirs_bytes}")
        else:
            before_value = case.pc if what == "pc" else case.registers.get(what, 0)
            mine, other = _number(what, ours), _number(what, theirs)
            lines.append(f"  {what}: before {before_value:#x}, ours {mine:#x}, oracle {other:#x}")
    lines.append("  state: " + " ".join(f"{name}={value:#x}" for name, value in case.registers.items() if value))
    return "\n".join(lines)
