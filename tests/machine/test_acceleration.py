"""Skipped loops: the run is where it would have come to one instruction after the other, in every respect."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.machine.acceleration import Accelerator
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec
from mcveto.machine.pcode import Instruction

CODE, DATA, STACK = 0x1000, 0x8000, 0xF000


def machine(code: str, hooks: dict[int, Instruction] | None = None, isa: str = "x86-32") -> CompiledMachine:
    decoder = decoder_for(isa)
    content = bytes.fromhex(code.replace(" ", ""))
    memory = Memory(
        [
            RegionSpec("code", CODE, 0x1000, 7, content),
            RegionSpec("data", DATA, 0x1000, 6),
            RegionSpec("stack", STACK, 0x1000, 6),
        ],
        decoder.row.address_bits,
        False,
    )
    registers = {decoder.layout.by_name["ESP" if isa == "x86-32" else "RSP"].number: STACK + 0x800}
    return CompiledMachine(decoder, memory, registers, CODE, halts=[CODE + len(content)], hooks=hooks)


def run_with_skips(
    code: str, before: int, limit: int = 1 << 40, isa: str = "x86-32"
) -> tuple[CompiledMachine, int, int]:
    """The machine at its end, the steps of the run, and how many of them were skipped."""
    subject = machine(code, isa=isa)
    accelerator = Accelerator(subject)
    steps = skipped = 0
    while steps < limit:
        outcome = subject.run(min(before, limit - steps))
        steps += outcome.steps
        if outcome.kind != "limit":
            break
        here = len(subject.trace)
        done = accelerator.skip(limit - steps)
        steps += done
        skipped += done - (len(subject.trace) - here)
    return subject, steps, skipped


def same(one: CompiledMachine, other: CompiledMachine) -> bool:
    cells = set(one.registers) | set(other.registers)
    return (
        one.pc == other.pc
        and all(one.registers.get(cell, 0) == other.registers.get(cell, 0) for cell in cells)
        and [r.data for r in one.memory.regions] == [r.data for r in other.memory.regions]
    )


def immediate(number: int) -> str:
    return (number & 0xFFFFFFFF).to_bytes(4, "little").hex()


# What a turn may contain: sums in registers and in memory, and something that depends on a comparison.
COUNTING = st.one_of(
    st.integers(-5, 5).map(lambda n: f"81c0{immediate(n)}"),  # add eax, n
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda n: f"81c3{immediate(n)}"),  # add ebx, n
    st.integers(-3, 300).map(lambda n: f"8105{immediate(DATA)}{immediate(n)}"),  # add [DATA], n
    st.just("a100800000 40 a304800000"),  # mov eax, [DATA]; inc eax; mov [DATA+4], eax
    st.just("0fb60500800000"),  # movzx eax, byte [DATA]
    st.integers(0, 3000).map(lambda n: f"3d{immediate(n)} 7201 42"),  # cmp eax, n; jb +1; inc edx
    st.integers(-2000, 2000).map(
        lambda n: f"813d{immediate(DATA)}{immediate(n)} 7f01 46"
    ),  # cmp [DATA], n; jg; inc esi
    st.integers(0, 3000).map(lambda n: f"3d{immediate(n)} 83d8ff"),  # cmp eax, n; sbb eax, -1
    st.integers(0, 3000).map(lambda n: f"81fb{immediate(n)} 83d202"),  # cmp ebx, n; adc edx, 2
    st.integers(-50, 3000).map(lambda n: f"3d{immediate(n)} 0f9cc2 0fb6d2 01d6"),  # cmp; setl dl; movzx; add esi, edx
    st.integers(0, 3000).map(lambda n: f"8d6801 3d{immediate(n)} 0f47c5"),  # lea ebp,[eax+1]; cmp eax,n; cmova eax,ebp
    st.just("69ff03000000 47"),  # imul edi, edi, 3; inc edi
    st.just("50 58"),  # push eax; pop eax
    st.just("01cb"),  # add ebx, ecx
    st.just("011d04800000"),  # add [DATA+4], ebx: a sum of sums
    st.just("89ca 0fafd1 0315 08800000 891508800000"),  # a sum of squares: [DATA+8] += ecx * ecx
)


@settings(max_examples=40, deadline=None)
@given(st.lists(COUNTING, min_size=1, max_size=4), st.integers(300, 5000), st.integers(1, 400))
def test_random_loops_end_in_the_same_state(body: list[str], turns: int, before: int) -> None:
    inside = "".join(body).replace(" ", "")
    back = -(len(inside) // 2 + 7)
    code = f"b9{immediate(turns)}{inside}490f85{immediate(back)}"
    plain = machine(code)
    steps = plain.run(10**7).steps
    subject, made, _ = run_with_skips(code, before)
    assert made == steps
    assert same(subject, plain)


# Parts of registers: 32 of 64 bits, and vectors of 32 or 64 bits each.
IN_PARTS = st.one_of(
    st.integers(-5, 5).map(lambda n: f"81c0{immediate(n)}"),  # add eax, n
    st.integers(-5, 5).map(lambda n: f"4881c3{immediate(n)}"),  # add rbx, n
    st.integers(-5, 5).map(lambda n: f"6681c3{immediate(n)[:4]}"),  # add bx, n
    st.just("01cb"),  # add ebx, ecx
    st.just("4801c3"),  # add rbx, rax
    st.just("660ffec1"),  # paddd xmm0, xmm1
    st.just("660ffeca"),  # paddd xmm1, xmm2
    st.just("660fd4d9"),  # paddq xmm3, xmm1
    st.just("660f6ed1"),  # movd xmm2, ecx
    st.just("660f70d100"),  # pshufd xmm2, xmm1, 0
    st.just("660f7ec2"),  # movd edx, xmm0
    st.integers(0, 3000).map(lambda n: f"3d{immediate(n)} 83d201"),  # cmp eax, n; adc edx, 1
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(IN_PARTS, min_size=1, max_size=5),
    st.integers(300, 5000),
    st.integers(1, 400),
    st.integers(0, (1 << 64) - 1),
)
def test_random_loops_over_parts_of_registers_end_in_the_same_state(
    body: list[str], turns: int, before: int, start: int
) -> None:
    inside = "".join(body).replace(" ", "")
    back = -(len(inside) // 2 + 8)
    # mov rbx, start; movq xmm1, rbx; punpcklqdq xmm1, xmm1; movdqa xmm2, xmm1; mov ecx, turns; …; dec ecx; jnz
    loads = f"48bb{start.to_bytes(8, 'little').hex()}66480f6ecb660f6cc9660f6fd1"
    code = f"{loads}b9{immediate(turns)}{inside}ffc90f85{immediate(back)}"
    plain = machine(code, isa="x86-64")
    steps = plain.run(10**7).steps
    subject, made, _ = run_with_skips(code, before, isa="x86-64")
    assert made == steps
    assert same(subject, plain)


@pytest.mark.parametrize(
    "code",
    [
        "b900e1f505 ffc9 75fc",  # dec ecx: the upper half of rcx becomes zero at each turn
        "b900e1f505 01cb 4101d8 ffc9 75f7",  # sums of 32 bits in registers of 64
        "b801000000 660f6ec8 b900e1f505 660ffec1 660fd4d1 ffc9 75f4",  # sums of vectors
    ],
)
def test_long_loops_that_count_in_parts_of_registers_are_skipped(code: str) -> None:
    subject, steps, skipped = run_with_skips(code, 1000, isa="x86-64")
    assert subject.pc == CODE + len(bytes.fromhex(code.replace(" ", "")))
    assert steps > 10_000_000
    assert skipped > 0.99 * steps


@pytest.mark.parametrize(
    "code",
    [
        "b900e1f505 49 75fd",  # a hundred million turns of: dec ecx
        "b980969800 e805000000 49 75f8 eb08 50 05f4010000 58 c3 90",  # a call in each turn
        "31c0 40 833d0080000000 7501 40 3d00e1f505 72ef",  # a comparison with memory, and both kinds of sums
        # A choice without a branch: cmp eax, 10000000; sbb eax, 0; add eax, 2; cmp eax, 100000000; jb
        "31c0 3d80969800 83d800 83c002 3d00e1f505 72ee",
        "b900e1f505 01cb 49 75fb",  # a sum of numbers: add ebx, ecx
        "b900e1f505 89c8 0fafc0 01c3 011d00800000 49 75f0",  # sums of sums of squares
    ],
)
def test_long_loops_are_skipped(code: str) -> None:
    subject, steps, skipped = run_with_skips(code, 1000)
    assert subject.pc == CODE + len(bytes.fromhex(code.replace(" ", "")))
    assert steps > 10_000_000
    assert skipped > 0.99 * steps


@pytest.mark.parametrize("limit", [100_000, 100_001, 100_002])
def test_no_more_is_skipped_than_allowed(limit: int) -> None:
    code = "b900e1f505 40 49 75fc"
    plain = machine(code)
    plain.run(limit)
    subject, steps, skipped = run_with_skips(code, 1000, limit)
    assert steps == limit
    assert skipped
    assert same(subject, plain)


@pytest.mark.parametrize(
    "code",
    [
        "b980969800 fe8100800000 81e1ffffff00 49 75f0",  # inc byte [ecx+DATA]: another address each turn
        "b980969800 fe0506100000 49 75f7",  # inc byte [code]
        "b980969800 69c003000000 40 49 75f6",  # eax = 3*eax + 1
        "31c0 b901000000 01c8 41 3d00e1f505 72f6",  # until a sum is large: what is compared grows faster and faster
        "b980969800 f7d0 49 75fb",  # eax = not eax
    ],
)
def test_other_loops_are_not(code: str) -> None:
    subject = machine(code)
    accelerator = Accelerator(subject)
    subject.run(500)
    before = dict(subject.registers)
    steps = len(subject.trace)
    done = accelerator.skip(10**6)
    assert done == len(subject.trace) - steps
    assert done or subject.registers == before
