"""The pushdown model of a binary: its calls, returns and events, found by following the code.

Nodes are stretches of code without branches, named after the nearest symbol; a call pushes the node behind it, a return
pops. Instructions are followed from the entry as the machine decodes them.

Over-approximated: data. Every conditional branch may go either way, whatever was tested before; the arguments of events
are not known, so a guard on them may hold or not. Each trace must therefore be tried on the program (`feasible`).
Computed jumps and calls go wherever the code before them lets them go (`jump_targets`); where that is not certain,
wherever all runs of the program take them, if these could be explored (`explored`). Left out, and listed in `gaps`,
which makes a list of counterexamples incomplete: where neither is certain, targets other than those seen in some runs;
code that can be overwritten; code that cannot be decoded. Assumed: a return goes back to behind its call (what `verify`
checks as return-address).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mcveto.counterexamples.model import Model, ModelRule
from mcveto.counterexamples.model_parser import NO_CONTROL
from mcveto.machine.faults import Unsupported
from mcveto.machine.memory import EXECUTE, WRITE
from mcveto.machine.pcode import Instruction, Space, Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.jump_targets import JumpTargets
from mcveto.program.program import Program
from mcveto.property.system_calls import is_system_call
from mcveto.property.typestate import Constant, Label, Pattern, Transition, Typestate

SAMPLE_RUNS = 24
SAMPLE_STEPS = 20_000
MAX_INSTRUCTIONS = 200_000

OVER_APPROXIMATED = "the model knows calls, returns and events, not data: every branch may go either way in it"


@dataclass(frozen=True, slots=True)
class Extracted:
    model: Model
    automaton: Typestate
    """The property without its data."""
    addresses: dict[str, int]
    """The program counter of each node."""
    gaps: tuple[str, ...]
    uncertain: tuple[int, ...] = ()
    """Computed jumps and calls whose targets are not certain."""


@dataclass(slots=True)
class _Exits:
    """Where control may go after an instruction."""

    direct: list[int]
    calls: list[tuple[int, int]]
    """Entry of the function, and where it returns to."""
    returns: bool = False


@dataclass(frozen=True, slots=True)
class MetTargets:
    """Where instructions lead by jumps and calls, as symbolic execution met them."""

    targets: Mapping[int, Mapping[int, Transfer]]
    are_all: bool


def extract(
    program: Program,
    automaton: Typestate,
    events: Mapping[int, Sequence[str]],
    system_calls: Sequence[str] = (),
    met: MetTargets | None = None,
) -> Extracted:
    """`events` are the program counters at which an event happens; any of `system_calls` may happen at one."""
    return _Extraction(program, automaton, events, system_calls, met).result()


def without_data(automaton: Typestate, uncertain: Sequence[str] = ()) -> Typestate:
    """The automaton as seen without arguments: what depends on them, and events that are `uncertain`, may or may not
    happen."""
    transitions: dict[Transition, None] = {}
    for item in automaton.transitions:
        transitions[Transition(item.source, item.target, Pattern(item.pattern.event), line=item.line)] = None
        has_constants = any(isinstance(parameter, Constant) for parameter in item.pattern.parameters)
        if item.guards or has_constants or item.pattern.event in uncertain:
            transitions[Transition(item.source, item.source, Pattern(item.pattern.event), line=item.line)] = None
    return replace(automaton, variables={}, transitions=tuple(transitions))


class _Extraction:
    def __init__(
        self,
        program: Program,
        automaton: Typestate,
        events: Mapping[int, Sequence[str]],
        system_calls: Sequence[str],
        met: MetTargets | None,
    ) -> None:
        self.program = program
        self._met = met
        self.row = program.decoder.row
        self.automaton = automaton
        self.events = {pc: tuple(names) for pc, names in events.items()}
        self.system_calls = tuple(system_calls)
        self.gaps: dict[str, None] = {}
        self.exits: dict[int, _Exits] = {}
        self._seen_targets: dict[int, dict[int, Transfer]] | None = None
        self._instructions: dict[int, Instruction] = {}
        self._computed: dict[int, Instruction] = {}
        self._certain: set[int] = set()
        self._jumps = JumpTargets(program)
        self._ends = program.halts | {self.row.code_address(program.return_sentinel)}
        self._symbols = sorted((address, name) for name, address in program.image.symbols.items())
        self._names: dict[int, str] = {}
        self._follow()

    def _follow(self) -> None:
        worklist = [self.program.entry]
        while worklist:
            while worklist:
                pc = worklist.pop()
                if pc in self.exits:
                    continue
                if len(self.exits) >= MAX_INSTRUCTIONS:
                    self.gaps[f"the code goes on beyond {MAX_INSTRUCTIONS} instructions"] = None
                    return
                exits = self.exits[pc] = self._exits(pc)
                worklist += exits.direct
                worklist += [target for call in exits.calls for target in call]
            worklist = self._follow_computed()
        for pc in self._computed:
            if pc not in self._certain:
                where = f"the jump or call at {pc:#x} is computed"
                self.gaps[f"{where}; only targets seen in sample runs are followed"] = None

    def _follow_computed(self) -> list[int]:
        """Adds targets of computed jumps that were not known yet: all that they may have, where that is certain (the
        more code is known, the less it may be), else those that sample runs show."""
        if not self._computed:
            return []
        before, entered = self._ways()
        new: list[int] = []
        for pc, instruction in self._computed.items():
            if self._met is not None and self._met.are_all:
                self._certain.add(pc)
                new += self._add_seen(pc, instruction)
                continue
            found = self._jumps.of(
                instruction, lambda at: None if at in entered else before.get(at, []), self._instructions.get
            )
            if found is None:
                self._certain.discard(pc)
                new += self._add_seen(pc, instruction)
                continue
            self._certain.add(pc)
            is_call = any(op.opcode == "CALLIND" for op in instruction.ops)
            for target in sorted(found):
                new += self._add_exit(pc, instruction, target, is_call)
        return new

    def _ways(self) -> tuple[dict[int, list[int]], set[int]]:
        """Where control comes from to each instruction, and to which it comes by a call or a return, too."""
        before: dict[int, list[int]] = {}
        entered = {self.program.entry}
        for pc, exits in self.exits.items():
            for target in exits.direct:
                before.setdefault(target, []).append(pc)
            for call in exits.calls:
                entered.update(call)
        return before, entered

    def _add_exit(self, pc: int, instruction: Instruction, target: int, is_call: bool) -> list[int]:
        """What is new to follow."""
        exits = self.exits[pc]
        following = (pc + instruction.size) & self.row.address_mask
        if is_call and (target, following) not in exits.calls:
            exits.calls.append((target, following))
            return [target, following]
        if not is_call and target not in exits.direct:
            exits.direct.append(target)
            return [target]
        return []

    def _exits(self, pc: int) -> _Exits:
        exits = _Exits([], [])
        address = self.row.code_address(pc)
        if address in self._ends or address in self.program.targets:
            return exits
        instruction = self._instruction(pc)
        if instruction is None:
            return exits
        if self.system_calls and any(map(is_system_call, instruction.ops)):
            self.events[pc] = (*self.events.get(pc, ()), *self.system_calls)
        following = (pc + instruction.size) & self.row.address_mask
        mode = pc & self.row.mode_mask
        falls = bool(instruction.size)
        computed = False
        for number, op in enumerate(instruction.ops):
            target = op.inputs[0] if op.inputs else None
            is_code = target is not None and target.space is Space.RAM
            if op.opcode in ("BRANCH", "CBRANCH") and target is not None and is_code:
                exits.direct.append(target.offset | mode)
            elif op.opcode == "CALL" and target is not None and is_code:
                exits.calls.append((target.offset | mode, following))
            elif op.opcode in ("CALLIND", "BRANCHIND"):
                computed = True
            elif op.opcode == "RETURN":
                exits.returns = True
            elif op.opcode.startswith("CALLOTHER"):
                self.gaps[f"what {instruction.text} at {pc:#x} does is not known"] = None
            if number == len(instruction.ops) - 1:
                falls = falls and op.opcode not in ("BRANCH", "BRANCHIND", "RETURN", "CALL", "CALLIND")
        self._instructions[pc] = instruction
        if computed:
            self._computed[pc] = instruction
        elif self.row.mode_mask and exits.calls:
            for seen, transfer in self._seen(pc):
                if transfer is Transfer.CALL:
                    exits.calls.append((seen, following))
                else:
                    exits.direct.append(seen)
        if falls:
            exits.direct.append(following)
        # An instruction that repeats itself is one step, whose decisions are its own affair.
        exits.direct = list(dict.fromkeys(exits.direct))
        exits.direct = [target for target in exits.direct if target != pc] or exits.direct
        return exits

    def _instruction(self, pc: int) -> Instruction | None:
        hook = self.program.hooks.get(pc)
        if hook is not None:
            return hook
        address, space = self.row.code_address(pc), self.program.space
        region = space.region_at(address)
        if region is None or not region.permissions & EXECUTE:
            return None  # a fault: the run ends
        if region.permissions & WRITE:
            self.gaps["code that can be overwritten is taken as it is in the file"] = None
        longest = self.row.longest_unit(pc)
        known = (space.initial_byte((address + offset) & space.mask) for offset in range(longest))
        code = bytearray()
        for byte in known:
            if byte is None:
                break
            code.append(byte)
        try:
            return self.program.decoder.decode(pc, bytes(code))
        except Unsupported as error:
            self.gaps[f"not followed: {error}"] = None
            return None

    def _add_seen(self, pc: int, instruction: Instruction) -> list[int]:
        new: list[int] = []
        for target, transfer in self._seen(pc):
            new += self._add_exit(pc, instruction, target, transfer is Transfer.CALL)
        return new

    def _seen(self, pc: int) -> list[tuple[int, Transfer]]:
        """Targets of computed jumps and calls, as sample runs show them."""
        if self._seen_targets is None:
            self._seen_targets = self._sample()
        return sorted(self._seen_targets.get(pc, {}).items())

    def _sample(self) -> dict[int, dict[int, Transfer]]:
        found: dict[int, dict[int, Transfer]] = {}
        if self._met is not None:
            found = {pc: dict(targets) for pc, targets in self._met.targets.items()}
            if self._met.are_all:
                return found
        for seed in range(SAMPLE_RUNS):
            machine = self.program.machine(InputSource((), seed), seed)
            machine.run(SAMPLE_STEPS)
            for step in machine.trace:
                if step.transfer in (Transfer.CALL, Transfer.JUMP):
                    found.setdefault(step.pc, {})[step.next_pc] = step.transfer
        return found

    def result(self) -> Extracted:
        """The model over stretches of code: an instruction that only one other leads to belongs to that one's node."""
        arrivals: dict[int, int] = {self.program.entry: 2}
        for exits in self.exits.values():
            single = len(exits.direct) == 1 and not exits.calls and not exits.returns
            for target in exits.direct:
                arrivals[target] = arrivals.get(target, 0) + (1 if single else 2)
            for call in exits.calls:
                for target in call:
                    arrivals[target] = arrivals.get(target, 0) + 2
        # Where a run ends there is a node, too: an event just before it happens when that is gone to.
        ends = {pc for pc, exits in self.exits.items() if not (exits.direct or exits.calls or exits.returns)}
        inner = {pc for pc, count in arrivals.items() if count == 1 and pc not in self.events and pc not in ends}
        model = Model(self.program.image.path.rpartition("/")[2] or "program")
        control = model.control(NO_CONTROL)
        addresses: dict[str, int] = {}
        for pc in sorted(self.exits):
            if pc not in inner:
                addresses[self._name(pc)] = pc
        model.set_start(control, [model.symbol(self._name(self.program.entry))])
        for name, pc in addresses.items():
            symbol = model.symbol(name)
            for pushed in self._rules(pc, inner):
                model.add(ModelRule(control, symbol, control, *(model.symbol(self._name(target)) for target in pushed)))
            if pc in self.events:
                model.add_labels(control, symbol, [Label(event) for event in self.events[pc]])
        automaton = without_data(self.automaton, self.system_calls)
        uncertain = tuple(pc for pc in self._computed if pc not in self._certain)
        return Extracted(model, automaton, addresses, tuple(self.gaps), uncertain)

    def _rules(self, pc: int, inner: set[int]) -> Iterable[tuple[int, ...]]:
        """What the node at `pc` is replaced by on the stack."""
        node = pc
        seen = {pc}
        while True:
            exits = self.exits.get(pc)
            if exits is None:
                return []
            if len(exits.direct) == 1 and not exits.calls and not exits.returns and exits.direct[0] in inner:
                pc = exits.direct[0]
                if pc in seen:
                    return [(node,)]  # an endless loop without an exit
                seen.add(pc)
                continue
            found: list[tuple[int, ...]] = [(target,) for target in exits.direct]
            found += exits.calls
            if exits.returns:
                found.append(())
            return list(dict.fromkeys(found))

    def _name(self, pc: int) -> str:
        """symbol+offset, or the address."""
        found = self._names.get(pc)
        if found is None:
            address = self.row.code_address(pc)
            at = bisect_right(self._symbols, (address, "\U0010ffff")) - 1
            found = f"{pc:#x}"
            region = self.program.space.region_at(address)
            if at >= 0 and region is not None and region.start <= self._symbols[at][0]:
                base, name = self._symbols[at]
                if name.isidentifier():
                    found = f"{name}+{address - base:#x}" if address > base else name
            if found in self._names.values():
                found = f"{pc:#x}"
            self._names[pc] = found
        return found
