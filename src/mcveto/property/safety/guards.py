"""Guards of memory safety and faults: what is put around the operations of one instruction.

Every load and store is preceded by the condition under which it is allowed, and leaves for an address of our own where
that does not hold; a trap leaves instead of ending the run; so does a jump to where nothing can be executed. The
condition of an access, of `size` bytes at `p`:

    p lies in a mapped range with the permission; of the stack, not below the stack pointer and its red zone; of the
    heap, inside a live block; and it touches no saved return address

The addresses of the saved return addresses and the live blocks are ghost registers: `depth` slots that calls and
returns shift (the innermost first), and `blocks` pairs of base and size. What does not fit into them is unsupported,
never forgotten. A word that its own function loads back from its slot is a return address no more.

Library models are guarded where they touch memory for their caller (byte by byte); their frames and the allocator's
table are their own affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcveto.machine.faults import FaultKind
from mcveto.machine.isa import Decoder
from mcveto.machine.isa.snippet import TEMPORARY_BASE
from mcveto.machine.memory import EXECUTE, READ, WRITE
from mcveto.machine.pcode import BRANCHES, Instruction, Op, Space, Varnode
from mcveto.program.entry_state import Span
from mcveto.program.frame_layout import FrameLayout
from mcveto.program.frames import carrier_register, link_register, link_use, overlap
from mcveto.program.models import GRANULE
from mcveto.program.undefined_division import undefined_division
from mcveto.property.safety.guarded_ops import FIRST_TEMPORARY, GuardedOps
from mcveto.property.safety.provenance import Objects, Provenance, tag_cells

# Ends of a run that are no faults of the program.
HARMLESS = frozenset(
    {FaultKind.SYSTEM_CALL, FaultKind.ASSUMPTION_FAILED, FaultKind.UNSUPPORTED, FaultKind.HALT_INSTRUCTION}
)
# They read a text as any function does; what they write is their new block.
COPYING_ALLOCATORS = ("strdup", "strndup")
ALLOCATORS = ("malloc", "calloc", "realloc", *COPYING_ALLOCATORS)
HEAP_MODELS = (*ALLOCATORS, "free")
TOO_DEEP = "beyond the calls that are watched"
TOO_MANY = "beyond the heap blocks that are watched"
# Temporaries of typestate properties; what is loaded into them is not the program's access.
_WATCHING = range(TEMPORARY_BASE + (1 << 26), FIRST_TEMPORARY)


@dataclass(frozen=True, slots=True)
class Layout:
    """Address ranges by permission, what belongs to other modules among them: a jump or access there is unsupported."""

    ranges: Mapping[int, Sequence[Span]]
    """What the program may access besides the stack and its heap blocks."""
    everything: Mapping[int, Sequence[Span]]
    """All that is mapped."""
    stack: Span
    red_zone: int
    ends: frozenset[int]
    """Code addresses outside of executable memory that a jump may go to: halts, targets, replaced functions."""
    heap: int = 0
    heap_table: int = 0
    """Where the heap of the models is, and the table of its blocks."""


@dataclass(frozen=True, slots=True)
class Question:
    memory_safety: bool
    no_fault: bool
    bad_access: int
    """Where control goes instead of a forbidden access or free."""
    fault: int
    """Where control goes instead of a fault."""
    depth: int
    blocks: int


def ghost_cells(
    decoder: Decoder, question: Question, has_heap: bool, has_saves: bool, has_objects: bool
) -> list[tuple[str, int]]:
    """Names and sizes of the registers that the guards need."""
    if not question.memory_safety:
        return []
    word = decoder.row.address_bytes
    cells = [(f"safety_slot{number}", word) for number in range(question.depth)]
    if has_saves:
        cells += [(f"safety_{what}{number}", word) for number in range(question.depth) for what in ("low", "top")]
    if has_objects:
        cells += tag_cells(decoder)
    if link_register(decoder) is not None:
        cells += [("safety_fresh", 1), ("safety_carried", 1)]
    if has_heap:
        cells += [("safety_argument0", word), ("safety_argument1", word)]
        for number in range(question.blocks):
            cells += [(f"safety_base{number}", word), (f"safety_size{number}", word)]
    return cells


class Guards:
    """`model_frames` has the frame size of every bound model by name, `model_entries` the addresses of their entries.
    `replaced` are the code addresses at which something else runs than what is in memory."""

    def __init__(
        self,
        decoder: Decoder,
        layout: Layout,
        question: Question,
        model_frames: Mapping[str, int],
        model_entries: frozenset[int],
        replaced: frozenset[int],
        frame_layout: FrameLayout | None = None,
        objects: Objects | None = None,
    ) -> None:
        self.decoder = decoder
        self.frame_layout = frame_layout
        self.objects = objects
        self.row = decoder.row
        self.layout = layout
        self.question = question
        self.model_frames = model_frames
        self.model_entries = model_entries
        self._replaced = replaced
        named = decoder.registers
        self.pointer = named[self.row.stack_pointer]
        self.link = link_register(decoder)
        self.carrier = carrier_register(decoder)
        self.slots = [named[f"safety_slot{i}"] for i in range(question.depth if question.memory_safety else 0)]
        self.fresh, self.carried = named.get("safety_fresh"), named.get("safety_carried")
        watched = question.depth if "safety_low0" in named else 0
        self.saved = [(named[f"safety_low{i}"], named[f"safety_top{i}"]) for i in range(watched)]
        """For each pending call, the range of its frame in which registers of its caller are saved."""
        has_heap = "safety_argument0" in named
        self.arguments = [named["safety_argument0"], named["safety_argument1"]] if has_heap else []
        count = question.blocks if has_heap else 0
        self.blocks = [(named[f"safety_base{i}"], named[f"safety_size{i}"]) for i in range(count)]

    @property
    def none(self) -> int:
        """What is in slots that hold no address: below the stack, where nothing is mapped."""
        return self.layout.stack[0] - 4096

    def is_entered(self, address: int) -> bool:
        """Whether control can go on at a code address."""
        address = self.row.code_address(address)
        known = address in self._replaced or address in self.layout.ends
        return known or _contain(self.layout.everything[EXECUTE], address, 1)

    def guarded(self, instruction: Instruction) -> Instruction:
        return _Guarding(self, instruction).instruction()


class _Guarding:
    """One instruction."""

    def __init__(self, guards: Guards, instruction: Instruction) -> None:
        self._g = guards
        self._source = instruction
        self._row = guards.row
        self._word = guards.row.address_bytes
        self._code = GuardedOps(instruction.ops, self._word)
        self._asked = guards.question
        self._safety = self._asked.memory_safety
        self._model = instruction.operands if instruction.mnemonic == "model" else ""
        self._use = link_use(guards.decoder, instruction)
        writes = [i for i, op in enumerate(instruction.ops) if op.output and overlap(op.output, guards.pointer)]
        self._last_write = writes[-1] if writes and not self._model else None
        self._pointer_before: Varnode | None = None
        self._saves, self._restores = self._saved_registers()
        objects = guards.objects if self._safety else None
        self._objects = None if objects is None else Provenance(objects, guards.decoder, instruction, self._code)

    def _saved_registers(self) -> tuple[frozenset[int], frozenset[int]]:
        """The operations that save registers of the caller, and those that load from where they are."""
        layout = self._g.frame_layout if self._safety and self._g.saved else None
        function = None if layout is None else layout.function_at(self._source.pc)
        evaluation = None if layout is None else layout.evaluated(self._source)
        if layout is None or function is None or evaluation is None:
            return frozenset(), frozenset()
        loads = set[int]()
        for index, op in enumerate(self._source.ops):
            value = evaluation.inputs[index][0] if op.opcode == "LOAD" else None
            is_popped = self._row.pushes_return_address and index in self._use.restores
            if is_popped or (value is not None and value.is_direct and value.place in function.saved):
                loads.add(index)
        return layout.saves(self._source.pc), frozenset(loads)

    def instruction(self) -> Instruction:
        source, code = self._source, self._code
        if self._safety and self._last_write is not None:
            self._pointer_before = code.emit("COPY", self._word, self._g.pointer)
        if self._safety and self._row.code_address(source.pc) in self._g.model_entries:
            self._enter_model()
        division = undefined_division(self._row.overlay, source) if self._asked.no_fault else None
        for index, op in enumerate(source.ops):
            self._accesses(index, op)
            if division is not None and division.index == index:
                code.before(index)
                code.leave_if(division.flag, self._asked.fault)
            if self._objects is not None:
                self._objects.follow(index, op)
            if self._asked.no_fault:
                self._faults(index, op)
            if self._safety:
                self._frames(index, op)
        if self._asked.no_fault and source.size and not self._g.is_entered(self._following):
            code.before(len(source.ops))
            code.leave(self._asked.fault)
        return Instruction(source.pc, source.bytes, code.result(), source.mnemonic, source.operands)

    @property
    def _following(self) -> int:
        return self._row.code_address(self._source.pc) + self._source.size & self._row.address_mask

    # Accesses.

    def _accesses(self, index: int, op: Op) -> None:
        if op.opcode == "LOAD":
            assert op.output is not None
            is_watching = op.output.space is Space.UNIQUE and op.output.offset in _WATCHING
            if not is_watching:
                self._access(index, op.inputs[0], op.output.size, READ)
            return
        if op.opcode == "STORE":
            self._access(index, op.inputs[0], op.inputs[1].size, WRITE)
        # Operands that are memory cells at fixed addresses.
        first = 1 if op.opcode in BRANCHES else 0
        for varnode in op.inputs[first:]:
            if varnode.space is Space.RAM:
                self._access(index, self._code.constant(varnode.offset), varnode.size, READ)
        if op.output is not None and op.output.space is Space.RAM:
            self._access(index, self._code.constant(op.output.offset), op.output.size, WRITE)

    def _access(self, index: int, pointer: Varnode, size: int, needed: int) -> None:
        code, layout = self._code, self._g.layout
        ranges = layout.ranges[needed] if self._safety and not self._model else layout.everything[needed]
        if pointer.space is Space.CONST and _contain(ranges, pointer.offset, size):
            return
        code.before(index)
        # As it is now: the operation itself may overwrite a register that the address is in.
        operand, pointer = pointer, self._address(pointer)
        is_copied = self._model in COPYING_ALLOCATORS and needed == READ
        is_own = bool(self._model) and (size > 1 or (self._model in HEAP_MODELS and not is_copied))
        if self._g.objects is not None and self._g.objects.is_recorded:
            if self._objects is not None and not is_own:
                self._objects.check(index, operand, pointer, size)
            return
        if not self._safety or is_own:
            target = self._asked.bad_access if self._safety else self._asked.fault
            code.leave_if(code.negated(code.either(self._inside_any(pointer, size, layout.everything[needed]))), target)
            return
        is_late = self._last_write is not None and index < self._last_write
        low, high = layout.stack
        lowest = code.constant(low) if is_late else self._lowest()
        allowed = self._inside_any(pointer, size, layout.ranges[needed])
        allowed.append(self._between(pointer, lowest, high - size))
        allowed += [self._in_block(pointer, size, base, length) for base, length in self._g.blocks]
        touched = self._touched(index, pointer, size)
        touched += self._touched_saves(index, pointer, size)
        code.leave_if(code.either([code.negated(code.either(allowed)), *touched]), self._asked.bad_access)
        if self._objects is not None:
            self._objects.check(index, operand, pointer, size)
        if is_late:
            assert self._last_write is not None
            at_access = code.emit("COPY", self._word, self._g.pointer)
            code.after(self._last_write)
            inside = self._between(pointer, code.constant(low), high - size)
            below = code.test("INT_LESS", pointer, self._lowest(at_access))
            code.leave_if(code.both(inside, below), self._asked.bad_access)
        self._release_or_save(index, pointer)

    def _address(self, pointer: Varnode) -> Varnode:
        code, word = self._code, self._word
        if pointer.size == word:
            return pointer if pointer.space is Space.CONST else code.emit("COPY", word, pointer)
        if pointer.size < word:
            return code.emit("INT_ZEXT", word, pointer)
        return code.emit("SUBPIECE", word, pointer, code.constant(0, 4))

    def _between(self, pointer: Varnode, lowest: Varnode, highest: int) -> Varnode:
        code = self._code
        return code.both(
            code.test("INT_LESSEQUAL", lowest, pointer),
            code.test("INT_LESSEQUAL", pointer, code.constant(highest)),
        )

    def _inside_any(self, pointer: Varnode, size: int, spans: Sequence[Span]) -> list[Varnode]:
        found = [
            self._between(pointer, self._code.constant(start), end - size)
            for start, end in spans
            if end - start >= size
        ]
        top = self._row.address_mask + 1
        if size > 1 and spans and spans[0][0] == 0 and spans[-1][1] == top:
            found.append(self._code.test("INT_LESSEQUAL", self._code.constant(top - size + 1), pointer))
        return found

    def _in_block(self, pointer: Varnode, size: int, base: Varnode, length: Varnode) -> Varnode:
        code = self._code
        offset = code.subtract(pointer, base)
        if size == 1:
            return code.test("INT_LESS", offset, length)
        fits = code.test("INT_LESSEQUAL", code.constant(size), length)
        return code.both(fits, code.test("INT_LESSEQUAL", offset, code.add(length, -size)))

    def _lowest(self, *more: Varnode) -> Varnode:
        """The lowest address of the stack that may be used: below the lowest stack pointer of this instruction."""
        code, layout = self._code, self._g.layout
        if self._model:
            pointer = code.add(self._g.pointer, self._g.model_frames[self._model])
            zone = 0
        else:
            pointer, zone = self._g.pointer, layout.red_zone
        for other in (*more, *([self._pointer_before] if self._pointer_before is not None else [])):
            pointer = code.least(pointer, other)
        low, high = layout.stack
        # A stack pointer outside the stack is that of another stack, of which nothing is known.
        is_here = self._between(pointer, code.constant(low + zone), high)
        return code.select(is_here, code.add(pointer, -zone), code.constant(low))

    # Return addresses.

    def _touched(self, index: int, pointer: Varnode, size: int) -> list[Varnode]:
        """That the access touches a slot; its own function may load it back, or save it again."""
        code = self._code
        found: list[Varnode] = []
        for number, slot in enumerate(self._g.slots):
            # Compared with addresses, not distances: engines try the numbers of comparisons as bounds.
            hit = code.both(
                code.test("INT_LESSEQUAL", code.add(slot, 1 - size), pointer),
                code.test("INT_LESSEQUAL", pointer, code.add(slot, self._word - 1)),
            )
            if number == 0 and (index in self._use.restores or index in self._use.copies):
                hit = code.both(hit, code.test("INT_NOTEQUAL", pointer, slot))
            saved = self._saved(index)
            if number == 0 and saved is not None:
                hit = code.both(hit, code.negated(saved))
            found.append(hit)
        return found

    def _touched_saves(self, index: int, pointer: Varnode, size: int) -> list[Varnode]:
        """That the access touches saved registers; their own function may save them and load them back."""
        code = self._code
        return [
            code.both(
                code.test("INT_LESSEQUAL", code.add(low, 1 - size), pointer),
                code.test("INT_LESS", pointer, top),
            )
            for number, (low, top) in enumerate(self._g.saved)
            if number or index not in self._saves | self._restores
        ]

    def _saved(self, index: int) -> Varnode | None:
        """When the operation saves the return address of its frame; None if never."""
        if index in self._use.saves:
            return self._g.fresh
        return self._g.carried if index in self._use.carried_saves else None

    def _release_or_save(self, index: int, pointer: Varnode) -> None:
        code = self._code
        if self._g.saved and index in self._saves:
            low, _ = self._g.saved[0]
            code.after(index)
            code.set(low, code.least(low, pointer))
        elif self._g.saved and index in self._restores:
            low, _ = self._g.saved[0]
            code.after(index)
            above = code.add(pointer, self._word)
            code.set(low, code.select(code.test("INT_LESS", low, above), above, low))
        if not self._g.slots:
            return
        slot, saved = self._g.slots[0], self._saved(index)
        code.after(index)
        if index in self._use.restores:
            again = code.test("INT_EQUAL", pointer, slot)
            code.set(slot, code.select(again, code.constant(self._g.none), slot))
        elif saved is not None:
            code.set(slot, code.select(saved, pointer, slot))

    def _frames(self, index: int, op: Op) -> None:
        code, slots, guards = self._code, self._g.slots, self._g
        if op.opcode in ("CALL", "CALLIND", "RETURN"):
            code.before(index)
            is_call = op.opcode != "RETURN"
            none = code.constant(guards.none)
            if slots and is_call:
                code.refuse_if(code.test("INT_NOTEQUAL", slots[-1], none), TOO_DEEP)
                for inner, outer in zip(slots[-2::-1], slots[:0:-1], strict=True):
                    code.set(outer, inner)
                code.set(slots[0], guards.pointer if guards.link is None else none)
                for (low, top), (outer_low, outer_top) in zip(guards.saved[-2::-1], guards.saved[:0:-1], strict=True):
                    code.set(outer_low, low)
                    code.set(outer_top, top)
                for cell in guards.saved[0] if guards.saved else ():
                    code.set(cell, guards.pointer)
            elif slots:
                for inner, outer in pairwise(slots):
                    code.set(inner, outer)
                code.set(slots[-1], none)
                for (low, top), (outer_low, outer_top) in pairwise(guards.saved):
                    code.set(low, outer_low)
                    code.set(top, outer_top)
                for cell in guards.saved[-1] if guards.saved else ():
                    code.set(cell, none)
            if guards.fresh is not None and guards.carried is not None:
                code.set(guards.fresh, code.constant(int(is_call), 1))
                code.set(guards.carried, code.constant(0, 1))
            if not is_call and self._model in ALLOCATORS and guards.blocks:
                self._leave_allocator()
        if op.output is None or guards.fresh is None or guards.carried is None or guards.link is None:
            return
        code.after(index)
        if overlap(op.output, guards.link):
            code.set(guards.fresh, code.constant(0, 1))
        if guards.carrier is not None and overlap(op.output, guards.carrier):
            code.set(guards.carried, guards.fresh if index in self._use.carries else code.constant(0, 1))

    # The heap.

    def _enter_model(self) -> None:
        code, name = self._code, self._model
        if name not in HEAP_MODELS or not self._g.blocks:
            return
        count = 2 if name in ("calloc", "realloc") else 1
        for number in range(count):
            code.set(self._g.arguments[number], self._argument(number))
        if name in ("free", "realloc"):
            old = self._g.arguments[0]
            live = code.either([code.test("INT_EQUAL", base, old) for base, _ in self._g.blocks])
            is_block = code.test("INT_NOTEQUAL", old, code.constant(0))
            code.leave_if(code.both(is_block, code.negated(live)), self._asked.bad_access)
        if name == "free":
            self._forget(code.constant(1, 1))

    def _argument(self, number: int) -> Varnode:
        code, where = self._code, self._row.arguments[0]
        if not where.startswith("stack+"):
            return self._g.decoder.registers[self._row.arguments[number]]
        distance = int(where.removeprefix("stack+")) + self._word * number
        return code.emit("LOAD", self._word, code.add(self._g.pointer, distance))

    def _forget(self, condition: Varnode) -> None:
        """The block of the first argument, if there is one, is live no more."""
        code, zero = self._code, self._code.constant(0)
        for base, length in self._g.blocks:
            gone = code.both(condition, code.test("INT_EQUAL", base, self._g.arguments[0]))
            new_length = code.select(gone, zero, length)
            code.set(base, code.select(gone, zero, base))
            code.set(length, new_length)

    def _leave_allocator(self) -> None:
        code, first, second = self._code, *self._g.arguments
        result = self._g.decoder.registers[self._row.return_registers[0]]
        zero = code.constant(0)
        size = {"malloc": first, "realloc": second}.get(self._model)
        pending = code.test("INT_NOTEQUAL", result, zero)
        if self._model in COPYING_ALLOCATORS:
            size = self._size_in_table(result, pending)
        elif size is None:
            size = code.emit("INT_MULT", self._word, first, second)
        if self._model == "realloc":
            self._forget(code.either([pending, code.test("INT_EQUAL", second, zero)]))
        for base, length in self._g.blocks:
            here = code.both(pending, code.test("INT_EQUAL", base, zero))
            code.set(base, code.select(here, result, base))
            code.set(length, code.select(here, size, length))
            pending = code.both(pending, code.negated(here))
        code.refuse_if(pending, TOO_MANY)

    def _size_in_table(self, block: Varnode, is_block: Varnode) -> Varnode:
        """How large the model's table says that a block is; anything if it is none."""
        code, layout, word = self._code, self._g.layout, self._word
        number = code.emit("INT_RIGHT", word, code.add(block, -layout.heap), code.constant(GRANULE.bit_length() - 1))
        distance = code.emit("INT_MULT", word, number, code.constant(word))
        entry = code.add(distance, layout.heap_table + word)
        return code.add(code.emit("LOAD", word, code.select(is_block, entry, code.constant(layout.heap_table))), -1)

    # Faults.

    def _faults(self, index: int, op: Op) -> None:
        code, fault = self._code, self._asked.fault
        away = Varnode(Space.RAM, fault, self._word)
        if op.opcode == "TRAP" and FaultKind(op.inputs[0].offset) not in HARMLESS:
            code.instead(index, [Op("CBRANCH", None, (away, op.inputs[1]))])
        elif op.opcode in ("BRANCHIND", "CALLIND", "RETURN"):
            code.before(index)
            target = self._address(op.inputs[0])
            if self._row.mode_mask:
                target = code.emit("INT_AND", self._word, target, code.constant(~self._row.mode_mask))
            places = self._inside_any(target, 1, self._g.layout.everything[EXECUTE])
            places += [code.test("INT_EQUAL", target, code.constant(at)) for at in sorted(self._g.layout.ends)]
            code.leave_if(code.negated(code.either(places)), fault)
        elif op.opcode in ("BRANCH", "CBRANCH", "CALL") and not self._goes_on(op.inputs[0]):
            opcode = "CBRANCH" if op.opcode == "CBRANCH" else "BRANCH"
            code.instead(index, [Op(opcode, None, (away, *op.inputs[1:]))])

    def _goes_on(self, destination: Varnode) -> bool:
        return destination.space is not Space.RAM or self._g.is_entered(destination.offset)


def _contain(spans: Sequence[Span], address: int, size: int) -> bool:
    return any(start <= address and address + size <= end for start, end in spans)
