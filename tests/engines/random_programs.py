"""Small random x86 programs over an input of four bits, so that sixteen runs say everything about them.

Straight code with forward branches, conditional moves, counted loops, loads and stores through computed addresses,
calls, and, where code is writable, stores into code. `calling_programs` call the same functions again and again, from
different depths of the stack and from each other, with addresses of frames among what is passed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from mcveto.machine.pcode import Transfer
from mcveto.program.image.model import Image, Permission, Segment
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, make_program
from mcveto.program.spec import PropertySpec, Spec

CODE, DATA = 0x10000, 0x20000
HALT, TARGET, FUNCTION = CODE + 0x800, CODE + 0x810, CODE + 0x820
EAX, ECX, EDX, EBX, ESI, EDI = 0, 1, 2, 3, 6, 7
VALUES = (EAX, EDX, EBX, ESI)


@dataclass(frozen=True)
class RandomProgram:
    code: bytes
    function: bytes
    data: bytes
    writable_code: bool

    def load(self) -> Program:
        content = bytearray(0x1000)
        content[: len(self.code)] = self.code
        content[0x800] = content[0x810] = 0xF4
        content[0x820 : 0x820 + len(self.function)] = self.function
        permissions = Permission.READ | Permission.EXECUTE
        if self.writable_code:
            permissions |= Permission.WRITE
        segments = (
            Segment(CODE, 0x1000, bytes(content), permissions, "code"),
            Segment(DATA, 0x1000, self.data, Permission.READ | Permission.WRITE, "data"),
        )
        image = Image("random", "", "raw", "x86-32", CODE, CODE, segments)
        spec = Spec(input_registers=("EAX",), halt=(HALT,), properties=(PropertySpec("reach", (TARGET,)),))
        return make_program(image, spec)


def exhaustive(program: Program, max_steps: int = 4000) -> set[str]:
    """How the sixteen runs end: "target", "return-address", or something harmless; "limit" where it is not known."""
    found: set[str] = set()
    for value in range(16):
        machine = program.machine(InputSource([value]))
        outcome = machine.run(max_steps)
        kind: str = outcome.kind
        frames = [program.return_sentinel]
        for step in machine.trace:
            if step.transfer is Transfer.CALL:
                frames.append(step.pc + len(step.bytes))
            elif step.transfer is Transfer.RETURN and (not frames or frames.pop() != step.next_pc):
                kind = "return-address"
                break
        found.add(kind)
    return found


def _alu(draw: st.DrawFn) -> bytes:
    operation = draw(st.sampled_from([0x01, 0x29, 0x31, 0x21, 0x09, 0x39, 0x85, 0x8B, 0x11, 0x19]))
    a, b = draw(st.sampled_from(VALUES)), draw(st.sampled_from(VALUES))
    return bytes([operation, 0xC0 | a << 3 | b])


def _immediate(draw: st.DrawFn) -> bytes:
    register, value = draw(st.sampled_from(VALUES)), draw(st.integers(0, 255))
    kind = draw(st.sampled_from([0, 1, 4, 5, 6, 7, 8, 9]))
    if kind == 8:
        return bytes([0xB8 + register]) + struct.pack("<I", draw(st.sampled_from([0, 1, 7, 0x80000000, 0xFFFFFFFF])))
    if kind == 9:  # shl, shr, sar
        return bytes([0xC1, 0xC0 | draw(st.sampled_from([4, 5, 7])) << 3 | register, value & 7])
    return bytes([0x83, 0xC0 | kind << 3 | register, value])


def _memory(draw: st.DrawFn, writable_code: bool) -> bytes:
    """and edi, mask; then a load or store at [edi * scale + base]."""
    source, register = draw(st.sampled_from(VALUES)), draw(st.sampled_from(VALUES))
    mask, scale = draw(st.sampled_from([0, 3, 7, 15])), draw(st.sampled_from([0, 1, 2]))
    base = DATA + draw(st.integers(0, 12))
    if writable_code and draw(st.integers(0, 3)) == 0:
        base, scale = CODE + draw(st.integers(0, 80)), 0
    access = draw(st.sampled_from([b"\x89", b"\x8b", b"\x88", b"\x0f\xb6"]))
    index = bytes([0x8B, 0xC0 | EDI << 3 | source, 0x83, 0xE0 | EDI, mask])
    register &= 3 if access == b"\x88" else 7
    address = bytes([register << 3 | 4, scale << 6 | EDI << 3 | 5]) + struct.pack("<I", base)
    return index + access + address


@st.composite
def straight(draw: st.DrawFn, writable_code: bool, depth: int = 0) -> bytes:
    """A few statements."""
    code = b""
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.integers(0, 9))
        if kind <= 2:
            code += _alu(draw)
        elif kind <= 4:
            code += _immediate(draw)
        elif kind == 5:
            code += _memory(draw, writable_code)
        elif kind == 6:
            move = [0x0F, 0x40 | draw(st.integers(0, 15)), 0xC0]
            move[2] |= draw(st.sampled_from(VALUES)) << 3 | draw(st.sampled_from(VALUES))
            code += bytes(move)
        elif depth < 2:
            body = draw(straight(writable_code, depth + 1))
            if kind == 7 and depth == 0:  # mov ecx, n; body; dec ecx; jnz
                turns = draw(st.integers(1, 4))
                code += b"\xb9" + struct.pack("<I", turns) + body + b"\x49"
                code += b"\x0f\x85" + struct.pack("<i", -(len(body) + 7))
            else:  # cmp register, value; jcc over the body
                code += bytes([0x83, 0xF8 | draw(st.sampled_from(VALUES)), draw(st.integers(0, 15))])
                code += bytes([0x0F, 0x80 | draw(st.integers(0, 15))]) + struct.pack("<i", len(body)) + body
    return code


@st.composite
def programs(draw: st.DrawFn) -> RandomProgram:
    writable_code = draw(st.integers(0, 3)) == 0
    code = b"\x83\xe0\x0f"  # and eax, 15
    for register in (ECX, EDX, EBX, ESI, EDI):
        code += bytes([0xB8 + register]) + struct.pack("<I", draw(st.integers(0, 20)))
    code += b"\xbd\0\0\0\0"  # mov ebp, 0
    code += draw(straight(writable_code))
    if draw(st.booleans()):
        code += b"\xe8" + struct.pack("<i", FUNCTION - (CODE + len(code) + 5))
        code += draw(straight(writable_code))
    code += bytes([0x83, 0xF8 | draw(st.sampled_from(VALUES)), draw(st.integers(0, 20))])
    code += bytes([0x0F, 0x80 | draw(st.integers(0, 15))]) + struct.pack("<i", TARGET - (CODE + len(code) + 6))
    code += b"\xe9" + struct.pack("<i", HALT - (CODE + len(code) + 5))
    function = draw(straight(writable_code))
    if draw(st.integers(0, 5)) == 0:  # add [esp], eax: the return address depends on the input
        function += b"\x01\x04\x24"
    data = draw(st.binary(min_size=64, max_size=64))
    return RandomProgram(code, function + b"\xc3", data, writable_code)


DISTANCE = 0x280
"""Between the functions of programs with several calls."""


def _call(code: bytes, at: int, number: int) -> bytes:
    return b"\xe8" + struct.pack("<i", FUNCTION + DISTANCE * number - (at + len(code) + 5))


def _checked(draw: st.DrawFn, code: bytes, at: int) -> bytes:
    """cmp register, value; jcc TARGET"""
    code += bytes([0x83, 0xF8 | draw(st.sampled_from(VALUES)), draw(st.integers(0, 20))])
    return code + bytes([0x0F, 0x80 | draw(st.integers(0, 15))]) + struct.pack("<i", TARGET - (at + len(code) + 6))


def _called(draw: st.DrawFn, code: bytes, at: int, number: int) -> bytes:
    """A call, perhaps from deeper in the stack, or with the address of a word there."""
    depth = draw(st.integers(0, 2))
    for _ in range(depth):
        code += bytes([0x50 + draw(st.sampled_from(VALUES))])  # push
    if draw(st.integers(0, 3)) == 0:
        code += bytes([0x8D, 0x74, 0x24, 4 * draw(st.integers(0, 2))])  # lea esi, [esp + n]
    code += _call(code, at, number)
    if depth and draw(st.booleans()):
        code += bytes([0x58 + draw(st.sampled_from(VALUES))])  # pop
        depth -= 1
    return code + bytes([0x83, 0xC4, 4 * depth])  # add esp, n


@st.composite
def calling_programs(draw: st.DrawFn) -> RandomProgram:
    functions = b""
    for number in range(3):
        at, code = FUNCTION + DISTANCE * number, b""
        if draw(st.booleans()):
            code += bytes([0x50 + EBX])  # push ebx
        is_saved = bool(code)
        code += draw(straight(False, 1))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            code += draw(st.sampled_from([b"\x89\x06", b"\x8b\x06"]))  # mov [esi], eax; mov eax, [esi]
        elif kind == 1:
            code += bytes([0x8B, 0x54, 0x24, 4 * draw(st.integers(0, 2))])  # mov edx, [esp + n]
        elif kind == 2:
            code += bytes([0x89, 0x54, 0x24, 0xFC])  # mov [esp - 4], edx
        if number and draw(st.booleans()):
            code = _called(draw, code, at, draw(st.integers(0, number - 1)))
            code += draw(straight(False, 1))
        if draw(st.integers(0, 2)) == 0:
            code = _checked(draw, code, at)
        if is_saved:
            code += bytes([0x58 + EBX])
        if draw(st.integers(0, 9)) == 0:
            code += b"\x01\x04\x24"  # add [esp], eax
        assume(len(code) < DISTANCE)
        functions = functions.ljust(DISTANCE * number, b"\xf4") + code + b"\xc3"
    code = b"\x83\xe0\x0f"
    for register in (ECX, EDX, EBX, ESI, EDI):
        code += bytes([0xB8 + register]) + struct.pack("<I", draw(st.integers(0, 20)))
    code += 6 * bytes([0x50 + EDI])  # what is above the first frame depends on nobody
    for _ in range(draw(st.integers(2, 5))):
        code += draw(straight(False, 1))
        code = _called(draw, code, CODE, draw(st.integers(0, 2)))
    code = _checked(draw, code, CODE)
    code += b"\xe9" + struct.pack("<i", HALT - (CODE + len(code) + 5))
    assume(len(code) < 0x800)
    return RandomProgram(code, functions, draw(st.binary(min_size=64, max_size=64)), False)
