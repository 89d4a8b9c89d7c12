"""A program as one C file, in the manner of AIR (air-powerpc, §3), from the P-code that every engine runs.

Registers become global variables, procedures `void` functions, every instruction the statements its P-code means;
memory is a byte array per region (`array`) or whatever C pointers point to (`pointers`, as in AIR). Deviations from the
paper: statements are generated from the semantics instead of written per instruction, values are unsigned and exact,
both byte orders and all instruction sets are covered, returns and indirect jumps go where the machine would go, and
everything that is not translated traps (the paper does not say what happens there).

The translation is of the bytes at entry. Code in writable memory checks that it is unchanged before each instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec
from mcveto.program.exits import exit_convention
from mcveto.program.program import Program

from . import c_runtime
from .c_expressions import constant, type_bits
from .c_instruction import InstructionPrinter, comment, held_type, identifier
from .c_procedures import Procedure, ProcedurePrinter, partition
from .discovery import Code, Discovery
from .ways import Explorer, translation_decoder

MemoryModel = Literal["array", "pointers"]
_BYTES_PER_LINE = 32
# Regions with more unknown bytes than this get them from malloc instead of one by one.
_MANY = 4096


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of the executable bytes."""

    instructions: int
    swept: int
    """Found by the linear sweep only."""
    procedures: int
    traps: int
    """Instructions translated as a trap because they are outside what is modelled."""
    lost_bytes: int
    lost: tuple[tuple[int, int, str], ...]


