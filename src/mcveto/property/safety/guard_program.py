"""Memory safety and absence of faults as ghost state of a machine program.

The program gets a decoder that puts guards (`guards`) around every instruction it decodes, guarded hooks, ghost
registers, and two targets in a page of their own. No engine knows of it: decoding, execution, proofs and replay see
registers, operations and targets. Because guards are added when an instruction is decoded, code that modifies itself
is guarded like any other.

How many calls and heap blocks are watched at once is chosen by a few runs; beyond that a path is unsupported, and the
answer then asks for more (`TOO_DEEP`, `TOO_MANY` in its reason).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mcveto.errors import UsageError
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.isa import Decoder
from mcveto.machine.isa.table import IsaRow
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec
from mcveto.machine.pcode import Instruction, Transfer
from mcveto.program.entry_state import Span, data_area
from mcveto.program.frame_layout import FrameLayout
from mcveto.program.frames import red_zone
from mcveto.program.image import Image
from mcveto.program.inputs import InputSource
from mcveto.program.models import REMAINS
from mcveto.program.program import Program, code_pointer
from mcveto.property.safety.guards import ALLOCATORS, HEAP_MODELS, Guards, Layout, Question, ghost_cells
from mcveto.property.safety.provenance import Objects, table_bytes

MEMORY_SAFETY = "memory-safety"
NO_FAULT = "no-fault"
MAX_WATCHED = 32
_AREA = 4096
_RUNS = 6
_RUN_STEPS = 3000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many pending calls and live heap blocks are watched."""

    depth: int
    blocks: int

    def doubled(self, deeper: bool) -> Bounds | None:
        """More calls, or more blocks; None if there are enough already."""
        grown = replace(self, depth=2 * self.depth) if deeper else replace(self, blocks=2 * self.blocks)
        return grown if max(grown.depth, grown.blocks) <= MAX_WATCHED else None


@dataclass(frozen=True, slots=True)
class Watching:
    """What is made of accesses that leave the object they were made for."""

    is_on: bool = True
    excused: frozenset[int] = frozenset()
    """Instructions that may leave it."""
    is_recorded: bool = False
    """Whether the run goes on, and only ghost registers tell."""


@dataclass(frozen=True, slots=True)
class Guarded:
    program: Program
    bounds: Bounds
    errors: frozenset[int]
    watching: Watching = field(default_factory=Watching)
    crossed: int | None = None
    """The target that stands for accesses that leave their object."""


class GuardedDecoder(Decoder):
    """Decodes into guarded instructions, once its guards are there."""

    guards: Guards | None = None

    def __init__(self, row: IsaRow) -> None:
        super().__init__(row)

    def _decode_new(self, pc: int, code: bytes) -> Instruction:
        instruction = super()._decode_new(pc, code)
        return instruction if self.guards is None else self.guards.guarded(instruction)


def asked_properties(program: Program) -> tuple[str, ...]:
    names = {item.name for item in program.spec.properties}
    return tuple(name for name in (MEMORY_SAFETY, NO_FAULT) if name in names)


