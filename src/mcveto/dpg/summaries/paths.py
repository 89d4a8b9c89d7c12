"""The paths of procedures: symbolic execution from a procedure's entry to wherever its activation ends.

A *procedure* is a program counter at which an activation may begin: a function that recurses, or the head of a loop,
which is entered like a function that is called last. Wherever a path arrives at a procedure, the activation that begins
there is not followed: what is known of it is its summary, and the path goes on in an unknown state behind its return.
Other calls are followed like jumps, with the address that they expect to return to.

Which program counters are procedures is found out: where a path would follow a call into a function that is still
active, or come twice to one place of one activation, `NewProcedure` is raised and the enumeration starts again.
Nothing is assumed of calls but their effect on the state: a return is a jump that must go to the expected address.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from mcveto.dpg.location import ANY, Blocks, Location
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.summaries.state import Names, State
from mcveto.dpg.summaries.summary import Summary
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.faults import Unsupported
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program

MAX_PATHS = 400
MAX_DEPTH = 40
MAX_BLOCKS = 600


class NotApplicable(Exception):
    """The program is outside what summaries are found for; says why."""


class NewProcedure(Exception):
    def __init__(self, pc: int) -> None:
        super().__init__(f"{pc:#x}")
        self.pc = pc


class End(Enum):
    RETURN = "return"
    """The activation ends; its summary must hold, and the return must go where it is expected."""
    BEGIN = "begin"
    """Another activation begins, the last of `calls`; what it requires must hold."""
    BAD = "bad"
    """A target, a return elsewhere, or something that is not supported: must be impossible."""


@dataclass(frozen=True, eq=False)
class Call:
    """An activation of `procedure` that a path only knows by its summary."""

    procedure: int
    before: State
    return_to: Term
    after: State


@dataclass(frozen=True, eq=False)
class Path:
    procedure: int | None
    """None for the program itself, in its entry states."""
    start: State
    guard: tuple[Term, ...]
    calls: tuple[Call, ...]
    end: End
    state: State
    """At the end; for a return, behind it."""
    what: str = ""
    fresh: tuple[Term, ...] = ()
    """The values made up on the way, in order."""


@dataclass(frozen=True)
class _Frame:
    return_to: int
    function: int


@dataclass(frozen=True, eq=False)
class _Point:
    pc: int
    start: State
    state: State
    guard: tuple[Term, ...]
    calls: tuple[Call, ...]
    frames: tuple[_Frame, ...]
    passed: frozenset[tuple[int, int]]
    fresh: tuple[Term, ...]
    is_start: bool = False


Feasible = Callable[[Sequence[Term], bool], bool]


class Paths:
    """`feasible` prunes: it may say yes to what is not, never no to what is. Definitions in `summaries` are used, what
    else they claim is not."""

    def __init__(
        self, program: Program, names: Names, feasible: Feasible, summaries: Mapping[int, Summary] | None = None
    ) -> None:
        self._summaries = summaries or {}
        self._program = program
        self._names = names
        self._feasible = feasible
        self._blocks = Blocks(program)
        self._outcomes = OutcomeTable(program)
        self._row = program.decoder.row
        self._ends = program.halts | {self._row.code_address(program.return_sentinel)}

    def all(self) -> dict[int | None, list[Path]]:
        """The paths of the program and of each procedure that it begins."""
        procedures: set[int] = set(self._summaries)
        while True:
            try:
                return self._of_all(procedures)
            except NewProcedure as found:
                procedures.add(found.pc)

    def _of_all(self, procedures: Collection[int]) -> dict[int | None, list[Path]]:
        found: dict[int | None, list[Path]] = {}
        waiting: list[int | None] = [None]
        while waiting:
            procedure = waiting.pop(0)
            if procedure in found:
                continue
            found[procedure] = list(self._of(procedure, procedures))
            waiting += [path.calls[-1].procedure for path in found[procedure] if path.end is End.BEGIN]
        return found

    def _of(self, procedure: int | None, procedures: Collection[int]) -> Iterator[Path]:
        state = self._start(procedure)
        pc = self._program.entry if procedure is None else procedure
        waiting = [_Point(pc, state, state, (), (), (), frozenset(), (), procedure is not None)]
        count = blocks = 0
        while waiting:
            point = waiting.pop()
            blocks += 1
            for item in self._step(procedure, point, procedures):
                if isinstance(item, _Point):
                    waiting.append(item)
                else:
                    count += 1
                    yield item
            if count + len(waiting) > MAX_PATHS or blocks > MAX_BLOCKS:
                raise NotApplicable(f"too many paths from {pc:#x}")

    def _start(self, procedure: int | None) -> State:
        names = self._names
        if procedure is not None:
            return self._summary(procedure).beginning(names)
        fixed = {
            names.cells[number]: t.extract(t.const(value, self._bits(number)), names.cells[number].width - 1, 0)
            for number, value in self._program.registers.items()
        }
        return State(names, fixed, names.memory)

    def _bits(self, number: int) -> int:
        return self._program.decoder.layout.cells[number].bits

    def _summary(self, procedure: int) -> Summary:
        return self._summaries.get(procedure) or Summary()

    def _step(self, procedure: int | None, point: _Point, procedures: Collection[int]) -> Iterator[Path | _Point]:
        address = self._row.code_address(point.pc)
        bad = Path(procedure, point.start, point.guard, point.calls, End.BAD, point.state, fresh=point.fresh)
        if address in self._program.targets:
            yield _because(bad, f"the target {address:#x}")
            return
        if address in self._ends:
            return
        if point.pc in procedures and not point.is_start:
            yield from self._begin(procedure, point)
            return
        if point.pc not in self._program.hooks and not self._is_executable(address):
            if self._program.undetermined.is_foreign(address):
                yield _because(bad, f"a jump to {self._program.undetermined.describe(address, None)}")
            return
        here = (point.pc, len(point.frames))
        if here in point.passed:
            raise NewProcedure(point.pc)
        passed = frozenset({item for item in point.passed if item[1] <= len(point.frames)} | {here})
        try:
            block = self._blocks.fixed_block(point.pc)
        except Unsupported as error:
            yield _because(bad, str(error))
            return
        if block is None:
            raise NotApplicable(f"code at {point.pc:#x} could be overwritten")
        code = b"".join(instruction.bytes for instruction in block)
        outcomes = self._outcomes.of(Location(point.pc, code, ANY, ANY, None), block)
        for outcome in outcomes:
            yield from self._take(procedure, point, outcome, passed, len(outcomes) > 1)

    def _take(
        self, procedure: int | None, point: _Point, outcome: Outcome, passed: frozenset[tuple[int, int]], branches: bool
    ) -> Iterator[Path | _Point]:
        names = self._names
        fresh = {
            variable: t.var(f"{str(variable.data).partition('!')[0]}!{len(point.fresh) + number}", variable.width)
            for number, variable in enumerate(outcome.fresh)
        }
        before = point.state.with_more(fresh)
        guard = _extended(point.guard, before.all(outcome.guard))
        if guard is None or (branches and not self._feasible(guard, procedure is None)):
            return
        if outcome.unsupported:
            yield Path(procedure, point.start, guard, point.calls, End.BAD, point.state, outcome.unsupported)
            return
        registers = dict(point.state.registers)
        registers.update(
            {register: before.of(value) for register, value in outcome.state.items() if register is not names.memory}
        )
        state = State(names, registers, before.of(outcome.memory), point.state.kept)
        target, frames = before.of(outcome.target), point.frames
        if outcome.transfer is Transfer.RETURN:
            expected = names.address(frames[-1].return_to) if frames else self._expected(procedure)
            elsewhere = _extended(guard, [t.ne(target, expected)])
            if elsewhere is not None:
                yield Path(procedure, point.start, elsewhere, point.calls, End.BAD, state, "a return elsewhere")
            arrives = _extended(guard, [t.eq(target, expected)])
            if arrives is None:
                return
            if frames:
                yield replace(
                    point,
                    pc=frames[-1].return_to,
                    state=state,
                    guard=arrives,
                    frames=frames[:-1],
                    passed=passed,
                    fresh=(*point.fresh, *fresh.values()),
                    is_start=False,
                )
            elif procedure is not None:
                yield Path(procedure, point.start, arrives, point.calls, End.RETURN, state)
            return
        if outcome.transfer is Transfer.CALL:
            frames = (*frames, _Frame(outcome.following, -1))
        for pc, arrives in self._targets(target, guard, procedure is None):
            inner = frames
            if outcome.transfer is Transfer.CALL:
                inner = (*frames[:-1], _Frame(outcome.following, pc))
                if any(frame.function == pc for frame in frames[:-1]):
                    raise NewProcedure(pc)
                if len(inner) > MAX_DEPTH:
                    raise NotApplicable("calls nested too deep")
            yield replace(
                point,
                pc=pc,
                state=state,
                guard=arrives,
                frames=inner,
                passed=passed,
                fresh=(*point.fresh, *fresh.values()),
                is_start=False,
            )

    def _targets(self, target: Term, guard: tuple[Term, ...], at_entry: bool) -> list[tuple[int, tuple[Term, ...]]]:
        if target.op != "const":
            raise NotApplicable(f"a jump to {target}")
        return [(int(target.data), guard)]

    def _expected(self, procedure: int | None) -> Term:
        return self._names.address(self._program.return_sentinel) if procedure is None else self._names.return_to

    def _begin(self, procedure: int | None, point: _Point) -> Iterator[Path | _Point]:
        """Another activation begins here: its summary says in which states it returns, if it does."""
        frames = point.frames
        return_to = self._names.address(frames[-1].return_to) if frames else self._expected(procedure)
        after = self._summary(point.pc).behind(self._names, point.state, return_to, f"call {len(point.calls)} ")
        calls = (*point.calls, Call(point.pc, point.state, return_to, after))
        yield Path(procedure, point.start, point.guard, calls, End.BEGIN, point.state, fresh=point.fresh)
        if frames:
            yield replace(point, pc=frames[-1].return_to, state=after, calls=calls, frames=frames[:-1], is_start=False)
        elif procedure is not None:
            yield Path(procedure, point.start, point.guard, calls, End.RETURN, after)

    def _is_executable(self, address: int) -> bool:
        region = self._program.space.region_at(address)
        return region is not None and bool(region.permissions & EXECUTE)


def _because(path: Path, what: str) -> Path:
    return replace(path, what=what)


def _extended(guard: tuple[Term, ...], literals: Sequence[Term]) -> tuple[Term, ...] | None:
    """The guard with more literals, or None if that cannot hold."""
    known = dict.fromkeys(guard)
    for literal in literals:
        for part in literal.args if literal.op == "and" and literal.width == 1 else (literal,):
            if part is t.FALSE or t.bnot(part) in known:
                return None
            if part is not t.TRUE:
                known[part] = None
    return tuple(known)
