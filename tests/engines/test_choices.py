"""Flags that are one of a few constants: stores to one of several places, and joins, against single valuations."""

from __future__ import annotations

import importlib
import random
import sys
import time
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.engines.simulation.choices import is_choice, renaming
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.joined_values import JoinedValues
from mcveto.engines.simulation.meeting import Meeting
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec

from .driver_text import needs_assembler, x86_driver
from .random_programs import DATA, RandomProgram

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

X, Y, Z = (t.var(name, 32) for name in "xyz")
NUMBERS = [0, 1, 2, 3, 0xFFFF_FFEA]
REGISTERS = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI"]
CELLS = [DATA, DATA + 4, DATA + 8]
Values = dict[Term, int]


def number(value: int) -> Term:
    return t.const(value, 32)


conditions = st.builds(
    lambda compare, one, other: compare(one, other),
    st.sampled_from([t.eq, t.ult, t.ule]),
    st.sampled_from([X, Y, Z]),
    st.sampled_from([X, Y, number(1), number(2)]),
)
values = st.one_of(
    st.sampled_from([X, Y, Z, *map(number, NUMBERS)]),
    st.builds(t.ite, conditions, st.sampled_from([*map(number, NUMBERS)]), st.sampled_from([*map(number, NUMBERS)])),
    st.builds(lambda condition: t.zext(condition, 32), conditions),
    st.builds(lambda x, n: t.add(x, number(n)), st.sampled_from([X, Y]), st.sampled_from([1, DATA])),
    st.builds(
        lambda first, second, x: t.zext(t.concat(t.concat(first, second), t.extract(x, 3, 0)), 32),
        conditions,
        conditions,
        st.sampled_from([X, Y, Z]),
    ),
)


def evaluated(assigned: Values, term: Term) -> int:
    return Evaluator(assigned.__getitem__, lambda *_: 0).value(term)


def valuations() -> list[Values]:
    draw = random.Random(1)
    return [{v: draw.choice(NUMBERS) for v in (X, Y, Z)} for _ in range(40)]


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    simulation = Simulation(program, Blocks(program), time.monotonic() + 1e6, None)
    simulation.record_nothing()
    simulation._apart.guards.deciding.update(CELLS[:2])
    # As if joins had made them.
    simulation._unknowns.origins.update(dict.fromkeys((Y, Z), ("register", 0, 0)))
    return simulation


def registers(simulation: Simulation) -> list[int]:
    layout = simulation._program.decoder.layout
    return [layout.named(name)[0].cell.number for name in REGISTERS]


def plain(term: Term) -> Term | int:
    return term.data if term.op == "const" else term


def state(simulation: Simulation, held: list[Term], cells: list[Term], said: list[Term]) -> PathState:
    made = simulation._executor.initial()
    for register, value in zip(registers(simulation), held, strict=True):
        made.registers[register] = plain(value)
    for cell, value in zip(CELLS, cells, strict=True):
        made.memory.store(cell, plain(value), 4)
    for term in said:
        if term.op != "const":
            made.path.add(term)
    return made


def content(of: PathState, simulation: Simulation) -> list[Term]:
    found = [of.registers[register] for register in registers(simulation)]
    found += [of.memory.load(cell, 4) for cell in CELLS]
    return [number(value) if isinstance(value, int) else value for value in found]


