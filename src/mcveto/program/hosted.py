"""Programs that run under a C library: its functions by their models, `main` and its arguments, the standard streams.

A dynamically linked ELF file starts in code that hands `main` to the library. Nobody needs to say so: an import for
which there is a model is bound to it, the start-up code is run to find `main`, and `main` is called with arguments as
the spec says (none but the program's name unless `inputs.argv` does). All of it is listed as assumptions, and whatever
the spec says itself comes first; `models: none` turns the binding off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.machine.isa import IsaRow
from mcveto.machine.memory import READ, WRITE, RegionSpec
from mcveto.program.entry_state import Span, data_area
from mcveto.program.image.model import Image
from mcveto.program.spec import (
    MAX_ARGUMENTS,
    MAX_POINTED_AT,
    RETURNS_ANYTHING,
    Argv,
    InputCall,
    PointerArgument,
    Spec,
)
from mcveto.program.undetermined import Undetermined

if TYPE_CHECKING:
    from mcveto.program.program import Program

START = "__libc_start_main"
_STREAMS = ("stdin", "stdout", "stderr")
_CANARY_USER = "__stack_chk_fail"
_THREAD_REGISTERS = {"x86-32": "GS_OFFSET", "x86-64": "FS_OFFSET"}
_THREAD_BYTES = 4096
_START_STEPS = 10_000
_NAME = b"program\0"


def with_models(image: Image, spec: Spec) -> Spec:
    """The spec with models of imports that it leaves open, every model by its own name."""
    if not spec.models and not (spec.models_imports and image.imports):
        return spec
    from mcveto.whilelang.models.catalogue import models

    known = models()
    found = list(spec.models)
    if spec.models_imports and image.format == "elf":
        taken = _mentioned(spec)
        found += [
            (name, name)
            for name, address in sorted(image.imports.items())
            if name in known and name not in image.symbols and not taken & {name, address}
        ]
    resolved = [(at, (known[name].same_as or name) if name in known else name) for at, name in found]
    return replace(spec, models=tuple(resolved))


def with_undefined(image: Image, spec: Spec, bits: int) -> Spec:
    """The spec with every function that the file does not define, and that nothing is said about, as one that returns
    anything, if the spec wants that."""
    if spec.undefined != RETURNS_ANYTHING:
        return spec
    taken = _mentioned(replace(spec, properties=tuple(replace(item, events=()) for item in spec.properties)))
    found = [
        InputCall(name, bits)
        for name, address in sorted(image.imports.items())
        if name not in image.symbols and not taken & {name, address}
    ]
    return replace(spec, input_calls=(*spec.input_calls, *found))


def _mentioned(spec: Spec) -> set[int | str]:
    """Every function that the spec says something about."""
    found: set[int | str] = {call.at for call in spec.input_calls}
    found |= {*spec.assume, *spec.halt, *(at for at, _ in spec.models)}
    for item in spec.properties:
        if isinstance(item.argument, tuple):
            found |= set(item.argument)
        found |= {where for _, where in item.events}
    return found


def at_main(image: Image, spec: Spec, load: Callable[[Image, Spec], Program]) -> Spec:
    """The spec with `main` as the entry if it names none and the file's own entry leads there."""
    if spec.entry is not None or not spec.models_imports or START not in image.imports or START in _mentioned(spec):
        return spec
    if image.format != "elf" or image.entry is None or image.isa.startswith("ppc"):
        return spec
    from mcveto.program.inputs import InputSource

    probe = Spec(halt=(START,), models_imports=False, stack=spec.stack, regions=spec.regions)
    program = load(image, probe)
    machine = program.machine(InputSource())
    if machine.run(_START_STEPS).kind != "halted":
        return spec
    row = program.decoder.row
    where = row.arguments[0]
    if where.startswith("stack+"):
        content = machine.memory.peek(
            machine.read(row.stack_pointer) + int(where.removeprefix("stack+")), row.address_bytes
        )
        main = int.from_bytes(content or b"", "big" if row.big_endian else "little")
    else:
        main = machine.read(where)
    if image.segment_at(main & ~row.mode_mask) is None:
        return spec
    return replace(spec, entry=main, argv=spec.argv or Argv(0, 1))


@dataclass(slots=True)
class Surroundings:
    """What the C library and the system put around the program."""

    regions: list[RegionSpec] = field(default_factory=list)
    input_memory: list[Span] = field(default_factory=list)
    words: list[int | None] = field(default_factory=list)
    """The first arguments of the entry; None: any value."""
    registers: dict[str, int] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)


