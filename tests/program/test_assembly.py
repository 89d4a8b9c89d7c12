"""Assembly text as input: what compilers write, labels as addresses, imports, and what can go wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.errors import InputFileError, UsageError
from mcveto.program.exits import run_to_end
from mcveto.program.image import load_image
from mcveto.program.image.assembly import with_percent_signs
from mcveto.program.inputs import InputSource
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

ROOT = Path(__file__).parents[2]
needs_assembler = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")

# In the style of gcc: register names with a percent sign, its directives, a label of its own kind.
POWERPC = """
	.file	"clamp.c"
	.machine ppc
	.section	".text"
	.align 2
	.globl clamp
	.type	clamp, @function
clamp:
	stwu %r1,-16(%r1)
	mflr %r0
	stw %r0,20(%r1)
	rlwinm %r3,%r3,0,0xff
	cmplwi %cr7,%r3,31
	ble %cr7,.L2
	lis %r9,limit@ha
	lwz %r3,limit@l(%r9)
	bl report
.L2:
	lwz %r0,20(%r1)
	mtlr %r0
	addi %r1,%r1,16
	blr
	.size	clamp, .-clamp
	.section	.rodata
	.align 2
limit:
	.long	31
	.gnu_attribute 4, 1
	.ident	"GCC: (GNU) 13.2.0"
	.section	.note.GNU-stack,"",@progbits
"""
# In the style of gcc -masm=intel -g: its ways to name an address, to jump through a table and to widen.
INTEL = """
	.file	"pick.c"
	.intel_syntax noprefix
	.text
	.section	.rodata.str1.1,"aMS",@progbits,1
.LC0:
	.string	"abc"
	.section	.rodata
	.align 8
.L4:
	.quad	.L5
	.quad	.L6
	.text
	.globl	pick
	.type	pick, @function
pick:
	.file 1 "pick.c"
	.loc 1 3 20 view -0
	and	edi, 1
	movsx	rdi, edi
	jmp	[QWORD PTR .L4[0+rdi*8]]
.L5:
	mov	eax, OFFSET FLAT:.LC0
	movzx	eax, BYTE PTR [rax]
	ret
.L6:
	movsx	rax, DWORD PTR .LC0[rip]
	ret
	.size	pick, .-pick
	.section	.debug_line,"",@progbits
.Ldebug_line0:
	.section	.note.GNU-stack,"",@progbits
"""
X86 = """
	.text
	.globl	twice
	.type	twice, @function
twice:
	.cfi_startproc
	movl	4(%esp), %eax
	testl	%eax, %eax
	js	.L3
	addl	%eax, %eax
	ret
.L3:
	xorl	%eax, %eax
	ret
	.cfi_endproc
"""


def written(folder: Path, text: str, name: str = "text.s") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@needs_assembler
def test_gcc_text_for_powerpc(tmp_path: Path) -> None:
    path = written(tmp_path, POWERPC)
    image = load_image(path)
    assert image.isa == "ppc32-be"
    assert image.symbols[".L2"] == image.symbols["clamp"] + 36
    assert image.read(image.symbols["limit"], 4) == b"\0\0\0\x1f"
    assert list(image.imports) == ["report"]
    for given, expected in ((7, 7), (0x107, 7)):
        program = load_program(path, Spec(entry="clamp", input_registers=("r3",)))
        machine = program.machine(InputSource([given]))
        assert run_to_end(program, machine, 100).kind == "halted"
        assert machine.read("r3") == expected


@needs_assembler
def test_undefined_functions_are_not_modelled_unless_the_spec_says_what_they_are(tmp_path: Path) -> None:
    path = written(tmp_path, POWERPC)
    given = InputSource([200])
    program = load_program(path, Spec(entry="clamp", input_registers=("r3",)))
    outcome = run_to_end(program, program.machine(given), 100)
    assert outcome.kind == "unsupported" and "report" in outcome.detail

    as_input = Spec(entry="clamp", input_registers=("r3",), input_calls=(InputCall("report"),))
    program = load_program(path, as_input)
    machine = program.machine(InputSource([200, 5]))
    assert run_to_end(program, machine, 100).kind == "halted"
    assert machine.read("r3") == 5

    as_target = Spec(entry="clamp", input_registers=("r3",), properties=(PropertySpec("reach", ("report",)),))
    program = load_program(path, as_target)
    assert run_to_end(program, program.machine(InputSource([200])), 100).kind == "target"


@needs_assembler
def test_labels_are_addresses(tmp_path: Path) -> None:
    path = written(tmp_path, POWERPC)
    spec = Spec(entry="clamp", input_registers=("r3",), halt=(".L2",))
    program = load_program(path, spec)
    outcome = run_to_end(program, program.machine(InputSource([1])), 100)
    assert outcome.kind == "halted" and outcome.pc == program.image.symbols[".L2"]


@needs_assembler
def test_gcc_text_in_intels_syntax(tmp_path: Path) -> None:
    path = written(tmp_path, INTEL)
    program = load_program(path, Spec(entry="pick", input_registers=("rdi",)))
    assert program.image.isa == "x86-64" and program.image.read(program.image.symbols[".LC0"], 4) == b"abc\0"
    for given, expected in ((2, 0x61), (3, 0x636261)):
        machine = program.machine(InputSource([given]))
        assert run_to_end(program, machine, 100).kind == "halted"
        assert machine.read("RAX") == expected


def test_bare_names_of_powerpc_registers() -> None:
    """What is a register gets its percent sign; what only looks like one, or is defined as something else, does not."""
    given = rb"""	.set r9,8
