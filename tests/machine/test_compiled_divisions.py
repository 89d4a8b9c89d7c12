"""What compilers make of divisions by constants is a division again, in the symbolic domain, and has its value.

C functions of one argument are compiled for several machines, executed symbolically, and their results compared with
terms made by `udiv`, `urem`, `sdiv` and `srem`; bytes by every divisor and with every value.
"""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for
from mcveto.machine.pcode import Transfer
from mcveto.machine.symbolic import SymbolicDomain

from .programs import CODE, SIZE, STACK, address_space

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs a compiler (ziglang)")
FLAGS = ["-c", "-g0", "-ffreestanding", "-fno-pic", "-fno-sanitize=undefined", "-fno-stack-protector"]
# Triple and flags, where the argument is, where the result is, and whether callers extend arguments (C's rules do not
# say so; what is passed to a function follows the conventions of the machine).
MACHINES = {
    "x86-32": (["x86-freestanding", "-mcpu=pentiumpro", "-mno-sse", "-mno-mmx", "-mno-80387"], "ECX", "EAX"),
    "x86-64": (["x86_64-freestanding", "-mno-sse", "-mno-mmx", "-mno-80387"], "RDI", "RAX"),
    "ppc32-be": (["powerpc-freestanding", "-mcpu=ppc-hard_float-altivec"], "r3", "r3"),
    "arm": (["arm-freestanding-eabi", "-mcpu=generic+v7a+soft_float", "-marm"], "r0", "r0"),
}
TYPES = {
    "u8": ("unsigned char", 8),
    "i8": ("signed char", 8),
    "u16": ("unsigned short", 16),
    "i16": ("short", 16),
    "u32": ("unsigned", 32),
    "i32": ("int", 32),
}
DIVISORS = [3, 5, 6, 7, 9, 10, 11, 12, 14, 19, 24, 25, 28, 60, 100, 125, 641, 1000, 3600, 10000, 86400, 1000003]


def compiled(isa: str, level: str, functions: dict[str, str], folder: Path) -> Iterator[tuple[str, bytes]]:
    """The code of C functions with one argument x, by name; a function is its type and the expression it returns."""
    convention = "__attribute__((fastcall))" if isa == "x86-32" else ""
    lines = []
    for name, expression in functions.items():
        kind = TYPES[name.split("_")[0]][0]
        lines.append(f"{convention} {kind} {name}({kind} x) {{ return {expression}; }}")
    (folder / "f.c").write_text("\n".join(lines))
    command = [sys.executable, "-m", "ziglang", "cc", level, "-target", *MACHINES[isa][0], *FLAGS, "f.c", "-o", "f.o"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with (folder / "f.o").open("rb") as file:
        elf = ELFFile(file)
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol.name in functions:
                start = symbol["st_value"]
                yield symbol.name, elf.get_section(symbol["st_shndx"]).data()[start : start + symbol["st_size"]]


def result(isa: str, code: bytes, x: t.Term, is_signed: bool) -> t.Term:
    """What straight code leaves in the result register, as wide as its argument x."""
    decoder = decoder_for(isa)
    space = address_space(isa, code)
    domain = SymbolicDomain(
        decoder.layout,
        space,
        lambda condition: pytest.fail(repr(condition)),
        lambda bits, origin, usual: t.var("undefined", bits),
    )
    (stack,), (argument,), (place,) = map(decoder.layout.named, (decoder.row.stack_pointer, *MACHINES[isa][1:]))
    domain.registers[stack.cell.number] = t.const(STACK + SIZE // 2, stack.cell.bits)
    domain.registers[argument.cell.number] = (t.sext if is_signed else t.zext)(x, argument.cell.bits)
    interpreter: Interpreter[t.Term] = Interpreter(decoder)
    pc = CODE
    while True:
        instruction = decoder.decode(pc, code[pc - CODE : pc - CODE + 18])
        step = interpreter.execute(instruction, domain)
        if step.transfer is Transfer.RETURN:
            return t.extract(domain.registers[place.cell.number], x.width - 1, 0)
        target = step.target
        assert isinstance(target, int | t.Term)
        pc = target if isinstance(target, int) else target.data


def value(term: t.Term, x: int) -> int:
    return Evaluator(lambda _: x, lambda *_: 0).value(term)


def checked(isa: str, level: str, wanted: list[tuple[str, int]], folder: Path) -> list[str]:
    """Compiles x / d and x % d; compares values; gives what is not recognised."""
    functions = {
        f"{kind}_{name}_{'m' if d < 0 else ''}{abs(d)}": f"x {sign} ({TYPES[kind][0]})({d})"
        for kind, d in wanted
        for name, sign in (("div", "/"), ("rem", "%"))
    }
    strange = []
    for function, code in compiled(isa, level, functions, folder):
        kind, name, by = function.split("_")
        divisor, (_, bits), is_signed = int(by.replace("m", "-")), TYPES[kind], kind[0] == "i"
        x = t.var("x", bits)
        found = result(isa, code, x, is_signed)
        draw = random.Random(function)
        limit = 1 << bits
        numbers = range(limit) if bits == 8 else [draw.randrange(limit) // divisor * divisor - 1 for _ in range(20)]
        for n in [*numbers, 0, divisor, divisor - 1, limit - 1, limit // 2, limit // 2 - 1]:
            n %= limit
            number = n - limit if is_signed and n >= limit // 2 else n
            quotient = abs(number) // abs(divisor) * (1 if (number < 0) == (divisor < 0) else -1)
            expected = quotient if name == "div" else number - quotient * divisor
            assert value(found, n) == expected % limit, (isa, function, n)
        size = t.const(abs(divisor), bits)
        if name == "rem":
            known = t.srem(x, size) if is_signed else t.urem(x, size)
        else:
            known = t.sdiv(x, size) if is_signed else t.udiv(x, size)
        if found is not known and found is not t.neg(known):
            strange.append(function)
    return strange


@pytest.mark.parametrize("level", ["-O1", "-O2"])
@pytest.mark.parametrize("isa", list(MACHINES))
def test_words_and_halves(isa: str, level: str, tmp_path: Path) -> None:
    wanted = [
        (kind, d)
        for kind in ("u16", "i16", "u32", "i32")
        for divisor in DIVISORS
        for d in ((divisor, -divisor) if kind[0] == "i" else (divisor,))
        if divisor < 1 << TYPES[kind][1] - 1
    ]
    assert checked(isa, level, wanted, tmp_path) == []


@pytest.mark.parametrize("isa", ["x86-32", "ppc32-be"])
def test_bytes_by_every_divisor(isa: str, tmp_path: Path) -> None:
    # Quotients of one bit are comparisons.
    wanted = [("u8", d) for d in range(2, 128) if d & (d - 1)]
    wanted += [("i8", d) for d in range(-63, 64) if abs(d) > 2 and abs(d) & (abs(d) - 1)]
    strange = checked(isa, "-O1", wanted, tmp_path)
    # 17 * q of four bits is q beside q: no product is left.
    assert strange == (["u8_rem_17", "u8_rem_33", "u8_rem_65"] if isa == "x86-32" else [])
