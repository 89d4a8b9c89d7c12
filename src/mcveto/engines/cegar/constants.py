"""What has one value in all states of a region: registers and bytes of memory.

Constant propagation is the part of the abstraction that needs no predicate: stack pointers, return addresses, saved
registers and the state of locks are constants nearly everywhere (the combination of explicit values with predicates is
that of Beyer, Henzinger and Theoduloz, "Program analysis with dynamic precision adjustment", ASE 2008).

Memory is kept in small pages that states share and that are copied when written. A page that was never written is the
image's, so that a state costs what the program did and not what the image holds. Values are immutable once handed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import WRITE

PAGE_BITS = 6
PAGE = 1 << PAGE_BITS
# Ranges of more pages than this are remembered as a range.
MAX_PAGES_CLEARED = 64

Page = dict[int, int]
Ranges = tuple[tuple[int, int], ...]


class ImageBytes:
    """The bytes of the image at entry, by pages."""

    def __init__(self, space: AddressSpace) -> None:
        self.space = space
        self.writable = [(spec.start, spec.end) for spec in space.regions if spec.permissions & WRITE and spec.size]
        self._pages: dict[int, Page] = {}

    def page(self, number: int) -> Page:
        found = self._pages.get(number)
        if found is None:
            first = number << PAGE_BITS
            known = ((at, self.space.initial_byte(first + at)) for at in range(PAGE))
            found = self._pages[number] = {at: byte for at, byte in known if byte is not None}
        return found


class Constants(Mapping[int, int]):
    """As a mapping: the bytes that are known, by address. `registers` are those that are, by the number of their cell.
    Of a page that is not in `pages` the bytes are the image's, except in the ranges `lost`."""

    __slots__ = ("_image", "lost", "pages", "registers")

    def __init__(self, image: ImageBytes, registers: dict[int, int], pages: dict[int, Page], lost: Ranges) -> None:
        self._image = image
        self.registers = registers
        self.pages = pages
        self.lost = lost

    def byte(self, address: int) -> int | None:
        return self._page(address >> PAGE_BITS).get(address & (PAGE - 1))

    def __getitem__(self, address: int) -> int:
        found = self.byte(address)
        if found is None:
            raise KeyError(address)
        return found

    def __iter__(self) -> Iterator[int]:
        return (number << PAGE_BITS | at for number in sorted(self.pages) for at in sorted(self.pages[number]))

    def __len__(self) -> int:
        return sum(map(len, self.pages.values()))

    def same(self, other: Constants) -> bool:
        """Whether the same is known; may say no where two only look different."""
        if other is self:
            return True
        return self.registers == other.registers and self.pages == other.pages and self.lost == other.lost

    def change(self) -> Change:
        return Change(self)

    def joined(self, other: Constants) -> Constants:
        """What is known in both; the same object if that is all that is known here."""
        if other is self:
            return self
        registers = self.registers
        if registers != other.registers:
            theirs = other.registers
            common = {number: value for number, value in registers.items() if theirs.get(number) == value}
            if len(common) < len(registers):
                registers = common
        pages: dict[int, Page] | None = None
        for number in self.pages.keys() | other.pages.keys():
            here, there = self._page(number), other._page(number)
            if here is there or here == there:
                continue
            common = {at: byte for at, byte in here.items() if there.get(at) == byte}
            if len(common) < len(here):
                if pages is None:
                    pages = dict(self.pages)
                pages[number] = common
        lost = self.lost
        if other.lost != lost:
            lost = _united(lost, other.lost)
        if registers is self.registers and pages is None and lost == self.lost:
            return self
        return Constants(self._image, registers, self.pages if pages is None else pages, lost)

    def _page(self, number: int) -> Page:
        found = self.pages.get(number)
        if found is None:
            found = self._image.page(number)
            first = number << PAGE_BITS
            for start, end in self.lost:
                if start < first + PAGE and first < end:
                    return {at: byte for at, byte in found.items() if not start <= first + at < end}
        return found


class Change:
    """A state that is being made from another."""

    def __init__(self, before: Constants) -> None:
        self._before = before
        self._image = before._image
        self.registers = dict(before.registers)
        self._pages: dict[int, Page] | None = None
        self._own: set[int] = set()
        self._lost = before.lost

    def done(self) -> Constants:
        pages = self._before.pages if self._pages is None else self._pages
        return Constants(self._image, self.registers, pages, self._lost)

    def write(self, address: int, value: int | None) -> None:
        """One byte; None if its value is not known."""
        number, at = address >> PAGE_BITS, address & (PAGE - 1)
        page = self._page(number)
        if page.get(at) == value:
            return
        page = self._writable(number, page)
        if value is None:
            page.pop(at, None)
        else:
            page[at] = value

    def forget(self, low: int, high: int) -> None:
        """The bytes from `low` to `high` may have been written, where that is allowed."""
        for start, end in self._image.writable:
            first, last = max(low, start), min(high + 1, end)
            if first < last:
                self._forget(first, last)

    def _forget(self, first: int, last: int) -> None:
        numbers = range(first >> PAGE_BITS, (last - 1 >> PAGE_BITS) + 1)
        if len(numbers) > MAX_PAGES_CLEARED:
            self._lost = _united(self._lost, ((first, last),))
            inside = [number for number in self._current() if number in numbers]
        else:
            inside = list(numbers)
        for number in inside:
            page = self._page(number)
            base = number << PAGE_BITS
            kept = {at: byte for at, byte in page.items() if not first <= base + at < last}
            if len(kept) < len(page):
                self._writable(number, page).clear()
                self._own_pages()[number].update(kept)

    def drop(self, low: int, high: int) -> None:
        """Forgets whole pages of a range of which the image knows nothing: what is there does not matter any more."""
        first, last = -(-low >> PAGE_BITS), high >> PAGE_BITS
        dead = [number for number in self._current() if first <= number < last and not self._image.page(number)]
        if dead:
            pages = self._own_pages()
            for number in dead:
                del pages[number]
                self._own.discard(number)

    def _current(self) -> dict[int, Page]:
        return self._before.pages if self._pages is None else self._pages

    def _page(self, number: int) -> Page:
        found = self._current().get(number)
        if found is None:
            found = Constants(self._image, {}, {}, self._lost)._page(number)
        return found

    def _own_pages(self) -> dict[int, Page]:
        if self._pages is None:
            self._pages = dict(self._before.pages)
        return self._pages

    def _writable(self, number: int, page: Page) -> Page:
        pages = self._own_pages()
        if number not in self._own:
            self._own.add(number)
            pages[number] = dict(page)
        return pages[number]


def _united(one: Ranges, other: Ranges) -> Ranges:
    result: list[tuple[int, int]] = []
    for start, end in sorted({*one, *other}):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)
