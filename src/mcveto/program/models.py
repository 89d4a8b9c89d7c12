"""Functions of a binary bound to library models, as the spec asks: hooks, the heap they share, what they assume."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import field

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.machine.isa import Decoder
from mcveto.machine.memory import READ, WRITE, RegionSpec
from mcveto.machine.pcode import Instruction, Op
from mcveto.program.entry_state import Span, data_area, free_area
from mcveto.program.hooks import _return
from mcveto.program.spec import Address, InputCall, Spec

HEAP_BYTES = 1 << 16
GRANULE = 16
_INPUT_BITS = 16
MODEL_INPUT = "a library model"
REMAINS = "remains of library functions"


@dataclass(slots=True)
class BoundModels:
    """What binding the spec's models adds to a program."""

    hooks: dict[int, Instruction] = field(default_factory=dict)
    halts: set[int] = field(default_factory=set)
    regions: list[RegionSpec] = field(default_factory=list)
    input_calls: tuple[InputCall, ...] = ()
    assumptions: list[str] = field(default_factory=list)


def bind_models(
    decoder: Decoder, spec: Spec, occupied: Sequence[Span], code: Callable[[Address, str], int]
) -> BoundModels:
    """The models of the spec; `code` resolves the address of a function. Raises UsageError."""
    bound = BoundModels(input_calls=spec.input_calls)
    if not spec.models:
        return bound
    from mcveto.whilelang.models.catalogue import models
    from mcveto.whilelang.models.ctype_tables import TABLES_BYTES, character_tables
    from mcveto.whilelang.models.lower_model import REMAINS_BYTES, ModelLowering

    row, known = decoder.row, models()
    taken = list(occupied)
    constants = {"word_bytes": row.address_bytes, "heap_start": 0, "heap_bytes": HEAP_BYTES, "heap_table": 0}
    constants["big_endian"] = int(row.big_endian)
    if any(known[name].heap for _, name in spec.models if name in known):
        table_bytes = (HEAP_BYTES // GRANULE + 1) * row.address_bytes
        for key, name, size in (("heap_start", "heap", HEAP_BYTES), ("heap_table", "heap table", table_bytes)):
            size = -(-size // 4096) * 4096
            start = data_area(taken, size, row.address_bits)
            taken.append((start, start + size))
            constants[key] = start
            unknown = ((0, size),) if name == "heap" else ()
            bound.regions.append(RegionSpec(name, start, size, READ | WRITE, b"", unknown))
    constants["ctype_tables"] = 0
    if any(known[name].ctype for _, name in spec.models if name in known):
        start = constants["ctype_tables"] = data_area(taken, TABLES_BYTES, row.address_bits)
        taken.append((start, start + TABLES_BYTES))
        content, gaps = character_tables(start, row.address_bytes, "big" if row.big_endian else "little")
        bound.regions.append(RegionSpec("tables of characters", start, TABLES_BYTES, READ, content, tuple(gaps)))
    remains = data_area(taken, REMAINS_BYTES, row.address_bits)
    taken.append((remains, remains + REMAINS_BYTES))
    bound.regions.append(RegionSpec(REMAINS, remains, REMAINS_BYTES, READ, b"", ((0, REMAINS_BYTES),)))

    def return_ops() -> list[Op]:
        return decoder.assembler.assemble("\n".join(_return(decoder)), {})

    places: dict[int, str] = {}
    for address, name in spec.models:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise UsageError(f"there is no library model '{name[:40]}'", f"did you mean '{nearest[0]}'?")
        model = known[name]
        entry = code(address, f"model {name}")
        if entry in places:
            raise UsageError(f"{entry:#x} is bound to two models, {places[entry]} and {name}")
        places[entry] = name
        if model.ends:
            bound.halts.add(entry)
            continue
        lowering = ModelLowering(decoder, name, constants, len(spec.input_calls), return_ops, remains)
        area = free_area(taken, lowering.area_bytes, row.address_bits)
        taken.append((area, area + lowering.area_bytes))
        bound.hooks.update(lowering.hooks(entry, area))
    bound.input_calls = (*spec.input_calls, InputCall(MODEL_INPUT, _INPUT_BITS))
    names = ", ".join(sorted(set(places.values())))
    bound.assumptions.append(f"library models stand for {names}; what is in the binary at their addresses is not run")
    for name in sorted(set(places.values())):
        bound.assumptions += [f"{name}: {text}" for text in known[name].assumes]
    return bound
