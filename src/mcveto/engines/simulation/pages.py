"""The cells of an abstract memory, in pages that states share until one of them writes.

A simulation of large code keeps thousands of states, at loops and where it may have to go back to, of memories with ten
thousand bytes that mostly agree. Copying one copies the table of its pages; a page is copied when it is first written
afterwards (copy on write). Where two memories have the very same page nothing needs to be compared, and what a page
mentions is found out once.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, MutableMapping
from typing import overload

from mcveto.engines.memory import ByteOf, Cell
from mcveto.engines.path import KeyTable
from mcveto.logic.terms import Term

# Bits of an address within a page.
BITS = 7


class Page(dict[int, Cell]):
    """Cells by their whole address; `written` when one changes."""

    __slots__ = ("_keys", "_words")

    def __init__(self, cells: dict[int, Cell] | None = None) -> None:
        super().__init__(cells or {})
        self.written()

    def written(self) -> None:
        self._words: tuple[Term, ...] | None = None
        self._keys: frozenset[object] | None = None

    def words(self) -> tuple[Term, ...]:
        """The terms that cells are part of."""
        if self._words is None:
            self._words = tuple(dict.fromkeys([cell[0] for cell in self.values() if type(cell) is ByteOf]))
        return self._words

    def keys_of(self, table: KeyTable) -> frozenset[object]:
        """What these depend on."""
        if self._keys is None:
            found: set[object] = set()
            for word in self.words():
                found.update((word,) if word.op == "var" else table.of(word))
            self._keys = frozenset(found)
        return self._keys


class Cells(MutableMapping[int, Cell]):
    __slots__ = ("_own", "pages")

    def __init__(self) -> None:
        self.pages: dict[int, Page] = {}
        self._own: dict[int, Page] = {}
        """The pages that nobody else has."""

    def copy(self) -> Cells:
        twin = Cells.__new__(Cells)
        twin.pages = dict(self.pages)
        twin._own, self._own = {}, {}
        return twin

    def _page_to_write(self, number: int) -> Page:
        page = self._own.get(number)
        if page is None:
            page = self._own[number] = self.pages[number] = Page(self.pages.get(number))
        else:
            page.written()
        return page

    @overload  # type: ignore[override]
    def get(self, address: int) -> Cell | None: ...
    @overload
    def get(self, address: int, default: Cell) -> Cell: ...
    def get(self, address: int, default: Cell | None = None) -> Cell | None:
        page = self.pages.get(address >> BITS)
        return default if page is None else page.get(address, default)

    def __getitem__(self, address: int) -> Cell:
        return self.pages[address >> BITS][address]

    def __setitem__(self, address: int, cell: Cell) -> None:
        self._page_to_write(address >> BITS)[address] = cell

    def __delitem__(self, address: int) -> None:
        if address not in self:
            raise KeyError(address)
        del self._page_to_write(address >> BITS)[address]

    def discard(self, address: int) -> None:
        if address in self:
            del self[address]

    def __contains__(self, address: object) -> bool:
        assert isinstance(address, int)
        page = self.pages.get(address >> BITS)
        return page is not None and address in page

    def __iter__(self) -> Iterator[int]:
        for page in self.pages.values():
            yield from page

    def __len__(self) -> int:
        return sum(map(len, self.pages.values()))

    def keys(self) -> KeysView[int]:
        return dict.fromkeys(self).keys()

    def different(self, other: Cells) -> list[tuple[Page, Page]]:
        """The pages that are not the very same in both, in order of their addresses; empty where there is none."""
        nothing = Page()
        found = []
        for number in sorted(self.pages.keys() | other.pages.keys()):
            mine, others = self.pages.get(number, nothing), other.pages.get(number, nothing)
            if mine is not others:
                found.append((mine, others))
        return found

    def shared(self, other: Cells) -> Iterator[Page]:
        """Those that are."""
        for number, page in self.pages.items():
            if other.pages.get(number) is page:
                yield page
