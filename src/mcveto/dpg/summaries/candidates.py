"""Candidate claims about procedures, from what concrete activations began and returned with.

In stages. First what every calling convention is made of, found out and not assumed: where the stack pointer is, what
holds the expected return address, which registers come back as they were or as some slot of the stack, which memory is
left alone. Then relations between results and arguments: bounds, order, affine relations, parities, small sets; then
the same under a condition that the procedure itself branches on, and for single arguments. Houdini decides which of
them are true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from mcveto.dpg.strengthen.affine_hull import affine_relations
from mcveto.dpg.summaries.live import live_registers
from mcveto.dpg.summaries.paths import Path
from mcveto.dpg.summaries.products import product_claims
from mcveto.dpg.summaries.samples import WINDOW, Observed, Sample
from mcveto.dpg.summaries.state import AFTER, Frame, Names, Span
from mcveto.dpg.summaries.summary import Summary
from mcveto.dpg.summaries.sums import summands, total
from mcveto.dpg.summaries.tables import Signature
from mcveto.logic import linear
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_PLACES = 10
# Stack pointers may be a little below the stack as long as nothing is accessed there.
BELOW_STACK = 4096
MAX_CONDITIONS = 8
MAX_ARGUMENTS = 4
MAX_SET = 3
ENOUGH = 3
_COMPARISONS = frozenset(("eq", "ult", "ule", "slt", "sle"))


class Vocabulary:
    """The places that the paths of procedures read: at the beginning, and behind activations."""

    def __init__(self, names: Names, paths: dict[int | None, list[Path]]) -> None:
        self.names = names
        self._live = live_registers(names, paths)
        self.inputs: dict[int, dict[Term, None]] = {}
        self._cells_behind: dict[Term, None] = {}
        self.conditions: dict[int, dict[Term, None]] = {}
        self.numbers: set[int] = set()
        for procedure, found in paths.items():
            inputs: dict[Term, None] = {}
            for path in found:
                self._read(path, inputs)
                if procedure is not None:
                    self._branches(path, self.conditions.setdefault(procedure, {}))
            if procedure is not None:
                self.inputs[procedure] = inputs

    def results(self, procedure: int) -> list[Term]:
        """What is read behind activations of a procedure."""
        behind = self._live.behind[procedure]
        registers = [register for register in self.names.registers if register in behind]
        return [*(self.names.renamed(register, AFTER) for register in registers), *self._cells_behind]

    def cells(self) -> set[tuple[int, int]]:
        """Cells at constant addresses: address and size."""
        places = [place for found in self.inputs.values() for place in found] + list(self._cells_behind)
        return {
            (place.args[1].data, place.data[0])
            for place in places
            if place.op == "load" and place.args[1].op == "const"
        }

    def _read(self, path: Path, inputs: dict[Term, None]) -> None:
        # Registers that are only saved and restored are no inputs: they occur in stores, or as what they were.
        plain = [*path.guard, *(value for value in self._live.values(path) if value not in self.names.cells)]
        memories = [path.state.memory, *(call.before.memory for call in path.calls)]
        for term in t.postorder([*plain, *memories]):
            if term.op in _COMPARISONS:
                for argument in term.args:
                    if argument.op == "const" and argument.width > 1:
                        self.numbers.add(t.signed(argument.data, argument.width))
            if term.op == "load":
                base, address = t.base_of(term.args[0]), term.args[1]
                size, big_endian = term.data
                if base is self.names.memory and self._is_fixed(address):
                    inputs[t.load(base, address, size, big_endian)] = None
                elif address.op == "const" and str(base.data[0]).startswith("call "):
                    self._cells_behind[t.load(self.names.after_memory, address, size, big_endian)] = None
        for variable in t.free_variables(plain):
            if variable in self.names.registers and variable is not self.names.stack_pointer:
                inputs[variable] = None

    def _is_fixed(self, address: Term) -> bool:
        """A constant address, or one above the stack pointer at the beginning."""
        if address.op == "const":
            return True
        offset = linear.distance(address, self.names.stack_pointer)
        return offset is not None and offset < WINDOW

    def _branches(self, path: Path, found: dict[Term, None]) -> None:
        known = {self.names.memory, *self.names.registers}
        for literal in path.guard:
            is_plain = known.issuperset(t.free_variables([literal]))
            speaks_of_stack = self.names.stack_pointer in t.free_variables(_values(literal))
            if is_plain and not speaks_of_stack and t.bnot(literal) not in found:
                found[literal] = None


def _values(literal: Term) -> list[Term]:
    """A literal's operands, addresses left out."""
    stack, found = [literal], []
    while stack:
        term = stack.pop()
        if term.op == "load":
            continue
        if not term.args:
            found.append(term)
        stack.extend(term.args)
    return found