states = st.tuples(
    st.lists(values, min_size=len(REGISTERS), max_size=len(REGISTERS)),
    st.lists(values, min_size=len(CELLS), max_size=len(CELLS)),
    st.lists(st.one_of(conditions, st.builds(t.bnot, conditions)), max_size=3),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    first=states,
    second=states,
    is_loop=st.booleans(),
    gate=st.one_of(st.none(), conditions),
    needs_both=st.booleans(),
)
def test_what_a_join_says_holds_in_both(
    simulation: Simulation, first: Any, second: Any, is_loop: bool, gate: Term | None, needs_both: bool
) -> None:
    """For every valuation of one of the two, with what the new variables stand for there."""
    joins = simulation._joins
    sides = [state(simulation, *first), state(simulation, *second)]
    if gate is not None and gate.op != "const":
        sides[0].path.add(gate)
        sides[1].path.add(t.bnot(gate))
    before = [content(side, simulation) for side in sides]
    paths = [list(side.path.terms) for side in sides]
    meeting = Meeting(joins._setting, sides[0], sides[1], is_loop)
    found = joins.of_both(meeting) if needs_both else joins.of(meeting)
    if found is None:
        return
    joined = found
    after = content(joined, simulation)
    named = [*((new, a, b) for (_, a, b), new in meeting.pairs.items()), *meeting.indices]
    for side in (0, 1):
        for assigned in valuations():
            if not all(evaluated(assigned, term) for term in paths[side]):
                continue
            now = dict(assigned)
            for new, *old in named:
                value = old[side]
                now[new] = value if isinstance(value, int) else evaluated(assigned, value)
            assert [evaluated(now, term) for term in after] == [evaluated(assigned, term) for term in before[side]]
            # The earlier turn of a loop has been followed: bounds that are guessed need to hold of the later one.
            if side or needs_both or not is_loop:
                assert all(evaluated(now, term) for term in joined.path.terms)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(old=states, said=st.lists(conditions, max_size=2), swapped=st.booleans(), wrapped=st.none() | conditions)
def test_what_covers_a_state_has_all_its_instances(
    simulation: Simulation, old: Any, said: list[Term], swapped: bool, wrapped: Term | None
) -> None:
    """The later state is the earlier one under other names, or a choice between that and something else."""
    names = {X: Y, Y: X} if swapped else {X: t.add(Y, number(1))}
    rename = Substitution(names).apply

    def later(value: Term) -> Term:
        return rename(value) if wrapped is None else t.ite(wrapped, rename(value), t.ite(wrapped, X, rename(value)))

    earlier = state(simulation, *old)
    held, cells, conditions_of_old = old
    said_later = [*map(rename, conditions_of_old), *said, *([] if wrapped is None else [wrapped])]
    new = state(simulation, [*map(later, held)], [*map(later, cells)], said_later)
    found = simulation._covering.covers(earlier, new)
    if found is None:
        return
    for assigned in valuations():
        if not all(evaluated(assigned, term) for term in new.path.terms):
            continue
        instance = {**assigned, **{name: evaluated(assigned, value) for name, value in found.items()}}
        ends = zip(content(earlier, simulation), content(new, simulation), strict=True)
        assert all(evaluated(instance, mine) == evaluated(assigned, other) for mine, other in ends)
        assert all(evaluated(instance, term) for term in earlier.path.terms)


def test_a_choice_that_the_path_decides_is_covered(simulation: Simulation) -> None:
    """Also one that is part of a row of conditions."""
    condition = t.eq(X, number(1))
    row = t.zext(t.concat(t.eq(Y, number(2)), t.extract(Z, 3, 0)), 32)
    other = t.zext(t.concat(t.extract(Z, 4, 4), t.const(5, 4)), 32)
    earlier = state(simulation, [row] * len(REGISTERS), [row] * len(CELLS), [condition])
    later = t.ite(condition, row, other)
    for said, is_covered in ((condition, True), (t.bnot(condition), False)):
        new = state(simulation, [later] * len(REGISTERS), [later] * len(CELLS), [said])
        assert (simulation._covering.covers(earlier, new) is not None) == is_covered


@pytest.mark.parametrize("is_taken", [True, False])
def test_one_side_of_a_choice_is_covered_where_the_path_decides_it(simulation: Simulation, is_taken: bool) -> None:
    condition = t.eq(X, number(1))
    taken = t.add(Y, number(1))
    choice = t.ite(condition, taken, number(5))
    earlier = state(simulation, [X, Y, *[choice] * (len(REGISTERS) - 2)], [choice] * len(CELLS), [])
    said = condition if is_taken else t.bnot(condition)
    new = state(simulation, [X, Y, *[taken] * (len(REGISTERS) - 2)], [taken] * len(CELLS), [said])
    assert (simulation._covering.covers(earlier, new) is not None) == is_taken


