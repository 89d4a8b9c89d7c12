"""The processor of this computer as the other machine of a replay: x86 programs as processes of an x86-64 Linux.

The kernel loads the file (so that our loader is checked, too), and the process is single-stepped by ptrace from the
entry state of the counterexample. The stack is mapped where the entry state has it, by a system call made in the
process's name before anything runs; after that no system call is ever executed (PTRACE_SYSEMU), and the process dies
with us (PTRACE_O_EXITKILL). It never sees its arguments, its environment, or an open file but /dev/null.

Only files that the kernel maps as our loader does can be followed: static, not position-independent.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from mcveto.check.lockstep import CannotFollow, Stopped
from mcveto.machine.emulator import Machine
from mcveto.machine.memory import Region
from mcveto.machine.trace import TraceStep
from mcveto.program.program import Program

# struct user_regs_struct of <sys/user.h>, one quadword each; also for 32-bit processes.
_USER = (
    *("R15", "R14", "R13", "R12", "RBP", "RBX", "R11", "R10", "R9", "R8", "RAX", "RCX", "RDX", "RSI", "RDI"),
    *("orig_rax", "rip", "cs", "eflags", "RSP", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
_FLAGS = {"CF": 0, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "DF": 10, "OF": 11}
_TRACEME, _SINGLESTEP, _GETREGS, _SETREGS, _SYSEMU_SINGLESTEP = 0, 9, 12, 13, 32
_SETOPTIONS, _EXITKILL = 0x4200, 0x100000
_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000
_MAP_PRIVATE_FIXED_ANONYMOUS = 0x32
_READ_WRITE = 3
_NO_SYSTEM_CALL = (1 << 64) - 1
# The system call instruction, the number of mmap (mmap2 on x86-32), and where its arguments go.
_MMAP = {
    "x86-64": (b"\x0f\x05", 9, ("RDI", "RSI", "RDX", "R10", "R8", "R9")),
    "x86-32": (b"\xcd\x80", 192, ("RBX", "RCX", "RDX", "RSI", "RDI", "RBP")),
}
# Mappings of the kernel's that the program never asked for.
_KERNELS_OWN = ("[stack]", "[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[heap]")


class NativeFollower:
    name = "native"

    def __init__(self, program: Program) -> None:
        self._program = program
        self._row = program.decoder.row
        self._child: int | None = None
        self._memory = -1
        self._buffer = ctypes.create_string_buffer(8 * len(_USER))
        self._mask = self._row.address_mask

    def begin(self, machine: Machine) -> None:
        self._refuse()
        self._names = {name: "R" + name[1:] if self._row.address_bits == 32 else name for name in self._row.general}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._libc.ptrace.restype = ctypes.c_long
        self._start()
        self._initial = self._get()
        own = [region for region in machine.memory.regions if self._is_own(region)]
        for region in own:
            self._map(region)
        self._compare_image(machine)
        names = (*self._names, *_FLAGS)
        self.set_registers({name: machine.read(name) for name in names}, machine.pc)

    def _refuse(self) -> None:
        image = self._program.image
        if platform.machine() != "x86_64" or sys.platform != "linux":
            raise CannotFollow("this computer is not an x86-64 Linux machine")
        if image.isa not in _MMAP:
            raise CannotFollow(f"this computer's processor does not run {image.isa}")
        if image.format != "elf":
            raise CannotFollow("not an ELF file, which the kernel could run")
        if image.imports:
            raise CannotFollow("the file has imports, for which models of ours stand")
        try:
            head = Path(image.path).read_bytes()[:64]
        except OSError as error:
            raise CannotFollow(f"the file cannot be read again: {error.strerror}") from None
        if len(head) < 20 or struct.unpack_from("<H", head, 16)[0] != 2:
            raise CannotFollow("not a static executable at a fixed address")

    def _start(self) -> None:
        """A process that has just become the program and has not executed anything."""
        content = Path(self._program.image.path).read_bytes()
        file = os.memfd_create("replay")
        try:
            os.write(file, content)
            child = os.fork()
            if child == 0:
                self._become(file)
        except OSError as error:
            raise CannotFollow(f"no process can be started: {error.strerror}") from None
        finally:
            os.close(file)
        self._child = child
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            self._child = None
            raise CannotFollow("the kernel does not run the file, or does not let it be traced")
        if self._libc.ptrace(_SETOPTIONS, child, None, _EXITKILL) != 0:
            raise CannotFollow("ptrace cannot be told to end the process with us")
        try:
            self._memory = os.open(f"/proc/{child}/mem", os.O_RDWR)
        except OSError as error:
            raise CannotFollow(f"the process's memory cannot be accessed: {error.strerror}") from None

    def _become(self, file: int) -> NoReturn:
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            # Whatever becomes of us, the program must not run on by itself.
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            self._libc.personality(_ADDR_NO_RANDOMIZE)
            if self._libc.ptrace(_TRACEME, 0, None, None) == 0:
                os.execve(f"/proc/self/fd/{file}", ["program"], {})
        finally:
            os._exit(127)

    def _is_own(self, region: Region) -> bool:
        """Whether it is not the file's: the stack, and what library models need."""
        return not any(low.address < region.end and region.start < low.end for low in self._program.image.segments)

    def _map(self, region: Region) -> None:
        for line in Path(f"/proc/{self._child}/maps").read_text().splitlines():
            span, *rest = line.split(maxsplit=5)
            low, high = (int(part, 16) for part in span.split("-"))
            name = rest[4] if len(rest) > 4 else ""
            if low < region.end and region.start < high and name not in _KERNELS_OWN:
                raise CannotFollow(f"the place of the {region.name} is occupied by {name or 'another mapping'}")
        code, number, where = _MMAP[self._program.image.isa]
        at = self._row.code_address(self._program.entry)
        saved = self.read(at, len(code))
        size = region.end - region.start
        arguments = (region.start, size, _READ_WRITE, _MAP_PRIVATE_FIXED_ANONYMOUS, self._mask, 0)
        self.write(at, code)
        self._set({**self._initial, **dict(zip(where, arguments, strict=True)), "RAX": number, "rip": at})
        self._resume(_SINGLESTEP)
        if self._get()["RAX"] & self._mask != region.start:
            raise CannotFollow(f"the kernel does not map the {region.name} where the entry state has it")
        self.write(at, saved)
        self.write(region.start, bytes(region.data))

    def _compare_image(self, machine: Machine) -> None:
        """What the kernel loaded must be what our loader loaded; only what is not the file's is written."""
        for region in machine.memory.regions:
            if self._is_own(region):
                continue
            ours, theirs = bytearray(region.data), self.read(region.start, region.end - region.start)
            open_ranges = (*self._program.input_memory, *self._program.image.unspecified)
            for start, end in ((max(a, region.start), min(b, region.end)) for a, b in open_ranges):
                if start < end:
                    part = slice(start - region.start, end - region.start)
                    self.write(start, bytes(ours[part]))
                    ours[part] = theirs[part]
            if ours != theirs:
                at = next(i for i in range(len(ours)) if ours[i] != theirs[i])
                raise Stopped(f"memory {region.start + at:#x} = {theirs[at]:#x} (ours: {ours[at]:#x})")

    def step(self, step: TraceStep) -> int:
        if self._program.decoder.decode(step.pc, step.bytes).mnemonic.startswith("PUSHF"):
            raise CannotFollow(f"single-stepping shows in the flags pushed at {step.pc:#x}")
        self._resume(_SYSEMU_SINGLESTEP)
        return self._get()["rip"] & self._mask

    def _resume(self, request: int) -> None:
        assert self._child is not None
        self._ptrace(request)
        _, status = os.waitpid(self._child, 0)
        if not os.WIFSTOPPED(status):
            self._child = None
            raise Stopped("the end of the process")
        stop = os.WSTOPSIG(status)
        if stop & 0x7F != signal.SIGTRAP:
            raise Stopped(f"the signal {signal.Signals(stop).name}")

    def registers(self) -> Mapping[str, int]:
        raw = self._get()
        found = {name: raw[theirs] & self._mask for name, theirs in self._names.items()}
        return found | {name: raw["eflags"] >> bit & 1 for name, bit in _FLAGS.items()}

    def set_registers(self, values: Mapping[str, int], pc: int) -> None:
        raw = self._get()
        for name, value in values.items():
            if name in _FLAGS:
                raw["eflags"] = raw["eflags"] & ~(1 << _FLAGS[name]) | value << _FLAGS[name]
            else:
                raw[self._names[name]] = value
        raw["rip"] = pc
        self._set(raw)

    def read(self, address: int, size: int) -> bytes:
        try:
            found = os.pread(self._memory, size, address)
        except (OSError, OverflowError):
            found = b""
        if len(found) != size:
            raise CannotFollow(f"the process has no memory at {address + len(found):#x}")
        return found

    def write(self, address: int, content: bytes) -> None:
        try:
            os.pwrite(self._memory, content, address)
        except (OSError, OverflowError):
            raise CannotFollow(f"the process has no memory at {address:#x}") from None

    def _get(self) -> dict[str, int]:
        self._ptrace(_GETREGS, self._buffer)
        return dict(zip(_USER, struct.unpack(f"<{len(_USER)}Q", self._buffer.raw), strict=True))

    def _set(self, registers: Mapping[str, int]) -> None:
        values = {**registers, "orig_rax": _NO_SYSTEM_CALL}
        self._buffer.raw = struct.pack(f"<{len(_USER)}Q", *(values[name] for name in _USER))
        self._ptrace(_SETREGS, self._buffer)

    def _ptrace(self, request: int, data: ctypes.Array[ctypes.c_char] | None = None) -> None:
        if self._libc.ptrace(request, self._child, None, data) == -1:
            raise CannotFollow(f"ptrace is refused: {os.strerror(ctypes.get_errno())}")

    def close(self) -> None:
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = None
