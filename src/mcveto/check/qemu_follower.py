"""qemu-user as the other machine of a replay: programs for other processors than this computer's, as processes.

QEMU loads the file as a kernel would (so that our loader is checked, too) and is single-stepped by its gdb stub. The
file that it is given is a copy with one more segment, a page behind the others with an instruction that makes a system
call: by it the stack is mapped where the entry state has it, in the process's name, before anything runs. After that no
system call is ever stepped over, because the reference emulator executes none; the process has no arguments, no
environment and no open file but /dev/null, and is killed at the end.

Only ELF executables at fixed addresses can be followed, and only where the program `qemu-…` is installed.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from mcveto.check.gdb_remote import Disconnected, GdbRemote
from mcveto.check.lockstep import CannotFollow, Stopped
from mcveto.late_methods import dataclass
from mcveto.machine.emulator import Machine
from mcveto.machine.trace import TraceStep
from mcveto.orphans import die_with
from mcveto.program.program import Program

_START_SECONDS = 20.0
# Following is slower than running: longer than this is not waited for.
_PATIENCE = 20.0
_PAGE = 4096
_LOAD, _READ_EXECUTE = 1, 5
_READ_WRITE, _PRIVATE, _ANONYMOUS = 3, 0x2, 0x20
_MIPS_ANONYMOUS = 0x800


@dataclass(frozen=True, slots=True)
class _Processor:
    """The program, and the numbers that gdb gives its registers. `all_at_once`: they can only be read together."""

    command: str
    numbers: Mapping[str, int]
    bits: Mapping[str, tuple[str, int, int]]
    """Our names of what is part of a register: the register, the lowest bit, how many."""
    call: bytes
    """The instruction that makes a system call."""
    mmap: int
    """The number of the system call that maps memory, and where it is expected; then its arguments and its result."""
    number: str
    arguments: tuple[str, ...]
    all_at_once: bool = False


def _arm(command: str, call: str = "000000ef") -> _Processor:
    numbers = {f"r{i}": i for i in range(13)} | {"sp": 13, "lr": 14, "pc": 15, "cpsr": 25}
    flags = {"NG": 31, "ZR": 30, "CY": 29, "OV": 28, "Q": 27, "GE1": 16, "GE2": 17, "GE3": 18, "GE4": 19}
    bits = {name: ("cpsr", low, 1) for name, low in flags.items()}
    return _Processor(command, numbers, bits, bytes.fromhex(call), 192, "r7", _arguments("r", 0))


def _aarch64() -> _Processor:
    numbers = {f"x{i}": i for i in range(31)} | {"sp": 31, "pc": 32, "cpsr": 33}
    flags = {"NG": 31, "ZR": 30, "CY": 29, "OV": 28}
    bits = {name: ("cpsr", low, 1) for name, low in flags.items()}
    return _Processor("qemu-aarch64", numbers, bits, bytes.fromhex("010000d4"), 222, "x8", _arguments("x", 0))


def _powerpc() -> _Processor:
    numbers = {f"r{i}": i for i in range(32)} | {"pc": 64, "cr": 66, "LR": 67, "CTR": 68, "xer": 69}
    bits = {f"cr{i}": ("cr", 28 - 4 * i, 4) for i in range(8)}
    bits |= {"xer_so": ("xer", 31, 1), "xer_ov": ("xer", 30, 1), "xer_ca": ("xer", 29, 1)}
    return _Processor("qemu-ppc", numbers, bits, bytes.fromhex("44000002"), 192, "r0", _arguments("r", 3))


def _riscv(command: str) -> _Processor:
    names = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc"
    numbers = {name: number for number, name in enumerate(names.split())}
    return _Processor(command, numbers, {}, bytes.fromhex("73000000"), 222, "a7", _arguments("a", 0))


def _mips(command: str, call: str) -> _Processor:
    names = "zero at v0 v1 a0 a1 a2 a3 t0 t1 t2 t3 t4 t5 t6 t7 s0 s1 s2 s3 s4 s5 s6 s7 t8 t9 k0 k1 gp sp s8 ra"
    numbers = {name: number for number, name in enumerate(names.split())} | {"lo": 33, "hi": 34, "pc": 37}
    # The last two arguments are on the stack.
    return _Processor(command, numbers, {}, bytes.fromhex(call), 4210, "v0", _arguments("a", 0)[:4], True)


def _arguments(letter: str, first: int) -> tuple[str, ...]:
    return tuple(f"{letter}{first + i}" for i in range(6))


_PROCESSORS = {
    "arm": _arm("qemu-arm"),
    "arm-be": _arm("qemu-armeb", "ef000000"),
    "arm-be8": _arm("qemu-armeb"),
    "aarch64": _aarch64(),
    "ppc32-be": _powerpc(),
    "riscv32": _riscv("qemu-riscv32"),
    "riscv64": _riscv("qemu-riscv64"),
    "mips32-be": _mips("qemu-mips", "0000000c"),
    "mips32-le": _mips("qemu-mipsel", "0c000000"),
}
COMMANDS = tuple(sorted({processor.command for processor in _PROCESSORS.values()}))
_THUMB_BIT = 5


class QemuFollower:
    name = "qemu"

    def __init__(self, program: Program) -> None:
        self._program = program
        self._row = program.decoder.row
        self._order = ">" if self._row.big_endian else "<"
        self._word = self._row.address_bytes
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._remote: GdbRemote | None = None
        self._until = 0.0

    def begin(self, machine: Machine) -> None:
        image = self._program.image
        processor = _PROCESSORS.get(image.isa)
        if processor is None:
            raise CannotFollow(f"qemu-user is not asked about {image.isa}")
        self._processor = processor
        command = shutil.which(processor.command)
        if command is None:
            raise CannotFollow(f"{processor.command} is not installed")
        if image.format != "elf":
            raise CannotFollow("not an ELF file, which QEMU could run")
        if image.imports:
            raise CannotFollow("the file has imports, for which models of ours stand")
        try:
            content = Path(image.path).read_bytes()
        except OSError as error:
            raise CannotFollow(f"the file cannot be read again: {error.strerror}") from None
        self._folder = tempfile.TemporaryDirectory(prefix="mcveto-qemu-")
        file = Path(self._folder.name) / "program"
        changed, self._call_at, self._patched = _with_call(content, machine, processor.call)
        file.write_bytes(changed)
        file.chmod(0o755)
        self._start(command, file)
        try:
            self._enter(machine)
        except Disconnected as problem:
            raise CannotFollow(f"QEMU cannot hold the program: {problem}") from None

    def _start(self, command: str, file: Path) -> None:
        where = str(file.with_name("gdb"))
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [command, "-g", where, str(file)],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            env={},
            preexec_fn=partial(die_with, os.getpid()),
        )
        until = time.monotonic() + _START_SECONDS
        while self._remote is None:
            if self._process.poll() is not None:
                raise CannotFollow("QEMU does not run the file")
            try:
                self._remote = GdbRemote(where, _START_SECONDS)
            except OSError:
                if time.monotonic() > until:
                    raise CannotFollow("QEMU does not answer") from None
                time.sleep(0.01)

    def _enter(self, machine: Machine) -> None:
        assert self._remote is not None
        self._remote.ask("?")
        # Single registers can only be asked for once the description was.
        self._remote.ask("qXfer:features:read:target.xml:0,400")
        spans = [(segment.address, segment.end) for segment in self._program.image.segments]
        for region in machine.memory.regions:
            if not any(low < region.end and region.start < high for low, high in spans):
                self._map(region.start, region.end - region.start)
                for start in range(0, len(region.data), 1024):
                    part = bytes(region.data[start : start + 1024])
                    if any(part):
                        self._remote.write(region.start + start, part)
                continue
            self._compare(region.start, bytes(region.data))
        self.set_registers({name: machine.read(name) for name in self._names()}, machine.pc)
        self._until = time.monotonic() + _PATIENCE

    def _map(self, start: int, size: int) -> None:
        """Memory at `start`, by a system call of the process."""
        assert self._remote is not None
        known = self._processor
        order = "big" if self._row.big_endian else "little"
        anonymous = _MIPS_ANONYMOUS if self._row.overlay == "mips" else _ANONYMOUS
        minus_one = self._row.address_mask
        arguments = (start, size, _READ_WRITE, _PRIVATE | anonymous, minus_one, 0)
        if len(known.arguments) == 4:
            there = self._raw({"sp"})["sp"] + 16
            self._remote.write(there, b"".join(value.to_bytes(4, order) for value in arguments[4:]))  # type: ignore[arg-type]
        self.set_registers(
            {**dict(zip(known.arguments, arguments, strict=False)), known.number: known.mmap}, self._call_at
        )
        # Some processors go on to what is behind the call, which is no instruction: whatever signal stops them will do.
        self._remote.step()
        result = "v0" if self._row.overlay == "mips" else known.arguments[0]
        if self._raw({result})[result] != start:
            raise CannotFollow(f"QEMU cannot map memory at {start:#x}, where the entry state has it")

    def _compare(self, start: int, ours: bytes) -> None:
        """What QEMU loaded must be what our loader loaded; only what is not the file's is written."""
        assert self._remote is not None
        theirs = self._remote.read(start, len(ours))
        mine = bytearray(ours)
        for low, high in (*self._program.input_memory, *self._program.image.unspecified):
            low, high = max(low, start), min(high, start + len(ours))
            if low < high:
                self._remote.write(low, ours[low - start : high - start])
                mine[low - start : high - start] = theirs[low - start : high - start]
        for at in self._patched:
            if start <= at < start + len(ours):
                mine[at - start] = theirs[at - start]
        if mine != theirs:
            at = next(i for i in range(len(mine)) if mine[i] != theirs[i])
            raise Stopped(f"memory {start + at:#x} = {theirs[at]:#x} (ours: {mine[at]:#x})")

    def _names(self) -> list[str]:
        """Registers and flags of ours that QEMU has."""
        known = self._processor
        return [name for name in (*self._row.general, *self._row.flags) if name in known.numbers or name in known.bits]

    def step(self, step: TraceStep) -> int:
        """One instruction; where one of our steps is several (delay slots, IT blocks), until they are executed."""
        assert self._remote is not None
        if time.monotonic() > self._until:
            raise CannotFollow(f"it takes longer than {_PATIENCE:g} s there")
        smallest = 2 if self._row.overlay == "arm" and step.pc & 1 else 4
        mnemonic = self._program.decoder.decode(step.pc, step.bytes).mnemonic
        several = len(step.bytes) > 4 or (smallest == 2 and mnemonic.startswith("it"))
        try:
            for _ in range(max(1, len(step.bytes) // smallest) if several else 1):
                stopped = self._remote.step()
                if stopped is None:
                    raise Stopped("the end of the process")
                if stopped != signal.SIGTRAP:
                    raise Stopped(f"the signal {stopped}")
                pc = self._pc()
                if pc == step.next_pc:
                    break
        except Disconnected as problem:
            raise CannotFollow(f"QEMU cannot go on: {problem}") from None
        return pc

    def _pc(self) -> int:
        raw = self._raw({"pc", "cpsr"} if self._row.overlay == "arm" else {"pc"})
        return raw["pc"] | (raw["cpsr"] >> _THUMB_BIT & 1 if self._row.overlay == "arm" else 0)

    def _raw(self, names: set[str]) -> dict[str, int]:
        assert self._remote is not None
        order = "big" if self._row.big_endian else "little"
        numbers = self._processor.numbers
        if not self._processor.all_at_once:
            return {name: int.from_bytes(self._remote.register(numbers[name]), order) for name in sorted(names)}  # type: ignore[arg-type]
        content = self._remote.all_registers()
        size = self._word
        return {
            name: int.from_bytes(content[size * numbers[name] : size * (numbers[name] + 1)], order)  # type: ignore[arg-type]
            for name in sorted(names)
        }

    def registers(self) -> Mapping[str, int]:
        bits = self._processor.bits
        names = self._names()
        raw = self._raw({bits[name][0] if name in bits else name for name in names})
        return {
            name: raw[bits[name][0]] >> bits[name][1] & (1 << bits[name][2]) - 1 if name in bits else raw[name]
            for name in names
        }

    def set_registers(self, values: Mapping[str, int], pc: int) -> None:
        assert self._remote is not None
        bits = self._processor.bits
        parts = {bits[name][0] for name in values if name in bits} | ({"cpsr"} if self._row.overlay == "arm" else set())
        raw = self._raw(parts) if parts else {}
        for name, value in values.items():
            if name in bits:
                whole, low, width = bits[name]
                raw[whole] = raw[whole] & ~((1 << width) - 1 << low) | value << low
            else:
                raw[name] = value
        raw["pc"] = self._row.code_address(pc)
        if self._row.overlay == "arm":
            raw["cpsr"] = raw["cpsr"] & ~(1 << _THUMB_BIT) | (pc & 1) << _THUMB_BIT
        try:
            self._set(raw)
        except Disconnected as problem:
            raise CannotFollow(f"a register cannot be set in QEMU: {problem}") from None

    def _set(self, raw: Mapping[str, int]) -> None:
        assert self._remote is not None
        order = "big" if self._row.big_endian else "little"
        numbers, size = self._processor.numbers, self._word
        if self._processor.all_at_once:
            content = bytearray(self._remote.all_registers())
            for name, value in raw.items():
                content[size * numbers[name] : size * (numbers[name] + 1)] = value.to_bytes(size, order)  # type: ignore[arg-type]
            self._remote.set_all_registers(bytes(content))
            return
        for name, value in raw.items():
            width = 4 if name == "cpsr" else size
            self._remote.set_register(numbers[name], value.to_bytes(width, order))  # type: ignore[arg-type]

    def read(self, address: int, size: int) -> bytes:
        assert self._remote is not None
        try:
            return self._remote.read(address, size)
        except Disconnected as problem:
            raise CannotFollow(f"QEMU's memory cannot be read: {problem}") from None

    def write(self, address: int, content: bytes) -> None:
        assert self._remote is not None
        try:
            self._remote.write(address, content)
        except Disconnected as problem:
            raise CannotFollow(f"QEMU's memory cannot be written: {problem}") from None

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()
            self._remote = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _with_call(content: bytes, machine: Machine, call: bytes) -> tuple[bytes, int, list[int]]:
    """The ELF file with a page more that holds the instruction; where that is, and which mapped bytes differ."""
    if len(content) < 64 or content[:4] != b"\x7fELF" or content[4] not in (1, 2) or content[5] not in (1, 2):
        raise CannotFollow("not an ELF file, which QEMU could run")
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    word = "Q" if wide else "I"
    try:
        (kind,) = struct.unpack_from(f"{order}H", content, 16)
        (table,) = struct.unpack_from(f"{order}{word}", content, 32 if wide else 28)
        size, count = struct.unpack_from(f"{order}HH", content, 54 if wide else 42)
        headers = [content[table + size * i : table + size * (i + 1)] for i in range(count)]
        loaded = [found for found in (_loaded(header, wide, order) for header in headers) if found is not None]
    except struct.error:
        raise CannotFollow("an ELF file whose program headers cannot be read") from None
    if kind != 2 or size != (56 if wide else 32) or not loaded:
        raise CannotFollow("not a static executable at a fixed address")
    at = -(-max(start + length for _, start, length in loaded) // _PAGE) * _PAGE
    while any(region.start < at + _PAGE and at < region.end for region in machine.memory.regions):
        at += _PAGE
    result = bytearray(content.ljust(-(-len(content) // _PAGE) * _PAGE, b"\0"))
    offset = len(result)
    result += call.ljust(_PAGE, b"\0")
    if wide:
        header = struct.pack(f"{order}IIQQQQQQ", _LOAD, _READ_EXECUTE, offset, at, at, _PAGE, _PAGE, _PAGE)
    else:
        header = struct.pack(f"{order}8I", _LOAD, offset, at, at, _PAGE, _PAGE, _READ_EXECUTE, _PAGE)
    where, number = (32, 56) if wide else (28, 44)
    struct.pack_into(f"{order}{word}", result, where, len(result))
    struct.pack_into(f"{order}H", result, number, count + 1)
    changed = [*range(where, where + struct.calcsize(f"{order}{word}")), number, number + 1]
    patched = [
        start - start % _PAGE + place for begin, start, _ in loaded if begin - begin % _PAGE == 0 for place in changed
    ]
    return bytes(result) + b"".join([*headers, header]), at, patched


def _loaded(header: bytes, wide: bool, order: str) -> tuple[int, int, int] | None:
    """(place in the file, address, size) of a segment that is loaded."""
    if wide:
        kind, _, offset, start, _, _, length, _ = struct.unpack(f"{order}IIQQQQQQ", header)
    else:
        kind, offset, start, _, _, length, _, _ = struct.unpack(f"{order}8I", header)
    return (offset, start, length) if kind == _LOAD else None