def convention(names: Names, observed: Observed, vocabulary: Vocabulary, procedure: int) -> Summary:
    """The first stage: the stack, the return address, registers and memory that are kept."""
    samples, summary = observed.samples, Summary()
    pointer, size = names.stack_pointer, names.address_bits // 8
    highest = max((sample.before.stack_pointer for sample in samples), default=names.stack[1] - 1)
    requires = [t.ule(names.address(names.stack[0]), pointer), t.ule(pointer, names.address(highest))]
    slots = [names.word(names.memory, t.add(pointer, names.address(at))) for at in range(0, WINDOW - 8, size)]
    words = [register for register in names.registers if register.width == names.address_bits]
    requires += [t.eq(slot, names.return_to) for slot in slots]
    requires += [t.eq(t.extract(names.return_to, high, 0), t.const(0, high + 1)) for high in (0, 1)]
    requires.append(t.ule(names.address(max(0, names.stack[0] - BELOW_STACK)), pointer))
    for register in names.registers:
        if register is not pointer:
            value = _beginning(names, samples, register)
            if value is not None:
                summary.begins[register] = value
                requires.append(t.eq(register, value))
    for place in vocabulary.inputs.get(procedure, ()):
        values = {sample.value(place) for sample in samples}
        if place.op == "load" and len(values) == 1 and (number := values.pop()) is not None:
            requires.append(t.eq(place, t.const(number, place.width)))
    summary.requires.update(dict.fromkeys(term for term in requires if _hold(samples, term)))
    returned = [sample for sample in samples if sample.after is not None]
    if not returned:
        summary.ensures[t.FALSE] = None
        return summary
    distances = {s.after.stack_pointer - s.before.stack_pointer for s in returned if s.after is not None}
    for register in names.registers:
        values_after = [register]
        if register in words:
            values_after += [t.add(pointer, names.address(distance)) for distance in sorted(distances)[:1]]
            values_after += slots
        after = names.renamed(register, AFTER)
        fitting = [value for value in values_after if _hold(returned, t.eq(after, value))]
        if fitting:
            summary.returns[register], *summary.otherwise[register] = fitting
            # All of them are claimed: what is true of one procedure should not fall with a wrong guess about another.
            summary.ensures.update({t.eq(after, value): None for value in fitting})
    summary.frame = Frame(names.stack, observed.above, _merged(observed.written))
    return summary


def _beginning(names: Names, samples: Sequence[Sample], register: Term) -> Term | None:
    """What a register was whenever an activation began: the return address, a place in the stack or a constant."""
    values = [sample.value(register) or 0 for sample in samples]
    if register.width == names.address_bits:
        if all(value == sample.return_to for value, sample in zip(values, samples, strict=True)):
            return names.return_to
        distances = {value - sample.before.stack_pointer for value, sample in zip(values, samples, strict=True)}
        if len(distances) == 1 and abs(distance := distances.pop()) < WINDOW:
            return t.add(names.stack_pointer, names.address(distance))
    if len(set(values)) == 1 and len(values) >= ENOUGH:
        return t.const(values[0], register.width)
    return None


def _merged(written: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for address, size in sorted(written):
        if spans and address <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], address + size))
        else:
            spans.append((address, address + size))
    return tuple(spans)


def _hold(samples: Sequence[Sample], term: Term) -> bool:
    return all(sample.value(term) for sample in samples)


def relations(names: Names, vocabulary: Vocabulary, observed: Observed, procedure: int, known: Summary) -> Summary:
    """The second stage: what results have to do with arguments, and arguments with each other."""
    samples = observed.samples
    inputs, results = _open_places(names, vocabulary, observed, procedure, known)
    summary = Summary()
    summary.requires.update(dict.fromkeys(_related(samples, inputs, [], vocabulary.numbers)))
    returned = [sample for sample in samples if sample.after is not None]
    summary.ensures.update(dict.fromkeys(_related(returned, inputs, results, vocabulary.numbers)))
    return summary


def by_condition(names: Names, vocabulary: Vocabulary, observed: Observed, procedure: int, known: Summary) -> Summary:
    """The third stage: the same where a condition holds that the procedure branches on."""
    inputs, results = _open_places(names, vocabulary, observed, procedure, known)
    returned = [sample for sample in observed.samples if sample.after is not None]
    summary = Summary()
    for literal in list(vocabulary.conditions.get(procedure, ()))[:MAX_CONDITIONS]:
        for condition in (literal, t.bnot(literal)):
            where = [sample for sample in returned if sample.value(condition)]
            if len(where) >= ENOUGH:
                for term in _related(where, inputs, results, vocabulary.numbers):
                    summary.ensures[t.implies(condition, term)] = None
    return summary


