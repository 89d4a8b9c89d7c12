"""One block from one state: where it can go, by the one interpreter.

A decision that inputs can make either way forks: the path goes on the way its model takes, and a copy of the state
before the instruction is told the other (a script of decisions, as when `Pre` enumerates outcomes). Only the last
instruction of a block can fork. What an input cannot do is not followed and adds nothing to the path.

- Addresses: the least and greatest value a symbolic address can take are found first. A few cells become a choice
  between them; many are left to an array term, within their bounds.
- Indirect jumps: all targets are enumerated. Returns must go where their call expects.
- Code that may have been overwritten: its bytes are enumerated like targets.

Whatever cannot be done completely is named in `gaps`; then nothing may be called proved.
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise

from mcveto.dpg.executed import note_path
from mcveto.dpg.location import Blocks
from mcveto.engines.dead_operations import pruned
from mcveto.engines.domain import PathDomain, as_term, as_value
from mcveto.engines.memory import PathMemory, Value
from mcveto.engines.queries import Model, No, Queries
from mcveto.engines.record import Accesses, Recorder
from mcveto.engines.solved_equations import decided
from mcveto.engines.state import START, Calls, Drawn, PathState, Script
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.linear import constant_part
from mcveto.logic.terms import Term
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.interpreter import Interpreter, Step
from mcveto.machine.memory import EXECUTE, READ, WRITE, denied, missing
from mcveto.machine.pcode import FreshOrigin, Instruction, Transfer
from mcveto.program.exits import exit_convention
from mcveto.program.program import Program

MAX_TARGETS = 512
# Of a jump that can go anywhere, and how many places are asked about to find that out.
WILD_TARGETS = 4
PROBES = 5
MAX_CODES = 512
LOAD_CELLS = 256
STORE_CELLS = 64
WIDEST_TABLE = 1 << 16


class Cut(Exception):
    """The path cannot be followed further; the reason is noted as a gap."""


@dataclass
class Result:
    """Where a block goes: states after it, states that must execute its last instruction again, and states at a
    return that does not match its call."""

    successors: list[tuple[Transfer, PathState]] = field(default_factory=list)
    again: list[PathState] = field(default_factory=list)
    mismatches: list[PathState] = field(default_factory=list)


class Executor:
    def __init__(self, program: Program, queries: Queries, eager: bool) -> None:
        """`eager` asks at every fork whether both ways are possible."""
        self._program = program
        self._queries = queries
        self._eager = eager
        self._row = program.decoder.row
        self._interpreter: Interpreter[Value] = Interpreter(program.decoder)
        self._blocks = Blocks(program)
        self._pruned: dict[int, tuple[Instruction, ...]] = {}
        self._whole: dict[int, tuple[Instruction, ...]] = {}
        self._domain = PathDomain(program.decoder.layout, program.space, self)
        self._exit = exit_convention(program)
        self._fresh_count = 0
        self._probes: tuple[int, ...] | None = None
        self.gaps: dict[str, None] = {}
        self.recorder = Recorder()
        self.exited = False
        """Whether a run ended its process."""
        self.instructions = 0
        self.seen: set[tuple[int, bytes]] = set()

    def share(self, blocks: Blocks, other: Executor | None = None) -> None:
        """Uses the code that others have decoded already."""
        self._blocks = blocks
        if other is not None:
            self._pruned, self._whole = other._pruned, other._whole

    def initial(self) -> PathState:
        from mcveto.engines.path import Path

        return PathState(
            pc=self._program.entry,
            registers=dict(self._program.registers),
            memory=PathMemory(self._program.space),
            path=Path(self._queries.table),
            calls=Calls(self._program.return_sentinel),
            model=self._queries.any_input(),
        )

    def run(self, state: PathState) -> Result:
        """Executes the block at the state's program counter; the state is used up."""
        self._state = state
        self._result = Result()
        self._script, state.script, state.resumes = state.script, START, False
        self._decisions: list[bool] = []
        self._fresh: list[Term] = []
        self._log_before = state.log
        self._memory_before: PathMemory | None = None
        domain = self._domain
        domain.registers, domain.memory = state.registers, state.memory
        domain.memory.journal.clear()
        try:
            block = self._fetch(state)
            accesses = self._begin_node(state, block)
            for instruction in block[:-1]:
                self._instruction = instruction
                self._interpreter.execute(instruction, domain)
            last = self._instruction = block[-1]
            note_path(self._row.code_address(block[0].pc), last.pc + last.size - block[0].pc)
            state.steps += len(block)
            self.instructions += len(block)
            state.pc = last.pc
            self._registers_before = dict(domain.registers)
            self._log_before = state.log
            self._fresh = []
            # A fork goes back to the start of the last instruction, not to that of the block.
            self._memory_before = None
            self._begin_last()
            if accesses is not None:
                accesses.is_certain = all(op.opcode != "CBRANCH" for op in last.ops)
            step = self._interpreter.execute(last, domain)
            self._decide_states()
            self._leave(state, last, step)
        except Fault as fault:
            self._faulted(state, fault)
        except Unsupported as error:
            self._gap(str(error))
        except Cut:
            pass
        self._note_reasons(state)
        return self._result

    def _note_reasons(self, state: PathState) -> None:
        """What was left out since the last time is left out on the way from the node that the state comes from."""
        if self._queries.used:
            self.recorder.relied(state.origins, self._queries.used)
            self._queries.used = set()

    def _begin_last(self) -> None:
        self._domain.memory.begin()

    def _decide_states(self) -> None:
        """Where states are kept apart, what they are kept apart by is decided."""

    def _begin_node(self, state: PathState, block: tuple[Instruction, ...]) -> Accesses | None:
        """Where what the block reads is written down; a state that executes an instruction again is no new node."""
        if self._script.decisions:
            accesses = self.recorder.accesses(state)
        else:
            accesses = self.recorder.enter(state, self._whole.get(state.pc, block))
            start = self._row.code_address(state.pc)
            if accesses is not None and state.pc not in self._whole:
                accesses.load(start, sum(len(instruction.bytes) for instruction in block))
        self._domain.accesses = accesses
        return accesses

    def feasible(self, state: PathState) -> bool:
        """Whether some input takes this path; gives the state a model."""
        if state.model is None:
            found = self._queries.model(state.path, (), None)
            if isinstance(found, Model):
                state.model = found
            elif found is No.UNKNOWN:
                self._gap("the solver ran out of time")
                return False
            self._note_reasons(state)
        return state.model is not None

    # The interpreter's questions.

    def decide(self, condition: Term) -> bool:
        state, number = self._state, len(self._decisions)
        if number < len(self._script.decisions):
            way = self._script.decisions[number]
            state.path.add(condition if way else t.bnot(condition))
        elif state.path.holds(condition):
            way = True
            self._queries.used.add(condition)
        elif state.path.holds(t.bnot(condition)):
            way = False
            self._queries.used.add(t.bnot(condition))
        elif (known := decided(state, condition)) is not None:
            way, equations = known
            self._queries.used.update(equations)
        else:
            way = state.model is None or bool(state.model.value(condition))
            taken, other = (condition, t.bnot(condition)) if way else (t.bnot(condition), condition)
            model: Model | No | None = None
            if self._eager:
                model = self._queries.model(state.path, (other,), state.model)
                if model is No.UNKNOWN:
                    self._gap("the solver ran out of time")
            if not isinstance(model, No):
                self._fork(other, not way, model)
            if model is not No.UNSAT:
                state.path.add(taken)
        self._decisions.append(way)
        return way

    def load(self, address: Term, size: int) -> Value:
        memory = self._domain.memory
        model = self._access(address, size, READ)
        bounds = self._queries.bounds(self._state.path, address, model, WIDEST_TABLE)
        cells = _cells(address, bounds, LOAD_CELLS)
        for cell in cells:
            if self._domain.accesses is not None:
                self._domain.accesses.load(cell, size)
        if not cells:
            if self._domain.accesses is not None:
                self._domain.accesses.load_anywhere()
            return as_value(memory.load_anywhere(address, size))
        if len(cells) == 1:
            return memory.load(cells[0], size)
        values = [as_term(memory.load(cell, size), 8 * size) for cell in cells]
        return as_value(_choice(address, cells, values))

    def store(self, address: Term, value: Value, size: int) -> None:
        memory = self._domain.memory
        model = self._access(address, size, WRITE)
        bounds = self._queries.bounds(self._state.path, address, model, WIDEST_TABLE)
        cells = _cells(address, bounds, STORE_CELLS)
        if not cells:
            if self._memory_before is None:
                self._memory_before = memory.undone()
            regions = self._program.space.regions
            wide = [(region.start, region.end) for region in regions if region.permissions & WRITE]
            ranges = [(bounds[0], bounds[1] + size)] if bounds is not None else wide
            memory.store_within(address, as_term(value, 8 * size), ranges)
        elif len(cells) == 1:
            memory.store(cells[0], value, size)
        else:
            term = as_term(value, 8 * size)
            # Cells may overlap where the address is not aligned: all are read before one is written.
            chosen = {cell: t.eq(address, t.const(cell, address.width)) for cell in cells}
            if any(b - a < size for a, b in pairwise(cells)):
                self._store_bytes(chosen, term, size)
                return
            for cell, here in chosen.items():
                memory.store(cell, as_value(t.ite(here, term, as_term(memory.load(cell, size), 8 * size))), size)

    def _store_bytes(self, chosen: dict[int, Term], value: Term, size: int) -> None:
        memory, mask = self._domain.memory, self._program.space.mask
        touched = sorted({(cell + i) & mask for cell in chosen for i in range(size)})
        new: dict[int, Term] = {where: as_term(memory.load(where, 1), 8) for where in touched}
        for cell, here in chosen.items():
            for i in range(size):
                index = size - 1 - i if self._row.big_endian else i
                where = (cell + i) & mask
                new[where] = t.ite(here, t.extract(value, 8 * index + 7, 8 * index), new[where])
        for where, byte in new.items():
            memory.store(where, as_value(byte), 1)

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        number = len(self._fresh)
        if number < len(self._script.fresh):
            variable = self._script.fresh[number]
        else:
            kind = "in" if origin is FreshOrigin.INPUT else "undefined"
            variable = t.var(f"{kind}!{self._fresh_count}", bits)
            self._fresh_count += 1
        self._fresh.append(variable)
        self._state.log = Drawn(self._state.log, variable, origin, usual, self._instruction.pc)
        return variable

    # Forks.

    def _fork(self, condition: Term, way: bool, model: Model | None) -> None:
        """The other way of a decision: the last instruction once more, told what to decide."""
        before = self._memory_before.copy() if self._memory_before is not None else self._domain.memory.undone()
        state = self._state
        twin = state.fork(self._instruction.pc, dict(self._registers_before), before, model)
        twin.path.add(condition)
        twin.log = self._log_before
        twin.steps = state.steps - 1
        twin.script = Script((*self._decisions, way), tuple(self._fresh))
        twin.resumes = True
        self._result.again.append(twin)

    def _model(self) -> Model:
        if not self.feasible(self._state):
            raise Cut
        assert self._state.model is not None
        return self._state.model

    def _access(self, address: Term, size: int, needed: int) -> Model:
        """Assumes that an access does not fault: where it does, the run ends."""
        allowed = self._program.space.allowed(address, size, needed)
        self._not_foreign(address, allowed)
        self._assume(allowed)
        return self._model()

    def _assume(self, condition: Term) -> None:
        state, model = self._state, self._model()
        if condition is t.FALSE:
            raise Cut
        if not model.value(condition):
            found = self._queries.model(state.path, (condition,), model)
            if found is No.UNKNOWN:
                self._gap("the solver ran out of time")
            if isinstance(found, No):
                raise Cut
            state.model = found
        if condition is not t.TRUE:
            state.path.add(condition)

    # Leaving a block.

    def _expect_return(self, state: PathState, last: Instruction) -> None:
        back = (last.pc + last.size) & self._row.address_mask
        state.calls = state.calls.push(back) if state.calls is not None else Calls(back)

    def _leave(self, state: PathState, last: Instruction, step: Step) -> None:
        target = step.target
        assert isinstance(target, (int, Term))
        if step.transfer is Transfer.RETURN:
            self._return(state, target)
            return
        if step.transfer is Transfer.CALL:
            self._expect_return(state, last)
        if isinstance(target, int):
            state.pc = target
            self._result.successors.append((step.transfer, state))
            return
        width = self._row.address_bits
        plain = t.band(target, t.const(~self._row.mode_mask, width))
        allowed = self._program.space.allowed(plain, 1, EXECUTE)
        entered = {self._row.code_address(pc) for pc in self._program.hooks}
        ends = sorted(entered | self._program.halts | self._program.targets)
        ends.append(self._row.code_address(self._program.return_sentinel))
        outside = [end for end in ends if self._program.space.region_at(end) is None]
        allowed = t.disj([allowed, *(t.eq(plain, t.const(end, width)) for end in outside)])
        self._not_foreign(plain, allowed)
        self._assume(allowed)
        self._enumerate(state, target, step.transfer)

    def _not_foreign(self, address: Term, allowed: Term) -> None:
        """Notes a gap if an address that must be allowed may also be one of another module."""
        spans = self._program.undetermined.foreign_ranges()
        if not spans or allowed is t.TRUE:
            return
        foreign = t.disj(
            t.conj([t.ule(t.const(low, address.width), address), t.ule(address, t.const(high - 1, address.width))])
            for low, high in spans
        )
        elsewhere = t.conj([t.bnot(allowed), foreign])
        if elsewhere is t.FALSE:
            return
        if self._queries.model(self._state.path, (elsewhere,), self._model()) is not No.UNSAT:
            self._gap(f"access at {self._instruction.pc:#x} that may be to something outside the file")

    def _enumerate(self, state: PathState, target: Term, transfer: Transfer) -> None:
        """One successor for every place a jump can go to; for some, first the targets, if it can go anywhere."""
        wild = self._is_wild(state, target)
        if wild:
            for goal in sorted(self._program.targets):
                here = t.eq(target, t.const(goal, target.width))
                model = self._queries.model(state.path, (here,), self._model())
                if isinstance(model, Model):
                    taken = state.fork(goal, dict(state.registers), state.memory.copy(), model)
                    taken.path.add(here)
                    self._result.successors.append((transfer, taken))
        most = WILD_TARGETS if wild else MAX_TARGETS
        for _ in range(most):
            model = self._model()
            value = model.value(target)
            here = t.eq(target, t.const(value, target.width))
            others = self._queries.model(state.path, (t.bnot(here),), model)
            if others is No.UNSAT:
                state.pc = value
                self._result.successors.append((transfer, state))
                return
            taken = state.fork(value, dict(state.registers), state.memory.copy(), model)
            taken.path.add(here)
            self._result.successors.append((transfer, taken))
            if others is No.UNKNOWN:
                self._gap("the solver ran out of time")
                return
            assert isinstance(others, Model)
            state.path.add(t.bnot(here))
            state.model = others
        astray = ", that lead anywhere" if wild else ""
        self._gap(f"more than {most} targets of the jump at {self._instruction.pc:#x}{astray}")

    def _is_wild(self, state: PathState, target: Term) -> bool:
        """Whether a jump can go to all of a few places that nobody would choose, in more code than is enumerated."""
        if self._probes is None:
            self._probes = _spread(self._program)
        return bool(self._probes) and all(
            isinstance(
                self._queries.model(state.path, (t.eq(target, t.const(probe, target.width)),), self._model()), Model
            )
            for probe in self._probes
        )

    def _return(self, state: PathState, target: Value) -> None:
        expected = state.calls.address if state.calls is not None else None
        if isinstance(target, int):
            state.pc = target
            if target != expected:
                self._result.mismatches.append(state)
                return
        else:
            model = self._model()
            matches = t.FALSE if expected is None else t.eq(target, t.const(expected, target.width))
            other = self._queries.model(state.path, (t.bnot(matches),), model)
            if other is No.UNKNOWN:
                self._gap("the solver ran out of time")
            if isinstance(other, Model):
                mismatch = state.fork(other.value(target), dict(state.registers), state.memory.copy(), other)
                mismatch.path.add(t.bnot(matches))
                self._result.mismatches.append(mismatch)
            if expected is None:
                return
            if other is not No.UNSAT:
                self._assume(matches)
            state.pc = expected
        assert state.calls is not None
        state.calls = state.calls.parent
        self._result.successors.append((Transfer.RETURN, state))

    # Code.

    def _fetch(self, state: PathState) -> tuple[Instruction, ...]:
        found = self._pruned.get(state.pc)
        block = self._blocks.fixed_block(state.pc)
        if found is None or block is not self._whole[state.pc]:  # it may end sooner than it did, where a loop begins
            if block is None:
                return self._single(state)
            self._whole[state.pc] = block
            found = self._pruned[state.pc] = pruned(block, self._program.decoder.layout)
            self.seen.update((instruction.pc, instruction.bytes) for instruction in block)
        return found

    def _single(self, state: PathState) -> tuple[Instruction, ...]:
        """The instruction at the program counter as its bytes are now."""
        space, start = self._program.space, self._row.code_address(state.pc)
        code: list[Value] = []
        for offset in range(self._row.longest_unit(state.pc)):
            address = (start + offset) & space.mask
            region = space.region_at(address)
            if region is None or not region.permissions & EXECUTE:
                if not code:
                    raise Fault(missing(EXECUTE) if region is None else denied(EXECUTE), address)
                break
            code.append(state.memory.load(address, 1))
        self._instruction = Instruction(state.pc, b"", (), "", "")
        if all(isinstance(byte, int) for byte in code):
            block = self._blocks.single(state.pc, bytes(code))  # type: ignore[arg-type]
        else:
            block = self._chosen(state, code)
        self.seen.add((state.pc, block[0].bytes))
        return block

    def _chosen(self, state: PathState, code: list[Value]) -> tuple[Instruction, ...]:
        """The instruction that the model's bytes make; other bytes are another path."""
        model = self._model()
        block = self._blocks.single(
            state.pc, bytes(byte if isinstance(byte, int) else model.value(byte) for byte in code)
        )
        here = t.conj(
            t.eq(as_term(byte, 8), t.const(value, 8))
            for byte, value in zip(code[: block[0].size], block[0].bytes, strict=True)
        )
        others = self._queries.model(state.path, (t.bnot(here),), model)
        if others is No.UNKNOWN:
            self._gap("the solver ran out of time")
        if isinstance(others, Model):
            twin = state.fork(state.pc, dict(state.registers), state.memory.copy(), others)
            twin.path.add(t.bnot(here))
            twin.script = self._script
            twin.resumes = True
            self._result.again.append(twin)
        if others is not No.UNSAT:
            state.path.add(here)
        return block

    # Ends.

    def _faulted(self, state: PathState, fault: Fault) -> None:
        """A fault ends the run, except where the program goes on in a way we do not know."""
        if fault.kind is FaultKind.SYSTEM_CALL:
            self._system_call(state)
        elif fault.address is not None and self._program.undetermined.is_foreign(fault.address):
            action = "jump" if fault.kind is FaultKind.UNMAPPED_EXECUTE else "access"
            self._gap(f"{action} to {self._program.undetermined.describe(fault.address, None)}")

    def _system_call(self, state: PathState) -> None:
        where = f"system call at {self._instruction.pc:#x}"
        if self._exit is None:
            self._gap(where)
            return
        value: Value = 0
        width = 0
        for cell, low, bits in self._program.decoder.layout.named(self._exit.number_register):
            part = self._domain.extract(self._domain.read_register(cell), low, bits, cell.bits)
            value = part if not width else self._domain.concatenate(value, part, width, bits)
            width += bits
        if isinstance(value, int):
            if value not in self._exit.numbers:
                self._gap(where)
            self.exited = self.exited or self.feasible(state)
            return
        others = [t.ne(value, t.const(number, width)) for number in sorted(self._exit.numbers)]
        if self.feasible(state) and self._queries.model(state.path, others, state.model) is not No.UNSAT:
            self._gap(where)

    def _gap(self, reason: str) -> None:
        self.gaps[reason] = None