def guard(program: Program, bounds: Bounds | None = None, watching: Watching | None = None) -> Guarded | None:
    """The program with guards for what its spec asks; None if it asks for neither property."""
    asked = asked_properties(program)
    if not asked:
        return None
    watching = watching or Watching(program.spec.objects != "together")
    bounds = bounds or seen_bounds(program)
    if not watching.is_recorded and not (1 <= bounds.depth <= MAX_WATCHED and 1 <= bounds.blocks <= MAX_WATCHED):
        raise UsageError(f"between 1 and {MAX_WATCHED} calls and heap blocks can be watched")
    row = program.decoder.row
    area = program.free_area(_AREA)
    question = Question(MEMORY_SAFETY in asked, NO_FAULT in asked, area, area + 16, bounds.depth, bounds.blocks)
    entries = model_entries(program)
    has_heap = any(name in HEAP_MODELS for name in entries.values()) and bounds.blocks > 0
    frame_layout = FrameLayout(program) if question.memory_safety else None
    has_saves = frame_layout is not None and bool(frame_layout.saved_registers) and bounds.depth > 0
    has_objects = frame_layout is not None and bool(frame_layout.saved_registers) and watching.is_on
    cells = ghost_cells(program.decoder, question, has_heap, has_saves, has_objects)
    decoder = GuardedDecoder(replace(row, extra=(*row.extra, *cells)))
    replaced = frozenset(row.code_address(pc) for pc in program.hooks)
    layout = _layout(program, has_heap, replaced)
    frames = _model_frames(program, entries)
    objects = None
    more: list[RegionSpec] = []
    if has_objects and frame_layout is not None:
        size = table_bytes(row.address_bytes)
        taken = [*program.undetermined.occupied, *((r.start, r.end) for r in program.space.regions)]
        taken += [(area, area + _AREA), (program.return_sentinel, program.return_sentinel + _AREA)]
        table = data_area(sorted(taken), size, row.address_bits)
        more.append(RegionSpec("provenance", table, size, READ | WRITE))
        sized = named_objects(program.image)
        objects = Objects(frame_layout, table, area + 32, watching.excused, watching.is_recorded, sized)
    guards = decoder.guards = Guards(
        decoder, layout, question, frames, frozenset(entries), replaced, frame_layout, objects
    )
    targets = frozenset({question.bad_access, question.fault} | ({area + 32} if has_objects else set()))
    registers = dict(program.registers)
    named = decoder.layout.by_name
    for name, _ in cells:
        value = guards.none if name.startswith("safety_slot") else int(name == "safety_fresh")
        if name == "safety_slot0" and row.pushes_return_address:
            (pointer,) = program.decoder.layout.named(row.stack_pointer)
            value = program.registers[pointer.cell.number]
        if name in ("safety_low0", "safety_top0"):
            (pointer,) = program.decoder.layout.named(row.stack_pointer)
            value = program.registers[pointer.cell.number]
        elif name.startswith(("safety_low", "safety_top")):
            value = guards.none
        registers[named[name].number] = value
    guarded = replace(
        program,
        decoder=decoder,
        hooks={pc: guards.guarded(hook) for pc, hook in program.hooks.items()},
        registers=registers,
        targets=program.targets | targets,
        space=AddressSpace(
            [*program.space.regions, RegionSpec("property", area, _AREA, EXECUTE), *more],
            program.space.address_bits,
            program.space.big_endian,
        ),
        assumptions=(
            *program.assumptions,
            *assumptions(program, asked, has_heap, area, has_objects, has_saves),
            *_excuses(watching.excused),
        ),
    )
    return Guarded(guarded, bounds, targets, watching, area + 32 if has_objects else None)


def named_objects(image: Image) -> tuple[Span, ...]:
    """The objects of the image that a symbol table gives sizes for, without those that lie within others."""
    found: list[Span] = []
    for start, size in sorted(image.objects.items()):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + size))
        elif size < 1 << 31:
            found.append((start, start + size))
    return tuple(found)


def assumptions(
    program: Program, asked: Iterable[str], has_heap: bool, area: int, has_objects: bool, has_saves: bool
) -> list[str]:
    found = [f"no jump that the program computes leads to {area:#x}, which stands for forbidden accesses and faults"]
    if MEMORY_SAFETY in asked:
        found.append(_told_apart(program, has_objects, has_saves))
        if program.spec.objects == "separate" and has_objects:
            found.append("variables of a frame that the code tells apart are objects of their own: the spec says so")
        zone = red_zone(program.image)
        found.append(f"below the stack pointer {zone} bytes may be used" if zone else "nothing is kept below the stack")
        if not has_heap:
            found.append("no function is known as an allocator: heap blocks are not told apart")
    return found


def _told_apart(program: Program, has_objects: bool, has_saves: bool) -> str:
    if has_objects:
        return (
            "memory-safety tells apart segments, frames, live heap blocks and, as far as the code shows where they "
            "begin, variables of frames; pointers kept in arrays or on the heap may reach all of a frame"
        )
    if program.spec.objects == "together":
        return "variables of one frame or of one segment are not told apart: the spec says so"
    if has_saves:
        return (
            "memory-safety tells apart segments, return addresses and saved registers of frames, and live heap blocks; "
            "variables of one frame are not told apart"
        )
    return (
        "memory-safety tells apart segments, frames' return addresses and live heap blocks; "
        f"variables and saved registers of one frame are not told apart for {program.decoder.row.name}"
    )


