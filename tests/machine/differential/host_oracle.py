"""The processor this test runs on as an oracle for x86-64.

A child process with nothing but the case's memory map is single-stepped with ptrace: its registers are set, one
instruction runs natively, and the step trap or the signal it causes (suppressed, never delivered) is the outcome.
System calls are emulated away by PTRACE_SYSEMU_SINGLESTEP. Memory is shared with the child.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import signal
import struct
import subprocess
import sys

from .harness import (
    CODE,
    CODE_SIZE,
    DATA,
    DATA_SIZE,
    MAX_REPEATS,
    MEMORY_FAULT,
    READ_ONLY,
    READ_ONLY_SIZE,
    Case,
    OracleCannotTell,
    Outcome,
)
from .oracle_x86 import FLAG_BITS, FLAGS_FIXED, GENERAL, VECTORS

# struct user_regs_struct of <sys/user.h>, one quadword each.
_USER = (
    *("R15", "R14", "R13", "R12", "RBP", "RBX", "R11", "R10", "R9", "R8", "RAX", "RCX", "RDX", "RSI", "RDI"),
    *("orig_rax", "rip", "cs", "eflags", "RSP", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
_INDEX = {name: index for index, name in enumerate(_USER)}
_GENERAL = tuple((name, _INDEX[name]) for name in GENERAL["x86-64"])
_GETREGS, _SETREGS, _GETFPREGS, _SETFPREGS = 12, 13, 14, 15
_GETSIGINFO, _SYSEMU_SINGLESTEP = 0x4202, 32
_FXSAVE_SIZE, _FXSAVE_XMM = 512, 160
_SI_KERNEL = 0x80
_FLAG_MASK = sum(1 << bit for bit in FLAG_BITS.values())
GENERAL_PROTECTION = f"{MEMORY_FAULT}|general-protection"  # non-canonical addresses are reported like #GP

_CHILD = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
MAP_SHARED, MAP_FIXED_NOREPLACE = 1, 0x100000
fd, offset = int(sys.argv[1]), 0
for start, size, protection in {regions}:
    got = libc.mmap(start, size, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, offset)
    if got != start:
        sys.exit(3)
    offset += size
if libc.ptrace(0, 0, None, None) != 0:
    sys.exit(4)
os.kill(os.getpid(), signal.SIGSTOP)
"""


class HostUnavailable(Exception):
    """Why this machine cannot be the oracle."""


