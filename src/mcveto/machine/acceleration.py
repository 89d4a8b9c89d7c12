"""Loops that only count are skipped: a concrete run gets to where a million turns lead in one step, exactly.

From the place where a run is, one turn of the loop around it is executed symbolically: what changed from turn to turn
is a variable, everything else keeps its value. If every variable that a condition reads grows by a constant, and the
conditions under which this turn was taken hold at every turn up to some number (see `logic.progression`), then so many
turns are taken, and the state behind them is known: the variables have grown, those that no condition reads also by
polynomials (see `logic.growth`), and whatever else a turn writes is what the last one wrote.

A turn must come back to the same address with the same calls pending, consume no input, write no code and access memory
at constant addresses. Loop acceleration in the sense of Boigelot and of Bardin et al. (FAST), for one concrete state.

A register is one variable, or several: where instructions count in a part of it (32 of 64 bits, the lanes of a vector),
the whole does not grow by a constant, and each part may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..logic import terms as t
from ..logic.evaluate import Evaluator
from ..logic.growth import Differences, growths, value_at
from ..logic.progression import Progression
from ..logic.substitute import substitute
from ..logic.terms import Term
from .emulator import Machine
from .faults import Fault, Unsupported
from .interpreter import Interpreter
from .memory import WRITE
from .pcode import FreshOrigin, Instruction, Transfer
from .registers import Cell
from .symbolic import SymbolicDomain, truth

LONGEST_TURN = 400
FEWEST_TURNS = 64
MOST_TURNS = 1 << 64
_COMPARISONS = frozenset({"eq", "ult", "ule", "slt", "sle", "carry", "scarry", "sborrow"})

# The parts that registers are cut into.
LANES = (64, 32)


class Lane(NamedTuple):
    """Bits of a register, all of them or some."""

    register: int
    low: int
    bits: int


# Or address and size of a word of memory.
Place = Lane | tuple[int, int]


class _Irregular(Exception):
    """The loop is not one that can be skipped."""


class _Turn(NamedTuple):
    path: tuple[tuple[Instruction, Transfer], ...]
    head: int
    """The number of instructions before the lowest address of those where fewest calls are pending."""


class _TurnDomain(SymbolicDomain):
    """Terms over some places of the machine's state; the rest has the values it has. The machine is not changed."""

    def __init__(self, machine: Machine, choose: Callable[[Term], bool]) -> None:
        self._machine = machine
        self.registers = {}
        self.bytes: dict[int, Term] = {}
        self.words: set[tuple[int, int]] = set()
        self.guards: list[Term] = []
        self._choose = choose

    def read_register(self, cell: Cell) -> Term:
        value = self.registers.get(cell.number)
        return t.const(self._machine.registers.get(cell.number, 0), cell.bits) if value is None else value

    def load(self, address: Term, size: int) -> Term:
        if address.op != "const":
            raise _Irregular
        return self.word(int(address.data), size)

    def word(self, address: int, size: int) -> Term:
        known = t.const(self._machine.memory.load(address, size), 8 * size)
        if all(address + i not in self.bytes for i in range(size)):
            return known
        value: Term | None = None
        for i in range(size):
            # Most significant first.
            at = i if self._machine.decoder.row.big_endian else size - 1 - i
            low = 8 * (size - 1 - i)
            byte = self.bytes.get(address + at, t.extract(known, low + 7, low))
            value = byte if value is None else t.concat(value, byte)
        assert value is not None
        return value

    def set_word(self, address: int, value: Term, size: int) -> None:
        for i in range(size):
            low = 8 * (size - 1 - i if self._machine.decoder.row.big_endian else i)
            self.bytes[address + i] = t.extract(value, low + 7, low)

    def store(self, address: Term, value: Term, size: int) -> None:
        if address.op != "const":
            raise _Irregular
        where = int(address.data)
        region = self._machine.memory.region_of(where)
        if region is None or not region.permissions & WRITE or where + size > region.end:
            raise _Irregular
        self.words.add((where, size))
        self.set_word(where, value, size)

    def decide(self, condition: Term) -> bool:
        holds = truth(condition)
        if holds.op == "const":
            return holds is t.TRUE
        taken = self._choose(holds)
        self.guards.append(holds if taken else t.bnot(holds))
        return taken

    def fresh(self, bits: int, origin: FreshOrigin, usual: Term) -> Term:
        if origin is FreshOrigin.INPUT:
            raise _Irregular
        return usual


class _Effect(NamedTuple):
    """What a turn makes of the places that change, and under which conditions."""

    variables: dict[Place, Term]
    after: dict[Place, Term]
    start: dict[Term, int]
    stride: dict[Term, int]
    growth: dict[Term, Differences]
    guards: list[Term]

    def unclear(self) -> set[Term]:
        """The variables that are read but do not grow by a constant, or for results by a polynomial."""
        results = [self.after[place] for place, variable in self.variables.items() if variable not in self.growth]
        return {*t.free_variables(self.guards)} - self.stride.keys() | {*t.free_variables(results)} - self.growth.keys()