def by_argument(names: Names, vocabulary: Vocabulary, observed: Observed, procedure: int, known: Summary) -> Summary:
    """The fourth stage: the same where an argument has one of the few smallest values that it was seen to have."""
    inputs, results = _open_places(names, vocabulary, observed, procedure, known)
    returned = [sample for sample in observed.samples if sample.after is not None]
    summary = Summary()
    for place in inputs:
        seen = sorted({value for sample in returned if (value := sample.value(place)) is not None})
        for value in seen[:MAX_ARGUMENTS]:
            condition = t.eq(place, t.const(value, place.width))
            where = [sample for sample in returned if sample.value(condition)]
            if len(where) >= ENOUGH:
                for term in _related(where, [other for other in inputs if other is not place], results, ()):
                    summary.ensures[t.implies(condition, term)] = None
    return summary


def by_product(names: Names, vocabulary: Vocabulary, observed: Observed, procedure: int, known: Summary) -> Summary:
    """Results that are sums of products of arguments."""
    inputs, results = _open_places(names, vocabulary, observed, procedure, known)
    returned = [sample for sample in observed.samples if sample.after is not None]
    summary = Summary()
    for result in results:
        arguments = [place for place in inputs if place.width == result.width]
        rows: list[tuple[list[int], int]] = []
        for sample in returned:
            given = [value for place in arguments if (value := sample.value(place)) is not None]
            made = sample.value(result)
            if made is not None and len(given) == len(arguments):
                rows.append((given, made))
        for claim in product_claims(arguments, result, rows, result.width):
            if _hold(returned, claim):
                summary.ensures[claim] = None
    return summary


def signatures(
    names: Names,
    vocabulary: Vocabulary,
    observed: Mapping[int, Observed],
    paths: Mapping[int | None, Sequence[Path]],
    is_short: bool = False,
) -> dict[int, Signature]:
    """What tables of the procedures' results are made of: the arguments that vary, or if they are to be short as few as
    decide the results in all samples, and what is read behind activations."""
    plain = {pc: _signature(names, vocabulary, observed[pc], pc) for pc in observed}
    pointer = next((sample.before.stack_pointer for made in observed.values() for sample in made.samples), 0)
    low = {pc: [_low_half(place) for place in found.arguments] for pc, found in plain.items()}
    made = {pc: [_low_half(place) for place in _read_behind(names, vocabulary, pc)] for pc in plain}
    # Where the stack is decides nothing, but which words are others.
    stack = {names.stack_pointer: names.address(pointer)}
    everything = {pc: list(found) for pc, found in vocabulary.inputs.items()}
    added = summands(paths, made, low, everything, stack)
    found: dict[int, Signature] = {}
    for pc, begins in plain.items():
        sums = {place: total(places, place.width) for place, places in added[pc].items() if places}
        used = {place for places in added[pc].values() for place in places}
        arguments, results, fixed = begins.arguments, begins.results, begins.fixed
        if sums:
            arguments, results = [place for place in arguments if _low_half(place) not in used], made[pc]
            fixed = {**fixed, names.stack_pointer: pointer}
        if is_short:
            returned = [sample for sample in observed[pc].samples if sample.after is not None]
            amounts = [t.sub(place, sums[place]) if place in sums else place for place in results]
            arguments = _deciding(returned, arguments, amounts)
        found[pc] = Signature(arguments, results, fixed, sums)
    return found


def _signature(names: Names, vocabulary: Vocabulary, observed: Observed, procedure: int) -> Signature:
    """All arguments that vary, and the registers read behind activations."""
    samples = observed.samples
    arguments: list[Term] = []
    fixed: dict[Term, int] = {}
    for place in vocabulary.inputs.get(procedure, ()):
        values = {sample.value(place) for sample in samples}
        if None in values or _is_saved(names, samples, place):
            continue
        if len(values) > 1:
            arguments.append(place)
        elif samples:
            fixed[place] = values.pop() or 0
    behind = _read_behind(names, vocabulary, procedure)
    return Signature(arguments, [place for place in behind if place.op == "var"], fixed)


def _read_behind(names: Names, vocabulary: Vocabulary, procedure: int) -> list[Term]:
    kept = names.renamed(names.stack_pointer, AFTER)
    return [place for place in vocabulary.results(procedure) if place.width > 1 and place is not kept]


def _low_half(place: Term) -> Term:
    """What 32-bit arithmetic leaves in a wide register is in its low half."""
    return t.extract(place, 31, 0) if place.width == 64 else place


def _deciding(returned: Sequence[Sample], arguments: Sequence[Term], amounts: Sequence[Term]) -> list[Term]:
    """As few arguments as decide the results in all samples: others may only be passed on."""
    found = list(arguments)
    for argument in arguments:
        others = [place for place in found if place is not argument]
        seen: dict[tuple[int | None, ...], list[int | None]] = {}
        values = ((tuple(map(sample.value, others)), list(map(sample.value, amounts))) for sample in returned)
        if all(seen.setdefault(key, made) == made for key, made in values):
            found = others
    return found