class CTranslation:
    """The translation of a program; `lines` gives its text."""

    def __init__(self, program: Program, memory: MemoryModel = "array", *, dispatch_all: bool = False) -> None:
        self._program = program
        self._pointers = memory == "pointers"
        self._decoder = translation_decoder(program.decoder.row)
        self._row = row = self._decoder.row
        self._bits = row.address_bits
        layout = self._decoder.layout
        mode = layout.by_name.get(row.mode_register or "")
        self._printer = InstructionPrinter(
            Explorer(self._decoder),
            layout,
            self._bits,
            None if mode is None else mode.number,
            [call.bits for call in program.spec.input_calls],
        )
        self.code: Code = Discovery(program, self._decoder, self._printer).run()
        self._names = _names(program)
        executable = [(region.start, region.end) for region in program.space.regions if region.permissions & EXECUTE]
        self.procedures: list[Procedure] = partition(self.code, row.code_address, self._names, executable)
        self._procedure_printer = ProcedurePrinter(
            self.code,
            self.procedures,
            address_bits=self._bits,
            mode_mask=row.mode_mask,
            names=self._names,
            before=self._before,
            dispatch_all=dispatch_all,
        )
        self._cells = self._used_cells()
        wide_cells = any(layout.cells[number].bits > 64 for number in self._cells)
        self._wide = wide_cells or any(item.wide for item in self.code.instructions.values())

    @property
    def summary(self) -> Summary:
        instructions = self.code.instructions.values()
        return Summary(
            instructions=len(instructions),
            swept=self.code.swept,
            procedures=len(self.procedures),
            traps=sum(1 for item in instructions if item.problem),
            lost_bytes=sum(end - start for start, end, _ in self.code.lost),
            lost=tuple(self.code.lost),
        )

    @property
    def registers(self) -> list[str]:
        """The registers the C has, by their names in the machine."""
        return [self._decoder.layout.cells[number].name for number in self._cells]

    @property
    def unspecified_registers(self) -> list[str]:
        """The registers that `mc_reset` gives unknown values of at most 64 bits, in order."""
        cells = self._program.decoder.layout.cells
        fixed = {cells[number].name for number in self._program.registers}
        fixed.update(register.cell for register in self._program.input_registers)
        used = [self._decoder.layout.cells[number] for number in self._cells]
        return [cell.name for cell in used if cell.name not in fixed and cell.bits <= 64]

    def lines(self) -> Iterator[str]:
        yield from self._header()
        yield c_runtime.TYPES
        if self._wide:
            yield f"#define MC_WIDE 1\n{c_runtime.WIDE_TYPES}"
        for bits in (32, 64, 128) if self._wide else (32, 64):
            yield c_runtime.operators(bits)
        yield c_runtime.fault_kinds()
        yield "/* registers */"
        for number in self._cells:
            name, bits = self._printer.cell(number)
            yield f"{held_type(bits)} {name};"
        yield ""
        yield c_runtime.ends(self._bits)
        yield from self._memory()
        yield c_runtime.JOURNAL
        yield c_runtime.accessors(frozenset(self._printer.sizes), self._bits, self._row.big_endian)
        yield from self._system_call()
        for procedure in self.procedures:
            yield f"void {procedure.name}(void);"
        yield ""
        yield from self._outside()
        yield from self._procedure_printer.print_enter()
        for procedure in self.procedures:
            yield ""
            yield from self._procedure_printer.print(procedure)
        yield ""
        yield from self._reset()
        yield f"static u{self._bits} mc_entry = {self._number(self._program.entry)};"
        yield "static void mc_run(void) {\n  mc_pc = mc_entry;\n  for (;;) {\n    mc_enter();"
        sentinel = self._number(self._program.return_sentinel)
        yield f"#ifndef MC_FOLLOW\n    if ({self._procedure_printer.address_text()} != {sentinel}) mc_astray();\n#endif"
        yield "  }\n}"
        yield from self._tables()
        yield c_runtime.run_harness(self._bits, self._pointers)

    def _number(self, value: int) -> str:
        return constant(value, self._bits)

    def _used_cells(self) -> list[int]:
        used: set[int] = set()
        for item in self.code.instructions.values():
            used |= item.cells
        convention = exit_convention(self._program)
        if convention is not None:
            used.update(piece.cell.number for piece in self._decoder.layout.named(convention.number_register))
        return sorted(used)

    def _header(self) -> Iterator[str]:
        image, summary = self._program.image, self.summary
        yield f"/* {comment(image.path)}, {image.isa}, sha256 {image.sha256}"
        counts = f"{summary.instructions} instructions in {summary.procedures} procedures"
        yield f"   Entry {self._program.entry:#x}; {counts}."
        yield "   Compile with -DMC_RUN to get a program that runs; without, it is a task for a verifier of C programs."
        for assumption in self._program.assumptions:
            yield f"   Assumed: {comment(assumption)}."
        yield "   Replaced functions and what else is not in the file are as the spec says."
        if summary.traps:
            yield f"   {summary.traps} instructions are outside what is modelled; they trap (mc_unsupported)."
        if summary.lost:
            yield f"   {summary.lost_bytes} executable bytes are not translated; jumping there traps:"
            yield from (f"     {start:#x}-{end:#x} {comment(why)}" for start, end, why in summary.lost)
        yield "*/"

    def _before(self, pc: int) -> list[str]:
        """Statements in front of the instruction at `pc`."""
        address = self._row.code_address(pc)
        number = self._number(pc)
        if address in self._program.targets:
            return [f"mc_target({number});"]
        if address in self._program.halts:
            return [f"mc_halt({number});"]
        content = self.code.instructions[pc].instruction.bytes
        if content and self._program.space.writable(address):
            text = "".join(f"\\x{byte:02x}" for byte in content)
            return [f'if (!mc_same({self._number(address)}, "{text}", {len(content)}u)) mc_modified({number});']
        return []

    def _memory(self) -> Iterator[str]:
        address = f"u{self._bits}"
        regions = self._program.space.regions
        yield f"enum {{ MC_READ = {READ}, MC_WRITE = {WRITE} }};"
        for index, region in enumerate(regions):
            yield from self._contents(index, region)
        yield f"static MC_UNUSED u8 *mc_byte({address} a, u32 need) {{"
        if self._pointers:
            yield "  (void)need;\n  return (u8 *)(uintptr_t)a;\n}"
        else:
            for index, region in enumerate(regions):
                yield f"  if (a - {self._number(region.start)} < {self._number(region.size)}) {{"
                if not region.permissions & READ:
                    yield "    if (need == MC_READ) mc_fault(MC_READ_PERMISSION);"
                if not region.permissions & WRITE:
                    yield "    if (need == MC_WRITE) mc_fault(MC_WRITE_PERMISSION);"
                yield f"    return &mc_memory_{index}[a - {self._number(region.start)}];\n  }}"
            for start, end in self._program.undetermined.foreign_ranges():
                yield f"  if (a - {self._number(start)} < {self._number(end - start)}) mc_unsupported();"
            yield "  mc_fault(need == MC_READ ? MC_UNMAPPED_READ : MC_UNMAPPED_WRITE);\n}"
        yield f"static MC_UNUSED int mc_same({address} a, const char *bytes, u32 size) {{"
        yield "  for (u32 at = 0; at < size; at++)\n    if (*mc_byte(a + at, MC_READ) != (u8)bytes[at]) return 0;"
        yield "  return 1;\n}"

    def _contents(self, index: int, region: RegionSpec) -> Iterator[str]:
        content = bytearray(region.content)
        for start, end in region.unspecified:
            for offset in range(start, min(end, len(content))):
                content[offset] = 0
        for low, high in self._program.image.unspecified:
            for place in range(max(low, region.start), min(high, region.end)):
                value = self._program.undetermined.byte(place)
                if value:
                    content.extend(bytes(max(place - region.start + 1 - len(content), 0)))
                    content[place - region.start] = value
        shown = bytes(content).rstrip(b"\0")
        rights = "".join(
            letter if region.permissions & bit else "-" for letter, bit in zip("rwx", (4, 2, 1), strict=True)
        )
        yield f"/* {comment(region.name)}: {region.start:#x}-{region.end:#x} {rights} */"
        if self._pointers:
            yield "#ifdef MC_RUN"
            yield from _array(f"mc_content_{index}", max(len(shown), 1), shown, "const ")
            yield "#endif"
        elif _unknown(region) > _MANY:
            yield f"#ifdef MC_RUN\nstatic u8 mc_memory_{index}[{region.size}];"
            yield f"#else\nstatic u8 *mc_memory_{index};\n#endif"
        else:
            yield from _array(f"mc_memory_{index}", region.size, shown, "")

    def _system_call(self) -> Iterator[str]:
        yield "static MC_UNUSED _Noreturn void mc_system_call(void) {"
        convention = exit_convention(self._program)
        if convention is not None:
            (piece,) = self._decoder.layout.named(convention.number_register)
            name, _ = self._printer.cell(piece.cell.number)
            bits = type_bits(piece.bits)
            tests = " || ".join(f"{name} == {constant(number, bits)}" for number in sorted(convention.numbers))
            yield f'#ifdef MC_RUN\n  mc_take_back();\n  if ({tests}) mc_finish("exited", mc_at, "");'
            yield f"#else\n  if ({tests}) exit(0);\n#endif"
        yield "  mc_unsupported();\n}"

    def _outside(self) -> Iterator[str]:
        """What happens where there is no procedure."""
        program = self._program
        yield "/* where the run ends although nothing is translated there, or traps because nothing is */"
        yield "static _Noreturn void mc_nowhere(void) {"
        address = self._procedure_printer.address_text()
        yield f"  if ({address} == {self._number(program.return_sentinel)}) mc_halt(mc_pc);"
        for kind, places in (("mc_target", program.targets), ("mc_halt", program.halts)):
            for place in sorted(places):
                yield f"  if ({address} == {self._number(place)}) {kind}(mc_pc);"
        yield "  mc_at = mc_pc;"
        for region in program.space.regions:
            inside = f"{address} - {self._number(region.start)} < {self._number(region.size)}"
            if region.permissions & EXECUTE:
                yield f"  if ({inside}) mc_unknown_target();"
            else:
                yield f"  if ({inside}) mc_fault(MC_EXECUTE_PERMISSION);"
        for start, end in program.undetermined.foreign_ranges():
            yield f"  if ({address} - {self._number(start)} < {self._number(end - start)}) mc_unsupported();"
        yield "  mc_fault(MC_UNMAPPED_EXECUTE);\n}"

    def _reset(self) -> Iterator[str]:
        """The entry state for a verifier: what is fixed, and unknown values for the rest."""
        program, layout = self._program, self._decoder.layout
        cells = program.decoder.layout.cells
        fixed = {cells[number].name: value for number, value in program.registers.items()}
        inputs = {register.cell for register in program.input_registers}
        yield "#ifndef MC_RUN\nstatic void mc_reset(void) {"
        for register in program.input_registers:
            cell = layout.by_name.get(register.cell)
            call = f"mc_input(0u, {register.bits}u)"
            if cell is None or cell.number not in self._cells:
                yield f"  (void){call}; /* {register.name} */"
            else:
                name, bits = self._printer.cell(cell.number)
                yield f"  {name} = ({held_type(bits)}){call};"
        for number in self._cells:
            cell = layout.cells[number]
            name, bits = self._printer.cell(number)
            kind = held_type(bits)
            significant = layout.significant_bits(cell)
            if cell.name in fixed:
                yield f"  {name} = ({kind}){constant(fixed[cell.name], type_bits(bits))};"
            elif cell.name not in inputs and bits > 64:
                yield f"  {name} = mc_u128(mc_any({min(significant, bits) - 64}u), mc_any(64u));"
            elif cell.name not in inputs:
                yield f"  mc_chosen = mc_any({significant}u);\n  {name} = ({kind})mc_chosen;"
        if not self._pointers:
            yield from self._reset_memory()
        yield "}\n#endif"

    def _reset_memory(self) -> Iterator[str]:
        regions = self._program.space.regions
        for index, region in enumerate(regions):
            if _unknown(region) <= _MANY:
                continue
            yield f"  mc_memory_{index} = malloc({region.size}u);\n  if (!mc_memory_{index}) exit(0);"
            at = 0
            for start, end in (*sorted(region.unspecified), (region.size, region.size)):
                for offset in range(at, start):
                    value = region.content[offset] if offset < len(region.content) else 0
                    yield f"  mc_memory_{index}[{offset}] = {value};"
                at = max(at, end)
        taken = self._program.input_memory
        for start, end in taken:
            for index, region in enumerate(regions):
                low, high = max(start, region.start) - region.start, min(end, region.end) - region.start
                if low < high:
                    yield f"  for (u32 at = {low}u; at < {high}u; at++) mc_memory_{index}[at] = (u8)mc_input(0u, 8u);"
        for index, region in enumerate(regions):
            for low, high in region.unspecified if _unknown(region) <= _MANY else ():
                for offset in range(low, high):
                    place = region.start + offset
                    given = any(start <= place < end for start, end in taken)
                    if not given and self._program.image.is_specified(place):
                        yield f"  mc_memory_{index}[{offset}] = (u8)mc_any(8u);"

    def _tables(self) -> Iterator[str]:
        yield "#ifdef MC_RUN"
        yield "static const struct { const char *name; void *place; u32 size; } mc_registers[] = {"
        layout = self._decoder.layout
        for number in self._cells:
            name, _ = self._printer.cell(number)
            yield f'  {{"{layout.cells[number].name}", &{name}, sizeof {name}}},'
        if not self._cells:
            yield '  {"pc", &mc_pc, sizeof mc_pc},'
        yield "};"
        kind = "const u8 *content; size_t content_size; " if self._pointers else ""
        yield f"static struct {{ u64 start; size_t size; int permissions; u8 *bytes; {kind}}} mc_regions[] = {{"
        for index, region in enumerate(self._program.space.regions):
            place = f"0, mc_content_{index}, sizeof mc_content_{index}" if self._pointers else f"mc_memory_{index}"
            yield f"  {{0x{region.start:x}ull, {region.size}u, {region.permissions}, {place}}},"
        yield "};\n#endif"


def _unknown(region: RegionSpec) -> int:
    return sum(end - start for start, end in region.unspecified)


def _array(name: str, size: int, content: bytes, qualifier: str) -> Iterator[str]:
    if not content:
        yield (
            f"static {qualifier}u8 {name}[{size}];"
            if not qualifier
            else f"static {qualifier}u8 {name}[{size}] = {{0}};"
        )
        return
    yield f"static {qualifier}u8 {name}[{size}] = {{"
    for at in range(0, len(content), _BYTES_PER_LINE):
        yield "".join(f"{byte}," for byte in content[at : at + _BYTES_PER_LINE])
    yield "};"


def _names(program: Program) -> dict[int, str]:
    """One name per address: a procedure's rather than a label's."""
    image = program.image
    every = [*image.imports.items(), *image.symbols.items()]
    chosen: dict[int, str] = {}
    for name, address in sorted(every, key=lambda item: (item[0].startswith((".", "L")), item[0])):
        if identifier(name).strip("_"):
            chosen.setdefault(address, name)
    return chosen
