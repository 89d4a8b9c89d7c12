"""Abstract states that meet become one, which says what both say.

A state stands for every machine state that some values of its variables make of it. Where two states differ, the joined
one has a fresh variable, the same one wherever the same two values meet, so that equal values stay equal. Of the paths
it keeps what both say, also about values that got a new name, and "one or the other" for what they decided
differently, as long as that is short (Das, Lerner, Seigle, "ESP: path-sensitive program verification in polynomial
time", PLDI 2002, keeps only what both say). Conjuncts about variables that no register and no cell mentions any longer
are dropped. All of this only ever adds states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from typing import cast

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import ByteOf, Cell, Value, united
from mcveto.engines.merge import _word
from mcveto.engines.path import KeyTable, Path
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.arrivals import joined_arrivals, settle
from mcveto.engines.simulation.choices import MOST_NODES, are_of_one_flag, is_choice, renaming, settled, taken
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.covering import Covering
from mcveto.engines.simulation.elements import common_summands, element_of, index_of, trailing_zeros
from mcveto.engines.simulation.turns import (
    Turns,
    counted,
    guesses,
    narrowed,
    renamed,
    starts,
    step_between,
    thresholds,
    wider_bounds,
)
from mcveto.engines.simulation.value_ranges import bounds_of, values_of
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE
from mcveto.program.program import Program

MOST_GATE = 64
MOST_FLAGS = 3
# Bits of a register that holds the outcome of a comparison.
FLAGS = 8
FLAG = 16
LAST_ERROR = 4095
MOST_PLACES = 512
MOST_LISTED = 1024
SLOW = 64
NARROW = (0xFF, 0xFFFF)
# Bits of what most programs count with.
WORD = 32
# Bytes that a pointer moves in one turn.
WIDEST_STEP = 1 << 20
# Conditions of a path.
LATELY = 4
LONGEST_RENAMED = 256
Pair = tuple[Value, Value]


class Joins:
    def __init__(
        self, program: Program, executor: CoarseExecutor, table: KeyTable, turns: Turns, covering: Covering
    ) -> None:
        self._program = program
        self._executor = executor
        self._layout = program.decoder.layout
        self._table = table
        (pointer,) = self._layout.named(program.decoder.row.stack_pointer)
        first = program.registers.get(pointer.cell.number)
        self._stack = None if first is None else program.space.region_at(first - 1)
        self._turns = turns
        self._covering = covering
        self._long: dict[Term, bool] = {}

    # Joining.

    def joined(
        self,
        first: PathState,
        second: PathState,
        is_loop: bool,
        guesses: bool = True,
        numbers: tuple[int, ...] = (),
    ) -> PathState:
        """`guesses`: whether bounds of all that a loop changes are guessed, not only of what counts slowly; a wrong
        guess costs a turn. `numbers`: what the loop's end compares something with."""
        self._guesses = guesses
        self._numbers = numbers
        self._pairs: dict[tuple[int, Value, Value], Term] = {}
        self._elements: dict[Pair, Term] = {}
        self._indices: list[tuple[Term, Value, Value]] = []
        self._bounds: list[Term] = []
        self._turn_of: dict[int, Term] = {}
        self._counters: dict[Term, tuple[Term, int]] = {}
        self._began: list[tuple[Term, int]] = []
        self._kept_variables: set[object] | None = None
        self._absorbed: list[tuple[Term, Value, Value]] = []
        self._made: dict[Term, int] = {}
        """New variables, and for how many words of memory they stand."""
        self._mixed: list[Term] = []
        """Words of memory that are not just a variable."""
        self._first, self._second, self._is_loop = first, second, is_loop
        settle(second)
        settle(first)
        self._gate = None if is_loop else _gate(first.path.terms, second.path.terms)
        registers: dict[int, Value] = {}
        values = {
            number: (self._covering.register(first, number), self._covering.register(second, number))
            for number in sorted(first.registers.keys() | second.registers.keys())
        }
        # Variables first: what was computed from them may then be said of what stands for them.
        for number in sorted(values, key=lambda number: not all(map(_is_variable, values[number]))):
            registers[number] = self._value(*values[number], self._layout.cells[number].bits, ("register", number))
        memory = self._memories()
        result = PathState(
            first.pc, registers, memory, Path(self._table), first.calls, second.model,
            self._executor.positions.joined(first.log, second.log), first.steps, place=second.place, key=second.key,
        )  # fmt: skip
        settle(second)  # what was read just now
        settle(first)
        if not self._executor.unknowns.is_recorded:
            self._add_conjuncts(result)
            self._note_loose(result)
            return result
        named = [*((new, a, b) for (_, a, b), new in self._pairs.items()), *self._indices]
        result.arrivals = joined_arrivals(second, ((new, b) for new, _, b in [*named, *self._absorbed]))
        if not is_loop:
            others = joined_arrivals(first, ((new, a) for new, a, _ in named))
            result.arrivals = (*others, *result.arrivals)
        self._add_conjuncts(result)
        self._forget_names(result)
        self._note_loose(result)
        return result

    def _note_loose(self, result: PathState) -> None:
        """Where hundreds of ways meet, most words are anything after the first few."""
        memory = result.memory
        assert isinstance(memory, CoarseMemory)
        if self._is_loop:
            return
        made = [name for name, uses in self._made.items() if uses == 1]
        terms = [*result.path.terms, *self._mixed, *(v for v in result.registers.values() if isinstance(v, Term))]
        memory.loose = (
            frozenset(made).union(name for name, _, _ in self._absorbed).difference(*map(self._table.of, terms))
        )

    def _forget_names(self, result: PathState) -> None:
        """What an earlier join made, and nothing holds any longer, needs no name: where hundreds of ways meet one after
        the other, each would carry the names of all joins."""
        memory = result.memory
        assert isinstance(memory, CoarseMemory)
        unknowns, definitions = self._executor.unknowns, self._executor.remainders.definitions
        said = [*result.path.terms, *(term for key, entry in memory.looked.items() for term in (key[0], entry[0]))]
        live = self._live(result).union(*(self._table.of(term) for term in said))
        divided = [definitions[key][0] for key in live if key in definitions]
        live = live.union(*(self._table.of(term) for term in divided))
        result.arrivals = tuple(
            arrival._replace(
                names={
                    name: term for name, term in arrival.names.items() if name in live or name not in unknowns.origins
                }
            )
            for arrival in result.arrivals
        )

    def _add_conjuncts(self, result: PathState) -> None:
        if self._counters and self._guesses:
            self._bound_counters()
        for term in self._conjuncts(self._live(result)):
            result.path.add(term)

    def _value(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value:
        if a is b or (type(a) is int and a == b and type(b) is int):
            return a
        a, b = taken(a, self._first.path), taken(b, self._second.path)
        decided = settled(a, self._first.path), settled(b, self._second.path)
        if isinstance(decided[0], int) and decided[0] == decided[1]:
            return decided[0]
        if not self._is_loop:
            a, b = decided
            both = agreed(a, b, self._first.path, self._second.path)
            if both is not None:
                return both
        if bits <= FLAGS or (is_choice(a) and is_choice(b)):
            alike = self._alike(a, b, bits, where)
            if alike is not None:
                return alike
        are_choices = is_choice(a) and is_choice(b)
        if not (are_choices and self._gate is not None):
            listed = self._listed(a, b, bits, where)
            if listed is not None:
                return listed
        if self._gate is not None and (
            are_choices
            or _are_flags(a, b, bits)
            or are_of_one_flag(a, b)
            or self._are_kept(a, b)
            or self._is_pointer_got(a, b, bits)
        ):
            self._origin(where)
            return as_value(t.ite(self._gate, as_term(a, bits), as_term(b, bits)))
        found = self._pairs.get((bits, a, b))
        if found is None:
            strided = self._counted(a, b, bits, where) if self._is_loop else None
            if strided is None:
                strided = self._strided(a, b, bits, where)
            if strided is not None:
                return strided
            found = self._pairs[bits, a, b] = self._fresh(bits, where)
            self._executor.masks.note(found, self._executor.masks.at_most(a, b))
            may_guess = self._guesses or (_counts(a, b) and (where[0] == "register" or self._on_stack(where[1])))
            self._enclose(found, a, b, bits, may_guess)
        return found

    def _counted(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value | None:
        """A value that grew by a constant in this turn: so many turns of it. Numbers outside the stack get variables of
        their own, because states may have to be kept apart by them."""
        if bits not in (WORD, self._program.decoder.row.address_bits):
            return None
        later = self._turns.later(a, b, bits)
        if later is not None:
            turn, now = later
            self._origin(where)
            return renamed(a, turn, self._next_turn(turn, now))
        is_number = isinstance(a, int) and not self._may_be_place(a)
        if is_number and where[0] != "register" and not self._on_stack(where[1]):
            return None
        narrow = narrowed(a, b)
        if bits > WORD and is_number and isinstance(b, int) and max(cast(int, a), b) >> WORD == 0:
            narrow = a, b, WORD
        if narrow is not None and narrow[2] == WORD:
            found = self._first_turns(narrow[0], narrow[1], WORD, where)
            return as_value(t.zext(as_term(found, WORD), bits)) if found is not None else None
        return self._first_turns(a, b, bits, where)

    def _next_turn(self, turn: Term, now: Term) -> Term:
        pair = (turn.width, turn, now)
        if pair not in self._pairs:
            unknowns = self._executor.unknowns
            self._pairs[pair] = unknowns.fresh(turn.width)
            self._turns.add(self._pairs[pair])
            unknowns.shared[self._pairs[pair]] = unknowns.shared.get(turn, [])
        return self._pairs[pair]

    def _first_turns(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value | None:
        step = step_between(a, b, bits)
        if step is None or abs(step) > WIDEST_STEP or self._is_code(a):
            return None
        turn = self._turn(bits)
        origin = self._origin(where)
        if isinstance(a, int) and isinstance(b, int) and max(a, b) < FLAG:
            self._executor.unknowns.shared[turn].append(origin)
        size = t.const(abs(step), bits)
        self._counters.setdefault(t.mul(turn, size), (size, 1))
        if step < 0:
            self._began += [(start, abs(step)) for start in starts(as_term(a, bits))]
        found = counted(a, turn, step, bits)
        if isinstance(found, Term):
            self._counters.setdefault(found, (as_term(b, bits), step))
            self._enclose(found, a, b, bits, self._guesses or _counts(a, b))
        return found

    def _is_code(self, value: Value) -> bool:
        """Whether a number is the address of code: what a call left behind, and no count."""
        region = self._program.space.region_at(value) if isinstance(value, int) else None
        return region is not None and bool(region.permissions & EXECUTE)

    def _turn(self, bits: int) -> Term:
        """The number of the turn, in so many bits."""
        found = self._turn_of.get(bits)
        if found is None:
            found = self._turn_of[bits] = self._executor.unknowns.fresh(bits)
            self._turns.add(found)
            self._indices.append((found, 0, 1))
            self._counters[found] = t.const(1, bits), 1
            self._executor.unknowns.shared[found] = []
        return found

    def _bound_counters(self) -> None:
        known = {*self._first.path.terms}
        recent = [term for term in reversed(self._second.path.terms) if term not in known]
        counters = [(new, *now) for new, now in self._counters.items()]
        said = [guess for bits in self._turn_of for guess in guesses(counters, recent, bits)]
        self._bounds += thresholds(counters, self._numbers)
        for turn in self._turn_of.values():
            for start, step in self._began:
                if start.width <= turn.width:
                    size, wide = t.const(step, turn.width), t.zext(start, turn.width)
                    said.append((t.ult(t.mul(turn, size), wide), t.ult(size, wide)))
        self._bounds += [guess for guess, told in dict(said).items() if self._covering.implied(self._second, told)]
        if len(self._turn_of) > 1:
            narrow, wide = sorted(self._turn_of.values(), key=lambda turn: turn.width)
            self._bounds.append(t.eq(wide, t.zext(narrow, wide.width)))

    def _alike(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value | None:
        """Two choices by the same conditions on other variables (the lock of this index, the lock of that one): the
        same conditions on what stands for both, which registers may hold, too. Or the flags of two comparisons, of
        which the paths tell how they came out."""
        if isinstance(a, int) or isinstance(b, int) or a.op == "var" or b.op == "var" or a.op != b.op:
            return None
        has_bits = bits <= FLAGS and not self._is_loop
        partners = renaming(a, b, has_bits) if len(t.postorder([a])) <= MOST_GATE else None
        if partners is None:
            return None
        pairs = [(mine.width, mine, other) for mine, other in partners.items()]
        known = [pair in self._pairs for pair in pairs]
        # In a loop, what nothing else holds would not be recognised in the next turn; and a condition that tells the
        # two states apart says more than a new name.
        if not all(known) and (self._is_loop or (self._gate is not None and _are_flags(a, b, bits))):
            return None
        if bits > FLAGS and not any(known):
            return None
        names: dict[Term, Term] = {}
        for pair in pairs:
            if pair not in self._pairs:
                self._pairs[pair] = self._fresh(pair[0], where)
            names[pair[1]] = self._pairs[pair]
        return as_value(Substitution(names).apply(a))

    def _are_kept(self, a: Value, b: Value) -> bool:
        """Two variables that both states hold elsewhere as well: which of them it is may matter, as with the lesser
        and the greater of two indices."""
        if isinstance(a, int) or isinstance(b, int) or a.op != "var" or b.op != "var":
            return False
        if self._kept_variables is None:
            kept: set[object] = {v for n, v in self._first.registers.items() if self._second.registers.get(n) is v}
            mine, others = self._first.memory.cells, self._second.memory.cells
            kept.update(cell.word for at, cell in mine.items() if isinstance(cell, ByteOf) and others.get(at) == cell)
            self._kept_variables = kept
        return a in self._kept_variables and b in self._kept_variables

    def _on_stack(self, address: object) -> bool:
        assert isinstance(address, int)
        return self._stack is not None and self._stack.start <= address < self._stack.end

    def _strided(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value | None:
        """Two of a few places at equal distances, start + distance * index: so is what stands for both."""
        if bits != self._program.decoder.row.address_bits:
            return None
        element = element_of(a) or element_of(b)
        if element is not None:
            first, second = index_of(a, *element, bits), index_of(b, *element, bits)
            if first is not None and second is not None:
                index = as_term(self._value(first, second, bits, where), bits)
                return as_value(t.add(t.mul(index, t.const(element[0], bits)), t.const(element[1], bits)))
        if self._is_loop:
            return None
        within = self._within_element(a, b, bits, where)
        if within is not None:
            return within
        if not (self._may_be_place(a) and self._may_be_place(b)):
            return None
        known = self._elements.get((a, b))
        if known is not None:
            return known
        places = [self._places(a, self._first.path), self._places(b, self._second.path)]
        if not places[0] or not places[1]:
            return None
        together = sorted({*places[0], *places[1]})
        distance = gcd(*(place - together[0] for place in together))
        count = (together[-1] - together[0]) // max(distance, 1)
        if distance < 2 or count > MOST_PLACES:
            if len(together) <= MOST_LISTED:
                found = self._pairs[bits, a, b] = self._fresh(bits, where)
                self._bounds.append(t.disj([t.eq(found, t.const(place, bits)) for place in together]))
                return found
            return None
        index = self._fresh(bits, where)
        start, step = t.const(together[0], bits), t.const(distance, bits)
        first, second = (as_value(t.udiv(t.sub(as_term(value, bits), start), step)) for value in (a, b))
        self._indices.append((index, first, second))
        self._bounds.append(t.ule(index, t.const(count, bits)))
        new = self._elements[a, b] = t.add(t.mul(index, t.const(distance, bits)), t.const(together[0], bits))
        return new

    def _within_element(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value | None:
        """Two places of the same element of an array that is not certain: that element, and what stands for both."""
        found = common_summands(a, b, bits)
        if found is None:
            return None
        common, *rests = found
        paths = (self._first.path, self._second.path)
        if any(bounds_of(rest, path)[1] > NARROW[-1] for rest, path in zip(rests, paths, strict=True)):
            return None
        zeros = trailing_zeros(*rests)
        first, second = (as_value(t.lshr(rest, t.const(zeros, bits))) for rest in rests)
        index = as_term(self._value(first, second, bits, where), bits)
        return as_value(t.add(common, t.shl(index, t.const(zeros, bits))))

    def _is_pointer_got(self, a: Value, b: Value, bits: int) -> bool:
        """Whether only one of two ways gets a pointer, and the other leaves its place as it was: the result of the call
        will tell which."""
        pointers, first, second = self._executor.pointers, self._first.path, self._second.path
        if bits != self._program.decoder.row.address_bits or not (_is_variable(a) or _is_variable(b)):
            return False
        return any(pointers.is_short(value, path) for value, path in ((a, first), (b, second)) if value != 0)

    def _listed(self, a: Value, b: Value, bits: int, where: tuple[object, ...]) -> Value | None:
        """Null or one of a few addresses."""
        pointers = self._executor.pointers
        if bits != self._program.decoder.row.address_bits or not pointers.may_meet(a, b):
            return None
        known = self._pairs.get((bits, a, b))
        if known is not None:
            return known
        values = pointers.together(a, b, (self._first.path, self._second.path), self._is_loop)
        if values is None:
            return None
        found = self._pairs[bits, a, b] = self._fresh(bits, where)
        self._bounds.append(pointers.listing(found, values))
        return found

    def _may_be_place(self, value: Value) -> bool:
        """Whether it is worth looking at what a value can be."""
        if isinstance(value, int):
            return value > 0xFFF and self._program.space.region_at(value) is not None
        return value.op in ("var", "ite", "zext") or (value.op == "lin" and len(value.args) <= 2)

    def _places(self, value: Value, path: Path) -> list[int]:
        """The few addresses within one region that a value can be."""
        places = [value] if isinstance(value, int) else values_of(value, path, MOST_LISTED)
        region = self._program.space.region_at(places[0]) if places else None
        return places if region is not None and places[-1] < region.end else []

    def _fresh(self, bits: int, where: tuple[object, ...]) -> Term:
        origin = self._origin(where)
        found = self._executor.unknowns.fresh(bits)
        self._made[found] = 0
        self._executor.unknowns.origins[found] = origin
        return found

    def _origin(self, where: tuple[object, ...]) -> tuple[object, ...]:
        place = self._second.place
        origin = (*where, place.function if place is not None else 0)
        unknowns = self._executor.unknowns
        unknowns.first.setdefault(origin, unknowns.count)
        return origin

    def _enclose(self, new: Term, a: Value, b: Value, bits: int, may_guess: bool) -> None:
        """Two addresses in one region: the variable is between them. In a loop, at least not below both,
        or no wider; if nothing may be guessed, only if it did not become wider just now."""
        if bits != self._program.decoder.row.address_bits:
            return
        low_a, high_a = (a, a) if isinstance(a, int) else bounds_of(a, self._first.path)
        low_b, high_b = (b, b) if isinstance(b, int) else bounds_of(b, self._second.path)
        low, high = min(low_a, low_b), max(high_a, high_b)
        if self._is_loop:
            if not may_guess and high_b > high_a:
                return
            if isinstance(a, int) and isinstance(b, int):
                if not may_guess:
                    return
                start = t.const(a, bits)
                self._bounds.append(t.ule(start, new) if a < b else t.ule(new, start))
                grows = t.signed(a, bits) < t.signed(b, bits)
                self._bounds.append(t.sle(start, new) if grows else t.sle(new, start))
                self._bounds += thresholds([(new, t.const(b, bits), 1 if a < b else -1)], self._numbers)
            elif high <= NARROW[-1]:
                # An index that is masked stays below the same number. What has grown, other than from a constant, is
                # masked, or at least a byte or half a word that was widened: in such steps, bounds come to rest.
                is_at_rest = high_b <= high_a or isinstance(a, int)
                masked = self._executor.masks.at_most(a, b)
                limits = NARROW if masked is None else (masked, *NARROW)
                limit = high if is_at_rest else min(limit for limit in limits if high <= limit)
                self._bounds.append(t.ule(new, t.const(limit, bits)))
            return
        if low > 0xFFF:
            region = self._program.space.region_at(low)
            if region is None or high >= region.end:
                return
        elif high - low > 0xFFFF:
            return
        elif not low:
            sides = ((a, low_a, self._first), (b, low_b, self._second))
            low = int(all(least or self._is_positive(value, state) for value, least, state in sides))
        self._bounds.append(t.ule(new, t.const(high, bits)))
        if low:
            self._bounds.append(t.ule(t.const(low, bits), new))

    def _is_positive(self, value: Value, state: PathState) -> bool:
        """Whether a branch that was taken lately says that a value is not 0."""
        if isinstance(value, int):
            return value > 0
        keys = self._table.of(value)
        if all(self._table.of(term).isdisjoint(keys) for term in state.path.terms[-LATELY:]):
            return False
        return self._covering.implied(state, t.bnot(t.eq(value, t.const(0, value.width))))

    def _memories(self) -> CoarseMemory:
        first, second = self._first.memory, self._second.memory
        assert isinstance(first, CoarseMemory) and isinstance(second, CoarseMemory)
        result = second.copy()
        result.clouds = united([*first.clouds, *second.clouds])
        result.looked = {key: value for key, value in second.looked.items() if first.looked.get(key) == value}
        mine, others = first.cells, second.cells
        different = [where for where, cell in others.items() if mine.get(where) != cell]
        different += [where for where in mine if where not in others]
        done: set[int] = set()
        space = self._program.space
        loose = frozenset() if self._is_loop else first.loose
        for where in sorted(different):
            if where in done:
                continue
            held = mine.get(where)
            if loose and isinstance(held, ByteOf) and held.word in loose:
                absorbed = self._absorb(held, where)
                if absorbed:
                    done.update(absorbed)
                    result.cells.update((at, mine[at]) for at in absorbed)
                    continue
            start, size = _extent(where, mine, others, space)
            done.update(range(start, start + size))
            a, b = first.load(start, size), second.load(start, size)
            value = self._value(a, b, 8 * size, ("memory", start, size))
            if isinstance(value, Term) and value in self._made:
                self._made[value] += 1
            elif isinstance(value, Term):
                self._mixed.append(value)
            for i in range(size):
                index = size - 1 - i if space.big_endian else i
                result.cells[(start + i) & space.mask] = (
                    value >> 8 * index & 0xFF if isinstance(value, int) else ByteOf(value, index)
                )
        return result

    def _absorb(self, held: ByteOf, where: int) -> range:
        """Where the word is of a variable that stands for anything: what the other state has there is part of it."""
        size = held.word.width // 8
        is_big_endian = self._program.space.big_endian
        start = where - (size - 1 - held.significance if is_big_endian else held.significance)
        cells = self._first.memory.cells
        for i in range(size):
            if cells.get(start + i) != ByteOf(held.word, size - 1 - i if is_big_endian else i):
                return range(0)
        other = self._second.memory.load(start, size) if self._executor.unknowns.is_recorded else 0
        self._absorbed.append((held.word, held.word, other))
        return range(start, start + size)

    def _live(self, state: PathState) -> frozenset[object]:
        table = self._table
        keys: set[object] = set()
        for value in state.registers.values():
            if isinstance(value, Term):
                keys |= table.of(value)
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        for word in memory.words():
            keys |= table.of(word)
        return frozenset(keys)

    def _is_live(self, term: Term, live: frozenset[object]) -> bool:
        return self._table.of(term) <= live

    def _kept(self, term: Term, live: frozenset[object]) -> list[Term]:
        """A conjunct, or what is left of its alternatives when dead variables are left out."""
        if self._is_live(term, live):
            return [term]
        if term.op != "or" or term.width != 1:
            return []
        either: list[Term] = []
        for way in term.args:
            parts = [part for part in (way.args if way.op == "and" else (way,)) if self._is_live(part, live)]
            if not parts:
                return []
            either.append(t.conj(parts))
        return [t.disj(either)]

    def _conjuncts(self, live: frozenset[object]) -> list[Term]:
        first = _decided(self._first.path.terms, live)
        second = _decided(self._second.path.terms, live)
        names_first = _named((a, new) for (_, a, _), new in self._pairs.items())
        names_second = _named((b, new) for (_, _, b), new in self._pairs.items())
        common = dict.fromkeys(second)
        shared = [term for term in first if term in common]
        result = [kept for term in shared for kept in self._kept(term, live)]
        rest_first = [term for term in first if term not in common]
        known = set(shared)
        rest_second = [term for term in second if term not in known]
        if names_first and names_second:
            renamed = {*self._renamed(second, names_second)}
            result += [new for new in self._renamed(first, names_first) if new in renamed and self._is_live(new, live)]
        if self._is_loop:
            result += self._kept_bounds(first, live)
        else:
            result += self._alternatives(rest_first, rest_second, live)
        self._executor.unknowns.bounds.update(self._bounds)
        return list(dict.fromkeys([*result, *self._bounds]))

    def _renamed(self, terms: list[Term], names: dict[Term, Term]) -> list[Term]:
        """The terms under new names; most speak of nothing that has one, and some of those are long. Long ones about
        what only registers hold (where hundreds of handlers are, when one of them has returned) are left out."""
        table = self._table
        keys = {key for value in names for key in table.of(value)}
        lost = {value for value, new in names.items() if not self._made.get(new, 1)}
        apply = Substitution(names).apply
        result = []
        for term in terms:
            said = table.of(term)
            if said.isdisjoint(keys):
                result.append(term)
            elif not (said <= lost and self._is_long(term)):
                result.append(apply(term))
        return result

    def _is_long(self, term: Term) -> bool:
        found = self._long.get(term)
        if found is None:
            found = self._long[term] = len(t.postorder([term])) > LONGEST_RENAMED
        return found

    def _kept_bounds(self, told_before: list[Term], live: frozenset[object]) -> list[Term]:
        """What the earlier state said about a variable that got a new name, if it holds of the later one's value."""
        result = []
        values = {a: (as_term(b, bits), new) for (bits, a, b), new in self._pairs.items() if isinstance(a, Term)}
        for term in told_before:
            changed = [key for key in self._table.of(term) if key in values]
            # What a cell held in an earlier turn may be what a counter began with: it is still the same.
            turns = [key for key in changed if key in self._turns]
            if not turns and len(changed) != 1:
                continue
            now = Substitution({key: values[key][0] for key in turns or changed})
            # A guess that was too close comes to rest at one of the numbers behind it.
            wider = wider_bounds(term, self._numbers) if self._guesses else ()
            held = next(
                (bound for bound in (term, *wider) if self._covering.implied(self._second, now.apply(bound))), None
            )
            if held is not None:
                renamed_term = Substitution({key: values[key][1] for key in turns or changed}).apply(held)
                if self._is_live(renamed_term, live):
                    result.append(renamed_term)
        return result

    def _alternatives(self, first: list[Term], second: list[Term], live: frozenset[object]) -> list[Term]:
        one = [kept for term in first for kept in self._kept(term, live)]
        two = [kept for term in second for kept in self._kept(term, live)]
        if not one and not two:
            return []
        # A side that says nothing may be anything: only what the other says is connected with its flags.
        if len(one) == 1 and two:
            two = [term for term in two if term is not t.bnot(one[0])] or [t.bnot(one[0])]
        elif len(two) == 1 and one:
            one = [term for term in one if term is not t.bnot(two[0])] or [t.bnot(two[0])]
        if len(one) > 8 or len(two) > 8:
            return []
        left, right = t.conj(one), t.conj(two)
        told = self._told(live)
        if told:
            # What was decided remains connected with the flags that remember it.
            left, right = t.conj([left, *(a for a, _ in told)]), t.conj([right, *(b for _, b in told)])
        elif left is t.bnot(right):
            return []
        either = t.disj([left, right])
        return [either] if either is not t.TRUE and len(t.postorder([either])) <= MOST_NODES else []

    def _told(self, live: frozenset[object]) -> list[tuple[Term, Term]]:
        """For the few variables that stand for a flag: which value each of the two states gave it."""
        found: list[tuple[Term, Term]] = []
        for (bits, a, b), new in self._pairs.items():
            sides = [as_term(a, bits), as_term(b, bits)]
            if any(map(_is_code, sides)) and all(_is_code(side) or self._is_flag(side, live) for side in sides):
                found.append((t.eq(new, sides[0]), t.eq(new, sides[1])))
        return found if len(found) <= MOST_FLAGS else []

    def _is_flag(self, side: Term, live: frozenset[object]) -> bool:
        """Whether a value is a variable, or a choice by conditions, of which something is still known."""
        return side in live if side.op == "var" else is_choice(side) and self._is_live(side, live)


def _gate(first: list[Term], second: list[Term]) -> Term | None:
    """A short condition that the first path says and the second denies; either may say it in parts."""
    mine, others = set(first), set(second)
    for term in reversed(first):
        if term not in others and _is_said(t.bnot(term), others) and len(t.postorder([term])) <= MOST_GATE:
            return term
    for term in reversed(second):
        if term.op == "or" and _is_said(t.bnot(term), mine) and len(t.postorder([term])) <= MOST_GATE:
            return t.bnot(term)
    return None


def _is_said(condition: Term, path: set[Term]) -> bool:
    return condition in path or (condition.op == "and" and path.issuperset(condition.args))


def _decided(terms: list[Term], live: frozenset[object]) -> list[Term]:
    """A path in which variables that will be forgotten are what it says they are: of alternatives, those are left that
    agree with the result that was tested (a call failed, or it did not)."""
    known: dict[Term, Term] = {}
    for term in terms:
        if term.op == "eq":
            value, variable = term.args if term.args[0].op == "const" else reversed(term.args)
            if value.op == "const" and variable.op == "var" and variable not in live:
                known[variable] = value
    if not known or not any(term.op == "or" for term in terms):
        return terms
    apply = Substitution(known).apply
    return [apply(term) if term.op == "or" else term for term in terms]


def _named(pairs: Iterable[tuple[Value, Term]]) -> dict[Term, Term]:
    """The new names of what paths speak of: variables, and conditions with their opposites."""
    names: dict[Term, Term] = {}
    for value, new in pairs:
        if isinstance(value, int) or value.op == "const":
            continue
        if value.op == "var" or value.width == 1:
            names[value] = new
        if value.op != "var" and value.width == 1:
            names[t.bnot(value)] = t.bnot(new)
    return names


def _are_flags(a: Value, b: Value, bits: int) -> bool:
    """Whether two values are outcomes of comparisons, and short."""
    if bits > FLAGS or _is_variable(a) or _is_variable(b):
        return False
    return len(t.postorder([value for value in (a, b) if isinstance(value, Term)])) <= MOST_GATE


def _is_variable(value: Value) -> bool:
    return isinstance(value, Term) and value.op == "var"


def _is_code(value: Term) -> bool:
    """Whether a value is a flag or, being small and negative, the number of an error."""
    return value.op == "const" and (value.data < FLAG or (1 << value.width) - value.data <= LAST_ERROR)


def _counts(a: Value, b: Value) -> bool:
    """Whether two values are close together, as those of a counter are."""
    return isinstance(a, int) and isinstance(b, int) and abs(a - b) <= SLOW


def _extent(where: int, mine: Mapping[int, Cell], others: Mapping[int, Cell], space: AddressSpace) -> tuple[int, int]:
    """The word that is joined as a whole; a byte, if both know the same of another byte of an aligned word and not
    all of it: a flag beside the beginning of a buffer."""
    a, b = mine.get(where), others.get(where)
    start, size = _word(where, a, b, space)
    if isinstance(a, ByteOf) or isinstance(b, ByteOf):
        return start, size
    sides = [(mine.get(at), others.get(at)) for at in range(start, start + size)]
    is_mixed = any(not isinstance(cell, int) for side in sides for cell in side)
    return (where, 1) if is_mixed and any(a is not None and a == b for a, b in sides) else (start, size)