r10 = 11
r12:	lwz r0,8(r31)
.L2:	stw r3,4(r1); stw %r4,r5x(r6)
	.long r3
	.ascii "r3 r4"
	addi \r3,r10,r9
	bl r12
	lfd f1,0(r2)
	lis r3,r7@ha
	b .Lr3
"""
    assert with_percent_signs(given) == (
        rb"""	.set r9,8
r10 = 11
r12:	lwz %r0,8(%r31)
.L2:	stw %r3,4(%r1); stw %r4,r5x(%r6)
	.long r3
	.ascii "r3 r4"
	addi \r3,%r11,%r8
	bl r12
	lfd %f1,0(%r2)
	lis %r3,r7@ha
	b .Lr3
"""
    )


@needs_assembler
def test_powerpc_text_means_the_same_however_registers_are_written(tmp_path: Path) -> None:
    expected = load_image(written(tmp_path, POWERPC))
    bare = POWERPC.replace("%r", "r").replace("%cr", "cr")
    assert bare != POWERPC
    numbers = "".join(f"\t.set r{number},{number}\n" for number in range(32)) + bare
    for name, text in (("bare.s", bare), ("numbers.s", numbers)):
        image = load_image(written(tmp_path, text, name))
        assert [segment.content for segment in image.segments] == [segment.content for segment in expected.segments]


@needs_assembler
def test_x86_and_little_endian_powerpc(tmp_path: Path) -> None:
    image = load_image(written(tmp_path, X86))
    assert image.isa == "x86-32" and ".L3" in image.symbols
    assert load_image(written(tmp_path, X86.replace("%esp", "%rsp").replace("4(", "8("), "long.s")).isa == "x86-64"
    little = load_image(written(tmp_path, POWERPC, "little.s"), arch="ppc32-le")
    assert little.read(little.symbols["limit"], 4) == b"\x1f\0\0\0"


@needs_assembler
def test_errors_of_the_assembler_are_one_line_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"line 3: .*assembled as ppc32-be") as caught:
        load_image(written(tmp_path, "\tblr\n\n\tfrobnicate %r1\n"))
    assert "\n" not in str(caught.value)


def test_text_that_does_not_name_its_machine(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--arch"):
        load_image(written(tmp_path, "\tnop\n"))


def test_without_an_assembler_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputFileError, match="pip install"):
        load_image(written(tmp_path, POWERPC))


@needs_assembler
def test_the_example_texts_do_what_their_binaries_do() -> None:
    from mcveto.program.spec import load_spec

    for name, inputs, expected in (("bug", [0, 0], "target"), ("fix", [0, 0], "halted"), ("fix", [1, 1, 40], "halted")):
        program = load_program(None, load_spec(str(ROOT / f"examples/air/text/memname-{name}.yaml")))
        assert run_to_end(program, program.machine(InputSource(inputs)), 10_000).kind == expected


DEBUGGED = """
	.file	"half.c"
	.machine ppc
	.section	".text"
.Ltext0:
	.align 2
	.globl half
	.type	half, @function
half:
.LFB0:
	.file 1 "half.c"
	.loc 1 1 20 view -0
	.cfi_startproc
	.loc 1 1 22 is_stmt 0 view .LVU1
	srwi 3,3,1
.LVL1:
	.loc 1 1 36 view .LVU2
	blr
	.cfi_endproc
.LFE0:
	.size	half,.-half
	.section	".debug_loclists","",@progbits
	.4byte	.Ldebug_loc3-.Ldebug_loc2
.Ldebug_loc2:
	.uleb128 .LVU1
	.uleb128 .LVU2
.Ldebug_loc3:
	.section	".rodata"
kept:
	.long 77
	.ident	"GCC"
"""


@needs_assembler
def test_what_gcc_writes_for_debuggers_is_left_out(tmp_path: Path) -> None:
    image = load_image(written(tmp_path, DEBUGGED))
    assert image.read(image.symbols["kept"], 4) == b"\0\0\0\x4d"
    assert image.symbols[".LVL1"] == image.symbols["half"] + 4
    with pytest.raises(InputFileError, match="line 15"):
        load_image(written(tmp_path, DEBUGGED.replace("srwi 3,3,1", "srwj 3,3,1")))