class HostOracle:
    """Use as a context manager, on one thread: ptrace belongs to the thread that starts the child."""

    def __init__(self) -> None:
        if platform.machine() != "x86_64" or sys.platform != "linux":
            raise HostUnavailable("the host is not an x86-64 Linux machine")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._libc.ptrace.restype = ctypes.c_long
        self._fd = os.memfd_create("differential")
        total = CODE_SIZE + DATA_SIZE + READ_ONLY_SIZE
        os.ftruncate(self._fd, total)
        self._shared = mmap.mmap(self._fd, total)
        self._shared[CODE_SIZE + DATA_SIZE :] = bytes(range(256)) * (READ_ONLY_SIZE // 256)
        self._registers = ctypes.create_string_buffer(8 * len(_USER))
        self._vectors = ctypes.create_string_buffer(_FXSAVE_SIZE)
        self._siginfo = ctypes.create_string_buffer(128)
        self._child: subprocess.Popen[bytes] | None = None
        self._start()

    def __enter__(self) -> HostOracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
            self._shared.close()
            os.close(self._fd)

    def _start(self) -> None:
        regions = ((CODE, CODE_SIZE, 5), (DATA, DATA_SIZE, 3), (READ_ONLY, READ_ONLY_SIZE, 1))
        program = _CHILD.format(regions=regions)
        self._child = subprocess.Popen([sys.executable, "-S", "-c", program, str(self._fd)], pass_fds=[self._fd])
        _, status = os.waitpid(self._child.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._child.returncode = os.waitstatus_to_exitcode(status)
            raise HostUnavailable(f"the traced child ended with status {self._child.returncode}")
        try:
            self._ptrace(_GETREGS, self._registers)
            self._ptrace(_GETFPREGS, self._vectors)
        except OSError as error:
            self._child.kill()
            raise HostUnavailable(f"ptrace is not permitted ({error})") from None
        self._initial = list(struct.unpack(f"<{len(_USER)}Q", self._registers.raw))
        self._initial[_INDEX["orig_rax"]] = (1 << 64) - 1

    def _ptrace(self, request: int, data: ctypes.Array[ctypes.c_char] | None = None) -> None:
        assert self._child is not None
        if self._libc.ptrace(request, self._child.pid, None, data) == -1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def run(self, case: Case) -> Outcome:
        self._shared[: len(case.code)] = case.code
        if case.pc != CODE:
            raise OracleCannotTell("code elsewhere")
        self._shared[CODE_SIZE : CODE_SIZE + DATA_SIZE] = case.memory
        registers = list(self._initial)
        for name, index in _GENERAL:
            registers[index] = case.registers[name]
        flags = sum(case.registers[name] << bit for name, bit in FLAG_BITS.items())
        registers[_INDEX["eflags"]] = flags | FLAGS_FIXED
        registers[_INDEX["rip"]] = CODE
        self._registers.raw = struct.pack(f"<{len(_USER)}Q", *registers)
        vectors = b"".join(case.registers[f"XMM{i}"].to_bytes(16, "little") for i in range(VECTORS["x86-64"]))
        ctypes.memmove(ctypes.byref(self._vectors, _FXSAVE_XMM), vectors, len(vectors))
        self._ptrace(_SETREGS, self._registers)
        self._ptrace(_SETFPREGS, self._vectors)
        pc = CODE
        for _ in range(MAX_REPEATS if case.repeats else 1):
            fault = self._step()
            if fault:
                return Outcome({}, b"", case.pc, fault)
            self._ptrace(_GETREGS, self._registers)
            values = struct.unpack(f"<{len(_USER)}Q", self._registers.raw)
            pc = values[_INDEX["rip"]]
            if pc != CODE:
                break
        self._ptrace(_GETFPREGS, self._vectors)
        after = {name: values[index] for name, index in _GENERAL}
        after |= {name: values[_INDEX["eflags"]] >> bit & 1 for name, bit in FLAG_BITS.items()}
        raw = self._vectors.raw
        for i in range(VECTORS["x86-64"]):
            at = _FXSAVE_XMM + 16 * i
            after[f"XMM{i}"] = int.from_bytes(raw[at : at + 16], "little")
        return Outcome(after, self._shared[CODE_SIZE : CODE_SIZE + DATA_SIZE], pc)

    def _step(self) -> str:
        """Runs one instruction; the fault it caused, or nothing."""
        assert self._child is not None
        self._ptrace(_SYSEMU_SINGLESTEP)
        _, status = os.waitpid(self._child.pid, 0)
        if not os.WIFSTOPPED(status):
            self._child.returncode = os.waitstatus_to_exitcode(status)
            self._start()
            raise OracleCannotTell("the instruction ended the child")
        stop = os.WSTOPSIG(status)
        self._ptrace(_GETSIGINFO, self._siginfo)
        code = struct.unpack_from("<3i", self._siginfo.raw)[2]
        if stop == signal.SIGTRAP:
            return "breakpoint" if code == _SI_KERNEL else ""
        if stop == signal.SIGSEGV:
            return GENERAL_PROTECTION if code == _SI_KERNEL else MEMORY_FAULT
        if stop == signal.SIGILL:
            return "undefined-instruction"
        if stop == signal.SIGFPE:
            return "divide-error"
        if stop == signal.SIGBUS:
            return GENERAL_PROTECTION
        raise OracleCannotTell(f"signal {stop}")
