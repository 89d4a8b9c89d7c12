"""A binary together with what its spec says: everything needed to run it, concretely or symbolically.

The entry state is described in `entry_state`, what the file leaves open in `undetermined`. All that was assumed is
listed in `assumptions`, which a verdict repeats.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import Decoder, decoder_for
from mcveto.machine.memory import Memory, RegionSpec
from mcveto.machine.pcode import FreshOrigin, Instruction
from mcveto.program.entry_state import (
    DEFAULT_STACK,
    entry_registers,
    free_area,
    stack_region,
    with_return_address,
)
from mcveto.program.hooks import assume_function, input_function
from mcveto.program.hosted import Streams, at_main, streams, surroundings, with_models, with_undefined
from mcveto.program.image import Image, load_image
from mcveto.program.imports import with_bound_imports
from mcveto.program.inputs import InputSource
from mcveto.program.models import bind_models
from mcveto.program.regions import with_permissions
from mcveto.program.spec import RETURNS_ANYTHING, Address, InputCall, Spec
from mcveto.program.undetermined import Undetermined

if TYPE_CHECKING:
    from mcveto.machine.concolic import Assignment, ConcolicExecution

_PAGE = 4096
# Input functions are told apart by one byte (see hooks).
_MAX_INPUT_FUNCTIONS = 256


class Choices(NamedTuple):
    """Values for all that a program leaves open: registers by cell name, bytes, and fresh values."""

    registers: dict[str, int]
    byte: Callable[[int], int]
    fresh: Callable[[int, FreshOrigin, int], int]


@dataclass(frozen=True, slots=True)
class InputRegister:
    name: str
    cell: str
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
    undetermined: Undetermined
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    loaded: Image | None = None
    """The image as it was loaded, if the program's is another one: with imports bound, or other permissions."""

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
        choices = self.choices(inputs, seed)
        memory = self.space.memory()
        for start, end in self._unspecified_ranges():
            if seed:
                _fill(memory, start, _scrambled_range(seed, start, end))
        for start, end in (*self.image.unspecified, *self.input_memory):
            _fill(memory, start, bytes(choices.byte(address) for address in range(start, end)))
        registers = dict(self.registers)
        for cell in self.decoder.layout.cells:
            if cell.number not in registers:
                value = choices.registers.get(cell.name, 0)
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
            fresh=choices.fresh,
            log_accesses=log_accesses,
        )

    def machine_from(
        self,
        fresh: Callable[[int, FreshOrigin, int], int],
        registers: Mapping[str, int] = MappingProxyType({}),
        memory: Mapping[int, int] = MappingProxyType({}),
        seed: int = 0,
        *,
        log_accesses: bool = False,
    ) -> Machine:
        """A machine in the entry state with these registers, bytes and fresh values; `seed` gives the others."""
        base = self.machine(InputSource((), seed), seed)
        cells = dict(base.registers)
        for name, value in registers.items():
            cells[self.decoder.layout.by_name[name].number] = value
        for address, byte in memory.items():
            base.memory.poke(address, bytes([byte]))
        return Machine(
            self.decoder,
            base.memory,
            cells,
            self.entry,
            hooks=self.hooks,
            halts=base.halts,
            targets=self.targets,
            fresh=fresh,
            log_accesses=log_accesses,
        )

    def concolic(self, inputs: InputSource, seed: int = 0) -> ConcolicExecution:
        """Symbolic execution along the run `machine(inputs, seed)` takes."""
        from mcveto.machine.concolic import Assignment

        return self.concolic_with(Assignment(*self.choices(inputs, seed)))

    def concolic_with(self, assignment: Assignment) -> ConcolicExecution:
        """Symbolic execution along the run an assignment takes."""
        from mcveto.logic.terms import const
        from mcveto.machine.concolic import ConcolicExecution

        cells = self.decoder.layout.cells
        registers = {number: const(value, cells[number].bits) for number, value in self.registers.items()}
        return ConcolicExecution(
            self.decoder,
            self.space,
            self.entry,
            assignment,
            registers=registers,
            hooks=self.hooks,
            halts=self.halts | {self.return_sentinel},
        )

    def choices(self, inputs: InputSource, seed: int) -> Choices:
        """Values for all that the program leaves open, inputs first."""
        registers: dict[str, int] = {}
        if seed:
            generator = random.Random(seed)
            for name in (*self.decoder.row.general, *self.decoder.row.flags):
                (piece,) = self.decoder.layout.named(name)
                registers[piece.cell.name] = generator.getrandbits(64)
        for register in self.input_registers:
            registers[register.cell] = inputs.next(register.bits, f"register {register.name}")
        given: dict[int, int] = {}
        for start, end in self.input_memory:
            for address in range(start, end):
                given[address] = inputs.next(8, f"memory {address:#x}")
        calls = self.spec.input_calls

        def byte(address: int) -> int:
            value = given.get(address)
            if value is None:
                value = self.undetermined.byte(address)
            return value if value is not None else _scrambled(seed, address)

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            if origin is FreshOrigin.INPUT:
                call = calls[usual]
                where = call.at if isinstance(call.at, str) else f"{call.at:#x}"
                return inputs.next(call.bits, f"call of {where}", call.signed)
            return usual

        return Choices(registers, byte, fresh)

    def _unspecified_ranges(self) -> list[tuple[int, int]]:
        return [
            (region.start + start, region.start + end)
            for region in self.space.regions
            for start, end in region.unspecified
        ]

    def free_area(self, size: int) -> int:
        """The start of addresses that nothing uses: no region, no replaced function, nothing of another module."""
        spans = [*self.undetermined.occupied, (self.return_sentinel, self.return_sentinel + _PAGE)]
        spans += [(region.start, region.end) for region in self.space.regions]
        spans += [(pc & -_PAGE, (pc & -_PAGE) + _PAGE) for pc in self.hooks]
        return free_area(sorted(set(spans)), size, self.space.address_bits)

    def address(self, address: Address) -> int:
        """An address a user wrote, without the mode bit; it need not be mapped."""
        return self.decoder.row.code_address(code_pointer(self.image, self.decoder, address))