def test_a_narrow_value_covers_what_is_as_narrow(simulation: Simulation) -> None:
    narrow, other = t.var("n", 4), t.var("m", 4)
    earlier = state(simulation, [t.zext(narrow, 32)] * len(REGISTERS), [number(0)] * len(CELLS), [])
    for held, name in ((number(5), t.const(5, 4)), (t.zext(other, 32), other), (number(0x25), None), (Z, None)):
        new = state(simulation, [held] * len(REGISTERS), [number(0)] * len(CELLS), [])
        found = simulation._covering.covers(earlier, new)
        assert (found is None) == (name is None) and (found is None or found[narrow] is name)


def test_pieces_that_are_shifted_cover_pieces(simulation: Simulation) -> None:
    """Half a word that nobody knows stands within a sum only; what it is now, and is not."""
    shift, upper, low = number(256), t.var("upper", 8), t.var("low", 8)

    def shifted(*pieces: Term) -> Term:
        return t.mul(t.zext(reduce(t.concat, pieces), 32), shift)

    earlier = state(simulation, [shifted(upper, low)] * len(REGISTERS), [number(0)] * len(CELLS), [])
    nibbles = t.var("one", 4), t.var("two", 4)
    for held, is_covered in (
        (shifted(*nibbles, low), True),
        (shifted(t.var("other", 8), low), True),
        (t.add(shifted(upper, low), number(1)), False),
        (t.mul(shifted(upper, low), number(2)), False),
    ):
        new = state(simulation, [held] * len(REGISTERS), [number(0)] * len(CELLS), [])
        found = simulation._covering.covers(earlier, new)
        assert (found is not None) == is_covered
        assert found is None or Substitution(found).apply(shifted(upper, low)) is held


@pytest.mark.parametrize("is_loop", [False, True])
def test_registers_of_flags_keep_their_width_where_states_meet(simulation: Simulation, is_loop: bool) -> None:
    sides = [state(simulation, [X] * len(REGISTERS), [X] * len(CELLS), []) for _ in range(2)]
    values = JoinedValues(Meeting(simulation._joins._setting, sides[0], sides[1], is_loop))
    flags = [t.zext(t.var(name, 4), 8) for name in "nm"]
    joined = values.value(flags[0], flags[1], 8, ("register", 0))
    assert isinstance(joined, Term) and t.extract(joined, 7, 4) is t.const(0, 4) and joined not in flags
    assert values.value(flags[0], flags[1], 8, ("register", 1)) is joined


def test_conditions_that_one_register_holds_beside_another_are_kept(simulation: Simulation) -> None:
    """The saved flags of a function: one of them decides about the lock, another one differs."""
    kept = t.eq(X, number(1))
    sides = [
        state(simulation, [t.zext(t.concat(kept, flag), 32)] * len(REGISTERS), [Y] * len(CELLS), [])
        for flag in (t.extract(Y, 1, 0), t.extract(Z, 1, 0))
    ]
    joined = simulation._joins.joined(sides[0], sides[1], is_loop=False)
    value = joined.registers[registers(simulation)[0]]
    assert isinstance(value, Term) and t.extract(value, 2, 2) is kept


@pytest.mark.parametrize("mentioned", ["not", "by itself", "by its remainder"])
def test_bounds_of_what_one_side_mentions(simulation: Simulation, mentioned: str) -> None:
    """What a flag was before is one of two numbers, also where the other way has set it."""
    remainder = simulation._executor.remainders.name(Z, 7)
    held_by_other = {"not": number(0), "by itself": Z, "by its remainder": remainder}[mentioned]
    bound = t.ult(Z, number(2))
    says = t.eq(X, number(0))
    one = state(simulation, [number(0)] * len(REGISTERS), [Z, number(0), number(0)], [says, bound])
    held = [held_by_other, *[number(0)] * (len(REGISTERS) - 1)]
    two = state(simulation, held, [number(0)] * len(CELLS), [t.bnot(says)])
    joined = simulation._joins.joined(one, two, is_loop=False)
    assert (bound in joined.path.terms) == (mentioned == "not")


