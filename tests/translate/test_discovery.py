"""Code is found however it is referred to, and what cannot be translated does not hide what follows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import Spec
from mcveto.translate.to_c import CTranslation

BASE = 0x10000


def translated(folder: Path, isa: str, code: bytes) -> CTranslation:
    blob = folder / "blob.bin"
    blob.write_bytes(code)
    return CTranslation(load_program(str(blob), Spec(arch=isa, base=BASE, entry=BASE)))


def test_an_unsupported_instruction_is_a_trap_and_the_next_one_is_found(tmp_path: Path) -> None:
    """mov rax, fs:[0x28] (nine bytes); xor eax, eax; ret."""
    code = bytes.fromhex("64488b042528000000 31c0 c3")
    result = translated(tmp_path, "x86-64", code)
    assert sorted(result.code.instructions) == [BASE, BASE + 9, BASE + 11]
    assert "FS" in result.code.instructions[BASE].problem
    assert result.summary.traps == 1 and not result.code.lost
    text = "\n".join(result.lines())
    assert "mc_unsupported(); /* access through FS or GS" in text


def test_constants_that_instructions_put_together_are_targets(tmp_path: Path) -> None:
    """lis r9,1; addi r9,r9,0x18; mtctr r9; bctr; two words of no code; li r3,7; blr."""
    words = (0x3D200001, 0x39290018, 0x7D2903A6, 0x4E800420, 0x00000001, 0x00000002, 0x38600007, 0x4E800020)
    result = translated(tmp_path, "ppc32-be", b"".join(word.to_bytes(4, "big") for word in words))
    assert BASE + 0x18 in result.code.targets
    assert BASE + 0x1C in result.code.instructions


def test_words_in_data_that_are_code_addresses_are_targets(tmp_path: Path) -> None:
    """jmp [table + 4*eax]; nop; a table of one entry; what it points to."""
    code = bytes.fromhex("ff248508000100 90") + (BASE + 0xE).to_bytes(4, "little") + b"\xff\xff\x40\xc3"
    result = translated(tmp_path, "x86-32", code)
    assert BASE + 0xE in result.code.targets
    assert result.code.instructions[BASE + 0xE].instruction.mnemonic == "INC"


def test_long_runs_of_zeros_are_padding(tmp_path: Path) -> None:
    result = translated(tmp_path, "x86-32", b"\xc3" + bytes(40) + b"\x40\xc3")
    assert (BASE + 1, BASE + 41, "zero bytes") in result.code.lost
    assert BASE + 41 in result.code.instructions


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize("section_headers", [True, False])
def test_start_up_code_of_stripped_files_is_found(section_headers: bool, tmp_path: Path) -> None:
    """A section that nothing calls begins with an instruction, whatever the bytes in front of it decode to.

    The last byte of .text, taken for code, begins a jump of five bytes into .fini; where that begins is said by the
    section headers and by the dynamic table only.
    """
    source = tmp_path / "two.s"
    source.write_text(
        ".text\n.globl _start\n_start: ret\n.byte 0xe9\n"
        '.section .fini,"ax",@progbits\n.globl _fini\n.hidden _fini\n_fini: push %rbx\nmov %rsi, %rbx\npop %rbx\nret\n'
    )
    binary = tmp_path / "two.elf"
    build = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-none", "-nostdlib", "-s", "-shared"]
    subprocess.run([*build, str(source), "-o", str(binary)], check=True)
    if not section_headers:
        content = bytearray(binary.read_bytes())
        content[0x28:0x30] = bytes(8)  # e_shoff
        content[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
        binary.write_bytes(content)
    found = [
        item.instruction.bytes.hex()
        for item in CTranslation(load_program(str(binary), Spec())).code.instructions.values()
    ]
    assert "53" in found and "4889f3" in found


def test_a_table_behind_the_jump_is_read_and_does_not_hide_code(tmp_path: Path) -> None:
    """Thumb: tbb [pc,r0]; a table of three; movs r0,#1; bx lr; movw r0,#0x1234; bx lr; movs r0,#3; bx lr.

    Taken for ARM code, which the even address of the table suggests, it would cover the instructions behind it.
    """
    code = bytes.fromhex("dfe800f0 02040700 0120 7047 41f23420 7047 0320 7047")
    blob = tmp_path / "blob.bin"
    blob.write_bytes(code)
    result = CTranslation(load_program(str(blob), Spec(arch="arm", base=BASE, entry=BASE | 1)))
    behind = {BASE + 8 | 1, BASE + 12 | 1, BASE + 18 | 1}
    assert behind <= result.code.targets
    assert result.code.instructions[BASE + 12 | 1].instruction.bytes.hex() == "41f23420"
    assert BASE + 16 | 1 in result.code.instructions
