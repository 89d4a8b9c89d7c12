"""Certificates about procedures (recursion of any depth): every path is followed, activations are known by summaries.

A procedure is a program counter with what an activation requires of the state it begins in, what it ensures of the
state behind its return, if it returns, and which memory it keeps. The claim of the certificate: every activation that
begins at a procedure begins as required; if it returns, it returns to the address it is expected to, as ensured; on no
path is a target. By induction over the steps of a run this follows from the obligations of the paths from the entry and
from each procedure, on which an activation that begins is replaced by any state that its summary allows:

- no path comes to a target, or to anything unsupported;
- a return goes to the address that its activation expects: of a call that the path followed, the one behind it, else
  the activation's own, `expected return`, of which nothing is known but what is required;
- where an activation begins, what its procedure requires holds (`expected return` is what it will be expected to be);
- where the own activation returns, what its procedure ensures holds, and the memory it keeps is kept.

Code that could be overwritten, jumps to addresses that are not certain and paths without end are rejected.

What a call keeps of memory is a sentence about all addresses. It is used at the addresses that a formula reads, and
proved for one of which nothing is known, so no formula has a quantifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import z3

from mcveto.check.certificate import HALT, Certificate, Location
from mcveto.check.formulas import Formula, Value, all_of, no, parts, reads, vector
from mcveto.check.obligations import Checker, Obligation, parse
from mcveto.check.question import Rejected, number
from mcveto.check.records import Frame, Procedure
from mcveto.check.steps import Outcome
from mcveto.check.stored_words import Behind, StoredWords, Stores
from mcveto.check.values import Vocabulary
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Instruction, Transfer
from mcveto.program.program import Program

MAX_POINTS = 20_000
PRUNE_MILLISECONDS = 500
ALWAYS_MILLISECONDS = 200
AFTER = "after "
EXPECTED = "expected return"
Activation = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    requires: Formula
    ensures: Formula
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Point:
    """Where a path is; `names` is the state that `registers` are changes to."""

    pc: int
    names: Vocabulary
    registers: dict[int, Value]
    memory: Formula
    guard: tuple[Formula, ...]
    frames: tuple[int, ...] = ()
    behind: tuple[Behind, ...] = ()
    fresh: int = 0
    is_first: bool = False


class ProcedureChecker(Checker):
    few = 1

    def __init__(self, certificate: Certificate, program: Program) -> None:
        if certificate.locations or certificate.start or certificate.history:
            raise Rejected("locations and procedures in one certificate")
        super().__init__(certificate, program)
        if self._steps.foreign:
            raise Rejected("procedures of a program that depends on other modules")
        self._bits = self._row.address_bits
        self._after = Vocabulary(self._vocabulary.layout, self._bits, AFTER)
        self._expected = z3.BitVec(EXPECTED, self._bits)
        (self._stack_pointer,) = program.decoder.layout.named(self._row.stack_pointer)
        self._stores: Stores
        self._summaries: dict[int, Summary] = {}
        for item in certificate.procedures:
            if number(item.pc) in self._summaries:
                raise Rejected(f"{item.pc} is listed twice")
            self._summaries[number(item.pc)] = self._read(item)
        self.locations = list(self._summaries)

    def _read(self, item: Procedure) -> Summary:
        cells = self._program.decoder.layout.cells
        before = {cell.name: self._vocabulary.variable(cell) for cell in cells}
        before |= {"mem": self._vocabulary.memory, EXPECTED: self._expected}
        after = {f"{AFTER}{cell.name}": self._after.variable(cell) for cell in cells}
        after |= {f"{AFTER}mem": self._after.memory}
        requires, ensures = parse(item.requires, before), parse(item.ensures, before | after)
        return Summary(all_of([z3.BoolVal(True), *requires]), all_of([z3.BoolVal(True), *ensures]), item.frame)

    def obligations(self, part: int) -> Iterator[Obligation]:
        """Those of the paths from the entry (-1), or from a procedure."""
        own: int | None = None if part < 0 else self.locations[part]
        registers: dict[int, Value] = dict(self._program.registers) if own is None else {}
        guard = () if own is None else (self._summaries[own].requires,)
        self._stores = Stores(self._space, partial(self._always, guard, {}))
        pc = self._program.entry if own is None else own
        waiting = [Point(pc, self._vocabulary, registers, self._vocabulary.memory, guard, is_first=own is not None)]
        count = 0
        while waiting:
            count += 1
            if count > MAX_POINTS:
                raise Rejected(f"too many or endless paths from {pc:#x}")
            for item in self._advance(own, waiting.pop()):
                if isinstance(item, Point):
                    waiting.append(item)
                else:
                    yield item

    def _advance(self, own: int | None, point: Point) -> Iterator[Point | Obligation]:
        address = self._row.code_address(point.pc)
        if address in self._program.targets:
            yield self._obligation(own, f"no path to the target {address:#x}", point, point.guard)
            return
        if address in self._halts:
            return
        if point.pc in self._summaries and not point.is_first:
            yield from self._begin(own, point)
            return
        region = self._space.region_at(address)
        hook = self._program.hooks.get(point.pc)
        if hook is None and (region is None or not region.permissions & EXECUTE):
            return
        scripts: list[tuple[bool, ...]] = [()]
        while scripts:
            script = scripts.pop()
            domain = StoredWords(point.names, self._space, script)
            domain.stores, domain.calls = self._stores, point.behind
            domain.registers, domain.memory = dict(point.registers), point.memory
            domain.fresh_count = point.fresh
            yield from self._execute(own, point, hook, domain, bool(script))
            scripts.extend(domain.other_ways)

    def _execute(
        self, own: int | None, point: Point, hook: Instruction | None, domain: StoredWords, is_decision: bool
    ) -> Iterator[Point | Obligation]:
        """The way through one instruction that the domain takes; `is_decision` if it was another one before."""
        where = f"at {point.pc:#x}"
        try:
            instruction = hook or self._fixed_instruction(point.pc)
            step = self._steps.interpreter.execute(instruction, domain)
        except Fault as fault:
            if fault.kind is FaultKind.SYSTEM_CALL:
                here = Outcome(domain.guard, domain, Transfer.JUMP, point.pc, point.pc)
                guard = (*point.guard, *domain.guard, no(self.exits(here)))
                yield self._obligation(own, f"system call {where}", point, guard)
            return
        except Unsupported as error:
            yield self._obligation(own, f"{error} {where}", point, (*point.guard, *domain.guard))
            return
        if any(item is False for item in domain.guard):
            return
        said = {item.get_id() for item in point.guard}
        guard = (*point.guard, *(item for item in domain.guard if item.get_id() not in said))
        if (is_decision or domain.other_ways) and self._is_impossible(guard, point.behind):
            return
        after = replace(
            point,
            registers=domain.registers,
            memory=domain.memory,
            guard=guard,
            fresh=domain.fresh_count,
            is_first=False,
        )
        following = (instruction.pc + instruction.size) & self._row.address_mask
        if step.transfer is Transfer.RETURN:
            expected = self._return_address(own, point)
            elsewhere = vector(step.target, self._bits) != expected
            yield self._obligation(own, f"return {where}", after, (*guard, elsewhere))
            yield from self._returned(own, after)
        elif not isinstance(step.target, int):
            raise Rejected(f"a jump {where} to an address that is not certain")
        elif step.transfer is Transfer.CALL:
            yield replace(after, pc=step.target, frames=(*point.frames, following))
        else:
            yield replace(after, pc=step.target)

    def _fixed_instruction(self, pc: int) -> Instruction:
        address = self._row.code_address(pc)
        sizes = range(self._row.longest_unit(pc), 0, -1)
        codes = (self._space.fixed_bytes(address, size) for size in sizes)
        code = next((code for code in codes if code is not None), None)
        if code is None:
            raise Rejected(f"the code at {pc:#x} could be overwritten")
        return self._program.decoder.decode(pc, code)

    def _return_address(self, own: int | None, point: Point) -> Any:
        if point.frames:
            return z3.BitVecVal(point.frames[-1], self._bits)
        return self._expected if own is not None else z3.BitVecVal(self._program.return_sentinel, self._bits)

    def _returned(self, own: int | None, point: Point) -> Iterator[Point | Obligation]:
        """Behind the innermost return that is expected: the path goes on, or the own activation ends."""
        if point.frames:
            yield replace(point, pc=point.frames[-1], frames=point.frames[:-1])
        elif own is not None:
            summary = self._summaries[own]
            holds = z3.substitute(summary.ensures, *self._state(point, self._after))
            parts = [*(holds.children() if z3.is_and(holds) else [holds]), *self._whole(point)]
            every = self._obligation(own, "what is ensured", point, (*point.guard, *parts))
            known = every.formulas[len(point.guard) + len(parts) :]
            # One by one: what is ensured for one argument is mostly rewritten to "true" once that is put in.
            yield from (replace(every, formulas=(*point.guard, *known, no(part))) for part in parts)
            if summary.frame is not None:
                kept = self._keeps_frame(summary.frame, point)
                yield self._obligation(own, "the memory that is kept", point, (*point.guard, no(kept)))

    def _begin(self, own: int | None, point: Point) -> Iterator[Point | Obligation]:
        """An activation begins that is known by its summary."""
        summary = self._summaries[point.pc]
        said = [*self._state(point, self._vocabulary), (self._expected, self._return_address(own, point))]
        parts = [z3.substitute(summary.requires, *said), *self._whole(point)]
        what = f"what {point.pc:#x} requires"
        yield self._obligation(own, what, point, (*point.guard, no(all_of(parts))))
        names = Vocabulary(self._vocabulary.layout, self._bits, f"call {len(point.behind)} ")
        behind = Point(0, names, {}, names.memory, ())
        ensures = z3.substitute(summary.ensures, *said, *self._state(behind, self._after))
        registers = dict(self._given(names, [ensures, *ensures.children()]))
        keeps = self._keeping(summary.frame, self._pointer(point))
        yield from self._returned(
            own,
            replace(
                point,
                names=names,
                registers=registers,
                memory=names.memory,
                guard=(*point.guard, ensures),
                behind=(*point.behind, Behind(names.memory, point.memory, keeps)),
            ),
        )

    def _given(self, names: Vocabulary, equations: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Registers of a state that equations give at a constant distance from something of another state."""
        cells = self._program.decoder.layout.cells
        mine = {names.variable(cell).get_id(): cell for cell in cells} | {names.memory.get_id(): None}
        for equation in filter(z3.is_eq, equations):
            for part in parts([equation]):
                cell = mine.get(part.get_id())
                if cell is None or part.sort() != equation.arg(0).sort() or part.sort() != z3.BitVecSort(cell.bits):
                    continue
                # The sides are equal, so all of these are.
                for value in (part + equation.arg(1) - equation.arg(0), part + equation.arg(0) - equation.arg(1)):
                    now = z3.simplify(value)
                    if all(x.get_id() not in mine for x in parts([now])):
                        yield cell.number, now

    def _pointer(self, point: Point) -> Any:
        cell = self._stack_pointer.cell
        return vector(point.registers.get(cell.number, point.names.before(cell)), cell.bits)

    def _state(self, point: Point, names: Vocabulary) -> list[tuple[Any, Any]]:
        """What `names` stand for at a point."""
        found: list[tuple[Any, Any]] = [(names.memory, point.memory)]
        for cell in self._program.decoder.layout.cells:
            value = point.registers.get(cell.number)
            now = point.names.variable(cell) if value is None else self._vocabulary.after(cell, value)
            found.append((names.variable(cell), now))
        return found

    def _whole(self, point: Point) -> list[Formula]:
        """That bits of registers which can never be set are not."""
        cells = self._program.decoder.layout.cells
        return [self._vocabulary.is_whole(cells[at], value) for at, value in point.registers.items()]

    def _keeping(self, frame: Frame | None, stack_pointer: Any) -> Callable[[Any], Formula]:
        """Whether the byte at an address is kept by an activation that begins with this stack pointer."""
        if frame is None:
            return lambda address: z3.BoolVal(False)
        spans = [(number(start), number(end)) for start, end in frame.written]

        def keeps(address: Any) -> Formula:
            kept = z3.Or(z3.UGE(address, stack_pointer + number(frame.above)), z3.ULT(address, number(frame.below)))
            return all_of([kept, *(z3.Or(z3.ULT(address, start), z3.UGE(address, end)) for start, end in spans)])

        return keeps

    def _keeps_frame(self, frame: Frame, point: Point) -> Formula:
        """That neither a store of the path nor an activation within it writes what is to be kept."""
        start = Point(0, self._vocabulary, {}, self._vocabulary.memory, ())
        keeps = self._keeping(frame, self._pointer(start))
        where = z3.BitVec("some address", self._bits)
        behind = {item.memory.get_id(): item for item in point.behind}
        memory, parts = point.memory, [z3.BoolVal(True)]
        while not z3.eq(memory, self._vocabulary.memory):
            if z3.is_store(memory):
                memory, address, _ = memory.children()
                parts.append(z3.Not(keeps(address)))
            else:
                inner = behind[memory.get_id()]
                memory = inner.before
                parts.append(z3.Implies(keeps(where), inner.keeps(where)))
        return all_of(parts)

    def _obligation(self, own: int | None, what: str, point: Point, formulas: Sequence[Formula]) -> Obligation:
        start = "the entry" if own is None else f"{own:#x}"
        known = self._fixed_byte if own is not None else self._space.initial_byte
        return Obligation(
            f"from {start}: {what}",
            (*formulas, *self._kept(formulas, point.behind)),
            [(self._vocabulary.memory, known)],
        )

    def _always(self, required: Sequence[Any], known: dict[int, tuple[Any, bool]], formula: Any) -> bool:
        """Whether a formula follows from what an activation requires, of other things than memory."""
        if formula.get_id() not in known:
            solver = z3.SimpleSolver()
            solver.set("timeout", ALWAYS_MILLISECONDS)
            conjuncts = [part for item in required for part in (item.children() if z3.is_and(item) else [item])]
            solver.add(*(item for item in conjuncts if not any(True for _ in reads([item]))), z3.Not(formula))
            known[formula.get_id()] = formula, solver.check() == z3.unsat
        return known[formula.get_id()][1]

    def _is_impossible(self, guard: Sequence[Formula], behind: Sequence[Behind]) -> bool:
        solver = z3.SimpleSolver()
        solver.set("timeout", PRUNE_MILLISECONDS)
        solver.add(*guard, *self._kept(guard, behind))
        return bool(solver.check() == z3.unsat)

    def _kept(self, formulas: Sequence[Formula], behind: Sequence[Behind]) -> list[Formula]:
        """What is known of the bytes that formulas read behind activations: those that are kept are as before."""
        by_memory = {item.memory.get_id(): item for item in behind}
        found: list[Formula] = []
        pending = list(formulas) if behind else []
        for memory, index in reads(pending):
            item = by_memory.get(memory.get_id())
            if item is not None:
                found.append(z3.Implies(item.keeps(index), memory[index] == item.before[index]))
                pending.append(found[-1])
        return found