@pytest.mark.parametrize(("cell", "is_bounded"), [(CELLS[0], True), (CELLS[2], False)])
def test_what_decides_stays_small_in_a_long_loop(simulation: Simulation, cell: int, is_bounded: bool) -> None:
    """Where a turn is long, bounds are guessed only of what decides about a target."""
    sides = [state(simulation, [number(0)] * len(REGISTERS), [number(0)] * len(CELLS), []) for _ in range(2)]
    sides[1].memory.store(cell, Z, 4)
    sides[1].path.add(t.ult(Z, number(2)))
    joined = simulation._joins.joined(sides[0], sides[1], is_loop=True, guesses=False)
    value = joined.memory.load(cell, 4)
    assert isinstance(value, Term)
    assert (t.ult(value, number(2)) in joined.path.terms) == is_bounded


@pytest.mark.parametrize("is_sum", [False, True])
def test_a_sum_with_what_it_was_before_has_no_bound(simulation: Simulation, is_sum: bool) -> None:
    """A byte may have been widened, and what is added in every turn will not come to rest."""
    register = registers(simulation)[0]
    sides = [state(simulation, [number(0)] * len(REGISTERS), [number(0)] * len(CELLS), []) for _ in range(2)]
    sides[0].registers[register] = Z
    sides[1].registers[register] = t.add(Z, t.zext(t.extract(X, 0, 0), 32)) if is_sum else Y
    sides[1].path.add(t.ult(Y, number(100)))
    for side in sides:
        side.path.add(t.ult(Z, number(3)))
    joined = simulation._joins.joined(sides[0], sides[1], is_loop=True)
    value = joined.registers[register]
    assert isinstance(value, Term)
    assert (t.ult(value, number(256)) in joined.path.terms) is not is_sum


@settings(max_examples=100, deadline=None, derandomize=True)
@given(held=st.lists(values, min_size=3, max_size=3), stored=values, index=st.sampled_from([X, Y, t.band(X, Y)]))
def test_a_store_to_one_of_a_few_cells(simulation: Simulation, held: list[Term], stored: Term, index: Term) -> None:
    memory = simulation._executor.initial().memory
    assert isinstance(memory, CoarseMemory)
    for cell, value in zip(CELLS, held, strict=True):
        memory.store(cell, plain(value), 4)
    address = t.add(t.mul(index, number(4)), number(DATA))
    memory.store_chosen(address, stored, CELLS, lambda *_: False)
    for assigned in valuations():
        where = evaluated(assigned, address)
        if where not in CELLS:
            continue
        for cell, value in zip(CELLS, held, strict=True):
            now = memory.load(cell, 4)
            expected = stored if cell == where else value
            assert evaluated(assigned, number(now) if isinstance(now, int) else now) == evaluated(assigned, expected)


@pytest.mark.parametrize("forgetful", [0, 1])
def test_what_one_way_has_read_before_a_place_changed_is_not_what_is_there_now(
    simulation: Simulation, forgetful: int
) -> None:
    place = CELLS[0]
    start = simulation._executor.initial()
    start.memory.forget(place, place + 4)  # type: ignore[attr-defined]
    sides = [start.fork(start.pc, dict(start.registers), start.memory.copy(), None) for _ in range(2)]
    register = registers(simulation)[0]
    kept = sides[forgetful].memory.load(place, 4)
    sides[forgetful].registers[register] = kept
    sides[forgetful].memory.forget(place, place + 4)  # type: ignore[attr-defined]
    sides[1 - forgetful].registers[register] = number(1).data
    sides[0].path.add(t.eq(X, number(0)))
    sides[1].path.add(t.ne(X, number(0)))
    joined = simulation._joins.joined(sides[0], sides[1], is_loop=False)
    assert joined.memory.load(place, 4) is not kept


def test_a_lock_that_is_given_back_is_free_whatever_its_index(simulation: Simulation) -> None:
    memory = simulation._executor.initial().memory
    assert isinstance(memory, CoarseMemory)
    for cell in CELLS:
        memory.store(cell, 0, 4)
    address = t.add(t.mul(X, number(4)), number(DATA))
    memory.store_chosen(address, number(1), CELLS, lambda *_: False)
    assert all(is_choice(memory.load(cell, 4)) and memory.load(cell, 4) != 0 for cell in CELLS)
    memory.store_chosen(address, number(0), CELLS, lambda *_: False)
    assert [memory.load(cell, 4) for cell in CELLS] == [0, 0, 0]