def surroundings(image: Image, spec: Spec, row: IsaRow, occupied: Sequence[Span]) -> Surroundings:
    found = Surroundings()
    taken = list(occupied)

    def place(name: str, content: bytes, size: int, unspecified: tuple[Span, ...]) -> int:
        start = data_area(taken, size, row.address_bits)
        taken.append((start, start + size))
        found.regions.append(RegionSpec(name, start, size, READ | WRITE, content, unspecified))
        return start

    if spec.argv is not None:
        _arguments(found, spec.argv, row, place)
    if spec.pointers:
        _pointers(found, spec.pointers, row, place)
    thread = _THREAD_REGISTERS.get(image.isa)
    if thread is not None and image.format == "elf" and _CANARY_USER in image.imports:
        start = place("thread", b"", _THREAD_BYTES, ((0, _THREAD_BYTES),))
        found.registers[thread] = start
        found.assumptions.append(f"{thread} points to {_THREAD_BYTES} bytes of the thread, among them the stack guard")
    return found


def _arguments(
    found: Surroundings, argv: Argv, row: IsaRow, place: Callable[[str, bytes, int, tuple[Span, ...]], int]
) -> None:
    word = row.address_bytes
    order = "big" if row.big_endian else "little"
    # argv with its null pointer, an empty environment, then the texts.
    texts = word * (argv.count + 3)
    size = texts + len(_NAME) + argv.count * argv.size
    offsets = [texts, *(texts + len(_NAME) + argv.size * number for number in range(argv.count))]
    unspecified = tuple((at, at + argv.size - 1) for at in offsets[1:] if argv.size > 1)
    start = place("arguments", b"", -(-size // 16) * 16, ())
    pointers = [start + at for at in offsets] + [0, 0]
    content = b"".join(value.to_bytes(word, order) for value in pointers) + _NAME  # type: ignore[arg-type]
    region = found.regions.pop()
    found.regions.append(replace(region, content=content, unspecified=unspecified))
    found.input_memory += [(start + low, start + high) for low, high in unspecified]
    found.words = [1 + argv.count, start, start + word * (argv.count + 2)]
    more = f" and {argv.count} of fewer than {argv.size} bytes" if argv.count else ""
    found.assumptions.append(
        f"main is called as main({1 + argv.count}, argv, envp) with the program's name{more}; "
        "the environment is empty; constructors are not run"
    )


def _pointers(
    found: Surroundings,
    pointers: Sequence[PointerArgument],
    row: IsaRow,
    place: Callable[[str, bytes, int, tuple[Span, ...]], int],
) -> None:
    in_registers = [name for name in row.arguments if not name.startswith("stack+")]
    most = min(len(in_registers), MAX_ARGUMENTS) if in_registers else MAX_ARGUMENTS
    for item in pointers:
        if not 1 <= item.number <= most:
            raise UsageError(f"argument {item.number} cannot be a pointer", f"arguments are 1 to {most} here")
        if item.size > MAX_POINTED_AT:
            raise UsageError(f"argument {item.number} points to too much", f"the limit is {MAX_POINTED_AT} bytes")
        found.words += [None] * (item.number - len(found.words))
        if found.words[item.number - 1] is not None:
            raise UsageError(f"argument {item.number} is given twice")
        start = place(f"argument {item.number}", b"", item.size, ((0, item.size),))
        found.words[item.number - 1] = start
        found.assumptions.append(
            f"argument {item.number} of the entry points to {item.size} bytes of their own at {start:#x}"
        )


@dataclass(frozen=True, slots=True)
class Streams:
    """The library's variables `stdin`, `stdout` and `stderr`.

    What they hold is an address of another module: it can be passed on, and following it is unsupported."""

    copies: frozenset[int]
    """Markers of the variables that the file has a copy of."""
    pointers: dict[int, int]
    """Cells that hold the address of a variable, and that address."""
    regions: tuple[RegionSpec, ...] = ()


def streams(image: Image, undetermined: Undetermined, row: IsaRow) -> Streams:
    copies = (undetermined.marker_of(image.symbols[name]) for name in _STREAMS if name in image.symbols)
    cells = [image.imports[name] for name in _STREAMS if name in image.imports and name not in image.symbols]
    cells = [cell for cell in cells if undetermined.marker_of(cell) is not None]
    found = frozenset(marker for marker in copies if marker is not None)
    if not cells:
        return Streams(found, {})
    word, order = row.address_bytes, "big" if row.big_endian else "little"
    start = data_area(undetermined.occupied, word * len(cells), row.address_bits)
    content = b"".join((undetermined.marker_of(cell) or 0).to_bytes(word, order) for cell in cells)  # type: ignore[arg-type]
    pointers = {cell: start + word * number for number, cell in enumerate(cells)}
    region = RegionSpec("standard streams", start, len(content), READ | WRITE, content)
    undetermined.occupied.append((start, start + len(content)))
    return Streams(found, pointers, (region,))