def checker_of(certificate: Certificate, program: Program) -> Checker:
    return (ProcedureChecker if certificate.procedures else Checker)(certificate, program)


def obligations_of(checker: Checker, part: int) -> Iterable[Obligation]:
    """Those of the entry (-1), or of a location or procedure."""
    if isinstance(checker, ProcedureChecker):
        return checker.obligations(part)
    return [checker.initiation()] if part < 0 else checker.consecution(checker.locations[part])


def pending_addresses(locations: Sequence[Location], start: Sequence[str], sentinel: int) -> dict[str, set[int]]:
    """Without call strings: the return addresses pending at each location, on paths whose returns match calls.

    An activation is the location it began in and the address pending in it. A call begins one and remembers the
    caller's; a return continues every caller of its own.
    """
    by_name = {location.id: location for location in locations}
    begun = [((name, sentinel), name) for name in start]
    reached: set[tuple[Activation, str]] = set()
    callers: dict[Activation, set[Activation]] = {}
    returned: dict[Activation, set[str]] = {}
    pending: dict[str, set[int]] = {}
    while begun:
        activation, name = item = begun.pop()
        if item in reached:
            continue
        reached.add(item)
        pending.setdefault(name, set()).add(activation[1])
        begun += [(activation, step) for step in by_name[name].steps if step != HALT]
        for call in by_name[name].calls:
            called = (call.to, number(call.expecting))
            callers.setdefault(called, set()).add(activation)
            begun += [(called, call.to), *((activation, back) for back in returned.get(called, ()))]
        for edge in by_name[name].returns:
            if number(edge.expecting) == activation[1]:
                returned.setdefault(activation, set()).add(edge.to)
                begun += [(caller, edge.to) for caller in callers.get(activation, ())]
    return pending