def test_terms_that_differ_in_their_variables() -> None:
    def flag(index: Term, other: Term) -> Term:
        # No operator whose operands are in the order in which they were made.
        return t.ite(t.eq(index, number(3)), number(7), t.ite(t.eq(other, number(2)), number(5), number(0)))

    assert renaming(flag(X, Y), flag(Z, Y)) == {X: Z}
    assert renaming(flag(X, X), flag(Z, Y)) is None
    assert renaming(flag(X, Y), flag(Y, Y)) == {X: Y}
    assert renaming(flag(X, Y), flag(Y, X)) == {X: Y, Y: X}
    assert renaming(flag(X, Y), t.add(X, number(1))) is None


def test_conditions_that_differ() -> None:
    def compared(bit: Term) -> Term:
        return t.concat(t.zext(bit, 6), t.concat(t.bnot(bit), t.var("so", 1)))

    one, other = t.extract(t.add(X, Y), 9, 9), t.extract(Z, 9, 9)
    assert renaming(compared(one), compared(other)) is None
    assert renaming(compared(one), compared(other), True) == {one: other}
    # Where one is the opposite of the other, that is the only name as well.
    assert renaming(compared(one), compared(t.bnot(other)), True) == {one: t.bnot(other)}


LOCKS = """
#include "air.h"
#define OPAQUE __attribute__((noinline, weak))
struct lock { int held; };
OPAQUE void take(struct lock *l) { if (l->held) reached(); l->held = 1; }
OPAQUE void give(struct lock *l) { if (!l->held) reached(); l->held = 0; }
"""
# Two locks of an array, in the order of their indices, given back in another.
ORDERED = """
static struct lock locks[8];
static word load[8];
OPAQUE int move(word a, word b, word n) {
  if (a >= 8 || b >= 8) return -1;
  if (a == b) return 0;
  word low = a < b ? a : b, high = a < b ? b : a;
  take(&locks[low]), take(&locks[high]);
  if (load[a] < n) {
    give(&locks[a]), give(BUG ? &locks[n & 1 ? a : b] : &locks[b]);
    return -2;
  }
  load[a] -= n, load[b] += n;
  give(&locks[high]), give(&locks[low]);
  return 0;
}
void program(void) { while (choice()) move((word)choice(), (word)choice(), (word)choice()); }
"""
# Whether the device was opened, three ways of which meet, decides about the lock.
OPENED = """
struct device;
struct operations { int (*open)(struct device *, word), (*close)(struct device *, word); };
struct device { const struct operations *operations; struct lock lock; word count; };
static int a_open(struct device *d, word f) { if (f & 2) return -1; take(&d->lock); return 0; }
static int a_close(struct device *d, word f) { if (!BUG || f != 4) give(&d->lock); return 0; }
static int b_open(struct device *d, word f) { (void)d; return f == 9 ? -22 : 0; }
static int b_close(struct device *d, word f) { d->count = f; return 0; }
static const struct operations a = {a_open, a_close}, b = {b_open, b_close};
static struct device devices[3] = {{&a, {0}, 0}, {&b, {0}, 0}, {&a, {0}, 0}};
OPAQUE int session(struct device *d, word f) {
  if (d->operations->open(d, f)) return -1;
  while (choice()) d->count += (word)choice();
  return d->operations->close(d, f);
}
void program(void) {
  for (int i = 0; i < 2; i++) {
    word k = (word)choice();
    if (k < 3) session(&devices[k], (word)choice());
  }
}
"""
# A field of one of a few structures decides twice; in between, the one behind it is written, if there is one.
CHAINED = """
struct request { word flags; unsigned short length, kind; struct request *next; byte data[8]; };
static struct lock lock;
static struct request pool[4];
OPAQUE void account(struct request *r, word n) {
  r->length += n;
  if (n & 1) r->data[n & 7] = (byte)n;
  if (BUG && n == 0x77) r->flags ^= 16;
}
OPAQUE void submit(struct request *r, word n) {
  if ((r->flags & 16) && r->kind < 9) take(&lock);
  account(r, n);
  if (r->next) account(r->next, n >> 4);
  if ((r->flags & 16) && r->kind < 9) give(&lock);
}
void program(void) {
  for (int i = 0; i < 4; i++) {
    pool[i].flags = (word)choice(), pool[i].kind = choice();
    pool[i].next = i < 3 ? &pool[i + 1] : 0;
  }
  word k = (word)choice();
  if (k < 4) submit(&pool[k], (word)choice());
  take(&lock);
}
"""

