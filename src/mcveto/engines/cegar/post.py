"""The successors of an abstract state: Cartesian predicate abstraction on top of constants.

Each outcome of the block is evaluated with what is constant. An outcome whose guard is false, or contradicts the
predicates that hold, is not taken. A predicate of the location behind is decided if its `Pre` evaluates to a truth
value, is among what is known, or follows from that by the solver; otherwise nothing is said of it, or, for predicates
that were found to need it, both cases are followed (Ball, Podelski and Rajamani, "Boolean and Cartesian abstraction for
model checking C programs", TACAS 2001).

A store to an address that is not constant makes unknown what it can reach. Indirect jumps are followed to all targets;
one whose targets cannot be told is an error that refinement has to explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mcveto.dpg.location import ANY, Blocks, Location, frame_pointer_of
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.path_state import PathState, stores_of
from mcveto.engines.cegar.bounded_state import bounded_state
from mcveto.engines.cegar.bounds import bounds, decided, limits
from mcveto.engines.cegar.constants import Change, Constants
from mcveto.engines.cegar.region import Code, Cube, Error, Expansion, Kind, Region, Successor
from mcveto.engines.cegar.states import States
from mcveto.engines.cegar.treatment import Model, Oracle, Unsat
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.memory import EXECUTE, READ, WRITE
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program

MAX_TARGETS = 300
# Of which so many may be in no code: more are there only where nothing bounds the index of a table yet.
MAX_NOWHERE = 8
# Bytes between the first and the last entry of a table whose constants are told to the solver.
MAX_TABLE = 256
MAX_CASES = 6
MAX_RECURSION = 8
# Ranges of addresses smaller than this are not made smaller by the solver.
SMALL_RANGE = 16
# Smaller ones only by predicates, larger ones also by what the block itself has tested.
LARGE_RANGE = 4096
# Below the stack pointer this many bytes still count (red zones, arguments of callees).
RED_ZONE = 1024

# Expansions of one place that are kept: its constants become fewer while a round goes on.
REMEMBERED = 3

Known = dict[Term, None]


class Precision:
    """What is looked at where: predicates by location, whether both cases of one are followed, which bytes of writable
    memory are code, and which words hold one of many states, so that regions with other values are other regions."""

    def __init__(self) -> None:
        self.predicates: dict[Location, dict[Term, bool]] = {}
        self.code: set[int] = set()
        self.cells: list[int] = []
        """Bytes whose values tell regions apart."""
        self.changes_of_cells = 0
        self.states = States()
        self._versions: dict[Location, int] = {}

    def add(self, location: Location, predicate: Term) -> bool:
        """Whether that is new."""
        here = self.predicates.setdefault(location, {})
        if predicate in here or t.bnot(predicate) in here:
            return False
        here[predicate] = False
        self._changed(location)
        return True

    def version(self, location: Location) -> int:
        """Tells apart what was looked at before and after a change there."""
        return self._versions.get(location, 0)

    def _changed(self, location: Location) -> None:
        self._versions[location] = self._versions.get(location, 0) + 1

    def split(self, location: Location, predicate: Term) -> bool:
        here = self.predicates.setdefault(location, {})
        form = predicate if predicate in here or t.bnot(predicate) not in here else t.bnot(predicate)
        if here.get(form):
            return False
        here[form] = True
        self._changed(location)
        return True

    def add_code(self, addresses: Sequence[int]) -> bool:
        before = len(self.code)
        self.code.update(addresses)
        if len(self.code) == before:
            return False
        self._cells_changed()
        return True

    def compare(self, predicates: Iterable[Term]) -> bool:
        """Takes note of the states that predicates compare words with; whether a word is followed from now on."""
        if not self.states.compare(predicates):
            return False
        self._cells_changed()
        return True

    def give_up(self) -> bool:
        """Stops following words that have too many values; whether there are any."""
        if not self.states.give_up():
            return False
        self._cells_changed()
        return True

    def told_apart(self, constants: Constants) -> Code:
        """The values that make regions different ones."""
        hopeless = self.states.see(constants)
        return tuple([None if address in hopeless else constants.byte(address) for address in self.cells])

    def _cells_changed(self) -> None:
        self.cells = sorted(self.code | self.states.bytes())
        self.changes_of_cells += 1

    @property
    def count(self) -> int:
        """How many different predicates there are."""
        return len({predicate for here in self.predicates.values() for predicate in here})


@dataclass(frozen=True, slots=True)
class _Remembered:
    """An expansion, and what it depends on."""

    constants: Constants
    expansion: Expansion
    versions: dict[Location, int]
    cells: int


class Post:
    def __init__(self, program: Program, blocks: Blocks, oracle: Oracle) -> None:
        self._program = program
        self._row = program.decoder.row
        self.blocks = blocks
        table = OutcomeTable(program)
        self.steps = Steps(program, blocks, table)
        self._oracle = oracle
        self.memory = table.memory
        self.pointers = table.stack_pointer.cell.number, table.frame_pointer.cell.number
        layout = program.decoder.layout
        cells = [layout.cells[number] for number in self.pointers]
        self._pointer_terms = [t.var(cell.name, layout.significant_bits(cell)) for cell in cells]
        self.precision = Precision()
        self._memo: dict[tuple[Location, Cube], list[_Remembered]] = {}

    def state(self, location: Location, constants: Constants) -> PathState:
        """Any state of a region, its predicates aside."""
        return bounded_state(self._program, location, self.pointers, constants.registers, constants)

    def expand(self, region: Region) -> Expansion:
        """What follows a region; what was found under fewer predicates is used again where none of the new ones
        matters, so that a further exploration costs what has changed."""
        kept = self._memo.setdefault((region.location, region.cube), [])
        cells = self.precision.changes_of_cells
        version = self.precision.version
        for item in kept:
            unchanged = all(version(location) == seen for location, seen in item.versions.items())
            if unchanged and item.cells == cells and item.constants.same(region.constants):
                return item.expansion
        expansion = self._expanded(region)
        if cells == self.precision.changes_of_cells:
            versions = {item.location: version(item.location) for item in expansion.successors}
            kept.append(_Remembered(region.constants, expansion, versions, cells))
            del kept[:-REMEMBERED]
        return expansion

    def _expanded(self, region: Region) -> Expansion:
        expansion = Expansion()
        state = self.state(region.location, region.constants)
        known: Known = {}
        for literal in region.cube:
            if not _tell(known, state.value(literal)):
                # No state has these constants and satisfies the predicates.
                expansion.used.update(dict.fromkeys(region.cube))
                return expansion
        for outcome in self.steps.outcomes(region.location):
            _Expander(self, region, state, outcome, dict(known), expansion).run()
        return expansion

    def facts(self, literals: Iterable[Term], constants: Constants) -> list[Term]:
        """What is constant of the bytes that literals read behind stores, or in a table of which they bound the index:
        evaluation leaves these as they are."""
        found: dict[Term, None] = {}
        literals = list(literals)
        greatest_of = limits(literals)
        for term in t.postorder(literals):
            if term.op != "load" or (term.args[0].op != "store" and term.args[1].op == "const"):
                continue
            first, last = bounds(term.args[1], 0, greatest_of)
            for at in range(first, last + term.data[0]) if last - first < MAX_TABLE else ():
                where = at & self._program.space.mask
                byte = constants.byte(where)
                if byte is not None:
                    cell = t.load(self.memory, t.const(where, self._program.space.address_bits), 1, False)
                    found[t.eq(cell, t.const(byte, 8))] = None
        return list(found)

    def location(self, pc: int, constants: Constants, frames: tuple[int, ...], pointers: list[int]) -> Location | None:
        """The location a state is at; None if it depends on bytes that are not known. Raises Unsupported or Fault."""
        block = self.blocks.fixed_block(pc)
        if block is None:
            address = self._row.code_address(pc)
            code = bytearray()
            for at in range(self._row.longest_unit(pc)):
                where = (address + at) & self._program.space.mask
                byte = constants.byte(where)
                if byte is None and not self._program.space.writable(where):
                    byte = self._program.space.initial_byte(where)
                if byte is None:
                    break
                code.append(byte)
            try:
                block = self.blocks.single(pc, bytes(code))
            except Unsupported:
                if len(code) < self._row.longest_unit(pc) and self._program.space.writable(address + len(code)):
                    return None
                raise
        code_bytes = b"".join(instruction.bytes for instruction in block)
        frame_pointer = frame_pointer_of(self._program.space, pointers[0], pointers[1])
        return Location(pc, code_bytes, pointers[0], frame_pointer, frames)


class _Expander:
    """One outcome of one region."""

    def __init__(
        self, post: Post, region: Region, state: PathState, outcome: Outcome, known: Known, expansion: Expansion
    ) -> None:
        self._post = post
        self._program = post._program
        self._oracle = post._oracle
        self._steps = post.steps
        self._region = region
        self._state = state
        self._outcome = outcome
        self._known = known
        self._result = expansion
        self._from_cube = len(known)

    def run(self) -> None:
        region, outcome, state = self._region, self._outcome, self._state
        for literal in outcome.guard:
            if not _tell(self._known, state.value(literal)):
                self._use(literal, *region.cube)
                return
        if self._is_contradictory(self._from_cube):
            self._use(*outcome.guard, *region.cube)
            return
        if outcome.unsupported:
            self._error(Kind.GAP, outcome.guard, outcome.unsupported)
        elif self._steps.is_return(outcome):
            self._return()
        else:
            self._jump()

    def _is_contradictory(self, cube: int) -> bool:
        """Whether the guard cannot hold together with the predicates."""
        parts = list(self._known)
        added = parts[cube:]
        if not added:
            return False
        connected = self._oracle.related(parts[:cube], added)
        if not connected and not self._oracle.related(added[1:], added[:1]):
            return False
        return self._refutes([*connected, *added])

    def _return(self) -> None:
        outcome = self._outcome
        expected = self._steps.expected_return(self._region.location, None)
        target = self._state.value(outcome.target)
        if expected is None:
            self._error(Kind.RETURN, outcome.guard, "a return without a call")
            return
        matches = t.eq(target, t.const(expected, target.width))
        if matches is not t.TRUE and not self._excluded(t.bnot(matches)):
            elsewhere = t.bnot(self._steps.goes_to(outcome, expected))
            self._error(Kind.RETURN, (*outcome.guard, elsewhere))
            if matches is t.FALSE:
                return
        self._use_value(outcome.target)
        if _tell(self._known, matches):
            self._go(expected)

    def _jump(self) -> None:
        outcome = self._outcome
        target = self._state.value(outcome.target)
        if target.op == "const":
            self._use_value(outcome.target)
            self._go(target.data)
            return
        found = self._targets(target)
        if found is None:
            self._error(Kind.UNRESOLVED, outcome.guard, "where a jump goes is not known", (outcome.target,))
            return
        self._use(outcome.target, *outcome.guard, *self._region.cube)
        known = dict(self._known)
        for pc in found:
            self._known = dict(known)
            if _tell(self._known, t.eq(target, t.const(pc, target.width))):
                self._go(pc)

    def _targets(self, target: Term) -> list[int] | None:
        """All values of the target; None if they are too many, or not to be had."""
        connected = self._oracle.related(self._known, [target])
        is_lost = target.op == "var" or (target.op == "load" and target.args[1].op == "const")
        if is_lost and not connected:
            return None
        found: list[int] = []
        nowhere = 0
        facts = self._post.facts([*connected, target], self._region.constants)
        while len(found) <= MAX_TARGETS and nowhere <= MAX_NOWHERE:
            others = [t.ne(target, t.const(pc, target.width)) for pc in found]
            answer = self._oracle.exact.ask([*connected, *facts, *others])
            if isinstance(answer, Unsat):
                self._use(*facts)
                return sorted(found)
            if not isinstance(answer, Model):
                return None
            found.append(answer.value(target))
            address = self._program.decoder.row.code_address(found[-1])
            nowhere += not any(start <= address < end for start, end in self._program.space.ranges(EXECUTE))
        return None

    def _go(self, pc: int) -> None:
        """Control goes to `pc`."""
        program, row, outcome = self._program, self._program.decoder.row, self._outcome
        here = t.const(pc, row.address_bits)
        there = replace(outcome, target=here)
        address = row.code_address(pc)
        literals = (*outcome.guard, t.eq(outcome.target, here))
        if address in program.targets:
            self._error(Kind.TARGET, literals)
            return
        if address in self._steps.ends or self._steps.executable(there) is t.FALSE:
            return
        if pc not in program.hooks and program.space.region_at(address) is None:
            self._error(Kind.GAP, literals, f"a jump to {program.undetermined.describe(address, None)}")
            return
        frames = self._region.location.frames
        assert frames is not None
        if outcome.transfer is Transfer.CALL:
            frames = (*frames, outcome.following)
            if frames.count(outcome.following) > MAX_RECURSION:
                self._error(Kind.GAP, literals, f"recursion at {self._region.location} is too deep")
                return
        elif outcome.transfer is Transfer.RETURN:
            frames = frames[:-1]
        pointers = self._pointers()
        if pointers[0] == ANY:
            about = (outcome.state.get(self._post._pointer_terms[0], self._post._pointer_terms[0]),)
            self._error(Kind.UNRESOLVED, literals, "the stack pointer is not known", about)
            return
        constants = self._after(pointers[0])
        try:
            location = self._post.location(pc, constants, frames, pointers)
        except (Unsupported, Fault) as problem:
            self._error(Kind.GAP, literals, str(problem))
            return
        if location is None:
            self._unknown_code(pc, literals)
            return
        if self._post.blocks.fixed_block(pc) is None:
            self._code_is_known(address, len(location.code))
        arrival = self._steps.arrival(self._region.location, outcome, location)
        if arrival is not None:
            self._arrive(location, (*outcome.guard, *arrival), constants)

    def _unknown_code(self, pc: int, literals: tuple[Term, ...]) -> None:
        address, bits = self._program.decoder.row.code_address(pc), self._program.space.address_bits
        size = self._program.decoder.row.longest_unit(pc)
        cells = [t.load(self._post.memory, t.const(address + at, bits), 1, False) for at in range(size)]
        self._post.precision.add_code(range(address, address + size))
        reason = f"the code at {address:#x} is not known"
        self._error(Kind.UNRESOLVED, literals, reason, tuple(self._outcome.all_after(cells)))

    def _code_is_known(self, address: int, size: int) -> None:
        self._post.precision.add_code(range(address, address + size))
        bits = self._program.space.address_bits
        cells = [t.load(self._post.memory, t.const(address + at, bits), 1, False) for at in range(size)]
        self._use(*self._outcome.all_after(cells))

    def _pointers(self) -> list[int]:
        found = []
        for register in self._post._pointer_terms:
            term = self._outcome.state.get(register, register)
            value = self._state.value(term)
            if value.op == "const":
                self._use_value(term)
            found.append(value.data if value.op == "const" else ANY)
        return found

    def _arrive(self, location: Location, literals: tuple[Term, ...], constants: Constants) -> None:
        code = self._post.precision.told_apart(constants)
        for cube in self._cubes(location):
            self._result.successors.append(Successor(self._outcome, location, literals, cube, code, constants))

    def _cubes(self, location: Location) -> list[Cube]:
        """What is known of the predicates of the location behind."""
        predicates = self._post.precision.predicates.get(location)
        if not predicates:
            return [()]
        cubes: list[tuple[list[Term], list[Term]]] = [([], [])]  # with what the cases are before the outcome
        cases = 0
        ordered = sorted(predicates.items(), key=lambda item: item[0].serial)
        values = self._outcome.all_after([predicate for predicate, _ in ordered])
        for (predicate, is_split), before in zip(ordered, values, strict=True):
            value = self._state.value(before)
            if self._is_known(value):
                holds: bool | None = True
            elif self._is_known(t.bnot(value)):
                holds = False
            else:
                holds = None
            if holds is not None:
                literal = predicate if holds else t.bnot(predicate)
                for cube, _ in cubes:
                    cube.append(literal)
            elif is_split and cases < MAX_CASES:
                cases += 1
                sides = ((predicate, value), (t.bnot(predicate), t.bnot(value)))
                cubes = [([*cube, side], [*case, now]) for cube, case in cubes for side, now in sides]
        return [tuple(cube) for cube, case in cubes if len(case) < 2 or not self._is_impossible(case)]

    def _is_impossible(self, case: list[Term]) -> bool:
        """Whether cases that are possible one by one are not together."""
        if not self._refutes([*self._oracle.related(self._known, case), *case]):
            return False
        self._use(*self._outcome.guard, *self._region.cube)
        return True

    def _is_known(self, value: Term) -> bool:
        if value is t.TRUE:
            return True
        if value in self._known:
            self._use(*self._outcome.guard, *self._region.cube)
            return True
        return value is not t.FALSE and self._excluded(t.bnot(value), only_if_related=True)

    def _excluded(self, literal: Term, only_if_related: bool = False) -> bool:
        """Whether a literal contradicts what is known, or itself."""
        if literal is t.FALSE or decided(literal) is False:
            return True
        if t.bnot(literal) in self._known:
            self._use(*self._outcome.guard, *self._region.cube)
            return True
        connected = self._oracle.related(self._known, [literal])
        if not connected and (only_if_related or literal is t.TRUE) and not _writes(literal):
            return False
        if self._refutes([*connected, literal]):
            self._use(*self._outcome.guard, *self._region.cube)
            return True
        return False

    def _refutes(self, literals: list[Term]) -> bool:
        facts = self._post.facts(literals, self._region.constants)
        if not self._oracle.refutes([*literals, *facts]):
            return False
        self._use(*facts)
        return True

    def _after(self, stack_pointer: int) -> Constants:
        """What is constant behind the outcome."""
        outcome, state = self._outcome, self._state
        change = self._region.constants.change()
        layout = self._program.decoder.layout
        for variable, term in outcome.state.items():
            if variable is not self._post.memory:
                value = state.value(term)
                number = layout.by_name[str(variable.data)].number
                if value.op == "const":
                    change.registers[number] = value.data
                else:
                    change.registers.pop(number, None)
        for address, value, big_endian in stores_of(outcome.memory, self._post.memory):
            self._store(change, address, value, big_endian)
        if outcome.transfer is Transfer.RETURN:
            region = self._program.space.region_at(stack_pointer)
            if region is not None:
                change.drop(region.start, stack_pointer - RED_ZONE)
        return change.done()

    def _store(self, change: Change, address: Term, value: Term, big_endian: bool) -> None:
        where = self._state.value(address)
        size = value.width // 8
        mask = self._program.space.mask
        self._use_value(address)
        if where.op == "const":
            content = self._state.value(value)
            for at in range(size):
                low = 8 * (size - 1 - at if big_endian else at)
                byte = t.extract(content, low + 7, low)
                change.write((where.data + at) & mask, byte.data if byte.op == "const" else None)
            return
        low, high = self._range(where, size)
        if high + size - 1 > mask:
            low, high = 0, mask
        change.forget(low, min(mask, high + size - 1))

    def _range(self, address: Term, size: int) -> tuple[int, int]:
        """Bounds of an address: from its operators, and from what is known if that says more than the access itself."""
        low, high = bounds(address)
        allowed = [self._program.space.allowed(address, size, needed) for needed in (READ, WRITE)]
        access = {part for term in allowed for part in (term, *term.args)}
        connected = self._oracle.related(self._known, [address])
        leaves = self._oracle.leaves(address)
        telling = [
            literal
            for number, literal in enumerate(self._known)
            if (number < self._from_cube or high - low >= LARGE_RANGE)
            and literal not in access
            and not leaves.isdisjoint(self._oracle.leaves(literal))
        ]
        if high - low < SMALL_RANGE or not telling:
            return low, high
        self._use(*self._outcome.guard, *self._region.cube)
        width = address.width
        # The largest k with "all values are at least low + k", bit by bit; then the same from above.
        step = 1 << max(0, (high - low).bit_length() - 1)
        while step:
            if low + step <= high and self._oracle.refutes([*connected, t.ult(address, t.const(low + step, width))]):
                low += step
            step >>= 1
        step = 1 << max(0, (high - low).bit_length() - 1)
        while step:
            if high - step >= low and self._oracle.refutes([*connected, t.ult(t.const(high - step, width), address)]):
                high -= step
            step >>= 1
        return low, high

    def _use(self, *terms: Term) -> None:
        self._result.used.update(dict.fromkeys(terms))

    def _use_value(self, term: Term) -> None:
        if term.op != "const":
            self._result.used[term] = None

    def _error(self, kind: Kind, literals: tuple[Term, ...], reason: str = "", about: tuple[Term, ...] = ()) -> None:
        self._result.errors.append(Error(self._region, self._outcome, literals, kind, reason, about))


def _tell(known: Known, value: Term) -> bool:
    """Adds a literal to what is known; False if it contradicts that."""
    for part in value.args if value.op == "and" and value.width == 1 else (value,):
        if part is t.FALSE or t.bnot(part) in known:
            return False
        if part is not t.TRUE:
            known[part] = None
    return True


def _writes(literal: Term) -> bool:
    return any(term.op == "store" for term in t.postorder([literal]))
