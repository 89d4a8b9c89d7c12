"""System calls as events: where their number and arguments are, what they are called, and how they are watched.

A system call is an instruction like any other, found wherever it is decoded, also in code that only a run discovers. So
the updates of an automaton go into the decoder, before the operation that ends the run there. Events are told apart by
the number of the call, in the register in which the kernel takes it.

Registers and numbers are those of the Linux kernel (its tables in arch/*/, and man 2 syscall); they apply to ELF files.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mcveto.errors import UsageError
from mcveto.machine.faults import FaultKind, Unsupported
from mcveto.machine.isa import Decoder
from mcveto.machine.isa.overlay import replaced
from mcveto.machine.isa.table import IsaRow
from mcveto.machine.pcode import Instruction, Op
from mcveto.program.exits import exit_convention
from mcveto.program.program import Program
from mcveto.property.entry_return import Update, before_returns

EVENT = "system call"


class Convention(NamedTuple):
    number: str
    arguments: tuple[str, ...]
    numbers: dict[str, int]


def _numbers(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


# The calls that the first Unix systems had still have their old numbers on these machines.
_OLD = _numbers("""
    exit 1 fork 2 read 3 write 4 open 5 close 6 creat 8 link 9 unlink 10 execve 11 chdir 12 chmod 15 lseek 19 getpid 20
    setuid 23 getuid 24 kill 37 rename 38 mkdir 39 rmdir 40 dup 41 pipe 42 brk 45 setgid 46 ioctl 54 fcntl 55 dup2 63
    setreuid 70 munmap 91 mprotect 125 setresuid 164""")
_MIPS = {name: 4000 + number for name, number in _OLD.items() if name != "setresuid"}
_GENERIC = _numbers("""
    dup 23 dup3 24 fcntl 25 ioctl 29 mkdirat 34 unlinkat 35 openat 56 close 57 pipe2 59 lseek 62 read 63 write 64
    exit 93 exit_group 94 kill 129 setgid 144 setreuid 145 setuid 146 setresuid 147 getpid 172 getuid 174 socket 198
    bind 200 listen 201 accept 202 connect 203 brk 214 munmap 215 clone 220 execve 221 mmap 222 mprotect 226""")
_X86_64 = _numbers("""
    read 0 write 1 open 2 close 3 lseek 8 mmap 9 mprotect 10 munmap 11 brk 12 ioctl 16 pipe 22 dup 32 dup2 33 getpid 39
    socket 41 connect 42 accept 43 bind 49 listen 50 clone 56 fork 57 execve 59 exit 60 kill 62 fcntl 72 chdir 80
    rename 82 mkdir 83 rmdir 84 creat 85 link 86 unlink 87 chmod 90 getuid 102 setuid 105 setgid 106 setreuid 113
    setresuid 117 exit_group 231 openat 257""")
_ARM = Convention(
    "r7",
    ("r0", "r1", "r2", "r3", "r4", "r5"),
    _OLD | _numbers("exit_group 248 socket 281 bind 282 connect 283 listen 284 accept 285 openat 322"),
)
_POWERPC = Convention(
    "r0",
    ("r3", "r4", "r5", "r6", "r7", "r8"),
    _OLD | _numbers("exit_group 234 openat 286 socket 326 bind 327 connect 328 listen 329 accept 330"),
)
_RISCV = Convention("a7", ("a0", "a1", "a2", "a3", "a4", "a5"), _GENERIC)
_MIPS32 = Convention(
    "v0",
    ("a0", "a1", "a2", "a3"),
    _MIPS | _numbers("accept 4168 bind 4169 connect 4170 listen 4174 socket 4183 setresuid 4185 exit_group 4246"),
)
_CONVENTIONS = {
    "x86-32": Convention(
        "EAX", ("EBX", "ECX", "EDX", "ESI", "EDI", "EBP"), _OLD | _numbers("mmap2 192 exit_group 252 openat 295")
    ),
    "x86-64": Convention("RAX", ("RDI", "RSI", "RDX", "R10", "R8", "R9"), _X86_64),
    "ppc32-be": _POWERPC,
    "ppc32-le": _POWERPC,
    "arm": _ARM,
    "arm-be": _ARM,
    "arm-be8": _ARM,
    "aarch64": Convention("x8", ("x0", "x1", "x2", "x3", "x4", "x5"), _GENERIC),
    "riscv32": _RISCV,
    "riscv64": _RISCV,
    "mips32-be": _MIPS32,
    "mips32-le": _MIPS32,
}


def convention_of(program: Program, what: str) -> Convention:
    """Raises UsageError where nothing is known of system calls."""
    if exit_convention(program) is None:
        raise UsageError(
            f"'{what}': system calls are known for ELF files only", "watch the function that makes the call"
        )
    return _CONVENTIONS[program.image.isa]


def number_of(convention: Convention, where: int | str, what: str) -> int:
    """The number of a system call; raises UsageError for a name that is not known."""
    if isinstance(where, int):
        return where
    if where not in convention.numbers:
        raise UsageError(f"'{what}': no system call of that name is known", "give its number")
    return convention.numbers[where]


def is_system_call(op: Op) -> bool:
    return op.opcode == "TRAP" and op.inputs[0].offset == FaultKind.SYSTEM_CALL


class WatchingDecoder(Decoder):
    """A decoder that puts operations before every system call (`places` are where it did), and others before every
    return. It shares the translators of another one for the same instruction set, which are costly to make."""

    def __init__(self, row: IsaRow, like: Decoder) -> None:
        assert (row.sleigh, row.modes) == (like.row.sleigh, like.row.modes)
        self._like = like
        super().__init__(row)
        self.updates: tuple[tuple[Op, ...], ...] = ()
        self.at_returns: tuple[Update, ...] = ()
        if isinstance(like, WatchingDecoder):
            self.updates, self.at_returns = like.updates, like.at_returns
        self.places: dict[int, tuple[str, ...]] = {}

    def _translator(self, mode: int, block: bool) -> Any:
        return self._like._translator(mode, block)

    def decode(self, pc: int, code: bytes) -> Instruction:
        instruction = super().decode(pc, code)
        if self.updates and any(map(is_system_call, instruction.ops)):
            self.places.setdefault(pc, (EVENT,))
        return instruction

    def _decode_new(self, pc: int, code: bytes) -> Instruction:
        found = before_returns(super()._decode_new(pc, code), self.at_returns)
        calls = [index for index, op in enumerate(found.ops) if is_system_call(op)]
        if not self.updates or not calls:
            return found
        if _is_of_another_kind(self.row.name, found):
            raise Unsupported("system call of another numbering", pc, found.text)
        ops = [*found.ops]
        added = [op for update in self.updates for op in update]
        for index in reversed(calls):
            ops = replaced(ops, index, index, added)
        return Instruction(found.pc, found.bytes, tuple(ops), found.mnemonic, found.operands)


def _is_of_another_kind(isa: str, instruction: Instruction) -> bool:
    """Whether a call takes its number from elsewhere, or from another table, than the convention says."""
    if isa == "x86-64":
        return instruction.mnemonic == "INT"
    if isa == "x86-32":
        return instruction.mnemonic == "SYSCALL"
    if isa in ("arm", "arm-be", "arm-be8"):
        # The old convention has the number in the instruction.
        return any(number != "0x0" for number in re.findall(r"(?:swi|svc)\S* *#?(\w+)", instruction.text))
    return False