DEVICES = """
struct device { word flags; struct lock lock; byte mode, buffer[32]; word table[16], stat, error; };
static struct device devices[8];
OPAQUE int serve(struct device *d, word a, word b);
void program(void) {
  for (;;) {
    word c = (word)choice(), a = (word)choice(), b = (word)choice();
    struct device *d = &devices[(word)choice() & 7];
    if (c == 999) break;
    if (c < 2) serve(d, a, b);
  }
}
"""
# One request may keep the lock of its device; a later one for the same device shows it.
SERVED = """
int serve(struct device *d, word a, word b) {
  int locked = 0;
  switch (a & 3) {
    case 0: take(&d->lock), locked = 1; break;
    case 1: b += 3; break;
    case 2: take(&d->lock), locked = !BUG; break;
    default: return 0;
  }
  for (int i = 0; i < 5; i++) b += d->buffer[i] ^ a;
  if (b < a) d->stat++; else d->error = b;
  if (locked) give(&d->lock);
  return 1;
}
"""
# The mode is read again behind a loop.
MODES = """
int serve(struct device *d, word a, word b) {
  d->mode = (byte)(a & 3);
  if (d->mode == 2) take(&d->lock);
  for (int i = 0; i < 7; i++) a += d->buffer[i] ^ a;
  d->stat = a;
  if (BUG && b == 77) d->mode = 1;
  if (d->mode == 2) give(&d->lock);
  return 1;
}
"""
# What decides is one bit of different values on different ways, and later only a flag; a loop with an end by bits.
WANTED = """
static struct lock lock;
int serve(struct device *d, word a, word b) {
  switch (a & 7) {
    case 0: b++; break;
    case 1: b = 0; break;
    case 3: d->stat += b; break;
    case 5: b <<= 2;  // and
    case 6: b ^= 0x55; break;
  }
  int is_wanted = (b & 4) != 0;
  if (is_wanted) take(&lock);
  for (word i = 0; i < ((a ^ 0x34) & 15); i++) d->buffer[i & 31] = (byte)(b + i);
  if (BUG ? b & 4 && a != 0x4320 : is_wanted) give(&lock);
  return 1;
}
"""
# A long condition, on two ways that meet before it is asked again.
MET = """
static struct lock lock;
int serve(struct device *d, word a, word b) {
  word x, y = b + 1;
  if (5 * y < 2237) x = d->table[((353 & y) ^ 2) & 15];
  else d->table[15] = 0, x = 19 * (a >> 3);
  int is_wanted = y == x && (b & 4);
  if (is_wanted) take(&lock);
  for (word i = 0; i < (x & 15); i++) d->buffer[i] = (byte)(y + i);
  if (BUG ? y == x && (b & 12) == 4 : is_wanted) give(&lock);
  return 1;
}
"""
# Requests through a table that could be written; the lock lies where the next device would, and the first word of a
# device is written.
DISPATCHED = """
struct device { word status, mode, registers[8]; };
static struct { struct device devices[4]; struct lock lock; } all;
static int control(struct device *d, word a, word b) {
  if (a & 4) take(&all.lock);
  d->status = b;
  if (BUG ? a & 12 : a & 4) give(&all.lock);
  return 0;
}
static int reset(struct device *d, word a, word b) { d->mode = a & b; return 1; }
static int (*operations[])(struct device *, word, word) = {control, reset, control};
void program(void) {
  for (;;) {
    word k = (word)choice();
    if (k >= 3) break;
    operations[k](&all.devices[(word)choice() & 3], (word)choice(), (word)choice());
  }
}
"""
# A table of many, read before the rest of the request is.
TABLED = DISPATCHED.replace(
    "static int (*operations[])(struct device *, word, word) = {control, reset, control};",
    """#define RESET(n) static int reset_##n(struct device *d, word a, word b) { d->mode = a & (b + n); return n; }
RESET(0) RESET(1) RESET(2)
#define NINE reset_0, reset_1, reset_2, reset_0, reset_1, reset_2, reset_0, reset_1, reset_2
static int (*operations[])(struct device *, word, word) = {reset, NINE, NINE, NINE, control};""",
).replace("k >= 3", "k >= 29")
# A count goes on in a second loop, which something else ends.
COUNTED_ON = """
static struct lock lock;
int serve(struct device *d, word a, word b) {
  word i = 0;
  for (word j = 0; j < (a & 3); j++) {
    take(&lock);
    for (i = 0; i < 8; i++) b += d->table[i];
    while (b > 788 && i < 20) b >>= 1, i++;
    if (!BUG || i != 13) give(&lock);
  }
  d->stat = b;
  return 1;
}
"""


