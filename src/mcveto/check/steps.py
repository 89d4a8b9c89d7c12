"""What the code of a location can do: every way through its instructions, derived from the binary.

A location covers consecutive instructions. They are decoded again from the bytes of the image; where memory could have
been written they are a single instruction, decoded from the bytes that the location says are there. Control that leaves
them early, and an address on the way that the spec speaks of (a target, a halt, a replaced function), ends the step
there: blocks are cut here, whatever the certificate thinks of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcveto.check.formulas import Formula, Value, vector
from mcveto.check.question import Rejected
from mcveto.check.values import CheckerDomain, Vocabulary, allows
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Instruction, Transfer
from mcveto.program.program import Program

MAX_WAYS = 4096
OUTSIDE = "something outside the file"


@dataclass(frozen=True, slots=True)
class Place:
    """A location with its numbers read."""

    name: str
    pc: int
    code: tuple[bytes, ...]
    frames: tuple[int, ...] | None


@dataclass(slots=True)
class Outcome:
    """One way through the code: under `guard`, control goes to `target` in `state`."""

    guard: list[Formula]
    state: CheckerDomain
    transfer: Transfer
    target: Value
    following: int
    """The address behind the last instruction: where a call is expected to return."""
    system_call: bool = False
    unsupported: str = ""
    history: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What becomes of the history, by the name of the location where the step ends and of the variable."""
    held: Collection[Any] = ()
    """Conditions that hold before."""


class Steps:
    def __init__(self, program: Program, vocabulary: Vocabulary) -> None:
        self._program = program
        self._vocabulary = vocabulary
        self._row = program.decoder.row
        self.interpreter: Interpreter[Value] = Interpreter(program.decoder)
        # Where what is not mapped may belong to another module: nobody knows what happens there.
        self.foreign = [(low, high - 1) for low, high in program.undetermined.foreign_ranges()]
        self._decoded: dict[tuple[int, tuple[bytes, ...]], list[Instruction]] = {}
        self._stops = {self._row.code_address(pc) for pc in program.hooks} | program.halts | program.targets

    def instructions(self, place: Place) -> list[Instruction]:
        """The code of a location, decoded; raises Rejected where the image or the decoder disagree."""
        if (place.pc, place.code) not in self._decoded:
            self._decoded[place.pc, place.code] = self._decode(place)
        return self._decoded[place.pc, place.code]

    def _decode(self, place: Place) -> list[Instruction]:
        hook = self._program.hooks.get(place.pc)
        if hook is not None:
            # What a property watches is an instruction of the image; what the spec replaces has no bytes.
            if place.code != ((hook.bytes,) if hook.bytes else ()):
                raise Rejected(f"{place.name} has other code than what the spec or a property puts there")
            return [hook]
        if not place.code:
            raise Rejected(f"{place.name} has no code")
        instructions: list[Instruction] = []
        pc = place.pc
        for code in place.code:
            address = self._row.code_address(pc)
            for offset, byte in enumerate(code):
                if not allows(self._program.space, address + offset, EXECUTE):
                    raise Rejected(f"{place.name}: {address + offset:#x} is not executable")
                fixed = self._program.space.fixed_bytes(address + offset, 1)
                if fixed is None and len(place.code) > 1:
                    raise Rejected(f"{place.name} is more than one instruction of code that could be overwritten")
                if fixed is not None and fixed[0] != byte:
                    raise Rejected(f"{place.name}: {address + offset:#x} holds {fixed[0]:#04x}, not {byte:#04x}")
            try:
                instruction = self._program.decoder.decode(pc, code)
            except Unsupported as error:
                raise Rejected(f"{place.name}: {error}") from None
            if instruction.bytes != code:
                raise Rejected(f"{place.name}: {code.hex()} is not one instruction")
            instructions.append(instruction)
            pc = (pc + instruction.size) & self._row.address_mask
        return instructions

    def outcomes(self, place: Place, registers: dict[int, int], known: dict[int, int]) -> Iterator[Outcome]:
        """Every way through the code that does not end in a fault, from states in which registers (by number) and
        bytes (by address) are known."""
        instructions = self.instructions(place)
        scripts: list[tuple[bool, ...]] = [()]
        ways = 0
        while scripts:
            domain = CheckerDomain(self._vocabulary, self._program.space, scripts.pop())
            domain.foreign = self.foreign
            domain.stated = registers
            domain.known.update(known)
            outcome = self._run(instructions, domain)
            if outcome is not None:
                yield outcome
            for guard in domain.strays:
                yield Outcome(guard, domain, Transfer.JUMP, place.pc, place.pc, unsupported=OUTSIDE)
            scripts.extend(domain.other_ways)
            ways += 1
            if ways > MAX_WAYS:
                raise Rejected(f"{place.name}: more than {MAX_WAYS} ways through the code")

    def _run(self, instructions: list[Instruction], domain: CheckerDomain) -> Outcome | None:
        for instruction in instructions:
            following = (instruction.pc + instruction.size) & self._row.address_mask
            outcome = Outcome(domain.guard, domain, Transfer.JUMP, following, following)
            try:
                step = self.interpreter.execute(instruction, domain)
            except Fault as fault:
                outcome.system_call = fault.kind is FaultKind.SYSTEM_CALL
                if fault.address is not None and self._program.undetermined.is_foreign(fault.address):
                    outcome.unsupported = OUTSIDE
                return outcome if outcome.system_call or outcome.unsupported else None
            except Unsupported as error:
                outcome.unsupported = str(error)
                return outcome
            outcome.transfer, target = step
            outcome.target = target if isinstance(target, int) else vector(target, self._row.address_bits)
            if step.transfer is not Transfer.FALL or not isinstance(target, int) or target != following:
                return outcome
            if self._row.code_address(following) in self._stops:
                return outcome
        return outcome
