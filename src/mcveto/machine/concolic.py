"""Symbolic execution along the run that a given assignment of the inputs takes (TR1669 §2, "symbolic execution along
the path taken during the concrete execution").

No recorded trace is needed: every decision, indirect target and symbolic address is evaluated under the assignment,
each new term once, so the cost is linear in the run. What the run depended on is in `path`: branch conditions,
indirect targets, accesses that must not fault, and code bytes that could have been overwritten.

The assignment gives a value to every register variable, every unspecified byte and every fresh value, in the order in
which they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from mcveto.late_methods import dataclass

from ..logic import terms as t
from ..logic.evaluate import Evaluator
from ..logic.terms import Term
from .address_space import AddressSpace
from .faults import Fault, Unsupported
from .interpreter import Interpreter
from .isa import Decoder
from .memory import EXECUTE, denied, missing
from .pcode import FreshOrigin, Instruction, Transfer
from .symbolic import ConstraintKind, SymbolicDomain


@dataclass
class Assignment:
    """Values for what the program does not determine; a missing register or byte is 0."""

    registers: Mapping[str, int] = field(default_factory=dict)
    memory: Callable[[int], int] = lambda address: 0
    fresh: Callable[[int, FreshOrigin, int], int] = lambda bits, origin, usual: usual


@dataclass(frozen=True, slots=True)
class LocatedConstraint:
    """A conjunct of the path constraint with the step and instruction it comes from."""

    step: int
    pc: int
    kind: ConstraintKind
    term: Term


class ConcolicExecution:
    """One run, symbolically. `domain` holds the symbolic state after the steps taken so far."""

    def __init__(
        self,
        decoder: Decoder,
        space: AddressSpace,
        pc: int,
        assignment: Assignment,
        *,
        registers: Mapping[int, Term] | None = None,
        hooks: Mapping[int, Instruction] | None = None,
        halts: Collection[int] = (),
    ) -> None:
        self._decoder = decoder
        self._interpreter: Interpreter[Term] = Interpreter(decoder)
        self._space = space
        self._assignment = assignment
        self._hooks = hooks or {}
        self._halts = frozenset(decoder.row.code_address(halt) for halt in halts)
        self.fresh_values: list[tuple[Term, FreshOrigin, int]] = []
        self.fresh_positions: dict[Term, int] = {}
        """Where each fresh variable stands in `fresh_values`."""
        self._fresh_counts = dict.fromkeys(FreshOrigin, 0)
        self._fresh_by_name: dict[Term, int] = {}
        self.evaluator = Evaluator(self._variable, lambda _, address: self._initial_byte(address))
        self.domain = SymbolicDomain(decoder.layout, space, self._choose, self._fresh)
        self.domain.locate = self.evaluator.value
        self.domain.registers.update(registers or {})
        self.pc = pc
        self.steps = 0
        self.path: list[LocatedConstraint] = []

    def step(self) -> Transfer | None:
        """One instruction; None where a halt is reached. Raises Fault or Unsupported as the run would."""
        if self._decoder.row.code_address(self.pc) in self._halts:
            return None
        try:
            instruction = self._fetch()
            outcome = self._interpreter.execute(instruction, self.domain)
            target = outcome.target
            assert isinstance(target, Term)
            if target.op != "const":
                self.domain.assume(
                    ConstraintKind.TARGET, t.eq(target, t.const(self.evaluator.value(target), target.width))
                )
        finally:
            self._collect()
        self.pc = self.evaluator.value(target)
        self.steps += 1
        return outcome.transfer

    def run(self, max_steps: int) -> str:
        """Steps until a halt, a fault, something unsupported or the limit; says which."""
        while self.steps < max_steps:
            try:
                if self.step() is None:
                    return "halted"
            except Fault as fault:
                return f"fault: {fault}"
            except Unsupported as error:
                return str(error)
        return "limit"

    def code_bytes(self) -> bytes:
        """The executable bytes at the program counter as they are now; raises Fault where there are none."""
        address = self._decoder.row.code_address(self.pc)
        self._check_executable(address)
        return self._code_bytes(address, self._decoder.row.longest_unit(self.pc))

    def _collect(self) -> None:
        for kind, term in self.domain.path:
            self.path.append(LocatedConstraint(self.steps, self.pc, kind, term))
        self.domain.path.clear()

    def _fetch(self) -> Instruction:
        hook = self._hooks.get(self.pc)
        if hook is not None:
            return hook
        address = self._decoder.row.code_address(self.pc)
        self._check_executable(address)
        longest = self._decoder.row.longest_unit(self.pc)
        fixed = self._space.fixed_bytes(address, longest)
        if fixed is not None:
            return self._decoder.decode(self.pc, fixed)
        instruction = self._decoder.decode(self.pc, self._code_bytes(address, longest))
        if self._may_have_changed(address, instruction.size):
            current = self.domain.memory.load(t.const(address, self._space.address_bits), instruction.size)
            order = "big" if self._space.big_endian else "little"
            expected = t.const(int.from_bytes(instruction.bytes, order), current.width)  # type: ignore[arg-type]
            self.domain.assume(ConstraintKind.CODE, t.eq(current, expected))
        return instruction

    def _check_executable(self, address: int) -> None:
        region = self._space.region_at(address)
        if region is None:
            raise Fault(missing(EXECUTE), address)
        if not region.permissions & EXECUTE:
            raise Fault(denied(EXECUTE), address)

    def _may_have_changed(self, address: int, size: int) -> bool:
        return any(self._space.writable(address + i & self._space.mask) for i in range(size)) or any(
            self._space.initial_byte(address + i & self._space.mask) is None for i in range(size)
        )

    def _code_bytes(self, address: int, longest: int) -> bytes:
        """Up to `longest` executable bytes at `address` as they are at this point of the run."""
        code = bytearray()
        for offset in range(longest):
            where = (address + offset) & self._space.mask
            region = self._space.region_at(where)
            if region is None or not region.permissions & EXECUTE:
                break
            byte = self.domain.memory.load(t.const(where, self._space.address_bits), 1)
            code.append(byte.data if byte.op == "const" else self.evaluator.value(byte))
        return bytes(code)

    def _choose(self, condition: Term) -> bool:
        return bool(self.evaluator.value(condition))

    def _fresh(self, bits: int, origin: FreshOrigin, usual: Term) -> Term:
        prefix = "in" if origin is FreshOrigin.INPUT else "undef"
        variable = t.var(f"{prefix}{self._fresh_counts[origin]}", bits)
        self._fresh_counts[origin] += 1
        self.fresh_positions[variable] = len(self.fresh_values)
        value = self._assignment.fresh(bits, origin, self.evaluator.value(usual))
        self.fresh_values.append((variable, origin, value))
        self._fresh_by_name[variable] = value
        return variable

    def _variable(self, variable: Term) -> int:
        value = self._fresh_by_name.get(variable)
        if value is None:
            value = self._assignment.registers.get(str(variable.data), 0)
        return value & ((1 << variable.width) - 1)

    def _initial_byte(self, address: int) -> int:
        known = self._space.initial_byte(address)
        return self._assignment.memory(address) if known is None else known