class Accelerator:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._interpreter: Interpreter[Term] = Interpreter(machine.decoder)
        self._wait = self._waited = 0

    def skip(self, max_steps: int) -> int:
        """Takes as many turns of the loop that the run is in as it can; how many instructions these are.

        To be asked now and then: where it does not help it does nothing, more and more often.
        """
        self._waited += 1
        if self._waited <= self._wait:
            return 0
        self._waited = 0
        steps = 0
        try:
            steps = self._go_to_head(max_steps)
            skipped = self._skip(max_steps - steps)
        except (_Irregular, Fault, Unsupported, RecursionError):
            skipped = 0
        self._wait = 0 if skipped else 2 * self._wait + 1
        return steps + skipped

    def _go_to_head(self, max_steps: int) -> int:
        """Runs to where the loop has fewest calls pending, and where flags are hardly in use."""
        ahead = self._turn(self._domain({})).head
        if ahead > max_steps:
            raise _Irregular
        return self._machine.run(ahead).steps if ahead else 0

    def _skip(self, max_steps: int) -> int:
        twice = self._domain({})
        turn = self._turn(twice)
        if turn.head:
            raise _Irregular
        after_one = _TurnState(twice)
        if self._turn(twice).path != turn.path:
            raise _Irregular
        after_two = _TurnState(twice)
        _require_apart(twice.words)
        self._require_code_unwritten(turn, twice)
        lanes = {number: self._machine.decoder.layout.cells[number].bits for number in sorted(twice.registers)}
        while True:
            places: list[Place] = [
                *(Lane(number, low, bits) for number, bits in lanes.items() for low in self._lows(number, bits)),
                *sorted(twice.words),
            ]
            changing = [
                place
                for place in places
                if not self._now(place) == after_one.value(place, twice) == after_two.value(place, twice)
            ]
            effect = self._effect(turn, places, changing)
            unclear = effect.unclear()
            if not unclear:
                break
            wide = {lane.register for lane, v in effect.variables.items() if v in unclear and isinstance(lane, Lane)}
            cut = {number: bits for number in wide if (bits := self._narrower(number, lanes[number])) is not None}
            if not cut:
                raise _Irregular
            lanes.update(cut)
        turns = _turns(effect.guards, effect.start, effect.stride, max_steps // len(turn.path))
        if turns < FEWEST_TURNS:
            return 0
        last = Evaluator(lambda v: value_at(effect.growth[v], turns - 1, v.width), lambda memory, address: 0)
        for place in effect.variables:
            self._write(place, last.value(effect.after[place]))
        return turns * len(turn.path)

    def _effect(self, turn: _Turn, places: Sequence[Place], changing: list[Place]) -> _Effect:
        while True:
            variables = {place: t.var(f"turn!{place}", _width(place)) for place in changing}
            start = {variable: self._now(place) for place, variable in variables.items()}
            domain = self._symbolic(variables, start)
            if self._turn(domain).path != turn.path:
                raise _Irregular
            state = _TurnState(domain)
            after = {place: state.term(place, domain) for place in places}
            constants = {place: t.const(self._now(place), _width(place)) for place in places}
            # What only seemed to keep its value (a flag, say) is a variable, too.
            more = [place for place in places if place not in variables and after[place] is not constants[place]]
            if not more:
                break
            changing = [*changing, *more]
        stride, settled = _strides(variables, after, start)
        growing = {variables[place]: t.sub(after[place], variables[place]) for place in changing}
        growth = growths(start, stride, {v: by for v, by in growing.items() if v not in stride})
        return _Effect(variables, after, start, stride, growth, [*domain.guards, *settled])

    def _symbolic(self, variables: Mapping[Place, Term], start: Mapping[Term, int]) -> _TurnDomain:
        """The state of the machine with variables at some places."""
        domain = self._domain(start)
        parts: dict[int, dict[int, Term]] = {}
        for place, variable in variables.items():
            if isinstance(place, Lane):
                parts.setdefault(place.register, {})[place.low] = variable
            else:
                domain.set_word(place[0], variable, place[1])
        for number, variable_at in parts.items():
            bits = next(iter(variable_at.values())).width
            value: Term | None = None
            for low in self._lows(number, bits):
                lane = Lane(number, low, bits)
                part = variable_at.get(low) or t.const(self._now(lane), bits)
                value = part if value is None else t.concat(part, value)
            assert value is not None
            domain.registers[number] = value
        return domain

    def _narrower(self, number: int, bits: int) -> int | None:
        whole = self._machine.decoder.layout.cells[number].bits
        return next((lane for lane in LANES if lane < bits and whole % lane == 0), None)

    def _lows(self, number: int, bits: int) -> range:
        """Where the parts of a register begin, the least significant first."""
        return range(0, self._machine.decoder.layout.cells[number].bits, bits)

    def _domain(self, start: Mapping[Term, int]) -> _TurnDomain:
        evaluator = Evaluator(lambda variable: start[variable], lambda memory, address: 0)
        return _TurnDomain(self._machine, lambda condition: bool(evaluator.value(condition)))

    def _turn(self, domain: _TurnDomain) -> _Turn:
        """Executes from the machine's program counter until it is there again."""
        machine, row = self._machine, self._machine.decoder.row
        stops = machine.halts | machine.targets
        pc = machine.pc
        path: list[tuple[Instruction, Transfer]] = []
        pending: list[int] = []
        depth = 0
        places: list[tuple[int, int, int]] = []
        while not path or pc != machine.pc:
            if len(path) >= LONGEST_TURN or pc in machine.hooks or row.code_address(pc) in stops:
                raise _Irregular
            instruction = machine.fetch(pc)
            step = self._interpreter.execute(instruction, domain)
            target = step.target
            if not isinstance(target, Term) or target.op != "const":
                raise _Irregular
            places.append((depth, pc, len(path)))
            path.append((instruction, step.transfer))
            pc = int(target.data)
            if step.transfer is Transfer.CALL:
                depth += 1
                pending.append((instruction.pc + instruction.size) & row.address_mask)
            elif step.transfer is Transfer.RETURN:
                depth -= 1
                if pending and pending.pop() != pc:
                    raise _Irregular
        if depth != 0:
            raise _Irregular
        return _Turn(tuple(path), min(places)[2])

    def _require_code_unwritten(self, turn: _Turn, domain: _TurnDomain) -> None:
        address = self._machine.decoder.row.code_address
        for instruction, _ in turn.path:
            start = address(instruction.pc)
            if any(start < where + size and where < start + instruction.size for where, size in domain.words):
                raise _Irregular

    def _now(self, place: Place) -> int:
        if isinstance(place, Lane):
            return self._machine.registers.get(place.register, 0) >> place.low & (1 << place.bits) - 1
        return self._machine.memory.load(*place)

    def _write(self, place: Place, value: int) -> None:
        if isinstance(place, Lane):
            mask = (1 << place.bits) - 1 << place.low
            whole = self._machine.registers.get(place.register, 0)
            self._machine.registers[place.register] = whole & ~mask | value << place.low
        else:
            self._machine.memory.store(place[0], value, place[1])


class _TurnState:
    """What a domain says at some time."""

    def __init__(self, domain: _TurnDomain) -> None:
        self._registers = dict(domain.registers)
        self._bytes = dict(domain.bytes)

    def term(self, place: Place, domain: _TurnDomain) -> Term:
        if isinstance(place, Lane):
            return t.extract(self._registers[place.register], place.low + place.bits - 1, place.low)
        now, domain.bytes = domain.bytes, self._bytes
        found = domain.word(*place)
        domain.bytes = now
        return found

    def value(self, place: Place, domain: _TurnDomain) -> int | None:
        if isinstance(place, Lane) and place.register not in self._registers:
            return None
        return int(self.term(place, domain).data)


def _width(place: Place) -> int:
    return place.bits if isinstance(place, Lane) else 8 * place[1]


def _strides(
    variables: Mapping[Place, Term], after: Mapping[Place, Term], start: Mapping[Term, int]
) -> tuple[dict[Term, int], list[Term]]:
    """By how much each variable grows that grows by a constant, and the conditions under which that is so.

    Code without branches computes with the result of a comparison, where other code would branch: as long as it stays
    what it is at this turn, the rest may be a sum.
    """
    found: dict[Term, int] = {}
    conditions: list[Term] = []
    now = Evaluator(lambda variable: start[variable], lambda memory, address: 0)
    for place, variable in variables.items():
        difference = t.sub(after[place], variable)
        compared = [] if difference.op == "const" else [p for p in t.postorder([difference]) if p.op in _COMPARISONS]
        if compared:
            values = {part: bool(now.value(part)) for part in compared}
            difference = substitute(difference, {part: t.TRUE if holds else t.FALSE for part, holds in values.items()})
            if difference.op == "const":
                conditions += [part if holds else t.bnot(part) for part, holds in values.items()]
        if difference.op == "const":
            found[variable] = int(difference.data)
    return found, conditions


def _turns(guards: list[Term], start: Mapping[Term, int], stride: Mapping[Term, int], most: int) -> int:
    """How many turns certainly take the way that the guards say, at most `most`."""

    def certain(turns: int) -> bool:
        progression = Progression(start, stride, turns - 1)
        return all(progression.holds(guard) for guard in guards)

    most = min(most, MOST_TURNS)
    if most < FEWEST_TURNS or not certain(FEWEST_TURNS):
        return 0
    low = FEWEST_TURNS
    while low < most and certain(min(2 * low, most)):
        low = min(2 * low, most)
    high = min(2 * low, most + 1)
    # So many turns are certain: `low`, but not `high`.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if certain(middle) else (low, middle)
    return low


def _require_apart(words: set[tuple[int, int]]) -> None:
    """Words that overlap in part would need to be cut."""
    ordered = sorted(words)
    for (one, size), (other, _) in pairwise(ordered):
        if other < one + size:
            raise _Irregular
