"""Two states at the same place become one: each value is the first's if the first path was taken, else the second's.

The two paths exclude each other, because they left their last common state by different ways of a fork. So the merged
path is what both begin with, and one of the two rests; nothing is lost and nothing is added. States are merged only
where the stack pointer is the same, and where no value that differs is a pointer on both sides: a choice between
addresses would make every access through it a question.
"""

from __future__ import annotations

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import ByteOf, Cell, PathMemory, Value, united
from mcveto.engines.path import Path
from mcveto.engines.queries import Queries
from mcveto.engines.state import Joined, PathState
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.registers import RegisterLayout
from mcveto.machine.symbolic import initial_register
from mcveto.program.program import Program


def merged(first: PathState, second: PathState, queries: Queries, program: Program) -> PathState | None:
    """The state for both, or None if they are not to be merged."""
    prefix = 0
    for a, b in zip(first.path.terms, second.path.terms, strict=False):
        if a is not b:
            break
        prefix += 1
    rest_first, rest_second = first.path.terms[prefix:], second.path.terms[prefix:]
    if not rest_first or not rest_second:
        return None
    took_first = t.conj(rest_first)
    if rest_first[0] is t.bnot(rest_second[0]):
        condition = rest_first[0]
    else:
        condition = took_first
    space, layout = program.space, program.decoder.layout
    (stack_pointer,) = layout.named(program.decoder.row.stack_pointer)
    if first.registers.get(stack_pointer.cell.number) != second.registers.get(stack_pointer.cell.number):
        return None
    registers = _registers(first, second, condition, layout, space)
    if registers is None:
        return None
    memory = _memories(first.memory, second.memory, condition, space)
    if memory is None:
        return None
    path = Path(queries.table, first.path.terms[:prefix])
    either = t.disj([took_first, t.conj(rest_second)])
    if either is not t.TRUE:
        path.add(either)
    return PathState(
        first.pc,
        registers,
        memory,
        path,
        first.calls,
        first.model or second.model,
        first.log if first.log is second.log else Joined(condition, first.log, second.log),
        max(first.steps, second.steps),
        first.script,
        False,
        first.place,
        first.key,
        tuple(dict.fromkeys((*first.origins, *second.origins))),
    )


def _is_pointer(value: Value, space: AddressSpace) -> bool:
    return isinstance(value, int) and value > 0xFFF and space.region_at(value) is not None


def _choose(first: Value, second: Value, condition: Term, bits: int) -> Value:
    if first == second and type(first) is type(second):
        return first
    return as_value(t.ite(condition, as_term(first, bits), as_term(second, bits)))


def _registers(
    first: PathState, second: PathState, condition: Term, layout: RegisterLayout, space: AddressSpace
) -> dict[int, Value] | None:
    result: dict[int, Value] = {}
    for number in sorted(first.registers.keys() | second.registers.keys()):
        cell = layout.cells[number]
        a, b = (
            state.registers[number] if number in state.registers else initial_register(layout, cell)
            for state in (first, second)
        )
        if a != b and _is_pointer(a, space) and _is_pointer(b, space):
            return None
        result[number] = _choose(a, b, condition, cell.bits)
    return result


def _memories(first: PathMemory, second: PathMemory, condition: Term, space: AddressSpace) -> PathMemory | None:
    result = first.copy()
    if first.base is not second.base:
        if first.clouds or second.clouds:
            result.base = t.ite(condition, first.array(), second.array())
            result.dirty = {}
        else:
            # Without clouds the cells say everything that was ever written.
            result.base = t.memory("mem", space.address_bits)
            result.dirty = dict.fromkeys(first.cells)
    result.clouds = united([*first.clouds, *second.clouds])
    result.dirty.update(second.dirty)
    width = space.address_bits // 8
    done: set[int] = set()
    for address in sorted(first.cells.keys() | second.cells.keys()):
        a, b = first.cells.get(address), second.cells.get(address)
        if address in done or (a is not None and a == b):
            continue
        start, size = _word(address, a, b, space)
        done.update(range(start, start + size))
        x, y = first.load(start, size), second.load(start, size)
        if size == width and x != y and _is_pointer(x, space) and _is_pointer(y, space):
            return None
        result.store(start, _choose(x, y, condition, 8 * size), size)
    result.journal.clear()
    return result


def _word(address: int, a: Cell | None, b: Cell | None, space: AddressSpace) -> tuple[int, int]:
    """The word around an address that is merged as a whole: one that was stored as such, or an aligned one."""
    for cell in (a, b):
        if isinstance(cell, ByteOf):
            size = cell.word.width // 8
            return (address - (size - 1 - cell.significance if space.big_endian else cell.significance)), size
    return address & ~3, 4
