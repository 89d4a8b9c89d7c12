"""What the code says about its frames: distances from the frame's top, saved registers, and where objects begin.

Every function that direct calls lead to is followed once with a small abstract domain: a register is a known distance
from the stack pointer at the function's entry (or from an aligned copy of it), or still holds what the caller had in
it, or is anything. From that come, for every instruction,

    which registers are addresses of the frame, and at which distance;
    which stores save a register that the caller expects back;

and, for every function, the places of its frame that code names: those accessed directly (a constant distance), and
those whose address is formed, as compilers do for arrays and for variables that are passed on. An object that begins at
a formed address ends at the latest where the next place begins that is formed, or is both read and written directly.
A place that is only written, or only read directly, is taken for an element: no variable is used that way.

A place reached in two functions, or with two states of which nothing common remains, has no facts: what follows from
them is then not checked, never assumed. Registers that a function saved are watched only if all of its code was
followed to its returns: elsewhere an instruction could give them back that nothing is known of. Jump tables are
followed (`jump_targets`); a jump out of a frame that is taken down is a call of another function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcveto.machine.faults import Unsupported
from mcveto.machine.pcode import Instruction, Space, Varnode
from mcveto.program.frame_values import (
    ENTRY,
    NOTHING_SAVED,
    TOP,
    Evaluation,
    FrameRegisters,
    Place,
    State,
    Value,
    plus,
    saving,
)
from mcveto.program.jump_targets import JumpTargets
from mcveto.program.program import Program

# Registers that a function gives back as they were.
CALLEE_SAVED = {
    "x86-32": ("EBX", "ESI", "EDI", "EBP"),
    "x86-64": ("RBX", "RBP", "R12", "R13", "R14", "R15"),
    "ppc32-be": tuple(f"r{n}" for n in range(14, 32)),
    "ppc32-le": tuple(f"r{n}" for n in range(14, 32)),
}
_MOST_INSTRUCTIONS = 20_000
_LARGEST_ELEMENT = 256
_DEEPEST = 100
_LOOKAHEAD = 6
_COMPARISONS = frozenset(
    {"INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_EQUAL", "INT_NOTEQUAL", "INT_SUB", "INT_SBORROW"}
)


@dataclass(slots=True)
class Touch:
    """How a place of a frame is used directly."""

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    """Sizes."""
    loads: int = 0
    """How many instructions read it."""
    uses: int = 0
    """How many of them do something else with it than to store it elsewhere, as copies of structures do."""

    @property
    def is_variable(self) -> bool:
        return bool(self.reads & self.writes)

    @property
    def number_size(self) -> int:
        """The size of the number that is kept there; 0 if what is there may be a part of something larger."""
        return max(self.reads & self.writes, default=0) if self.uses else 0


@dataclass(slots=True)
class Function:
    entry: int
    word: int
    is_x86: bool
    touched: dict[Place, Touch] = field(default_factory=dict)
    formed: set[Place] = field(default_factory=set)
    addressed: set[Place] = field(default_factory=set)
    """Of the formed places those whose very address is in a register or in memory at some time. The others are known
    from accesses at an index only, and compilers fold constants of the index into them."""
    parts: dict[Place, int] = field(default_factory=dict)
    """How far, at most, a fixed distance from a formed place goes that the code computes: so far the object goes, or to
    its end."""
    strides: dict[Place, int] = field(default_factory=dict)
    """Of objects that are accessed at an index: how far elements are apart, where the code says so."""
    pops: int = 0
    """How many bytes of arguments it takes off the stack when it returns."""
    instructions: int = 0
    is_unoptimised: bool = False
    """Whether the program's code keeps its variables in frames."""
    forms_fields: bool = False
    """Whether the compiler may name a field or an element by its own place where it does not index from there."""
    saves: set[Place] = field(default_factory=set)
    code: frozenset[int] = frozenset()
    is_whole: bool = True
    """Whether all of its code is known, to returns that leave nothing of the frame."""
    _borders: dict[int, list[int]] = field(default_factory=dict)
    _saved: frozenset[Place] | None = None

    @property
    def saved(self) -> frozenset[Place]:
        """Where registers of the caller are saved without a gap from the top of the frame down."""
        if self._saved is None:
            found: list[Place] = []
            while self.is_whole and (place := (ENTRY, -self.word * (len(found) + 1))) in self.saves:
                found.append(place)
            self._saved = frozenset(found)
        return self._saved

    def note_address(self, value: Value) -> None:
        self.note_part(value)
        if value.is_exact and value.place is not None and value.place == value.object:
            self.addressed.add(value.place)

    def note_part(self, value: Value) -> None:
        if (
            value.is_exact
            and value.place is not None
            and value.formed is not None
            and value.place[0] == value.formed[0]
        ):
            distance = value.place[1] - value.formed[1]
            self.parts[value.formed] = max(distance, self.parts.get(value.formed, 0))

    @property
    def forms_whole_objects(self) -> bool:
        """Whether formed addresses are those of whole objects, not of elements: code of x86 that keeps its variables
        in the frame. Elsewhere compilers fold distances into addresses even without optimisation."""
        return self.is_x86 and self.is_unoptimised

    @property
    def forms_only_whole_objects(self) -> bool:
        return self.forms_whole_objects and not self.forms_fields

    def _is_field(self, place: Place) -> bool:
        """Whether it is a field of the elements of an array that begins before: same stride, nearer than that."""
        stride = self.strides.get(place, 0)
        return any(
            (place[0], place[1] - back) in self.formed and self.strides.get((place[0], place[1] - back)) == stride
            for back in range(1, min(stride, _LARGEST_ELEMENT))
        )

    def base(self, place: Place) -> Place:
        """Where the object begins that is accessed at an index from a formed place: `text[n - 1]` begins at `text`,
        although its code names the byte before."""
        if place in self.addressed:
            return place
        step = max(self.strides.get(place, 0), 1)
        for distance in (step, 2 * step, -step, -2 * step):
            near = (place[0], place[1] + distance)
            if near in self.addressed:
                return near
        return place

    def extent(self, place: Place) -> int | None:
        """How many bytes the object that begins at a formed place has at most; None if nothing ends it."""
        root, distance = place
        if root not in self._borders:
            found = {at for where, at in self.saves if where == root}
            found |= {
                at
                for where, at in self.formed
                if where == root and not self._is_field((where, at)) and self.base((where, at)) == (where, at)
            }
            found |= {at for (where, at), touch in self.touched.items() if where == root and touch.is_variable}
            self._borders[root] = sorted(found | ({0} if root == ENTRY else set()))
        beyond = [at for at in self._borders[root] if at > distance]
        beyond += [at for at in self._numbers(root) if at > distance and self._is_apart(distance, (root, at))]
        return min(beyond) - distance if beyond else None

    def _numbers(self, root: int) -> list[int]:
        """Places of numbers that are accessed directly in one way only. Where only addresses of whole objects are
        formed, an access past the end counts as certain: too much to conclude from an alignment."""
        if self.forms_whole_objects:
            return []
        return [at for (where, at), touch in self.touched.items() if where == root and not touch.is_variable]

    def _is_apart(self, distance: int, place: Place) -> bool:
        """Whether a number cannot be part of an object that begins at a distance: it is aligned, the object is less so,
        and compilers align objects as they do their parts."""
        touch = self.touched[place]
        size = max(touch.reads | touch.writes)
        return 1 < size <= self.word and place[1] % size == 0 and distance % size != 0


