"""A binary together with what its spec says: everything needed to run it, concretely or symbolically.

Entry state (design: registers and stack contents are unspecified unless something fixes them):
- the stack is a region of its own with nothing mapped on either side; the stack pointer starts at a fixed address;
- the entry is called like a function whose return address is an unmapped sentinel; reaching it ends the run;
- on x86 the direction flag is clear, as every calling convention demands.
Each is listed in `assumptions`, which a verdict repeats.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from mcveto.errors import UsageError
from mcveto.logic.terms import Term, const
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import Decoder, decoder_for
from mcveto.machine.memory import READ, WRITE, RegionSpec
from mcveto.machine.pcode import FreshOrigin, Instruction
from mcveto.program.hooks import assume_function, input_function
from mcveto.program.image import Image, load_image
from mcveto.program.inputs import InputSource
from mcveto.program.spec import Address, Spec

DEFAULT_STACK = 1 << 20
MAX_STACK = 1 << 30
# Room above the initial stack pointer for the arguments a caller would have pushed.
_ABOVE_STACK_POINTER = 4096
_STACK_TOP = {32: 0x7FFF_0000, 64: 0x7FFF_FFFF_0000}


@dataclass(frozen=True, slots=True)
class InputRegister:
    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class Program:
    image: Image
    spec: Spec
    decoder: Decoder
    space: AddressSpace
    entry: int
    registers: dict[int, int]
    """Register cells the entry state fixes."""
    input_registers: tuple[InputRegister, ...]
    input_memory: tuple[tuple[int, int], ...]
    hooks: dict[int, Instruction]
    halts: frozenset[int]
    targets: frozenset[int]
    return_sentinel: int
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    def machine(
        self,
        inputs: InputSource,
        seed: int = 0,
        *,
        log_accesses: bool = False,
        stop_at_targets: bool = True,
        make: Callable[..., Machine] = Machine,
    ) -> Machine:
        """A machine in the entry state; unspecified registers and bytes are drawn from `seed` (0: all zero)."""
        assignment = self.assignment(inputs, seed)
        memory = self.space.memory()
        if seed:
            for start, end in self._unspecified_ranges():
                memory.poke(
                    start,
                    b"".join(_background(seed, page) for page in range(start >> 12, (end >> 12) + 1))[start & 0xFFF :][
                        : end - start
                    ],
                )
        for start, end in self.input_memory:
            memory.poke(start, bytes(assignment.memory(address) for address in range(start, end)))
        registers = dict(self.registers)
        for cell in self.decoder.layout.cells:
            if cell.number not in registers:
                value = assignment.registers.get(cell.name, 0)
                if value:
                    registers[cell.number] = value & ((1 << self.decoder.layout.significant_bits(cell)) - 1)
        return make(
            self.decoder,
            memory,
            registers,
            self.entry,
            hooks=self.hooks,
            halts=self.halts | {self.return_sentinel},
            targets=self.targets if stop_at_targets else (),
            fresh=assignment.fresh,
            log_accesses=log_accesses,
        )

    def concolic(self, inputs: InputSource, seed: int = 0) -> ConcolicExecution:
        """Symbolic execution along the run `machine(inputs, seed)` takes."""
        return self.concolic_with(self.assignment(inputs, seed))

    def concolic_with(self, assignment: Assignment) -> ConcolicExecution:
        """Symbolic execution along the run an assignment takes."""
        cells = self.decoder.layout.cells
        registers: dict[int, Term] = {
            number: const(value, cells[number].bits) for number, value in self.registers.items()
        }
        return ConcolicExecution(
            self.decoder,
            self.space,
            self.entry,
            assignment,
            registers=registers,
            hooks=self.hooks,
            halts=self.halts | {self.return_sentinel},
        )

    def assignment(self, inputs: InputSource, seed: int) -> Assignment:
        """Values for all that the program leaves open, inputs first."""
        registers: dict[str, int] = {}
        if seed:
            generator = random.Random(seed)
            for name in (*self.decoder.row.general, *self.decoder.row.flags):
                registers[name] = generator.getrandbits(64)
        for register in self.input_registers:
            registers[register.name] = inputs.next(register.bits, f"register {register.name}")
        given: dict[int, int] = {}
        for start, end in self.input_memory:
            for address in range(start, end):
                given[address] = inputs.next(8, f"memory {address:#x}")

        def byte(address: int) -> int:
            value = given.get(address)
            return value if value is not None else _background(seed, address >> 12)[address & 0xFFF]

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            if origin is FreshOrigin.INPUT:
                return inputs.next(bits, "input call")
            return usual

        return Assignment(registers, byte, fresh)

    def _unspecified_ranges(self) -> list[tuple[int, int]]:
        return [
            (region.start + start, region.start + end)
            for region in self.space.regions
            for start, end in region.unspecified
        ]

    def address(self, text: Address) -> int:
        return self.image.resolve(text) if isinstance(text, str) else text


@lru_cache(maxsize=1024)
def _background(seed: int, page: int) -> bytes:
    """What a run finds in the unspecified bytes of a page; zeros for seed 0."""
    return random.Random(f"{seed}:{page}").randbytes(4096) if seed else bytes(4096)


def load_program(
    binary: str | None, spec: Spec | None = None, *, arch: str | None = None, base: int | None = None
) -> Program:
    """Loads a binary and brings it into the entry state its spec describes; raises InputFileError or UsageError."""
    spec = spec or Spec()
    path = binary or (str(spec.binary_path()) if spec.binary else None)
    if path is None:
        raise UsageError("no binary is given", "name it on the command line or as `binary:` in the spec")
    image = load_image(path, arch=arch or spec.arch, base=base if base is not None else spec.base)
    return make_program(image, spec)


def make_program(image: Image, spec: Spec) -> Program:
    decoder = decoder_for(image.isa)
    row = decoder.row
    notes = list(image.notes)

    def resolve(address: Address, what: str) -> int:
        value = image.resolve(address) if isinstance(address, str) else address
        if value > row.address_mask:
            raise UsageError(f"{what} {value:#x} does not fit {row.address_bits} bits")
        image.require_address(row.code_address(value), what)
        return value

    entry = _entry(image, spec, resolve)
    stack = _stack_region(image, spec.stack or DEFAULT_STACK, row.address_bits)
    input_memory = []
    for item in spec.input_memory:
        start = resolve(item.at, "inputs.memory")
        resolve(start + item.size - 1, "the end of inputs.memory")
        input_memory.append((start, start + item.size))
    unspecified = sorted([*image.unspecified, *input_memory])
    regions = [
        RegionSpec(
            segment.name or "image",
            segment.address,
            segment.size,
            int(segment.permissions),
            segment.content,
            tuple(
                (max(start, segment.address) - segment.address, min(end, segment.end) - segment.address)
                for start, end in unspecified
                if start < segment.end and segment.address < end
            ),
        )
        for segment in image.segments
        if segment.size
    ]
    space = AddressSpace([*regions, stack], row.address_bits, row.big_endian)
    sentinel = _free_address(space)
    registers, assumptions = _entry_registers(decoder, stack, sentinel)
    space = _with_return_address(space, stack, decoder, registers, sentinel)
    hooks: dict[int, Instruction] = {}
    for call in spec.input_calls:
        for pc in _code_pointers(decoder, resolve(call.at, "inputs.calls")):
            hooks[pc] = input_function(decoder, pc, call.bits, call.signed)
    for address in spec.assume:
        for pc in _code_pointers(decoder, resolve(address, "assume")):
            hooks[pc] = assume_function(decoder, pc)
    if hooks:
        assumptions.append("functions replaced by the spec change no register but their result, and no memory")
    targets = frozenset(
        row.code_address(resolve(target, "target"))
        for prop in spec.properties
        if prop.name == "reach" and isinstance(prop.argument, tuple)
        for target in prop.argument
    )
    return Program(
        image=image,
        spec=spec,
        decoder=decoder,
        space=space,
        entry=entry,
        registers=registers,
        input_registers=tuple(_input_registers(decoder, spec.input_registers, registers)),
        input_memory=tuple(input_memory),
        hooks=hooks,
        halts=frozenset(row.code_address(resolve(halt, "halt")) for halt in spec.halt),
        targets=targets,
        return_sentinel=sentinel,
        assumptions=tuple(assumptions),
        notes=tuple(notes),
    )


def _entry(image: Image, spec: Spec, resolve: Callable[[Address, str], int]) -> int:
    row = decoder_for(image.isa).row
    if spec.entry is not None:
        entry = resolve(spec.entry, "entry")
        named_thumb = isinstance(spec.entry, str) and spec.entry in image.thumb_symbols
        same_as_header = image.entry is not None and row.code_address(entry) == image.entry
        if row.mode_mask and (named_thumb or (same_as_header and image.thumb_entry)):
            entry |= 1
        return entry
    if image.entry is None:
        raise UsageError(f"{image.path} names no entry", "give --entry")
    return resolve(image.entry, "entry") | (1 if image.thumb_entry and row.mode_mask else 0)


def _code_pointers(decoder: Decoder, address: int) -> list[int]:
    """The program counters that reach a code address: both modes where there are two."""
    plain = decoder.row.code_address(address)
    return [plain, plain | 1] if decoder.row.mode_mask else [plain]


def _stack_region(image: Image, size: int, address_bits: int) -> RegionSpec:
    size = -(-size // 4096) * 4096 + _ABOVE_STACK_POINTER
    if size > MAX_STACK:
        raise UsageError(f"a stack of {size} bytes is more than {MAX_STACK}")
    guard = 1 << 16
    top = _STACK_TOP[address_bits]
    for segment in reversed(image.segments):
        if segment.address < top + guard and segment.end > top - size - guard:
            top = (segment.address - guard) & ~0xFFFF
    if top - size < guard:
        raise UsageError("the image leaves no room for a stack", "give a smaller `stack:`")
    return RegionSpec("stack", top - size, size, READ | WRITE, b"", ((0, size),))


def _free_address(space: AddressSpace) -> int:
    """An address with nothing mapped near it, for the return address of the entry."""
    candidate = space.mask & ~0xFFFF
    while any(space.region_at(candidate + offset) for offset in (0, 64)):
        candidate -= 0x10000
    return candidate


def _entry_registers(decoder: Decoder, stack: RegionSpec, sentinel: int) -> tuple[dict[int, int], list[str]]:
    row, layout = decoder.row, decoder.layout
    registers: dict[int, int] = {}

    def fix(name: str, value: int) -> None:
        (piece,) = layout.named(name)
        registers[piece.cell.number] = value

    stack_pointer = stack.end - _ABOVE_STACK_POINTER
    if row.pushes_return_address:
        stack_pointer -= row.address_bytes
    else:
        fix(row.return_address, sentinel)
    fix(row.stack_pointer, stack_pointer)
    if row.mode_register:
        fix(row.mode_register, 0)
    assumptions = [
        f"the stack is {stack.start:#x}-{stack.end:#x} and {row.stack_pointer} starts at {stack_pointer:#x}",
        f"the entry is called with return address {sentinel:#x}; returning there ends the run",
    ]
    if "DF" in layout.by_name:
        fix("DF", 0)
        assumptions.append("the direction flag is clear at entry")
    return registers, assumptions


def _with_return_address(
    space: AddressSpace, stack: RegionSpec, decoder: Decoder, registers: dict[int, int], sentinel: int
) -> AddressSpace:
    """On machines that push return addresses, the sentinel lies on top of the stack."""
    row = decoder.row
    if not row.pushes_return_address:
        return space
    offset = stack.end - _ABOVE_STACK_POINTER - row.address_bytes - stack.start
    order = "big" if row.big_endian else "little"
    content = bytes(offset) + sentinel.to_bytes(row.address_bytes, order)  # type: ignore[arg-type]
    pushed = RegionSpec(
        stack.name,
        stack.start,
        stack.size,
        stack.permissions,
        content,
        ((0, offset), (offset + row.address_bytes, stack.size)),
    )
    regions = [region for region in space.regions if region.start != stack.start]
    return AddressSpace([*regions, pushed], space.address_bits, space.big_endian)


def _input_registers(decoder: Decoder, names: Sequence[str], fixed: dict[int, int]) -> list[InputRegister]:
    import difflib

    known = {name.upper(): name for name in (*decoder.row.general, *decoder.row.flags)}
    result = []
    for name in names:
        found = known.get(name.upper())
        if found is None:
            nearest = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.0)
            raise UsageError(
                f"{decoder.row.name} has no input register '{name}'", f"did you mean '{known[nearest[0]]}'?"
            )
        (piece,) = decoder.layout.named(found)
        if piece.cell.number in fixed:
            raise UsageError(f"register {found} is fixed at entry and cannot be an input")
        result.append(InputRegister(found, decoder.layout.significant_bits(piece.cell)))
    return result