SHAPES = {
    "dispatched": DISPATCHED,
    "tabled": TABLED,
    "counted on": DEVICES + COUNTED_ON,
    "ordered": ORDERED,
    "opened": OPENED,
    "chained": CHAINED,
    "served": DEVICES + SERVED,
    "modes": DEVICES + MODES,
    "wanted": DEVICES + WANTED,
    "met": DEVICES + MET,
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("is_wrong", [False, True], ids=["fix", "bug"])
def test_locks_that_inputs_choose(text: str, is_wrong: bool, tmp_path: Path) -> None:
    large_driver = importlib.import_module("large_driver")
    whole = f"#define BUG {int(is_wrong)}\n{LOCKS}{text}"
    spec = large_driver.compile_driver(tmp_path, "driver", whole, "O1", {})
    verdict = simulate(load_program(None, load_spec(str(spec))), 60.0, is_recorded=False)
    assert verdict.kind == ("violated" if is_wrong else "proved")


# Two locks, each taken and given back under the same condition; the frame of all drivers has a third.
TWO = """
static struct lock first, second;
static word count;
OPAQUE void handle(struct lock *l, word bits, word bit) {
  if (bits & bit) take(l);
  if (bits > 100) count++;
  if (bits & bit) give(l);
}
void program(void) { handle(&first, (word)choice(), 4), handle(&second, (word)choice(), 8); }
"""


def test_every_lock_that_a_function_gets_is_kept_apart_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_driver = importlib.import_module("large_driver")
    spec = large_driver.compile_driver(tmp_path, "driver", f"{LOCKS}{TWO}", "O1", {})
    done_again: list[int] = []
    monkeypatch.setattr(Simulation, "_back", lambda self, serial: done_again.append(serial))
    verdict = simulate(load_program(None, load_spec(str(spec))), 120.0)
    assert verdict.kind == "proved" and verdict.statistics["refinements"] == 3 and not done_again


MIRRORED = """
	call	choice
	cmpl	$2, %eax
	jae	_start
	movl	%eax, %ebx
	call	choice
	testl	%eax, %eax
	je	.Lclose
	cmpl	$0, open(,%ebx,4)
	jne	_start
	cmpl	$0, held(,%ebx,4)
	jne	reached
	movl	$1, held(,%ebx,4)
	movl	$1, open(,%ebx,4)
	jmp	_start
.Lclose:
	cmpl	$0, open(,%ebx,4)
	je	_start
	movl	$0, open(,%ebx,4)
	cmpl	$0, held(,%ebx,4)
	je	reached
	movl	$FREE, held(,%ebx,4)
	jmp	_start
	.data
	.p2align 4
held:
	.long 0, 0
open:
	.long 0, 0
"""


@needs_assembler
@pytest.mark.parametrize(("free", "kind"), [("0", "proved"), ("1", "violated")])
def test_a_flag_of_each_device_that_says_whether_its_lock_is_held(free: str, kind: str, tmp_path: Path) -> None:
    """What a join made of flags is still one of a few numbers where one of several is written."""
    verdict = simulate(x86_driver(tmp_path, MIRRORED.replace("FREE", free)), 60.0)
    assert verdict.kind == kind