def _excuses(instructions: Iterable[int]) -> list[str]:
    return [f"what {pc:#x} accesses belongs to the object whose address it is given" for pc in sorted(instructions)]


def model_entries(program: Program) -> dict[int, str]:
    """The code address of every function that a library model stands for, with the model's name."""
    row = program.decoder.row
    found: dict[int, str] = {}
    for address, name in program.spec.models:
        pc = code_pointer(program.image, program.decoder, address, undetermined=program.undetermined)
        found[row.code_address(pc)] = name
    return found


def _model_frames(program: Program, entries: dict[int, str]) -> dict[str, int]:
    """How far each model lowers the stack pointer."""
    pointer = program.decoder.registers[program.decoder.row.stack_pointer]
    found: dict[str, int] = {}
    for address, name in entries.items():
        hook = program.hooks.get(address)
        for op in hook.ops if hook is not None else ():
            if op.opcode == "INT_SUB" and op.output == pointer:
                found[name] = op.inputs[1].offset
    return found


def _layout(program: Program, has_heap: bool, replaced: frozenset[int]) -> Layout:
    foreign = program.undetermined.foreign_ranges()
    (pointer,) = program.decoder.layout.named(program.decoder.row.stack_pointer)
    stack = program.space.region_at(program.registers[pointer.cell.number])
    assert stack is not None
    own = {stack.start, *(r.start for r in program.space.regions if r.name == REMAINS)}
    if has_heap:
        heap = ("heap", "heap table")
        own |= {r.start for r in program.space.regions if r.name in heap and program.image.segment_at(r.start) is None}
    everything = {n: _spans(program.space.regions, n, foreign) for n in (READ, WRITE, EXECUTE)}
    rest = [region for region in program.space.regions if region.start not in own]
    ranges = {n: _spans(rest, n, foreign) for n in (READ, WRITE, EXECUTE)}
    row = program.decoder.row
    ends = {row.code_address(program.return_sentinel), *program.halts, *program.targets}
    ends |= {address for address in replaced if program.space.region_at(address) is None}
    ends -= {row.code_address(pc) for pc, hook in program.hooks.items() if hook.mnemonic == "model"} - set(
        model_entries(program)
    )
    executable = everything[EXECUTE]
    outside = frozenset(at for at in ends if not any(start <= at < end for start, end in executable))
    named = {r.name: r.start for r in program.space.regions if r.start in own}
    heap_start, table = named.get("heap", 0), named.get("heap table", 0)
    return Layout(ranges, everything, (stack.start, stack.end), red_zone(program.image), outside, heap_start, table)


def _spans(regions: Iterable[RegionSpec], needed: int, more: Iterable[Span]) -> list[Span]:
    """Maximal ranges with a permission, in address order."""
    spans = [(region.start, region.end) for region in regions if region.permissions & needed and region.size]
    merged: list[Span] = []
    for start, end in sorted([*spans, *more]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def seen_bounds(program: Program) -> Bounds:
    """The deepest calls and the most heap blocks that a few short runs have, and one more."""
    deepest = most = 0
    entries = model_entries(program)
    for seed in range(_RUNS):
        machine = program.machine(InputSource((), seed), seed)
        machine.run(_RUN_STEPS)
        depth = live = 0
        for step in machine.trace:
            if step.transfer is Transfer.CALL:
                depth += 1
                name = entries.get(program.decoder.row.code_address(step.next_pc), "")
                live += name in ALLOCATORS
                live -= name == "free" and live > 0
            elif step.transfer is Transfer.RETURN:
                depth -= 1
            deepest, most = max(deepest, depth), max(most, live)
    return Bounds(min(deepest + 1, MAX_WATCHED), max(1, min(most, MAX_WATCHED)))