def _spread(program: Program) -> tuple[int, ...]:
    """A few places between the others in all code; none if there is so little that all of it can be enumerated."""
    row = program.decoder.row
    code = [region for region in program.space.regions if region.permissions & EXECUTE]
    total = sum(region.size for region in code) // row.alignment
    found = []
    for number in range(PROBES if total > MAX_TARGETS else 0):
        at = total * (2 * number + 1) // (2 * PROBES) | 1
        for region in code:
            size = region.size // row.alignment
            if at < size:
                found.append(-(-region.start // row.alignment) * row.alignment + at * row.alignment)
                break
            at -= size
    return tuple(found)


def _cells(address: Term, bounds: tuple[int, int] | None, most: int) -> list[int]:
    """All values the address can take, and perhaps others; none if they are more than `most`."""
    if bounds is None:
        return []
    least, greatest = bounds
    stride = _stride(address)
    first = least + (constant_part(address) - least) % stride
    count = (greatest - first) // stride + 1
    return [first + i * stride for i in range(count)] if 0 < count <= most else []


def _stride(term: Term) -> int:
    """A power of two that divides the difference of any two values of the term."""
    if term.op != "lin":
        return 1
    every = 0
    for coefficient in term.data[0]:
        every |= coefficient
    return int(every & -every)


def _choice(address: Term, cells: list[int], values: list[Term]) -> Term:
    """The value of the cell that the address names, as a balanced tree."""
    level = list(zip(cells, values, strict=True))
    while len(level) > 1:
        merged = []
        for i in range(0, len(level) - 1, 2):
            (low, a), (high, b) = level[i], level[i + 1]
            merged.append((low, t.ite(t.ult(address, t.const(high, address.width)), a, b)))
        if len(level) % 2:
            merged.append(level[-1])
        level = merged
    return level[0][1]
