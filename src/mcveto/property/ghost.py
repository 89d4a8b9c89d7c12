"""Typestate automata as ghost state of a machine program.

A property is ghost registers (the automaton's state and variables), updates at program points, and target addresses,
one for each error state, in a page of their own that nothing else uses. The updates are P-code put before the
operations of the instruction where the event happens (or before those that return), by way of the program's hooks; an
error jumps to its target. No engine knows of it: decoding, execution, proofs and replay see registers, operations and
targets.

Transitions are tested in the order of the file. Of several that are enabled any may be taken: a later one takes over
from an earlier one if a fresh bit says so, except where the two exclude each other. `any` is understood where it says
"or stay": a transition from a state to itself; watching every instruction is refused. A text is compared with what a
pointer points to, byte by byte. System calls, and the return of the function that a run begins in where its body is not
certain, are watched wherever they are decoded (see `system_calls`, `entry_return`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mcveto.errors import UsageError
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.faults import FaultKind
from mcveto.machine.isa.overlay import replaced
from mcveto.machine.memory import EXECUTE, READ, RegionSpec
from mcveto.machine.pcode import Instruction, Op, Space, Varnode
from mcveto.program.program import Program
from mcveto.property.entry_return import before_returns
from mcveto.property.points import Calls, Place, instruction_at, places, that_count
from mcveto.property.system_calls import WatchingDecoder, convention_of, number_of
from mcveto.property.typestate import (
    ANY,
    Constant,
    Guard,
    Name,
    Operand,
    Point,
    PointKind,
    Relation,
    Transition,
    Typestate,
    state_cell,
)

_AREA = 4096
_SPACING = 16
_STATE_BYTES = 4
_TEMPORARIES = 1 << 20
# Of a function whose returns are known by its calls: a run is outside, has called it, or has entered it.
_OUTSIDE, _CALLED, _ENTERED = 0, 1, 2
_END = Point(PointKind.RETURN, "main")
_OPCODES = {
    Relation.EQUAL: "INT_EQUAL",
    Relation.DIFFERENT: "INT_NOTEQUAL",
    Relation.SIGNED_LESS: "INT_SLESS",
    Relation.SIGNED_LESS_EQUAL: "INT_SLESSEQUAL",
    Relation.UNSIGNED_LESS: "INT_LESS",
    Relation.UNSIGNED_LESS_EQUAL: "INT_LESSEQUAL",
}

Bindings = Mapping[str, Sequence[Point]]
"""Program points that replace those of the file, by event; none: the event never happens."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The program with the automaton's ghost state, and what its new targets mean."""

    program: Program
    errors: dict[int, tuple[str, str]]
    """Target address to the property's name and what is wrong."""
    events: dict[int, tuple[str, ...]]
    """The events that happen at a program counter."""
    system_calls: tuple[str, ...] = ()
    """Events that are system calls: they may happen wherever one is made."""
    state_cell: str = ""
    """The ghost register that holds the automaton's state, as a number."""


def watch(program: Program, automaton: Typestate, bindings: Bindings | None = None, number: int = 0) -> Watched:
    """Adds an automaton to a program; `number` tells several apart. Raises UsageError."""
    return _Compiler(program, automaton, bindings or {}, number).compile()