def _fill(memory: Memory, start: int, content: bytes) -> None:
    """Writes into one region at once; the bytes of a range are always of one region or of adjacent ones."""
    while content:
        region = memory.region_of(start)
        assert region is not None
        length = min(len(content), region.end - start)
        region.data[start - region.start : start - region.start + length] = content[:length]
        start, content = start + length, content[length:]


@cache
def _scrambled_page(seed: int, number: int) -> bytes:
    return random.Random(f"{seed}/{number}").randbytes(_PAGE)


def _scrambled(seed: int, address: int) -> int:
    """An unspecified byte as a function of the seed and its address; 0 for seed 0."""
    return _scrambled_page(seed, address // _PAGE)[address % _PAGE] if seed else 0


def _scrambled_range(seed: int, start: int, end: int) -> bytes:
    pages = b"".join(_scrambled_page(seed, number) for number in range(start // _PAGE, -(-end // _PAGE)))
    return pages[start % _PAGE : start % _PAGE + end - start]


def load_program(
    binary: str | None, spec: Spec | None = None, *, arch: str | None = None, base: int | None = None
) -> Program:
    """Loads a binary and brings it into the entry state its spec describes; raises InputFileError or UsageError."""
    spec = spec or Spec()
    return make_program(load_binary(binary, spec, arch=arch, base=base), spec)


def load_binary(binary: str | None, spec: Spec, *, arch: str | None = None, base: int | None = None) -> Image:
    path = binary if binary is not None else (str(spec.binary_path()) if spec.binary else None)
    if path is None:
        raise UsageError("no binary is given", "name it on the command line or as `binary:` in the spec")
    if binary is not None and binary.endswith((".yaml", ".yml")):
        raise UsageError(f"{binary} looks like a spec file, not like a binary", f"write --spec {binary}")
    return load_image(path, arch=arch or spec.arch, base=base if base is not None else spec.base)


def code_pointer(image: Image, decoder: Decoder, address: Address, *, undetermined: Undetermined | None = None) -> int:
    """The program counter a user means: with the mode bit if a symbol or the file's entry says so.

    Imports can be named too: their stub, the address that stands for them, or the marker in their cell.
    """
    row = decoder.row
    thumb = False
    if isinstance(address, str):
        text = address.strip()
        name = text.rpartition("+")[0].strip()
        thumb = text in image.thumb_symbols or (text not in image.symbols and name in image.thumb_symbols)
        if text not in image.symbols and text in image.imports:
            value = image.imports[text] if undetermined is None else undetermined.import_address(text)
        else:
            value = image.resolve(text)
    else:
        value = address
    if not 0 <= value <= row.address_mask:
        raise UsageError(f"address {value:#x} does not fit {row.address_bits} bits")
    if image.entry is not None and image.thumb_entry and value == image.entry:
        thumb = True
    return value | (row.mode_mask if thumb else 0)


def entry_pointer(image: Image, decoder: Decoder, address: Address | None, what: str, option: str) -> int:
    """Where to start: at `address` or at the file's entry; must be mapped and aligned."""
    if address is None:
        if image.entry is None:
            names = ", ".join(sorted(image.symbols)[:5])
            known = f"; the file has the symbols {names}, …" if names else ""
            raise UsageError(f"{image.path} names no entry", f"give {option}{known}")
        address = image.entry
    pc = code_pointer(image, decoder, address)
    row = decoder.row
    start = row.code_address(pc)
    image.require_address(start, what)
    unit = 4 if row.mode_mask and not pc & 1 else row.alignment
    if start % unit:
        hint = "in Thumb code addresses are odd" if len(row.modes) > 1 else ""
        raise UsageError(f"{what} {start:#x} is not a multiple of {unit}, as {row.name} demands", hint)
    return pc


def make_program(image: Image, spec: Spec) -> Program:
    decoder = decoder_for(image.isa)
    row = decoder.row
    loaded = image
    spec = with_undefined(image, with_models(image, at_main(image, spec, make_program)), row.address_bits)
    regions = [
        (start, start + region.size, region.permissions)
        for region in spec.regions
        for start in [row.code_address(code_pointer(image, decoder, region.at))]
    ]
    image = with_permissions(image, regions)
    occupied = [(segment.address, segment.end) for segment in image.segments]
    if image.import_area is not None:
        occupied.append(image.import_area)
    stack = stack_region(occupied, spec.stack or DEFAULT_STACK, row.address_bits)
    undetermined = Undetermined(image, decoder, (stack.start, stack.end))
    entry = entry_pointer(image, decoder, spec.entry, "entry", "--entry")

    def code(address: Address, what: str) -> int:
        value = row.code_address(code_pointer(original, decoder, address, undetermined=undetermined))
        if not undetermined.is_foreign(value):
            original.require_address(value, what)
        return value

    original = image
    of_library: Sequence[RegionSpec] = ()
    if image.unspecified:
        stand_ins = _stand_ins(spec, code)
        known = streams(image, undetermined, row) if stand_ins and spec.models_imports else Streams(frozenset(), {})
        image = with_bound_imports(image, undetermined, stand_ins | known.copies, known.pointers)
        of_library = known.regions if image is not original else ()
    given = _input_memory(image, decoder, spec)
    sentinel = free_area(undetermined.occupied, _PAGE, row.address_bits)
    around = surroundings(image, spec, row, [*undetermined.occupied, (sentinel, sentinel + _PAGE)])
    input_memory = (*given, *around.input_memory)
    taken = [*undetermined.occupied, (sentinel, sentinel + _PAGE), *((r.start, r.end) for r in around.regions)]
    space = AddressSpace(
        [*_image_regions(image, given), stack, *of_library, *around.regions], row.address_bits, row.big_endian
    )
    registers, assumptions = entry_registers(decoder, stack, entry, sentinel, around.words, around.registers)

    hooks = undetermined.code_hooks()
    replaced = _replaced_functions(decoder, spec, code)
    hooks.update(replaced)
    more = ["functions replaced by the spec change no register but their result, and no memory"] if replaced else []
    more += [
        f"memory {start:#x}-{end:#x} is {letters or 'inaccessible'}: the spec says so"
        for start, end, letters in regions
    ]
    models = bind_models(decoder, spec, taken, code)
    _require_apart(replaced, models.hooks)
    hooks.update(models.hooks)
    more += models.assumptions
    space = AddressSpace([*space.regions, *models.regions], row.address_bits, row.big_endian)
    if spec.undefined == RETURNS_ANYTHING:
        more.append(
            f"functions that the file does not define return anything, as the spec says: {_undefined(image, spec)}"
        )
    if image.import_area is not None:
        more.append("undefined symbols have addresses of their own, where nothing else is")
    if image is not original:
        more.append("imports that the spec binds are called through cells that nothing but the loader has set")
    elif undetermined.bytes:
        more.append(f"{undetermined.bytes} bytes that the file does not determine hold made-up values in a run")
    more += around.assumptions
    return Program(
        image=image,
        spec=replace(spec, input_calls=models.input_calls),
        decoder=decoder,
        space=with_return_address(space, stack, decoder, sentinel, around.words),
        entry=entry,
        registers=registers,
        input_registers=tuple(_input_registers(decoder, spec.input_registers, registers)),
        input_memory=input_memory,
        hooks=hooks,
        halts=frozenset({*(code(halt, "halt") for halt in spec.halt), *models.halts}),
        targets=frozenset(
            code(target, "target")
            for prop in spec.properties
            if prop.name == "reach" and isinstance(prop.argument, tuple)
            for target in prop.argument
        ),
        return_sentinel=sentinel,
        undetermined=undetermined,
        assumptions=(*assumptions, *more),
        notes=image.notes,
        loaded=loaded,
    )


def _undefined(image: Image, spec: Spec) -> str:
    called = {call.at for call in spec.input_calls}
    return ", ".join(sorted(name for name in image.imports if name in called and name not in image.symbols)) or "none"


def _stand_ins(spec: Spec, code: Callable[[Address, str], int]) -> set[int]:
    """The addresses of all functions that the spec replaces, asks for or ends the run at."""
    found = {code(call.at, "input function") for call in spec.input_calls}
    found |= {code(at, "assume") for at in spec.assume}
    found |= {code(at, f"model {name}") for at, name in spec.models}
    found |= {code(at, "target") for item in spec.properties if item.name == "reach" for at in item.argument or ()}
    return found | {code(at, "halt") for at in spec.halt}


def _image_regions(image: Image, input_memory: Sequence[tuple[int, int]]) -> list[RegionSpec]:
    unspecified = sorted([*image.unspecified, *input_memory])
    return [
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


def _replaced_functions(decoder: Decoder, spec: Spec, code: Callable[[Address, str], int]) -> dict[int, Instruction]:
    if len(spec.input_calls) > _MAX_INPUT_FUNCTIONS:
        raise UsageError(f"more than {_MAX_INPUT_FUNCTIONS} input functions")
    hooks: dict[int, Instruction] = {}
    inputs: dict[int, InputCall] = {}
    for number, call in enumerate(spec.input_calls):
        address = code(call.at, "input function")
        if address in inputs:
            raise UsageError(f"input function {address:#x} is given twice", "once in the spec is enough")
        inputs[address] = call
        for pc in _code_pointers(decoder, address):
            hooks[pc] = input_function(decoder, pc, call.bits, call.signed, number)
    for assumed in spec.assume:
        address = code(assumed, "assume")
        if address in inputs:
            raise UsageError(f"{address:#x} is an input function and cannot be assumed as well")
        for pc in _code_pointers(decoder, address):
            hooks[pc] = assume_function(decoder, pc)
    return hooks


def _require_apart(replaced: dict[int, Instruction], models: dict[int, Instruction]) -> None:
    for pc in sorted(replaced.keys() & models.keys()):
        raise UsageError(f"{pc:#x} is bound to a model and cannot be an input function or assumed as well")


def _code_pointers(decoder: Decoder, address: int) -> list[int]:
    """The program counters that reach a code address: both modes where there are two."""
    return [address, address | 1] if decoder.row.mode_mask else [address]


def _input_memory(image: Image, decoder: Decoder, spec: Spec) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for item in spec.input_memory:
        start = image.resolve(item.at) if isinstance(item.at, str) else item.at
        end = start + item.size
        at = start
        while at < end:
            image.require_address(at, "inputs.memory")
            segment = image.segment_at(at)
            assert segment is not None
            at = segment.end
        for low, high in ranges:
            if start < high and low < end:
                raise UsageError(f"inputs.memory lists {max(start, low):#x} twice")
        ranges.append((start, end))
    return tuple(ranges)


def _input_registers(decoder: Decoder, names: Sequence[str], fixed: dict[int, int]) -> list[InputRegister]:
    import difflib

    known = {name.upper(): name for name in (*decoder.row.general, *decoder.row.flags)}
    result: list[InputRegister] = []
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
        if any(found == other.name for other in result):
            raise UsageError(f"input register {found} is given twice")
        result.append(InputRegister(found, piece.cell.name, decoder.layout.significant_bits(piece.cell)))
    return result
