"""Memory of which it is remembered what was stored where, in whole words.

An activation of a procedure begins with any stack pointer, and all it does with its frame is at constant distances from
that. To a solver each of these accesses is a sum and an element of an array; that one of them is not another has to be
found out for every two. Here a load walks back over the stores: one at a constant distance is passed by, or is what is
loaded, as the word that it was and not as four bytes of a sum; an activation that keeps the bytes is passed by as well.
Where that is not certain it stops; what was stored before is then left to the solver, as it is in `CheckerDomain`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcveto.check.formulas import Formula, Value, all_of, plain, vector
from mcveto.check.values import CheckerDomain
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ


@dataclass(frozen=True, slots=True)
class Store:
    memory: Any
    """Behind the store: as long as it is referred to, its number is not another's."""
    before: Any
    address: Any
    value: Value
    size: int


@dataclass(frozen=True, slots=True)
class Behind:
    """Memory behind an activation that only its summary is known of."""

    memory: Any
    before: Any
    keeps: Callable[[Any], Formula]


class Stores:
    """All stores of some paths; `holds` is asked whether a formula about addresses always does."""

    def __init__(self, space: AddressSpace, holds: Callable[[Formula], bool]) -> None:
        self._end, self._big_endian, self._holds = 1 << space.address_bits, space.big_endian, holds
        self._by_memory: dict[int, Store] = {}

    def note(self, store: Store) -> None:
        self._by_memory[store.memory.get_id()] = store

    def find(self, memory: Any, address: Any, size: int, calls: Sequence[Behind]) -> tuple[Any, Store | None, int]:
        """An earlier memory in which the bytes are the same; the store that wrote all of them, if it is certain, and
        the lowest bit that they have in its value."""
        behind = {item.memory.get_id(): item for item in calls}
        while True:
            last, call = self._by_memory.get(memory.get_id()), behind.get(memory.get_id())
            if last is not None:
                distance = plain(address - last.address)
                if not isinstance(distance, int):
                    break
                if distance + size <= last.size:
                    return memory, last, 8 * (last.size - size - distance if self._big_endian else distance)
                if not last.size <= distance <= self._end - size:
                    break
                memory = last.before
            elif call is not None and self._holds(all_of([call.keeps(address + at) for at in range(size)])):
                memory = call.before
            else:
                break
        return memory, None, 0


class StoredWords(CheckerDomain):
    stores: Stores
    calls: Sequence[Behind]

    def load(self, address: Value, size: int) -> Value:
        if isinstance(address, int):
            return super().load(address, size)
        where, now = vector(address, self._space.address_bits), self.memory
        self._memory, store, low = self.stores.find(now, where, size, self.calls)
        if store is None:
            value = super().load(where, size)
        else:
            self._access(where, size, READ)
            value = store.value if size == store.size else self.extract(store.value, low, 8 * size, 8 * store.size)
        self._memory = now
        return value

    def store(self, address: Value, value: Value, size: int) -> None:
        before = self.memory
        super().store(address, value, size)
        if not isinstance(address, int):
            where = vector(address, self._space.address_bits)
            self.stores.note(Store(self.memory, before, where, value, size))