class FrameLayout:
    def __init__(self, program: Program) -> None:
        self._program = program
        decoder = program.decoder
        self._row = row = decoder.row
        self._word = row.address_bytes
        self.pointer = decoder.registers[row.stack_pointer]
        self.saved_registers = [decoder.registers[name] for name in CALLEE_SAVED.get(row.name, ())]
        general = [decoder.registers[name] for name in row.general]
        self._registers = FrameRegisters(
            self.pointer,
            decoder.registers[row.frame_pointer],
            tuple(register for register in general if register.size == self._word),
            has_back_chain=row.overlay == "powerpc",
        )
        self.functions: dict[int, Function] = {}
        self.states: dict[int, State] = {}
        self._owner: dict[int, int] = {}
        self._unclear: set[int] = set()
        self._saves: dict[int, dict[int, Place]] = {}
        self._left = _MOST_INSTRUCTIONS
        self._jumps = JumpTargets(program)
        # GCC's sign: it ends functions with `leave`, Clang does not.
        self._leaves = False
        waiting = [program.entry]
        while waiting and self._left > 0:
            waiting += self._analysed(waiting.pop(), 0)
        for pc in self._unclear:
            self.states.pop(pc, None)
        for function in self.functions.values():
            function.is_whole = function.is_whole and self._left > 0 and self._unclear.isdisjoint(function.code)
        self._judge_optimisation()

    def _judge_optimisation(self) -> None:
        """Without optimisation every use of a variable loads it from the frame."""
        loads = instructions = 0
        for function in self.functions.values():
            instructions += function.instructions
            variables = function.touched.items()
            loads += sum(touch.loads for place, touch in variables if touch.is_variable and place not in function.saves)
        for function in self.functions.values():
            function.is_unoptimised = 10 * loads >= instructions
            function.forms_fields = self._leaves

    def function_at(self, pc: int) -> Function | None:
        return self.functions.get(self._owner[pc]) if pc in self.states else None

    def saves(self, pc: int) -> frozenset[int]:
        """The operations of the instruction that save a register of the caller in the frame."""
        function = self.function_at(pc)
        if function is None:
            return frozenset()
        return frozenset(index for index, place in self._saves.get(pc, {}).items() if place in function.saved)

    def evaluated(self, instruction: Instruction) -> Evaluation | None:
        """The values of an instruction's operations; None if nothing is known of where it stands."""
        state = self.states.get(instruction.pc)
        return None if state is None else self.evaluate(instruction, dict(state))

    def is_direct(self, instruction: Instruction, is_load: bool) -> bool:
        """Whether the instruction loads (or stores) at a fixed place of its frame."""
        evaluation = self.evaluated(instruction)
        if evaluation is None:
            return False
        opcode = "LOAD" if is_load else "STORE"
        values = [v[0] for op, v in zip(instruction.ops, evaluation.inputs, strict=True) if op.opcode == opcode]
        return any(value is not None and value.is_direct for value in values)

    # One function.

    def _analysed(self, entry: int, depth: int) -> list[int]:
        """Analyses a function once, after those that it calls; returns what is left to do."""
        if entry in self.functions or entry in self._program.hooks:
            return []
        return [entry] if depth > _DEEPEST else self._analyse(entry, depth)

    def _analyse(self, entry: int, depth: int) -> list[int]:
        function = self.functions[entry] = Function(entry, self._word, self._row.overlay == "x86")
        start: State = {register: Value(saved=register) for register in self.saved_registers}
        start[self.pointer] = Value(TOP)
        states: dict[int, State] = {entry: start}
        ways: dict[int, set[int]] = {}
        computed: dict[int, Instruction] = {}
        saved_at: dict[Place, Varnode] = {}
        later: list[int] = []
        waiting = [entry]
        while self._left > 0:
            for jump in () if waiting else computed.values():
                targets = self._targets(jump, entry, ways)
                function.is_whole = function.is_whole and targets is not None
                state = self.evaluate(jump, dict(states[jump.pc])).state
                for target in sorted(targets or ()):
                    self._join(states, ways, jump.pc, target, state, waiting)
            if not waiting:
                break
            pc = waiting.pop()
            instruction = self._fetch(pc)
            if instruction is None:
                function.is_whole = function.is_whole and pc in self._program.hooks
                continue
            self._left -= 1
            evaluation = self.evaluate(instruction, dict(states[pc]), saved_at)
            after = evaluation.state
            for op, values in zip(instruction.ops, evaluation.inputs, strict=True):
                if op.opcode == "STORE" and (place := saving(values)) is not None and values[1] is not None:
                    assert values[1].saved is not None
                    saved_at.setdefault(place, values[1].saved)
            called, following = self._successors(instruction)
            if self._is_taken_down(after, start):
                tails = [
                    target for target in following if target != pc + instruction.size and self._jumps_away(instruction)
                ]
                following = [target for target in following if target not in tails]
                for other in tails:
                    later += self._analysed(other, depth + 1)
            for other in called:
                later += self._analysed(other, depth + 1)
            if any(op.opcode == "RETURN" for op in instruction.ops):
                self._note_return(function, after)
            if called or any(op.opcode == "CALLIND" for op in instruction.ops):
                after = self._after_call(states[pc], called)
            if instruction.ops and instruction.ops[-1].opcode == "BRANCHIND":
                computed[pc] = instruction
            for successor in following:
                self._join(states, ways, pc, successor, after, waiting)
        function.code = frozenset(states)
        for pc, state in states.items():
            if self._owner.setdefault(pc, entry) != entry:
                self._unclear.add(pc)
                continue
            self.states[pc] = state
            instruction = self._fetch(pc)
            if instruction is not None:
                self._collect(function, instruction, self.evaluate(instruction, dict(state)))
        return later

    def _join(
        self,
        states: dict[int, State],
        ways: dict[int, set[int]],
        pc: int,
        successor: int,
        after: State,
        waiting: list[int],
    ) -> None:
        """Control may go from one place to another, with that state."""
        ways.setdefault(successor, set()).add(pc)
        old = states.get(successor)
        new = after if old is None else {r: v for r, v in old.items() if after.get(r) == v}
        if old is None or len(new) != len(old):
            states[successor] = new
            waiting.append(successor)

    def _targets(self, jump: Instruction, entry: int, ways: dict[int, set[int]]) -> set[int] | None:
        """Where a computed jump goes as far as control flow is known by now; None if that is not certain."""
        return self._jumps.of(jump, lambda pc: None if pc == entry else sorted(ways.get(pc, ())), self._fetch)

    def _is_taken_down(self, state: State, start: State) -> bool:
        """Whether everything that a function gives back is as it was at its entry."""
        return all(state.get(register) == value for register, value in start.items())

    def _jumps_away(self, instruction: Instruction) -> bool:
        last = instruction.ops[-1] if instruction.ops else None
        return last is not None and last.opcode == "BRANCH" and last.inputs[0].space is Space.RAM

    def _note_return(self, function: Function, after: State) -> None:
        top = after.get(self.pointer)
        place = None if top is None else top.place
        if place is None or place[0] != ENTRY:
            function.is_whole = False
        elif self._row.pushes_return_address:
            function.pops = max(0, place[1] - self._word)

    def _after_call(self, state: State, called: list[int]) -> State:
        kept = {self.pointer, *self.saved_registers}
        after = {register: value for register, value in state.items() if register in kept}
        top = after.get(self.pointer)
        pops = max((self.functions[other].pops for other in called if other in self.functions), default=0)
        if top is not None and pops:
            after[self.pointer] = plus(top, Value(number=pops)) or Value()
        return after

    def _fetch(self, pc: int) -> Instruction | None:
        if pc in self._program.hooks:
            return None
        address = self._row.code_address(pc)
        for size in range(self._row.longest_unit(pc), 0, -1):
            code = self._program.image.read(address, size)
            if code is not None:
                try:
                    return self._program.decoder.decode(pc, code)
                except Unsupported:
                    return None
        return None

    def _successors(self, instruction: Instruction) -> tuple[list[int], list[int]]:
        """Functions called, and where control goes on within the function."""
        mode = instruction.pc & self._row.mode_mask
        called, following, falls = [], [], True
        for op in instruction.ops:
            if op.opcode == "CALL" and op.inputs[0].space is Space.RAM:
                called.append(op.inputs[0].offset | mode)
            elif op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.RAM:
                following.append(op.inputs[0].offset | mode)
        last = instruction.ops[-1] if instruction.ops else None
        if last is not None and last.opcode in ("RETURN", "BRANCHIND"):
            falls = False
        if last is not None and last.opcode == "BRANCH" and last.inputs[0].space is Space.RAM:
            falls = False
        if falls:
            following.append(instruction.pc + instruction.size)
        return called, following

    # One instruction.

    def evaluate(
        self, instruction: Instruction, state: State, saved_at: Mapping[Place, Varnode] = NOTHING_SAVED
    ) -> Evaluation:
        return Evaluation(self._registers, instruction, state, saved_at)

    def _collect(self, function: Function, instruction: Instruction, evaluation: Evaluation) -> None:
        saves: dict[int, Place] = {}
        loaded: set[Place] = set()
        function.instructions += 1
        self._leaves |= instruction.mnemonic == "LEAVE"
        for index, op in enumerate(instruction.ops):
            if op.opcode in ("LOAD", "STORE"):
                at = evaluation.inputs[index][0]
                if at is not None and at.place is not None and at.is_direct:
                    touch = function.touched.setdefault(at.place, Touch())
                    if op.opcode == "LOAD":
                        assert op.output is not None
                        touch.reads.add(op.output.size)
                        touch.loads += at.place not in loaded
                        loaded.add(at.place)
                        touch.uses += self._is_use(instruction, index)
                    else:
                        touch.writes.add(op.inputs[1].size)
                elif at is not None and at.object is not None:
                    function.formed.add(at.object)
                    function.note_part(at)
                    if at.stride and at.formed is None:
                        function.strides[at.object] = at.stride
            if op.opcode == "STORE":
                at, value = evaluation.inputs[index][:2]
                if value is not None and value.object is not None:
                    function.formed.add(value.object)
                    function.note_address(value)
                place = saving((at, value))
                if place is not None:
                    saves[index] = place
                    function.saves.add(place)
            elif op.output in self._registers.tracked and op.output != self.pointer:
                value = evaluation.outputs[index]
                if value is not None and value.formed is not None and not self._is_compared(instruction, index):
                    function.formed.add(value.formed)
                    function.note_address(value)
        if saves:
            self._saves[instruction.pc] = saves

    def _is_compared(self, instruction: Instruction, index: int) -> bool:
        """Whether an address is formed to be compared at once: the end of an object, or a place inside, no object."""
        register = instruction.ops[index].output
        following = self._fetch(instruction.pc + instruction.size)
        if following is None or any(op.output == register for op in instruction.ops[index + 1 :]):
            return False
        held, uses = {register}, []
        for op in following.ops:
            if not held.isdisjoint(op.inputs):
                if op.opcode == "COPY" and op.output is not None and op.output.space is Space.UNIQUE:
                    held.add(op.output)
                else:
                    uses.append(op.opcode)
        return bool(uses) and all(opcode in _COMPARISONS for opcode in uses)

    def _is_use(self, instruction: Instruction, index: int) -> bool:
        """Whether the first that is done with what an operation loads is something else than storing it."""
        held = {instruction.ops[index].output}
        pc = instruction.pc
        ops = instruction.ops[index + 1 :]
        for _ in range(_LOOKAHEAD):
            for op in ops:
                if any(item in held for item in op.inputs):
                    if op.opcode == "STORE":
                        return op.inputs[0] in held
                    if op.opcode not in ("COPY", "INT_ZEXT"):
                        return True
                    held.add(op.output)
                elif op.output in held:
                    held.discard(op.output)
            following = self._fetch(pc + instruction.size)
            if following is None or any(op.opcode in ("RETURN", "BRANCH", "BRANCHIND") for op in instruction.ops):
                return False
            instruction, pc, ops = following, following.pc, following.ops
            held = {item for item in held if item is not None and item.space is Space.REGISTER}
        return False