class _Compiler:
    def __init__(self, program: Program, automaton: Typestate, bindings: Bindings, number: int) -> None:
        self.automaton = automaton
        self.bindings = bindings
        self.prefix = f"ghost{number}"
        # Apart from those of the instruction, the overlay and other automata, which may be in use across the update.
        self.first_temporary = (number + 1) * _TEMPORARIES
        self.original = program
        row = program.decoder.row
        self.word = row.address_bytes
        self.row = row
        self._check()
        self.cells = {name: f"{self.prefix}_{name}" for name in automaton.variables}
        self.state_cell = state_cell(number)
        # Results of comparisons with texts at the event at hand, by pointer and text.
        self._texts: dict[tuple[str, str], str] = {}
        self._never: list[str] = []
        """Events that are the end of a function which has none."""
        self._found = self._all_places()
        self._calls = self._uncertain_calls()
        extra = [(self.state_cell, _STATE_BYTES), *((cell, self.word) for cell in self.cells.values())]
        extra += [(cell, 1) for cell in self._calls.values()]
        self.decoder = WatchingDecoder(replace(row, extra=(*row.extra, *extra)), program.decoder)
        self.states = {name: index for index, name in enumerate(automaton.states)}
        self.area = program.free_area(_AREA)

    def _fail(self, transition: Transition, message: str, hint: str = "") -> UsageError:
        return UsageError(f"{self.automaton.path or self.automaton.name}:{transition.line}: {message}", hint)

    def _check(self) -> None:
        automaton = self.automaton
        if len(automaton.starts) != 1:
            raise UsageError(f"property {automaton.name} has several start states", "machine code needs one")
        if len(automaton.errors) > _AREA // _SPACING:
            raise UsageError(f"property {automaton.name} has too many error states")
        for name, value in automaton.variables.items():
            if not self._fits(value):
                raise UsageError(f"property {automaton.name}: the initial value of {name} is no machine word")
        for name in self.bindings:
            if name not in automaton.events:
                raise UsageError(
                    f"property {automaton.name} has no event '{name}'", f"it has {', '.join(automaton.events)}"
                )
        for transition in automaton.transitions:
            if transition.pattern.event == ANY and (
                transition.source != transition.target or transition.guards or transition.assignments
            ):
                raise self._fail(transition, "`any` in machine code can only mean to stay", "A -> A on any")
            operands: list[Operand | None] = [assignment.value for assignment in transition.assignments]
            operands += [
                side
                for guard in self._conditions(transition)
                if _text_comparison(guard) is None
                for side in (guard.left, guard.right)
            ]
            for operand in operands:
                if isinstance(operand, Constant) and not self._fits(operand.value):
                    raise self._fail(
                        transition, f"{operand.value!r} is no machine word", "texts can be compared with == and !="
                    )

    def _fits(self, value: object) -> bool:
        bits = 8 * self.word
        return isinstance(value, int) and -(1 << (bits - 1)) <= value < 1 << bits

    def compile(self) -> Watched:
        program = replace(self.original, decoder=self.decoder)
        observed: list[str] = []
        used = self._used()
        ends = [tuple(self._update(event, point, at_end=True)) for event, point in self._at_end()]
        self.decoder.at_returns += tuple(ends)
        hooks = {pc: before_returns(hook, ends) for pc, hook in program.hooks.items()}
        for calls, cell in self._calls.items():
            for pc in calls.pcs:
                called = self._phase_ops(cell, None, _CALLED)
                hooks[pc] = self._instrumented(hooks.get(pc) or instruction_at(program, pc, "call"), pc, called)
            entered = self._phase_ops(cell, _CALLED, _ENTERED)
            first = hooks.get(calls.entry) or instruction_at(program, calls.entry, "call")
            hooks[calls.entry] = self._instrumented(first, calls.entry, entered)
        taken: dict[Place, str] = {}
        system_calls = self._system_calls(used)
        observed += [f"{event} at system calls {', '.join(map(str, calls))}" for event, calls in system_calls.items()]
        for event in used:
            for place, point in self._found[event]:
                if place in taken:
                    both = f"'{taken[place]}' and '{event}'"
                    raise UsageError(f"property {self.automaton.name}: {both} happen at the same place, {place.pc:#x}")
                taken[place] = event
                if place.pc == program.return_sentinel:
                    observed.append(f"{event} at the return of the entry")
                    continue
                instruction = hooks.get(place.pc) or instruction_at(program, place.pc, event)
                update = self._update(event, point)
                if place.behind is not None:
                    update = [*self._phase_ops(self._calls[place.behind], _ENTERED, _OUTSIDE), *update]
                hooks[place.pc] = self._instrumented(instruction, place.pc, update, place.at_return)
                observed.append(f"{event} at {self.row.code_address(place.pc):#x}")
        layout = self.decoder.layout
        registers = dict(program.registers)
        registers[layout.by_name[self.state_cell].number] = self.states[self.automaton.starts[0]]
        for cell in self._calls.values():
            registers[layout.by_name[cell].number] = _OUTSIDE
        for name, cell in self.cells.items():
            value = self.automaton.variables[name]
            assert isinstance(value, int)
            registers[layout.by_name[cell].number] = value & ((1 << 8 * self.word) - 1)
        errors = {
            self._target(name): (self.automaton.name, message or name)
            for name, message in self.automaton.errors.items()
        }
        space = AddressSpace(
            [*program.space.regions, RegionSpec("property", self.area, _AREA, EXECUTE)],
            program.space.address_bits,
            program.space.big_endian,
        )
        observed += [f"{event} nowhere (the entry never returns)" for event in self._never]
        note = f"property {self.automaton.name} watches {', '.join(observed) or 'nothing'}"
        reserved = f"no jump that the program computes leads to {self.area:#x}, which stands for errors of the property"
        watched = replace(
            program,
            hooks=hooks,
            space=space,
            registers=registers,
            targets=program.targets | errors.keys(),
            assumptions=(*program.assumptions, note, reserved),
        )
        events: dict[int, tuple[str, ...]] = {}
        for place, event in taken.items():
            events[place.pc] = (*events.get(place.pc, ()), event)
        return Watched(watched, errors, events, tuple(system_calls), self.state_cell)

    def _at_end(self) -> list[tuple[str, Point]]:
        """The events that are the return of the function that runs begin in."""
        sentinel = self.original.return_sentinel
        return [
            (event, point) for event, found in self._found.items() for place, point in found if place.pc == sentinel
        ]

    def _target(self, error: str) -> int:
        return self.area + _SPACING * list(self.automaton.errors).index(error)

    def _system_calls(self, used: Iterable[str]) -> dict[str, list[int]]:
        """The events that are system calls, with their numbers; the decoder is told to watch them."""
        found: dict[str, list[int]] = {}
        owners: dict[int, str] = {}
        updates: list[tuple[Op, ...]] = []
        for event in used:
            points = [point for point in self._points(event) if point.kind is PointKind.SYSTEM_CALL]
            for point in points:
                convention = convention_of(self.original, str(point))
                number = number_of(convention, point.where, str(point))
                if owners.setdefault(number, event) != event:
                    both = f"'{owners[number]}' and '{event}'"
                    raise UsageError(f"property {self.automaton.name}: {both} are the same system call, {number}")
                found.setdefault(event, []).append(number)
            if points:
                updates.append(tuple(self._update(event, points[0], found[event])))
        # One call may be the event of several automata: each has its own update.
        self.decoder.updates += tuple(updates)
        return found

    def _points(self, event: str) -> Sequence[Point]:
        points = self.bindings.get(event)
        return self.automaton.events[event].points if points is None else points

    def _places(self, program: Program, event: str) -> list[tuple[Place, Point]]:
        """Where an event happens; an event that cannot happen must be said to be one."""
        is_given = event in self.bindings
        points = self._points(event)
        found: dict[Place, Point] = {}
        is_there = is_given
        for point in that_count(program.image, points):
            if point.kind is PointKind.SYSTEM_CALL:
                is_there = True
                continue
            there = places(program, point)
            if there is None and not is_given and point == _END and program.spec.entry is not None:
                # A function that somebody wants to look at by itself is all of the program; it may serve for ever. Of
                # the entry of a file that says nothing: another function may end the process.
                there = places(program, replace(point, where=program.entry))
                there = None if not there and program.entry == program.image.entry else there
                self._never += [event] if there == [] else []
            is_there = is_there or there is not None
            if there is None and is_given:
                raise UsageError(f"event {event}: the program has no symbol '{point.where}'")
            for place in there or ():
                found.setdefault(place, point)
        if not is_there:
            names = ", ".join(map(str, points)) or "no program point is declared"
            raise UsageError(
                f"property {self.automaton.name}: the program has nothing that is event '{event}' ({names})",
                f"say where: --event {event}=call:ADDRESS, or --event {event}=none if it never happens",
            )
        return list(found.items())

    def _used(self) -> dict[str, None]:
        return dict.fromkeys(t.pattern.event for t in self.automaton.transitions if t.pattern.event != ANY)

    def _all_places(self) -> dict[str, list[tuple[Place, Point]]]:
        return {event: self._places(self.original, event) for event in self._used()}

    def _uncertain_calls(self) -> dict[Calls, str]:
        """Calls by which returns are known, each with a cell that says where a run is with respect to them."""
        places = [place for found in self._found.values() for place, _ in found]
        calls = dict.fromkeys(place.behind for place in places if place.behind is not None)
        return {item: f"{self.prefix}_within{number}" for number, item in enumerate(calls)}

    def _phase_ops(self, cell: str, expected: int | None, following: int) -> list[Op]:
        """Sets the cell; where it must have another value before, a run in which it has not is not supported."""
        lines = [f"{cell} = COPY {following}:1"]
        if expected is not None:
            lines.insert(0, f"%astray:1 = INT_NOTEQUAL {cell}, {expected}:1")
        ops = self.decoder.assembler.assemble("\n".join(lines), {}, self.first_temporary)
        if expected is not None:
            astray = ops[0].output
            assert astray is not None
            ops.insert(1, Op("TRAP", None, (Varnode(Space.CONST, FaultKind.UNSUPPORTED, 1), astray)))
        return ops

    def _instrumented(
        self, instruction: Instruction, pc: int, update: list[Op], at_return: bool = False
    ) -> Instruction:
        ops: list[Op] = [*instruction.ops]
        if at_return:
            for index in range(len(ops) - 1, -1, -1):
                if ops[index].opcode == "RETURN":
                    ops = replaced(ops, index, index, update)
        else:
            ops = [*update, *ops]
        return Instruction(pc, instruction.bytes, tuple(ops), instruction.mnemonic, instruction.operands)

    def _update(self, event: str, point: Point, numbers: Sequence[int] = (), at_end: bool = False) -> list[Op]:
        """The operations that move the automaton when the event happens: at a system call, if it has one of these
        numbers; at a return, if what the first operation copies is where the run ends."""
        transitions = [t for t in self.automaton.transitions if t.pattern.event in (event, ANY)]
        lines = self._end_lines() if at_end else []
        lines += [f"%state:{_STATE_BYTES} = COPY {self.state_cell}", f"%next:{_STATE_BYTES} = COPY %state"]
        lines += self._argument_lines(event, point, transitions)
        lines += self._text_lines(transitions)
        lines += self._number_lines(point, numbers)
        assigned = dict.fromkeys(a.variable for t in transitions for a in t.assignments)
        lines += [f"%new_{name}:{self.word} = COPY {self.cells[name]}" for name in assigned]
        earlier: list[Transition] = []
        for number, transition in enumerate(transitions):
            lines += self._transition_lines(number, transition, earlier, bool(numbers) or at_end)
            earlier.append(transition)
        lines += [f"{self.cells[name]} = COPY %new_{name}" for name in assigned]
        lines.append(f"{self.state_cell} = COPY %next")
        errors = sorted({t.target for t in transitions if t.target in self.automaton.errors}, key=self._target)
        lines += [
            f"%error{index}:1 = INT_EQUAL %next, {self.states[error]}:{_STATE_BYTES}"
            for index, error in enumerate(errors)
        ]
        ops = self.decoder.assembler.assemble("\n".join(lines), {}, self.first_temporary)
        tests = ops[len(ops) - len(errors) :]
        for test, error in zip(tests, errors, strict=True):
            assert test.output is not None
            ops.append(Op("CBRANCH", None, (Varnode(Space.RAM, self._target(error), self.word), test.output)))
        return ops

    def _number_lines(self, point: Point, numbers: Sequence[int]) -> list[str]:
        """In %called whether the system call at hand has one of the numbers."""
        if not numbers:
            return []
        register = convention_of(self.original, str(point)).number
        lines = ["%called:1 = COPY 0:1"]
        for index, number in enumerate(numbers):
            lines.append(f"%called{index}:1 = INT_EQUAL {register}, {number}:{self.word}")
            lines.append(f"%called = BOOL_OR %called, %called{index}")
        return lines

    def _end_lines(self) -> list[str]:
        """In %called whether the return at hand ends the run."""
        row, word = self.row, self.word
        return [
            f"%back:{word} = COPY 0:{word}",
            f"%back = INT_AND %back, {row.address_mask & ~row.mode_mask}:{word}",
            f"%called:1 = INT_EQUAL %back, {row.code_address(self.original.return_sentinel)}:{word}",
        ]

    def _transition_lines(
        self, number: int, transition: Transition, earlier: list[Transition], at_call: bool
    ) -> list[str]:
        enabled = f"%on{number}"
        lines = [f"{enabled}:1 = INT_EQUAL %state, {self.states[transition.source]}:{_STATE_BYTES}"]
        if at_call:
            lines.append(f"{enabled} = BOOL_AND {enabled}, %called")
        for index, guard in enumerate(self._conditions(transition)):
            text = _text_comparison(guard)
            if text is not None:
                same = self._texts[self._operand(text[0], transition), text[1]]
                lines.append(f"%on{number}_{index}:1 = INT_EQUAL {same}, {int(guard.relation is Relation.EQUAL)}:1")
                lines.append(f"{enabled} = BOOL_AND {enabled}, %on{number}_{index}")
                continue
            left, right = self._operand(guard.left, transition), self._operand(guard.right, transition)
            test = f"%on{number}_{index}"
            lines.append(f"{test}:1 = {_OPCODES[guard.relation]} {left}, {right}")
            lines.append(f"{enabled} = BOOL_AND {enabled}, {test}")
        rivals = [
            other for other in earlier if other.source == transition.source and not self._exclude(other, transition)
        ]
        if rivals:
            # Taken if no other one is enabled, or if the fresh bit prefers it.
            lines.append(f"%taken{number}:1 = COPY 0:1")
            for other in rivals:
                lines.append(f"%taken{number} = BOOL_OR %taken{number}, %was{earlier.index(other)}")
            lines.append(f"%fresh{number}:1 = FRESH 0:1")
            lines.append(f"%bit{number}:1 = INT_AND %fresh{number}, 1:1")
            lines.append(f"%free{number}:1 = BOOL_NEGATE %taken{number}")
            lines.append(f"%may{number}:1 = BOOL_OR %free{number}, %bit{number}")
            lines.append(f"%was{number}:1 = COPY {enabled}")
            lines.append(f"{enabled} = BOOL_AND {enabled}, %may{number}")
        else:
            lines.append(f"%was{number}:1 = COPY {enabled}")
        lines.append(f"%next = SELECT {enabled}, {self.states[transition.target]}:{_STATE_BYTES}, %next")
        changes = {a.variable: self._operand(a.value, transition) for a in transition.assignments}
        for name in dict.fromkeys(a.variable for t in self.automaton.transitions for a in t.assignments):
            value = changes.get(name)
            if value is not None:
                lines.append(f"%new_{name} = SELECT {enabled}, {value}, %new_{name}")
            elif rivals and any(name in {a.variable for a in other.assignments} for other in rivals):
                # The rival that this one takes over from has assigned it already.
                lines.append(f"%new_{name} = SELECT {enabled}, {self.cells[name]}, %new_{name}")
        return lines

    def _conditions(self, transition: Transition) -> list[Guard]:
        """The guards, with those that constants among the parameters stand for."""
        constants = [
            Guard(Relation.EQUAL, Name(f"#{index}"), parameter)
            for index, parameter in enumerate(transition.pattern.parameters)
            if isinstance(parameter, Constant)
        ]
        return [*constants, *transition.guards]

    def _text_lines(self, transitions: list[Transition]) -> list[str]:
        """Whether pointers that are compared with texts point to them, in %textN.

        Byte by byte, up to the first that differs, and only where memory is mapped: watching must not fault.
        """
        self._texts.clear()
        lines: list[str] = []
        readable = [region for region in self.original.space.regions if region.permissions & READ]
        word = self.word
        for transition in transitions:
            for guard in self._conditions(transition):
                text = _text_comparison(guard)
                if text is None:
                    continue
                key = (self._operand(text[0], transition), text[1])
                if key in self._texts:
                    continue
                name = self._texts[key] = f"%text{len(self._texts)}"
                place = name[1:]
                lines += [f"{name}:1 = COPY 0:1", f"%at_{place}:{word} = COPY {key[0]}"]
                for byte in (*key[1].encode(), 0):
                    lines.append(f"%in_{place}:1 = COPY 0:1")
                    for region in readable:
                        lines += [
                            f"%low_{place}:1 = INT_LESSEQUAL {region.start}:{word}, %at_{place}",
                            f"%high_{place}:1 = INT_LESSEQUAL %at_{place}, {region.end - 1}:{word}",
                            f"%both_{place}:1 = BOOL_AND %low_{place}, %high_{place}",
                            f"%in_{place} = BOOL_OR %in_{place}, %both_{place}",
                        ]
                    lines += [
                        f"%out_{place}:1 = BOOL_NEGATE %in_{place}",
                        f"CBRANCH @done_{place}, %out_{place}",
                        f"%byte_{place}:1 = LOAD %at_{place}",
                        f"%other_{place}:1 = INT_NOTEQUAL %byte_{place}, {byte}:1",
                        f"CBRANCH @done_{place}, %other_{place}",
                        f"%at_{place} = INT_ADD %at_{place}, 1:{word}",
                    ]
                lines += [f"{name} = COPY 1:1", f"@done_{place}"]
        return lines

    def _operand(self, operand: Operand, transition: Transition) -> str:
        if isinstance(operand, Constant):
            return f"{operand.value}:{self.word}"
        if operand.name.startswith("#"):
            return f"%argument{operand.name[1:]}"
        if Name(operand.name) in transition.pattern.parameters:
            return f"%argument{transition.pattern.parameters.index(Name(operand.name))}"
        return self.cells[operand.name]

    def _exclude(self, one: Transition, other: Transition) -> bool:
        """Whether two transitions of a state can never be enabled together, as far as their guards show it."""

        def canonical(transition: Transition) -> set[tuple[Relation, frozenset[str]]]:
            return {
                (
                    guard.relation,
                    frozenset((self._operand(guard.left, transition), self._operand(guard.right, transition))),
                )
                for guard in self._conditions(transition)
            }

        opposite = {Relation.EQUAL: Relation.DIFFERENT, Relation.DIFFERENT: Relation.EQUAL}
        others = canonical(other)
        return any((opposite.get(relation), sides) in others for relation, sides in canonical(one))

    def _argument_lines(self, event: str, point: Point, transitions: list[Transition]) -> list[str]:
        """The arguments that the transitions look at, as machine words in %argumentN."""
        declared = self.automaton.events[event].parameters
        lines: list[str] = []
        used = {
            index: transition
            for transition in transitions
            for index, parameter in enumerate(transition.pattern.parameters)
            if parameter is not None
        }
        for index, transition in sorted(used.items()):
            bits = declared[index].bits if index < len(declared) else 0
            lines += self._value_lines(index, point, transition)
            size = bits // 8 or self.word
            if size < self.word:
                lines.append(f"%part{index}:{size} = SUBPIECE %raw{index}, 0:4")
                lines.append(f"%argument{index}:{self.word} = INT_SEXT %part{index}")
            elif size == self.word:
                lines.append(f"%argument{index}:{self.word} = COPY %raw{index}")
            else:
                raise self._fail(transition, f"'{declared[index].name}' has {bits} bits, more than a machine word")
        return lines

    def _value_lines(self, index: int, point: Point, transition: Transition) -> list[str]:
        row = self.row
        if point.kind is PointKind.RETURN:
            if index > 0:
                raise self._fail(transition, f"'{point}' has one argument, the value returned")
            return [f"%raw{index}:{self.word} = COPY {row.return_registers[0]}"]
        if point.kind is PointKind.SYSTEM_CALL:
            registers = convention_of(self.original, str(point)).arguments
            if index >= len(registers):
                raise self._fail(transition, f"argument {index + 1} of a system call cannot be watched on {row.name}")
            return [f"%raw{index}:{self.word} = COPY {registers[index]}"]
        if point.kind is not PointKind.CALL:
            raise self._fail(transition, f"'{point}' has no arguments")
        where = self._argument_place(index)
        if where is None:
            raise self._fail(transition, f"argument {index + 1} of a call cannot be watched on {row.name}")
        if not where.startswith("stack+"):
            return [f"%raw{index}:{self.word} = COPY {where}"]
        distance = int(where.removeprefix("stack+"))
        slot = f"%slot{index}:{self.word} = INT_ADD {row.stack_pointer}, {distance}:{self.word}"
        return [slot, f"%raw{index}:{self.word} = LOAD %slot{index}"]

    def _argument_place(self, index: int) -> str | None:
        """Where an argument is when a function begins; arguments that are on the stack anyway follow one another."""
        known = self.row.arguments
        if index < len(known):
            return known[index]
        if known[-1].startswith("stack+"):
            return f"stack+{int(known[-1].removeprefix('stack+')) + self.word * (index - len(known) + 1)}"
        return None


def _text_comparison(guard: Guard) -> tuple[Name, str] | None:
    """The pointer and the text that a guard compares, if it does."""
    if guard.relation in (Relation.EQUAL, Relation.DIFFERENT):
        for pointer, text in ((guard.left, guard.right), (guard.right, guard.left)):
            if isinstance(pointer, Name) and isinstance(text, Constant) and isinstance(text.value, str):
                return pointer, text.value
    return None
