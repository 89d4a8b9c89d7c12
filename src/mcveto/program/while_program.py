"""A lowered While program as a `Program`, which every engine runs unchanged.

The decoder knows no SLEIGH: the bytes of an instruction are its number. The variables of the main program and the cells
of the memory are the inputs at entry, `input()` is an input call, the abort addresses are the targets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mcveto.errors import UsageError
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import Decoder
from mcveto.machine.isa.table import IsaRow
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec
from mcveto.machine.pcode import Instruction
from mcveto.machine.registers import RegisterLayout
from mcveto.program.entry_state import free_area, stack_region, with_return_address
from mcveto.program.image.model import Image, Permission, Segment
from mcveto.program.program import InputRegister, Program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.program.undetermined import Undetermined
from mcveto.verdict import VerdictInput
from mcveto.whilelang.formatter import module_text
from mcveto.whilelang.lowering import (
    CODE_BASE,
    FRAME_POINTER,
    INSTRUCTION_BYTES,
    MEMORY_BASE,
    PROGRAM_COUNTER,
    RESULT,
    STACK_POINTER,
    WORD,
    Lowered,
    lower,
)
from mcveto.whilelang.rewriting import module_variables, uses_memory
from mcveto.whilelang.state import State
from mcveto.whilelang.syntax import Module
from mcveto.whilelang.theory import theory_named

STACK_BYTES = 1 << 16
MAX_MEMORY_BYTES = 1 << 12


def entry_of(module: Module, inputs: Sequence[VerdictInput]) -> tuple[State, tuple[int, ...]]:
    """The initial state and the inputs of the While program that the inputs of a verdict describe."""
    theory = theory_named(module.theory)
    assert theory.bits is not None
    size = theory.bits // 8
    state = State(dict.fromkeys(module_variables(module), 0))
    patterns: dict[int, int] = {}
    read: list[int] = []
    for item in inputs:
        kind, _, where = item.where.partition(" ")
        if kind == "register":
            state.variables[where] = theory.wrap(item.value)
        elif kind == "memory":
            cell, byte = divmod(int(where, 16) - MEMORY_BASE, size)
            patterns[cell] = patterns.get(cell, 0) | item.value << 8 * byte
        elif kind == "call":
            read.append(theory.wrap(item.value))
    state.memory = {cell: theory.wrap(value) for cell, value in patterns.items()}
    return state, tuple(read)


class WhileDecoder(Decoder):
    """Decodes by looking up the number that an instruction's bytes are."""

    def __init__(self, lowered: Lowered) -> None:
        names = tuple(name for name, _, _ in lowered.registers)
        self.row = IsaRow(
            name="while",
            sleigh="",
            overlay="",
            address_bits=8 * WORD,
            stack_pointer=STACK_POINTER,
            frame_pointer=FRAME_POINTER,
            program_counter=PROGRAM_COUNTER,
            return_address="pushed",
            return_registers=(RESULT,),
            arguments=(),
            general=tuple(name for name in names if name != PROGRAM_COUNTER),
            flags=(),
            scratch=(PROGRAM_COUNTER,),
            max_instruction=INSTRUCTION_BYTES,
            alignment=INSTRUCTION_BYTES,
        )
        self.layout = RegisterLayout(lowered.registers, big_endian=False)
        self._code = lowered.instructions

    def decode(self, pc: int, code: bytes) -> Instruction:
        """The instruction whose number the bytes are; it only exists at its own address."""
        number = int.from_bytes(code[:INSTRUCTION_BYTES], "little")
        if len(code) < INSTRUCTION_BYTES or number >= len(self._code) or self._code[number].pc != pc:
            raise Unsupported("no instruction of a While program", pc)
        return self._code[number]

    def forget(self) -> None:
        """Nothing is remembered."""


def while_program(module: Module, path: str = "<while>") -> Program:
    """The program that runs the module's contract; raises UsageError."""
    lowered = lower(module)
    theory = theory_named(module.theory)
    assert theory.bits is not None
    if lowered.memory_bytes > MAX_MEMORY_BYTES:
        most = MAX_MEMORY_BYTES // lowered.value_bytes
        raise UsageError(f"{path}: a lowered program has at most {most} memory cells of this theory", "memory 16;")
    decoder = WhileDecoder(lowered)
    content = b"".join(item.bytes for item in lowered.instructions)
    code = Segment(CODE_BASE, len(content), content, Permission.READ | Permission.EXECUTE, "code")
    cells = (MEMORY_BASE, MEMORY_BASE + lowered.memory_bytes)
    regions = [RegionSpec("code", CODE_BASE, len(content), READ | EXECUTE, content)]
    if lowered.memory_bytes:
        regions.append(
            RegionSpec("Mem", cells[0], lowered.memory_bytes, READ | WRITE, b"", ((0, lowered.memory_bytes),))
        )
    text = module_text(module)
    image = Image(
        path=path,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        format="while",
        isa="while",
        entry=lowered.entry,
        base=CODE_BASE,
        segments=(code,),
        symbols={f"abort_{kind}": address for kind, address in lowered.aborts.items()},
        text=text,
    )
    stack = stack_region([(region.start, region.end) for region in regions], STACK_BYTES, 8 * WORD)
    undetermined = Undetermined(image, decoder, (stack.start, stack.end))
    sentinel = free_area([*((r.start, r.end) for r in regions), (stack.start, stack.end)], 4096, 8 * WORD)
    space = with_return_address(AddressSpace([*regions, stack], 8 * WORD, False), stack, decoder, sentinel)
    top = stack.end - 4096 - WORD
    cell = decoder.layout.by_name
    targets = tuple(sorted(lowered.aborts.values()))
    spec = Spec(
        path=path,
        input_calls=(InputCall("input()", theory.bits, theory.signed),),
        properties=(PropertySpec("reach", targets),),
    )
    return Program(
        image=image,
        spec=spec,
        decoder=decoder,
        space=space,
        entry=lowered.entry,
        registers={cell[STACK_POINTER].number: top, cell[FRAME_POINTER].number: 0},
        input_registers=tuple(
            InputRegister(name, register, theory.bits) for name, register in lowered.variables.items()
        ),
        input_memory=(cells,) if lowered.memory_bytes and uses_memory(module) else (),
        hooks={},
        halts=frozenset(),
        targets=frozenset(targets),
        return_sentinel=sentinel,
        undetermined=undetermined,
        assumptions=(f"recursion ends the run where it needs more than {STACK_BYTES} bytes of stack",)
        if module.procedures
        else (),
    )
