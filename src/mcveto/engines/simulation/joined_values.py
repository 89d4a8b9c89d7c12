"""What stands for two values that meet: what tells most of both, and a fresh variable where nothing else does.

In this order: the value itself, if both are the same, also if only their paths say so (`agreement`, `choices`); the
same conditions on other variables; null or one of a few addresses (`pointers`); a choice by a short condition that
tells the two states apart (`gate`), for flags and for pointers that one way has got; the variable that stands for these
two already; what stands for both cases of a condition that decides both (`in_terms_of_pairs`); a row of flags, piece by
piece; so many turns of a loop (`joined_counters`); an element of an array (`joined_places`); a fresh variable with its
bounds (`joined_bounds`).
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate, pairwise

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import ByteOf, Value
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.choices import are_of_one_flag, are_ways, is_choice, renaming, settled, taken
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.gate import MOST_GATE, gate_of
from mcveto.engines.simulation.in_terms_of_pairs import InTermsOfPairs
from mcveto.engines.simulation.joined_bounds import between_tests, counts_slowly, enclose, say_ends
from mcveto.engines.simulation.joined_counters import JoinedCounters
from mcveto.engines.simulation.joined_places import JoinedPlaces
from mcveto.engines.simulation.meeting import Meeting, Where
from mcveto.engines.simulation.turns import step_between
from mcveto.engines.simulation.value_ranges import bounds_of, values_of
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

# Bits of a register that holds the outcome of a comparison.
FLAGS = 8
# Bytes of what is counted.
WORDS = (1, 2, 4)
# Bits of what most programs count with.
WORD = 32
COMPARISONS = ("ult", "ule", "slt", "sle")
# Nodes of the choice between functions that a call through a table goes to.
MOST_CHOSEN = 1000
# Nodes of a distance that several values have moved by.
MOST_MOVED = 24
# Bytes of an object in which its successor is looked for.
LARGEST_OBJECT = 256


class JoinedValues:
    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._setting = meeting.setting
        self._first, self._second = meeting.first, meeting.second
        self._gate = None if meeting.is_loop else gate_of(meeting.first.path.terms, meeting.second.path.terms)
        self._kept_variables: set[object] | None = None
        self._places = JoinedPlaces(meeting)
        self._renamed = InTermsOfPairs(meeting)
        self.counters = JoinedCounters(meeting)
        self._split: dict[tuple[int, Value, Value], Value] = {}
        """Two choices by one condition that have met: parts of long ones meet again and again."""

    def value(self, a: Value, b: Value, bits: int, where: Where) -> Value:
        if a is b:
            return a
        found = self._value(a, b, bits, where)
        if isinstance(found, Term) and found.op == "lin" and not self._meeting.is_loop:
            say_ends(self._meeting, found, a, b, where)
        return found

    def _value(self, a: Value, b: Value, bits: int, where: Where) -> Value:
        if a is b or (type(a) is int and a == b and type(b) is int):
            return a
        meeting = self._meeting
        a, b = taken(a, self._first.path), taken(b, self._second.path)
        decided = settled(a, self._first.path), settled(b, self._second.path)
        if isinstance(decided[0], int) and decided[0] == decided[1]:
            return decided[0]
        if not meeting.is_loop:
            a, b = decided
            both = agreed(a, b, self._first.path, self._second.path)
            if both is not None:
                return both
        if bits <= FLAGS or (is_choice(a) and is_choice(b)):
            alike = self._alike(a, b, bits, where)
            if alike is not None:
                return alike
        are_choices = self._gate is not None and (
            (is_choice(a) and is_choice(b)) or self._are_chosen_functions(a, b, bits)
        )
        # A choice that moves by the same number whatever it is is a pointer that runs, and not one of a few.
        runs = meeting.is_loop and isinstance(a, Term) and a.op == "ite" and bool(step_between(a, b, bits))
        if not are_choices and not runs:
            listed = self._listed(a, b, bits, where)
            if listed is not None:
                return listed
        if self._gate is not None and (
            are_choices
            or _are_flags(a, b, bits)
            or are_of_one_flag(a, b)
            or (self._setting.is_flag(where) and are_ways(a, b))
            or self._are_kept(a, b)
            or self._is_pointer_got(a, b, bits)
        ):
            meeting.origin(where)
            return as_value(t.ite(self._gate, as_term(a, bits), as_term(b, bits)))
        if self._gate is not None and _is_clamped(self._gate, a, b):
            meeting.origin(where)
            clamped = t.ite(self._gate, as_term(a, bits), as_term(b, bits))
            if isinstance(a, int) or isinstance(b, int):
                self._places.note_most(clamped, a, b)
            return as_value(clamped)
        found = meeting.pairs.get((bits, a, b))
        split = self._renamed.split(a, b) if found is None and not meeting.is_loop else None
        if split is not None:
            known = self._split.get((bits, a, b))
            if known is None:
                sides = (self._side(*pair, bits, where) for pair in (split.if_true, split.if_false))
                terms = (as_term(side, bits) for side in sides)
                known = self._split[bits, a, b] = as_value(t.ite(split.condition, *terms))
            return known
        of_another = found
        if found is not None and self._has_turns(a, b, where):
            found = None  # a number outside the stack has moved as far, and is told by a variable of its own
        if found is None and meeting.is_loop:
            index = self._index(a, b, where)
            if index is not None:
                return index
        # A sum is no row of pieces, also where it is one but for a number: an unrolled loop begins with n's last bit.
        is_sum = isinstance(b, Term) and b.op == "lin" and meeting.is_loop
        if found is None and is_sum and step_between(a, b, bits):
            found_turns = self.counters.value(a, b, bits, where)
            if found_turns is not None:
                return found_turns
        if found is None and (bits > FLAGS or not meeting.is_loop):
            row = self._row(a, b, bits, where)
            if row is not None:
                return row
        if found is None:
            found = self._tested(a, b, bits, where)
        if found is None and meeting.is_loop and bits >= WORD:
            moved = self._moved(a, b, bits, where)
            if moved is not None:
                return moved
        if found is None:
            counts = self.counters
            strided = counts.value(a, b, bits, where) if meeting.is_loop else counts.of_ways(a, b, where)
            if strided is None:
                strided = self._places.joined(a, b, bits, where, self.value)
            if strided is not None:
                return strided
            narrow = self._narrow(a, b, bits, where)
            if narrow is not None:
                return narrow
            if of_another is not None:
                return of_another
            found = meeting.pairs[bits, a, b] = meeting.fresh(bits, where)
            if meeting.is_loop and bits >= WORD:
                meeting.moved.setdefault(t.sub(as_term(b, bits), as_term(a, bits)), (found, a, b))
            masks = self._setting.executor.masks
            masks.note(found, masks.at_most(a, b))
            may_guess = (
                meeting.guesses
                or self._setting.is_flag(where)
                or (counts_slowly(a, b) and (where[0] == "register" or self._setting.on_stack(where[1])))
            )
            most = masks.of_place(where[1], isinstance(a, int)) if where[0] == "memory" else None
            enclose(meeting, found, a, b, bits, may_guess, most)
        return found

    def _has_turns(self, a: Value, b: Value, where: Where) -> bool:
        return self._meeting.is_loop and self.counters.has_turns(a, b, where)

    def _index(self, a: Value, b: Value, where: Where) -> Value | None:
        """What is counted in a few bits, and is known bit by bit, is whatever they can hold: the index of a ring, which
        is masked whenever it has moved. Joined piece by piece it would come to rest one bit after the other."""
        if isinstance(a, int) or isinstance(b, int) or (a.op, b.op) != ("zext", "zext") or b.args[0].op != "lin":
            return None
        width = b.args[0].width
        if width <= FLAGS // 2 or bounds_of(a, self._first.path)[1] >> width:
            return None
        inner = t.extract(a, width - 1, 0), b.args[0]
        if step_between(*inner, width) is None:
            return None
        pairs = self._meeting.pairs
        found = pairs.get((width, *inner))
        if found is None:
            found = pairs[width, *inner] = self._meeting.fresh(width, where)
        return as_value(t.zext(found, b.width))

    def _tested(self, a: Value, b: Value, bits: int, where: Where) -> Term | None:
        """A variable of its own for a word of memory that counts between numbers."""
        meeting = self._meeting
        if not (meeting.is_loop and meeting.guesses) or bits < WORD:
            return None
        if where[0] != "memory" or self._setting.on_stack(where[1]):
            return None
        ends = between_tests(meeting, a, b)
        if ends is None:
            return None
        found = meeting.pairs[bits, a, b] = meeting.fresh(bits, where)
        low, high = (t.const(end, bits) for end in ends)
        meeting.bounds += [t.ule(found, high), t.ule(low, found)]
        return found

    def _moved(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        """What has moved by as much as something else in this turn, or by as much to the other side: who copies piece
        by piece adds the length of a piece to what was copied, and takes it from what is left."""
        difference = t.sub(as_term(b, bits), as_term(a, bits))
        if difference.op == "const" or not t.are_short([difference], MOST_MOVED):
            return None
        meeting = self._meeting
        known = meeting.moved.get(difference)
        if known is not None:
            new, before, _ = known
            meeting.origin(where)
            return as_value(t.add(as_term(a, bits), t.sub(new, as_term(before, bits))))
        known = meeting.moved.get(t.sub(t.const(0, bits), difference))
        if known is None:
            return None
        new, before, now = known
        meeting.origin(where)
        whole = t.add(as_term(a, bits), as_term(before, bits))
        if self._setting.covering.implied(meeting.second, t.ule(as_term(now, bits), whole)):
            meeting.bounds.append(t.ule(new, whole))
        return as_value(t.sub(whole, new))

    def _side(self, a: Value, b: Value, bits: int, where: Where) -> Value:
        """What stands for one case of two choices by the same condition."""
        if isinstance(a, int) and isinstance(b, int) and a != b:
            gate = self._renamed.gate()
            if gate is not None:
                self._meeting.origin(where)
                return as_value(t.ite(gate, t.const(a, bits), t.const(b, bits)))
        return self.value(a, b, bits, where)

    def _alike(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        """Two choices by the same conditions on other variables (the lock of this index, the lock of that one): the
        same conditions on what stands for both, which registers may hold, too. Or the flags of two comparisons, of
        which the paths tell how they came out."""
        if isinstance(a, int) or isinstance(b, int) or a.op == "var" or b.op == "var" or a.op != b.op:
            return None
        meeting = self._meeting
        has_bits = bits <= FLAGS and not meeting.is_loop
        partners = renaming(a, b, has_bits) if t.are_short([a], MOST_GATE) else None
        if partners is None:
            return None
        pairs = [(mine.width, mine, other) for mine, other in partners.items()]
        known = [pair in meeting.pairs for pair in pairs]
        # In a loop, what nothing else holds would not be recognised in the next turn; and a condition that tells the
        # two states apart says more than a new name.
        if not all(known) and (meeting.is_loop or (self._gate is not None and _are_flags(a, b, bits))):
            return None
        if bits > FLAGS and not any(known):
            return None
        names: dict[Term, Term] = {}
        for pair in pairs:
            bits, mine, other = pair
            listed = self._listed(mine, other, bits, where)
            if listed is None and pair not in meeting.pairs:
                meeting.pairs[pair] = meeting.fresh(bits, where)
            names[mine] = meeting.pairs[pair] if listed is None else as_term(listed, bits)
        return as_value(Substitution(names).apply(a))

    def _row(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        """A row of conditions of which some are the same in both states, and not only numbers: of these, nothing is
        lost. Compilers keep several conditions in one register of flags, and save all such registers in one word."""
        if isinstance(a, int) or isinstance(b, int):
            return None
        if self._setting.table.of(a).isdisjoint(self._setting.table.of(b)):
            return None
        cuts = _cuts(a) | _cuts(b) if bits > FLAGS else set(range(bits + 1))
        pieces: list[tuple[Term, Term]] = []
        is_same = True
        for low, high in pairwise(sorted(cuts)):
            mine, other = (t.extract(side, high - 1, low) for side in (a, b))
            if not (is_same or mine is other):  # what differs side by side differs as one
                mine, other = t.concat(mine, pieces[-1][0]), t.concat(other, pieces.pop()[1])
            is_same = mine is other
            pieces.append((mine, other))
        if all(mine is not other or mine.op == "const" for mine, other in pieces):
            return None
        values = [(self.value(as_value(a), as_value(b), a.width, where), a.width) for a, b in pieces]
        joined = [as_term(value, width) for value, width in values]
        return as_value(reduce(t.concat, reversed(joined)))

    def _narrow(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        """Two registers of flags of which only some bits are used: so it is with what stands for both."""
        most = self._setting.executor.masks.at_most(a, b) if bits <= FLAGS else None
        if most is None or most.bit_length() >= bits:
            return None
        used = most.bit_length()
        mine, other = (as_value(t.extract(as_term(value, bits), used - 1, 0)) for value in (a, b))
        return as_value(t.zext(as_term(self.value(mine, other, used, where), used), bits))

    def _are_kept(self, a: Value, b: Value) -> bool:
        """Two variables that both states hold elsewhere as well: which of them it is may matter, as with the lesser
        and the greater of two indices."""
        if isinstance(a, int) or isinstance(b, int) or a.op != "var" or b.op != "var":
            return False
        if self._kept_variables is None:
            kept: set[object] = {v for n, v in self._first.registers.items() if self._second.registers.get(n) is v}
            memory, other = self._first.memory, self._second.memory
            assert isinstance(memory, CoarseMemory) and isinstance(other, CoarseMemory)
            for page in memory.cells.shared(other.cells):
                kept.update(page.words())
            for one, two in memory.cells.different(other.cells):
                kept.update(cell.word for at, cell in one.items() if isinstance(cell, ByteOf) and two.get(at) == cell)
            self._kept_variables = kept
        return a in self._kept_variables and b in self._kept_variables

    def _is_pointer_got(self, a: Value, b: Value, bits: int) -> bool:
        """Whether only one of two ways gets a pointer, and the other leaves its place as it was: the result of the call
        will tell which."""
        pointers, first, second = self._setting.executor.pointers, self._first.path, self._second.path
        if bits != self._setting.address_bits or not (is_variable(a) or is_variable(b)):
            return False
        return any(pointers.is_short(value, path) for value, path in ((a, first), (b, second)) if value != 0)

    def _are_chosen_functions(self, a: Value, b: Value, bits: int) -> bool:
        """Whether each of two values is the address of one of several functions, chosen by an index: two ways to one
        call through a table. Where it goes will tell the index (`narrowing`), and then the choice is over."""
        if bits != self._setting.address_bits or isinstance(a, int) or isinstance(b, int) or {a.op, b.op} != {"ite"}:
            return False
        executor = self._setting.executor
        if not t.are_short([a, b], MOST_CHOSEN) or not all(executor.is_code(_first_way(value)) for value in (a, b)):
            return False
        return all(
            values and all(map(executor.is_code, values))
            for values in (values_of(a, self._first.path, MOST_CHOSEN), values_of(b, self._second.path, MOST_CHOSEN))
        )

    def _is_next(self, a: Value, b: Value) -> bool:
        """Whether the object at one address holds the other: in this turn, a pointer went along a list."""
        if not self._meeting.is_loop or isinstance(a, Term) or isinstance(b, Term):
            return False
        pointers, memory, step = self._setting.executor.pointers, self._first.memory, self._setting.address_bits // 8
        if not (b and pointers.are_all((a, b))):
            return False
        words = range(a, a + min(abs(a - b), LARGEST_OBJECT), step)
        return any(memory.load(at, step) == b for at in words if at in memory.cells)

    def _listed(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        """Null or one of a few addresses."""
        meeting, pointers = self._meeting, self._setting.executor.pointers
        if bits != self._setting.address_bits or not (pointers.may_meet(a, b) or self._is_next(a, b)):
            return None
        known = meeting.pairs.get((bits, a, b))
        if known is not None and not self._has_turns(a, b, where):
            return known
        paths = self._first.path, self._second.path
        values = pointers.together(a, b, paths, meeting.is_loop, self._second.memory)
        if values is None or len(values) == 1:
            return values[0] if values else None
        if known is not None:
            return known
        found = meeting.pairs[bits, a, b] = meeting.fresh(bits, where)
        meeting.bounds.append(pointers.listing(found, values))
        return found


def _is_clamped(gate: Term, a: Value, b: Value) -> bool:
    """Whether a number takes the place of a value because of how the two compare: n, but at most 32, or where so many
    bytes or words end. That n is not 0 is then known of both. Or the lesser of two values, which is less than both."""
    if isinstance(a, Term) and isinstance(b, Term):
        inner = gate.args[0] if gate.op == "not" else gate
        if inner.op not in COMPARISONS or inner.args[0].width > a.width or not t.are_short([gate], MOST_GATE):
            return False
        return {t.zext(side, a.width) for side in inner.args} == {a, b}
    value, number = (a, b) if isinstance(b, int) else (b, a)
    if (
        isinstance(value, int)
        or not isinstance(number, int)
        or value.width <= FLAGS
        or not t.are_short([gate], MOST_GATE)
    ):
        return False
    comparison = gate.args[0] if gate.op == "not" else gate
    if comparison.op not in ("ult", "slt"):
        return False
    counts = [side for side in comparison.args if side.op != "const" and side.width == value.width]
    return any(t.sub(value, t.mul(side, t.const(size, side.width))).op == "const" for side in counts for size in WORDS)


def _first_way(value: Term) -> int:
    """What a choice is if every condition holds; 0 if that is no number."""
    while value.op == "ite":
        value = value.args[1]
    return value.data if value.op == "const" else 0


def _cuts(value: Term) -> set[int]:
    """Where the pieces of a row begin, and where it ends."""
    row = value.args[0] if value.op == "zext" else value
    parts = row.args if row.op == "concat" else (row,)
    return {value.width, *accumulate((part.width for part in reversed(parts)), initial=0)}


def is_variable(value: Value) -> bool:
    return isinstance(value, Term) and value.op == "var"


def _are_flags(a: Value, b: Value, bits: int) -> bool:
    """Whether two values are outcomes of comparisons, and short."""
    if bits > FLAGS or is_variable(a) or is_variable(b):
        return False
    return t.are_short([value for value in (a, b) if isinstance(value, Term)], MOST_GATE)
