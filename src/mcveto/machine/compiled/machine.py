"""The compiled machine: same interface, outcomes, state and trace as the reference emulator, much faster.

Code runs in the reference emulator first, which also observes where branches go and what memory is touched. An address
that is entered often enough becomes the head of a compiled function (`tree.py`, `emit.py`), which then runs until
something happens that it was not made for; the instruction in question is executed by the reference emulator, so every
fault, trap, input and write into code takes the reference path.

Self-modification: compiled stores cannot reach executed code (`views.py`); a store of the reference emulator into
compiled bytes drops the functions made from them, and a function is compared with memory before it first runs in a
call of `run`, so that memory may be changed between calls.

FRESH operations of origin UNDEFINED take their usual value in compiled code; a machine made with
`exact_undefined=True`, or one that logs accesses, runs in the reference emulator throughout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ..concrete import FreshSource, usual_value
from ..emulator import JournalDomain, Machine, Outcome
from ..interpreter import Interpreter
from ..isa import Decoder
from ..memory import READ, WRITE, Memory
from ..pcode import Instruction, Transfer
from ..trace import CHUNK_PATHS
from .views import CODE_PAGE, View, Views

if TYPE_CHECKING:  # the compiler itself is imported when something gets hot: most runs are short
    from .nodes import Node
    from .tree import Site
    from .unit import Unit

# Entries of an address before it is compiled.
HOT = 6
# Steps for each instruction seen before anything is: in a long way through code that hardly repeats nothing pays off.
STEPS_EACH = 2
# Failures of one site before its instruction's accesses are made without assumptions.
_PATIENCE = 3
_MAX_UNIT = 600
_MAX_REBUILDS = 12
# Times the code at an address may be modified before it stays with the reference emulator.
_MAX_REWRITES = 8


class ObservingDomain(JournalDomain):
    """Also remembers the addresses an instruction touches and drops compiled code that is written to."""

    def __init__(self, memory: Memory, fresh: FreshSource, log_accesses: bool) -> None:
        super().__init__(memory, fresh, log_accesses)
        self.touched: list[int] = []
        self.owner: CompiledMachine | None = None

    def begin(self) -> None:
        super().begin()
        self.touched = []

    def load(self, address: int, size: int) -> int:
        self.touched.append(address)
        return super().load(address, size)

    def store(self, address: int, value: int, size: int) -> None:
        self.touched.append(address)
        super().store(address, value, size)
        if self.owner is not None:
            self.owner.written(address, size)


class CompiledMachine(Machine):
    def __init__(
        self,
        decoder: Decoder,
        memory: Memory,
        registers: Mapping[int, int],
        pc: int,
        *,
        hooks: Mapping[int, Instruction] | None = None,
        halts: Collection[int] = (),
        targets: Collection[int] = (),
        fresh: FreshSource = usual_value,
        exact_undefined: bool = False,
        log_accesses: bool = False,
    ) -> None:
        super().__init__(
            decoder,
            memory,
            registers,
            pc,
            hooks=hooks,
            halts=halts,
            targets=targets,
            fresh=fresh,
            exact_undefined=exact_undefined,
            log_accesses=log_accesses,
        )
        self._observer = ObservingDomain(memory, fresh, log_accesses)
        self._observer.registers.update(registers)
        self._domain = self._observer
        self._paths_run = 0
        self._compiling = not (exact_undefined or log_accesses)
        if not self._compiling:
            return
        self._observer.owner = self
        self._enforce = memory.enforce
        self._views = Views(memory, self._row.big_endian, self._enforce)
        self._layout_of_memory = self._memory_layout()
        self._graph_interpreter: Interpreter[Node] = Interpreter(decoder)
        self._units: dict[int, Unit] = {}
        self._units_on_page: dict[int, set[Unit]] = {}
        self._run_number = 0
        self._heat: dict[int, int] = {}
        self._observed = 0
        self._rewrites: dict[int, int] = {}
        self._executed: dict[int, Instruction] = {}
        self._successors: dict[int, dict[int, int]] = {}
        self._loop_heads: set[int] = set()
        self._touched: dict[int, list[int]] = {}
        # Instructions whose accesses go through the helpers, or through unaligned views.
        self._wary: dict[int, int] = {}
        self._uncompiled: set[int] = set()
        self._links: dict[tuple[int, int], int] = {}
        self._narrow = [
            (cell.number, decoder.layout.significant_bits(cell))
            for cell in decoder.layout.cells
            if decoder.layout.significant_bits(cell) < cell.bits
        ]

    @property
    def paths_compiled(self) -> int:
        """How many compiled paths have been run so far."""
        return self._paths_run

    def run(self, max_steps: int) -> Outcome:
        """As the reference emulator's, bit for bit."""
        if not self._compiling:
            return super().run(max_steps)
        self._run_number += 1
        if self._layout_of_memory != self._memory_layout():
            self._drop_all()
        steps = 0
        came_from: Unit | None = None
        left: Site | None = None
        entering = True
        while True:
            outcome = self.stopped()
            if outcome is None and steps >= max_steps:
                outcome = Outcome("limit", self.pc)
            if outcome is not None:
                return Outcome(outcome.kind, outcome.pc, outcome.fault, outcome.address, outcome.detail, steps)
            unit = self._units.get(self.pc)
            if unit is None and entering:
                unit = self._warm(self.pc, came_from)
            elif unit is not None and came_from is not None:
                unit = self._linked(came_from, unit, left)
            if unit is not None and self._enterable(unit, max_steps - steps):
                executed, site = self._run_unit(unit, max_steps - steps)
                left = site
                steps += executed
                entering = True
                came_from = unit
                if executed and (site is None or site.leaves):
                    continue
                if site is not None and not site.leaves:
                    self._disappointed(unit, site)
            before = self.pc
            outcome = self._step()
            if outcome is not None:
                return Outcome(outcome.kind, outcome.pc, outcome.fault, outcome.address, outcome.detail, steps)
            steps += 1
            entering = self._observe(before) or (unit is not None)
            if unit is None and not entering:
                continue
            if unit is None:
                came_from = None

    def _run_unit(self, unit: Unit, remaining: int) -> tuple[int, Site | None]:
        fuel = min(remaining // unit.longest, CHUNK_PATHS)
        before = len(self.trace.pending)
        pc, site = unit.run(self.pc, fuel, self.registers, self.trace.pending)
        self._paths_run += len(self.trace.pending) - before
        steps = self.trace.settle(pc)
        if site is not None and site.steps:
            if site.leaves:
                seen = self._successors.setdefault(site.steps[-1][0].pc, {})
                seen[pc] = seen.get(pc, 0) + 1
                site.count += 1
            self.trace.pending.append(self.trace.number_of(site.steps))
            steps += self.trace.settle(pc)
        self.pc = pc
        return steps, site

    def _enterable(self, unit: Unit, remaining: int) -> bool:
        if remaining < unit.longest:
            return False
        if unit.checked_in != self._run_number:
            for instruction in unit.instructions:
                address = self._row.code_address(instruction.pc)
                if self.memory.peek(address, instruction.size) != instruction.bytes:
                    self._drop(unit)
                    return False
            unit.checked_in = self._run_number
        registers = self.registers
        return all(registers.get(cell, 0) >> bits == 0 for cell, bits in self._narrow)

    def _observe(self, before: int) -> bool:
        """Takes note of a reference step from `before`; whether the place it came to is worth counting."""
        self._observed += 1
        instruction = self._executed.get(before)
        last = self._last_instruction
        if instruction is not last:
            self._executed[before] = last
            if before not in self.hooks:
                address = self._row.code_address(before)
                self._views.add_code(address, address + last.size)
        after = self.pc
        seen = self._successors.setdefault(before, {})
        seen[after] = seen.get(after, 0) + 1
        self._touched[before] = self._observer.touched
        jumped = after != before + last.size
        if self._last_transfer is Transfer.JUMP and after <= before:
            self._loop_heads.add(after)
        return jumped

    def _warm(self, pc: int, came_from: Unit | None) -> Unit | None:
        heat = self._heat[pc] = self._heat.get(pc, 0) + 1
        if came_from is not None and came_from.addresses[0] not in self._units:
            came_from = None
        threshold = HOT if came_from is None else HOT << min(came_from.rebuilt, 8)
        if (
            heat < threshold
            or self._observed < STEPS_EACH * len(self._executed)
            or pc in self._uncompiled
            or self._instruction_at(pc) is None
        ):
            return None
        if self._rewrites.get(pc, 0) > _MAX_REWRITES:
            return None
        self._heat[pc] = 0
        seeds = {pc}
        rebuilt = 0
        if came_from is not None and len(came_from.instructions) < _MAX_UNIT:
            seeds.update(self._lasting_heads(came_from))
            rebuilt = came_from.rebuilt + 1
        return self._compile(seeds, rebuilt, pc)

    def _linked(self, origin: Unit, unit: Unit, left: Site | None) -> Unit:
        """Joins two functions that often hand over to each other; makes a well-worn way out a way on."""
        if origin is unit:
            if left is None or left.count < 2 * HOT << min(unit.rebuilt, 8) or unit.rebuilt > _MAX_REBUILDS:
                return unit
            left.count = 0
            return self._compile({self.pc, *self._lasting_heads(unit)}, unit.rebuilt + 1, self.pc) or unit
        key = (id(origin), id(unit))
        count = self._links[key] = self._links.get(key, 0) + 1
        if count < 2 * HOT << min(origin.rebuilt + unit.rebuilt, 8) or origin.addresses[0] not in self._units:
            return unit
        self._links[key] = 0
        if len(origin.instructions) + len(unit.instructions) > _MAX_UNIT:
            return unit
        seeds = {self.pc, *self._lasting_heads(origin), *self._lasting_heads(unit)}
        return self._compile(seeds, max(origin.rebuilt, unit.rebuilt) + 1, self.pc) or unit

    def _compile(self, seeds: set[int], rebuilt: int, pc: int) -> Unit | None:
        from .lift import GraphDomain, Lifter
        from .nodes import Graph
        from .tree import Forest, Leave, Surroundings
        from .unit import Unit

        graph = Graph()
        forward = not self._enforce or all(r.permissions & READ for r in self.memory.regions if r.permissions & WRITE)
        domain = GraphDomain(graph, self.decoder.layout, self._row.address_bits, forward)
        around = Surroundings(
            self._row.address_bits,
            self._instruction_at,
            self._return_point,
            self._successors,
            self._loop_heads,
            self._companions,
            self._view_for,
            self._uncompiled,
        )
        try:
            forest = Forest(graph, Lifter(self._graph_interpreter, domain), around, seeds)
            if isinstance(forest.trees[pc][0], Leave):
                return None
            unit = Unit(forest, self.trace, self._views.objects)
        except RecursionError:  # called with little stack left, or expressions nested beyond reason
            self._uncompiled.add(pc)
            return None
        unit.rebuilt = rebuilt
        for old in {id(u): u for head in unit.addresses if (u := self._units.get(head))}.values():
            self._drop(old)
        self._install(unit)
        return unit

    def _install(self, unit: Unit) -> None:
        extents = [(self._row.code_address(i.pc), i.size) for i in unit.instructions]
        for other in {id(u): u for u in self._units.values()}.values():
            if any(v.low < start + size and start < v.high for v in other.watched for start, size in extents):
                self._drop(other)
        for start, size in extents:
            self._views.code_bytes.update(range(start, start + size))
            for page in range(start >> CODE_PAGE, (start + size - 1 >> CODE_PAGE) + 1):
                self._units_on_page.setdefault(page, set()).add(unit)
                self._views.code_pages.add(page)
        for head in unit.heads:
            self._units[head] = unit

    def _drop(self, unit: Unit) -> None:
        for head in unit.addresses:
            if self._units.get(head) is unit:
                del self._units[head]
        for units in self._units_on_page.values():
            units.discard(unit)

    def _drop_all(self) -> None:
        for unit in list(self._units.values()):
            self._drop(unit)
        self._views = Views(self.memory, self._row.big_endian, self._enforce)
        for pc, instruction in self._executed.items():
            if pc not in self.hooks:
                address = self._row.code_address(pc)
                self._views.add_code(address, address + instruction.size)
        self._layout_of_memory = self._memory_layout()

    def _memory_layout(self) -> list[tuple[int, int, int]]:
        return [(id(region.data), region.start, region.permissions) for region in self.memory.regions]

    def written(self, address: int, size: int) -> None:
        """Drops the functions made from bytes that have just been written."""
        pages = self._units_on_page
        for page in range(address >> CODE_PAGE, (address + size - 1 >> CODE_PAGE) + 1):
            for unit in list(pages.get(page, ())):
                for instruction in unit.instructions:
                    start = self._row.code_address(instruction.pc)
                    if start < address + size and address < start + instruction.size:
                        self._drop(unit)
                        for head in unit.addresses:
                            self._rewrites[head] = self._rewrites.get(head, 0) + 1
                        break

    def _disappointed(self, unit: Unit, site: Site) -> None:
        """A guard failed: after a few times the instruction's accesses are made without assumptions, or not at all."""
        site.count += 1
        if site.count >= _PATIENCE and self._touched.get(site.pc):
            wary = self._wary[site.pc] = self._wary.get(site.pc, 0) + 1
            if wary > 2:
                self._uncompiled.add(site.pc)
            self._drop(unit)

    def _instruction_at(self, pc: int) -> Instruction | None:
        """The instruction at `pc` if it has been executed and is still what memory holds."""
        instruction = self._executed.get(pc)
        if instruction is None or pc in self.hooks:
            return None
        address = self._row.code_address(pc)
        if address in self.halts or address in self.targets:
            return None
        return instruction if self.memory.peek(address, instruction.size) == instruction.bytes else None

    def _companions(self, pc: int) -> Collection[int]:
        """The other heads of the function that has `pc` as a head: a new function takes all of it over."""
        unit = self._units.get(pc)
        return self._lasting_heads(unit) if unit is not None and len(unit.instructions) < _MAX_UNIT else ()

    def _lasting_heads(self, unit: Unit) -> list[int]:
        """The heads that are more than the place where some instruction once had to be left to the reference."""
        return [pc for pc in unit.addresses if pc in self._loop_heads or pc in unit.dynamic]

    def _return_point(self, instruction: Instruction) -> int:
        return (instruction.pc + instruction.size) & self._row.address_mask

    def _view_for(
        self, instruction: Instruction, ordinal: int, size: int, absolute: int | None
    ) -> tuple[View | None, int]:
        wary = self._wary.get(instruction.pc, 0)
        if absolute is not None:
            return self._views.at(absolute, size, True), absolute
        touched = self._touched.get(instruction.pc, [])
        if wary > 1 or ordinal >= len(touched):
            return None, 0
        return self._views.at(touched[ordinal], size, wary == 0), touched[ordinal]
