"""The state a program starts in, as far as something fixes it.

- The stack is a region of its own with nothing mapped on either side; the stack pointer starts at a fixed address.
- The entry is called like a function whose return address is an unmapped sentinel; reaching it ends the run.
- On x86 the direction flag is clear, as every calling convention demands; on MIPS the register t9 holds the address
  of the entry, as position-independent functions expect.

Everything else (other registers, stack contents) is unspecified. What is fixed is listed as an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcveto.errors import UsageError
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.isa import Decoder, IsaRow
from mcveto.machine.memory import READ, WRITE, RegionSpec

DEFAULT_STACK = 1 << 20
MAX_STACK = 1 << 28
GUARD = 1 << 16
# Room above the initial stack pointer for the arguments a caller would have pushed.
_ABOVE_STACK_POINTER = 4096
_STACK_TOP = {32: 0x7FFF_0000, 64: 0x7FFF_FFFF_0000}

Span = tuple[int, int]


def stack_region(occupied: Sequence[Span], size: int, address_bits: int) -> RegionSpec:
    """The highest place for a stack of `size` bytes that keeps its distance from everything else."""
    if size > MAX_STACK:
        raise UsageError(f"a stack of {size} bytes is too large", f"the limit is {MAX_STACK}")
    size = -(-size // 4096) * 4096 + _ABOVE_STACK_POINTER
    top = _STACK_TOP[address_bits]
    for start, end in sorted(occupied, reverse=True):
        if start < top + GUARD and end > top - size - GUARD:
            top = (start - GUARD) & ~0xFFFF
    if top - size < GUARD:
        raise UsageError("the image leaves no room for the stack", "ask for a smaller one (--stack)")
    return RegionSpec("stack", top - size, size, READ | WRITE, b"", ((0, size),))


def free_area(occupied: Sequence[Span], size: int, address_bits: int) -> int:
    """The start of `size` bytes as high as possible, a guard away from everything that is occupied."""
    start = ((1 << address_bits) - size) & ~0xFFFF
    for low, high in sorted(occupied, reverse=True):
        if low < start + size + GUARD and high + GUARD > start:
            start = (low - GUARD - size) & ~0xFFFF
    if start < GUARD:
        raise UsageError("the image leaves no room in the address space")
    return start


def data_area(occupied: Sequence[Span], size: int, address_bits: int) -> int:
    """The start of `size` bytes for data that no file has, where a process of a 64-bit system can have memory, too."""
    kernels = [(1 << 46, 1 << 64)] if address_bits == 64 else []
    return free_area([*occupied, *kernels], size, address_bits)


def entry_registers(
    decoder: Decoder,
    stack: RegionSpec,
    entry: int,
    sentinel: int,
    words: Sequence[int | None] = (),
    others: Mapping[str, int] | None = None,
) -> tuple[dict[int, int], tuple[str, ...]]:
    """The register cells that are fixed at entry, and the assumptions this makes; `words` are arguments (None: any)."""
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
    if not _passed_on_stack(row):
        for name, word in zip(row.arguments, words, strict=False):
            if word is not None:
                fix(name, word)
    for name, value in (others or {}).items():
        fix(name, value)
    if row.mode_register:
        fix(row.mode_register, 0)
    assumptions = [
        f"the stack is {stack.start:#x}-{stack.end:#x} and {row.stack_pointer} starts at {stack_pointer:#x}",
        f"the entry is called with return address {sentinel:#x}; returning there ends the run",
    ]
    if "DF" in layout.by_name:
        fix("DF", 0)
        assumptions.append("the direction flag is clear at entry")
    if row.overlay == "mips":
        fix("t9", entry)
        assumptions.append("t9 holds the address of the entry")
    return registers, tuple(assumptions)


def _passed_on_stack(row: IsaRow) -> bool:
    return bool(row.arguments) and row.arguments[0].startswith("stack+")


def with_return_address(
    space: AddressSpace, stack: RegionSpec, decoder: Decoder, sentinel: int, words: Sequence[int | None] = ()
) -> AddressSpace:
    """On machines that push return addresses, the sentinel lies on top of the stack, the arguments may follow."""
    row = decoder.row
    if not row.pushes_return_address:
        return space
    offset = stack.size - _ABOVE_STACK_POINTER - row.address_bytes
    order = "big" if row.big_endian else "little"
    pushed_words = [sentinel, *(words if _passed_on_stack(row) else ())]
    content = bytes(offset) + b"".join(
        (word or 0).to_bytes(row.address_bytes, order)  # type: ignore[arg-type]
        for word in pushed_words
    )
    starts = [offset + row.address_bytes * number for number, word in enumerate(pushed_words) if word is None]
    unspecified = ((0, offset), *((at, at + row.address_bytes) for at in starts), (len(content), stack.size))
    pushed = RegionSpec(stack.name, stack.start, stack.size, stack.permissions, content, unspecified)
    regions = [region for region in space.regions if region.start != stack.start]
    return AddressSpace([*regions, pushed], space.address_bits, space.big_endian)