def _open_places(
    names: Names, vocabulary: Vocabulary, observed: Observed, procedure: int, known: Summary
) -> tuple[list[Term], list[Term]]:
    """The arguments and results of which not everything is known, also the low halves of wide ones."""
    samples = observed.samples
    inputs = [
        place
        for place in _with_halves(vocabulary.inputs.get(procedure, ()))
        if place.width > 1
        and len({sample.value(place) for sample in samples}) > 1
        and not _is_saved(names, samples, place)
    ][:MAX_PLACES]
    returned = [sample for sample in samples if sample.after is not None]
    kept = {
        names.renamed(register, AFTER)
        for register in names.registers
        if t.eq(names.renamed(register, AFTER), register) in known.ensures
    }
    kept.add(names.renamed(names.stack_pointer, AFTER))
    behind = _with_halves(place for place in vocabulary.results(procedure) if place not in kept)
    results = [place for place in behind if place.width > 1 and returned]
    return inputs, results[:MAX_PLACES]


def _is_saved(names: Names, samples: Sequence[Sample], place: Term) -> bool:
    """Whether a place holds the return address or a stack address."""
    return all(
        sample.value(place) == sample.return_to or abs((sample.value(place) or 0) - sample.before.stack_pointer) < 65536
        for sample in samples
    )


def _with_halves(places: Iterable[Term]) -> Iterator[Term]:
    found: dict[Term, None] = {}
    for place in places:
        found[place] = None
        if place.width == 64:
            found[t.extract(place, 31, 0)] = None
    return iter(found)


def _related(
    samples: Sequence[Sample], inputs: Sequence[Term], results: Sequence[Term], numbers: Iterable[int]
) -> Iterator[Term]:
    """Relations that hold in the samples; with results, only those that mention one."""
    if not samples:
        return
    subjects = results or inputs
    for place in subjects:
        yield from _bounds(samples, place, numbers)
    pairs = [(x, y) for x in results for y in inputs] + list(combinations(subjects, 2))
    for x, y in pairs:
        if x.width == y.width:
            for term in (t.sle(x, y), t.sle(y, x), t.ule(x, y), t.ule(y, x)):
                if _hold(samples, term):
                    yield term
            for term in (t.bxor(t.extract(x, 0, 0), t.extract(y, 0, 0)),):
                yield from (found for found in (term, t.bnot(term)) if _hold(samples, found))
    for width in sorted({place.width for place in subjects}):
        places = [place for place in (*inputs, *results) if place.width == width]
        rows = [[sample.value(place) for sample in samples] for place in places]
        if results:
            for result in results:
                if result.width == width:
                    some = [p for p in places if p is result or p not in results]
                    yield from _affine(samples, some)
        complete = [[value for value in row if value is not None] for row in rows]
        if all(len(row) == len(samples) for row in complete):
            yield from (term for term in affine_relations(places, complete, width) if _hold(samples, term))


def _affine(samples: Sequence[Sample], places: list[Term]) -> Iterator[Term]:
    rows = [[value for sample in samples if (value := sample.value(place)) is not None] for place in places]
    if all(len(row) == len(samples) for row in rows):
        yield from (term for term in affine_relations(places, rows, places[0].width) if _hold(samples, term))


def _bounds(samples: Sequence[Sample], place: Term, numbers: Iterable[int]) -> Iterator[Term]:
    values = [value for sample in samples if (value := sample.value(place)) is not None]
    if len(values) < len(samples):
        return
    width = place.width
    half = 1 << (width - 1)
    amounts = [t.signed(value, width) for value in values]
    low, high = min(amounts), max(amounts)
    limits = sorted({-1, 0, 1, low, high, *(n + d for n in numbers for d in (-1, 0, 1) if -half <= n + d < half)})
    for limit in [n for n in limits if n >= high][:6]:
        yield t.sle(place, t.const(limit, width))
        if low >= 0:
            yield t.ule(place, t.const(limit, width))
    for limit in [n for n in limits if n <= low][-4:]:
        yield t.sle(t.const(limit, width), place)
    for limit in [n for n in limits if 0 < n <= min(values)][-3:]:
        yield t.ule(t.const(limit, width), place)
    if len(set(values)) <= MAX_SET and len(values) >= ENOUGH:
        yield t.disj(t.eq(place, t.const(value, width)) for value in sorted(set(values)))
    for bit in (0, 1):
        if len({value >> bit & 1 for value in values}) == 1:
            yield t.eq(t.extract(place, bit, bit), t.const(values[0] >> bit & 1, 1))
