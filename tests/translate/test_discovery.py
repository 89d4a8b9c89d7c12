"""Code is found however it is referred to, and what cannot be translated does not hide what follows."""

from __future__ import annotations

from pathlib import Path

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
