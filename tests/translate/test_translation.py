"""What a translation contains: labels, comments, every executable byte; and how its size and time grow."""

from __future__ import annotations

import importlib.util
import random
import re
import time
from pathlib import Path

import pytest

from mcveto.machine.memory import EXECUTE
from mcveto.program.program import Program, load_program
from mcveto.program.spec import Spec, load_spec
from mcveto.translate.c_instruction import comment, identifier
from mcveto.translate.to_c import CTranslation

from .running import compile_c, write

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_assembler = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")


def accounted(program: Program, translation: CTranslation) -> None:
    """Every executable byte is part of a translated instruction or listed as lost."""
    code_address = program.decoder.row.code_address
    covered: set[int] = set()
    for pc, item in translation.code.instructions.items():
        covered.update(range(code_address(pc), code_address(pc) + item.instruction.size))
    for start, end, why in translation.code.lost:
        assert why and start < end
        covered.update(range(start, end))
    for region in program.space.regions:
        if region.permissions & EXECUTE:
            assert covered >= set(range(region.start, region.end))


@pytest.mark.parametrize(
    "name",
    [
        "checksum/riscv32-O2",
        "tricks/overlap",
        "tricks/arm-interworking",
        *(pytest.param(f"checksum/{name}-O2", marks=pytest.mark.slow) for name in ("x86-64", "arm-thumb", "mips32-be")),
        pytest.param("tricks/table-512", marks=pytest.mark.slow),
    ],
)
def test_every_executable_byte_is_accounted_for(name: str) -> None:
    program = load_program(None, load_spec(str(EXAMPLES / "machine" / f"{name}.yaml")))
    translation = CTranslation(program)
    accounted(program, translation)
    text = "\n".join(translation.lines())
    for pc, item in translation.code.instructions.items():
        address = program.decoder.row.code_address(pc)
        assert f"/* {address:#010x}: {item.instruction.bytes.hex() or 'hook'}  " in text
    for start, end, _ in translation.code.lost:
        assert f"{start:#x}-{end:#x}" in text


def test_random_bytes_are_accounted_for(tmp_path: Path) -> None:
    for isa in ("x86-32", "arm", "riscv64"):
        blob = tmp_path / f"{isa}.bin"
        blob.write_bytes(random.Random(isa).randbytes(600) + bytes(50))
        program = load_program(str(blob), Spec(arch=isa, base=0x10000, entry=0x10000))
        translation = CTranslation(program)
        accounted(program, translation)
        compile_c(write(translation, tmp_path / f"{isa}.c"), "-c")


def test_a_translation_is_deterministic() -> None:
    texts = []
    for _ in range(2):
        program = load_program(None, load_spec(str(EXAMPLES / "machine/tricks/jump-table.yaml")))
        texts.append("\n".join(CTranslation(program).lines()))
    assert texts[0] == texts[1]


@needs_assembler
def test_labels_and_procedures_keep_their_names(tmp_path: Path) -> None:
    program = load_program(None, load_spec(str(EXAMPLES / "air/text/memname-bug.yaml")))
    source = write(CTranslation(program), tmp_path / "memname.c")
    text = source.read_text()
    assert "void fn_set_name(void) {" in text
    assert re.search(r"^LBB0_2: ;$", text, re.MULTILINE)
    assert "goto LBB0_2;" in text
    assert "MC_CALL(fn_spin_lock);" in text
    assert "mc_target(" in text and "reach_error" in text
    compile_c(source, "-c")
    compile_c(source, "-c", "-DMC_VERIFIER_ERROR")


def test_an_indirect_jump_dispatches_on_known_targets_and_traps_elsewhere() -> None:
    program = load_program(None, load_spec(str(EXAMPLES / "machine/tricks/jump-table.yaml")))
    text = "\n".join(CTranslation(program).lines())
    assert "goto mc_dispatch;" in text
    assert re.search(r"case 0x[0-9a-f]+u: goto L_[0-9a-f]+;", text)
    assert "mc_nowhere();" in text and "mc_unknown_target();" in text


@pytest.mark.parametrize(
    ("name", "expected"), [(".L2", "L2"), ("while", "while_"), ("a.b$c", "a_b_c"), ("9x", "_9x"), ("mc_pc", "mc_pc_")]
)
def test_identifiers(name: str, expected: str) -> None:
    assert identifier(name) == expected


def test_comments_cannot_be_closed_from_inside() -> None:
    assert "*/" not in comment("mov */ x /* \\\n y") and "/*" not in comment("/*") and "\n" not in comment("a\nb")


@pytest.mark.slow
@needs_assembler
def test_sixty_thousand_lines(tmp_path: Path) -> None:
    """Issue: at least 60,000 lines of assembly in under 30 s; size linear in the input."""
    text = (EXAMPLES / "air/text/memname-fix.s").read_text()
    names = r"\b(set_name|program|partitions|choice|reached|halt|spin_\w+|held|interrupts|_start)\b"
    sizes: list[int] = []
    lines = 0
    for copies in (20, 60_000 // len(text.splitlines()) + 1):
        parts = [
            re.sub(names, rf"\1_{copy}", re.sub(r"\.L([\w.]+)", rf".L\1_{copy}", text)).replace(
                '.file\t"memname.c"', ""
            )
            for copy in range(copies)
        ]
        path = tmp_path / f"{copies}.s"
        path.write_text("".join(parts))
        lines = sum(part.count("\n") for part in parts)
        started = time.process_time()
        program = load_program(str(path), Spec(entry="_start_0"))
        output = write(CTranslation(program), tmp_path / f"{copies}.c")
        seconds = time.process_time() - started
        sizes.append(output.stat().st_size // copies)
    assert lines >= 60_000
    assert seconds < 30
    assert sizes[1] < 1.3 * sizes[0]
