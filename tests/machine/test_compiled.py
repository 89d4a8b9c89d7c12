"""The compiled machine on programs made to be awkward for it, against the reference emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.compiled.views import Views
from mcveto.machine.concrete import usual_value
from mcveto.machine.emulator import Machine, Outcome
from mcveto.machine.faults import FaultKind
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec
from mcveto.machine.pcode import FreshOrigin, Instruction

CODE, DATA, FIXED, STACK = 0x1000, 0x8000, 0x9000, 0xF0000
LIMIT = 4000


def memory_with(code: bytes, isa: str, permissions: int = 5) -> Memory:
    row = decoder_for(isa).row
    return Memory(
        [
            RegionSpec("code", CODE, 0x1000, permissions, code),
            RegionSpec("data", DATA, 0x1000, 6, bytes(range(256))),
            RegionSpec("fixed", FIXED, 0x1000, 4, bytes(range(256))),
            RegionSpec("stack", STACK, 0x1000, 6),
        ],
        row.address_bits,
        row.big_endian,
    )


def both(
    code: bytes | str,
    isa: str = "x86-32",
    registers: Mapping[str, int] | None = None,
    permissions: int = 5,
    pc: int = CODE,
    halt: int | None = None,
    pieces: tuple[int, ...] = (LIMIT,),
    hooks: Mapping[int, Instruction] | None = None,
    fresh: Callable[[], Callable[[int, FreshOrigin, int], int]] | None = None,
    between: Callable[[Machine], None] | None = None,
) -> tuple[CompiledMachine, Outcome]:
    """Runs both machines piece by piece, compares everything, and returns the compiled one."""
    content = bytes.fromhex(code) if isinstance(code, str) else code
    decoder = decoder_for(isa)
    named = {decoder.row.stack_pointer: STACK + 0x800, **(registers or {})}
    cells = {decoder.layout.named(name)[0].cell.number: value for name, value in named.items()}
    halts = [CODE + len(content) if halt is None else halt]
    machines: list[Machine] = []
    outcomes: list[Outcome] = []
    for kind in (Machine, CompiledMachine):
        source = usual_value if fresh is None else fresh()
        memory = memory_with(content, isa, permissions)
        machine = kind(decoder, memory, cells, pc, halts=halts, hooks=hooks, fresh=source)
        for piece in pieces:
            outcome = machine.run(piece)
            outcomes.append(outcome)
            if between is not None:
                between(machine)
        machines.append(machine)
    reference, compiled = machines
    assert isinstance(compiled, CompiledMachine)
    assert outcomes[: len(pieces)] == outcomes[len(pieces) :]
    assert compiled.pc == reference.pc
    for left, right in zip(reference.memory.regions, compiled.memory.regions, strict=True):
        assert left.data == right.data, left
    numbers = reference.registers.keys() | compiled.registers.keys()
    assert {n: compiled.registers.get(n, 0) for n in numbers} == {n: reference.registers.get(n, 0) for n in numbers}
    assert list(compiled.trace) == list(reference.trace)
    return compiled, outcomes[-1]


def test_store_into_the_next_instruction_of_the_running_block() -> None:
    # L: mov byte [L2+1], cl ; L2: mov al, 0 ; add edx, eax ; dec ecx ; jnz L
    code = "b950000000" + "880d0c100000" + "b000" + "01c2" + "49" + "75f3"
    machine, outcome = both(code, permissions=7)
    assert outcome.kind == "halted"
    assert machine.read("EDX") == sum(range(1, 0x51))


def test_loop_that_patches_itself_once_in_a_while() -> None:
    # L: inc eax ; test al, 31 ; jnz S ; xor byte [L], 8 (inc eax <-> dec eax) ; inc ebx ; S: dec ecx ; jnz L
    code = "b9c8000000" + "b810000000" + "40" + "a81f" + "7508" + "80350a10000008" + "43" + "49" + "75f0"
    machine, outcome = both(code, permissions=7)
    assert outcome.kind == "halted"
    assert machine.read("EBX") > 1
    assert machine.paths_compiled > 20


def test_patching_a_function_elsewhere() -> None:
    # L: call F ; test cl, 15 ; jnz S ; add byte [F+1], 1 ; S: dec ecx ; jnz L ; jmp END ;
    # F: mov al, 1 ; add edx, eax ; ret
    function = CODE + 5 + 5 + 3 + 2 + 7 + 1 + 2 + 2
    code = (
        bytes.fromhex("b990010000")
        + b"\xe8"
        + (function - (CODE + 10)).to_bytes(4, "little")
        + bytes.fromhex("f6c10f" + "7507" + "8005")
        + (function + 1).to_bytes(4, "little")
        + bytes.fromhex("01" + "49" + "75ec" + "eb05" + "b001" + "01c2" + "c3")
    )
    machine, outcome = both(code, permissions=7, registers={"EDX": 0})
    assert outcome.kind == "halted"
    assert machine.read("EDX") > 400
    assert machine.paths_compiled > 100


def test_code_that_turns_up_where_data_was_written() -> None:
    # Writes `inc edx; ret` (42 c3) to a free place of the code region in a hot loop, calls it in a later hot loop.
    place = CODE + 0x800
    code = (
        bytes.fromhex("b940000000" + "66c705")
        + place.to_bytes(4, "little")
        + bytes.fromhex("42c3" + "49" + "75f4" + "b940000000")
        + bytes.fromhex("e8e5070000" + "49" + "75f8")
        + bytes.fromhex("b940000000" + "66c705")
        + place.to_bytes(4, "little")
        + bytes.fromhex("4ac3")
        + bytes.fromhex("e8cf070000" + "49" + "75ef")
    )
    assert place - (CODE + 27) == 0x7E5
    machine, outcome = both(code, permissions=7)
    assert outcome.kind == "halted"
    assert machine.read("EDX") == 0
    assert machine.paths_compiled > 100


@pytest.mark.parametrize("store", ["66a300180000", "668906", "66894600"])
def test_stores_that_were_harmless_when_compiled(store: str) -> None:
    # O: mov ecx, 40 ; A: mov [P], ax ; dec ecx ; jnz A ; mov ecx, 40 ; B: call P ; dec ecx ; jnz B ; xor al, 8 ;
    # dec ebx ; jnz O : the first loop is compiled when nothing has been executed at P yet; P toggles inc/dec edx.
    size = len(store) // 2
    first = "b928000000" + store + "49" + f"75{256 - size - 3:02x}"
    call = CODE + len(first) // 2 + 5
    second = "b928000000" + "e8" + (0x1800 - call - 5).to_bytes(4, "little").hex() + "49" + "75f8" + "3408" + "4b"
    code = first + second + f"75{256 - (len(first) + len(second)) // 2 - 2:02x}"
    machine, outcome = both(code, permissions=7, registers={"EAX": 0xC342, "EBX": 5, "ESI": 0x1800})
    assert outcome.kind == "halted"
    assert machine.read("EDX") == 40
    assert machine.paths_compiled > 200


def test_views_keep_clear_of_overlapping_instructions() -> None:
    views = Views(memory_with(b"", "x86-32", 7), False, True)
    views.add_code(CODE + 0x100, CODE + 0x110)
    views.add_code(CODE + 0x104, CODE + 0x105)
    inside = views.at(CODE + 0x108, 4, True)
    assert inside is not None and not inside.writable
    behind = views.at(CODE + 0x140, 4, True)
    assert behind is not None and behind.writable and behind.watched and behind.low >= CODE + 0x110
    data = views.at(DATA + 8, 4, True)
    assert data is not None and data.writable and not data.watched
    fixed = views.at(FIXED + 8, 4, True)
    assert fixed is not None and fixed.readable and not fixed.writable


def test_jump_into_the_middle_of_an_instruction() -> None:
    # L: mov eax, 0x90c3_4142 as its own instruction and, entered one byte later, as inc edx; inc ecx; ret
    code = (
        bytes.fromhex("be40000000")
        + bytes.fromhex("b84241c390")  # mov eax, imm; the imm is inc edx; inc ecx; ret; nop
        + bytes.fromhex("e8f7ffffff")  # call into the imm
        + bytes.fromhex("4e" + "75f3")
    )
    machine, outcome = both(code)
    assert outcome.kind == "halted"
    assert machine.read("EDX") == 0x40
    assert machine.read("EAX") == 0x90C34142


@pytest.mark.parametrize(
    ("access", "fault"),
    [
        ("8807", FaultKind.WRITE_PERMISSION),  # mov [edi], al
        ("8907", FaultKind.WRITE_PERMISSION),  # mov [edi], eax
        ("a4", FaultKind.WRITE_PERMISSION),  # movsb
        ("ff37", None),  # push [edi]: only reads
    ],
)
def test_store_to_a_read_only_page_in_a_hot_loop(access: str, fault: FaultKind | None) -> None:
    # inc eax ; access ; add edi, 4 ; dec ecx ; jnz: runs over the end of the data into a page that is read-only.
    body = "40" + access + "83c704" + "49"
    code = "b980000000" + body + f"75{256 - len(body) // 2 - 2:02x}"
    machine, outcome = both(code, registers={"EDI": FIXED - 0x100, "ESI": DATA})
    assert machine.paths_compiled > 20
    assert outcome.fault is fault
    assert outcome.kind == ("fault" if fault else "halted")


def test_faults_leave_registers_and_memory_as_before_the_instruction() -> None:
    # L: push ecx ; jmp L : the stack runs into its guard
    machine, outcome = both("51" + "ebfd", registers={"ESP": STACK + 0x200})
    assert outcome == Outcome("fault", CODE, FaultKind.UNMAPPED_WRITE, STACK - 4, outcome.detail, 256)
    assert machine.read("ESP") == STACK


def test_division_fault_in_a_hot_loop() -> None:
    # L: mov eax, 100 ; cdq ; idiv ecx ; add ebx, eax ; dec ecx ; jmp L : ends when ecx is 0
    machine, outcome = both("b964000000" + "b864000000" + "99" + "f7f9" + "01c3" + "49" + "ebf3")
    assert outcome.kind in ("fault", "unsupported")
    assert outcome.pc == CODE + 11
    assert machine.paths_compiled > 50
    assert machine.read("EAX") == 100


def test_repeated_string_moves() -> None:
    # L: mov ecx, 64 ; mov esi, DATA ; mov edi, DATA+0x200 ; rep movsb ; dec ebx ; jnz L
    code = "bb08000000" + "b940000000" + "be00800000" + "bf00820000" + "f3a4" + "4b" + "75ec"
    machine, outcome = both(code)
    assert outcome.kind == "halted"
    assert machine.paths_compiled > 200


def test_conditional_moves_and_sets() -> None:
    # L: lea eax,[ecx-0x80] ; cmp eax, 7 ; cmovl edx, ecx ; cmova ebx, eax ; setge dl ; sets bh ; dec ecx ; jnz L
    code = "b900010000" + "8d4180" + "83f807" + "0f4cd1" + "0f47d8" + "0f9dc2" + "0f98c7" + "49" + "75eb"
    machine, outcome = both(code)
    assert outcome.kind == "halted"
    assert machine.paths_compiled > 200


def test_flags_survive_the_end_of_a_compiled_run() -> None:
    # cmp / inc / shl in a loop; stopped after every possible number of steps.
    code = "b960000000" + "39c8" + "40" + "d1e2" + "83da03" + "49" + "75f5"
    for cut in range(80, 120):
        both(code, pieces=(cut, 7, 50))


def test_thumb_with_it_block_and_calls() -> None:
    # movs r0,#0; movs r1,#80; L: cmp r1,#40; it gt; addgt r0,#3; bl F; subs r1,#1; bne L; b END;
    # F: adds r2,r2,r0; bx lr
    halves = (0x2000, 0x2150, 0x2928, 0xBFC8, 0x3003, 0xF000, 0xF803, 0x3901, 0xD1F8, 0xE001, 0x1812, 0x4770)
    code = b"".join(half.to_bytes(2, "little") for half in halves)
    machine, outcome = both(code, isa="arm", pc=CODE | 1)
    assert outcome.kind == "halted"
    assert machine.read("r0") == 120
    assert machine.paths_compiled > 50


def test_limits_are_exact() -> None:
    code = "b9ffff0000" + "01c8" + "49" + "75fb"
    for limit in (0, 1, 2, 17, 100, 101, 102, 103, 1000):
        machine, outcome = both(code, pieces=(limit,))
        assert (outcome.kind, outcome.steps, len(machine.trace)) == ("limit", limit, limit)


def test_inputs_come_in_order_from_a_hook() -> None:
    # L: call INPUT ; add ebx, eax ; dec ecx ; jnz L
    decoder = decoder_for("x86-32")
    address = CODE + 0x100
    ops = decoder.assembler.assemble(
        """
        EAX = FRESH 5:4, 1:1
        %to:4 = LOAD ESP
        ESP = INT_ADD ESP, 4:4
        RETURN %to
        """,
        {},
    )
    hook = Instruction(address, b"", tuple(ops), "input", "")
    code = "b932000000" + "e8f6000000" + "01c3" + "49" + "75f6"

    def counting() -> Callable[[int, FreshOrigin, int], int]:
        count = 0

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            nonlocal count
            if origin is not FreshOrigin.INPUT:
                return usual
            count += 1
            return count * 3 + usual

        return fresh

    machine, outcome = both(code, hooks={address: hook}, fresh=counting)
    assert outcome.kind == "halted"
    assert machine.read("EBX") == sum(3 * n + 5 for n in range(1, 51))


def test_memory_changed_from_outside_between_runs() -> None:
    # mov al, 1 ; add edx, eax ; jmp: the immediate is patched between two calls of run.
    code = "b001" + "01c2" + "ebfa"

    def patch(machine: Machine) -> None:
        machine.memory.poke(CODE + 1, b"\x07")

    machine, _ = both(code, pieces=(300, 300), between=patch)
    assert machine.read("EDX") == 100 + 700
    assert machine.paths_compiled > 100


def test_pointer_that_visits_several_regions() -> None:
    # xchg esi, edi ; inc dword [esi] ; mov eax, [edi+1] ; dec ecx ; jnz
    code = "b980000000" + "87f7" + "ff06" + "8b4701" + "49" + "75f6"
    machine, outcome = both(code, registers={"ESI": DATA + 4, "EDI": STACK + 0x10})
    assert outcome.kind == "halted"
    assert machine.paths_compiled > 50


def test_data_right_behind_the_code_stays_fast() -> None:
    # L: inc dword [counter] ; dec ecx ; jnz L ; jmp END ; counter: at an odd address just behind the loop
    code = "b9e8030000" + "ff0510100000" + "49" + "75f7" + "eb04" + "00000000"
    machine, outcome = both(code, permissions=7)
    assert outcome.kind == "halted"
    assert int.from_bytes(machine.memory.peek(0x1010, 4) or b"", "little") == 1000
    assert machine.paths_compiled > 900


def test_undefined_values_can_be_exact() -> None:
    decoder = decoder_for("x86-32")
    machine = CompiledMachine(decoder, memory_with(b"\xeb\xfe", "x86-32"), {}, CODE, exact_undefined=True)
    assert machine.run(200).kind == "limit"
    assert machine.paths_compiled == 0
