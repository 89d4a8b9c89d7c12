"""Unicorn as the other machine of a replay.

One instruction per call, or a stretch of them; where one of our steps is several of Unicorn's (an IT block of Thumb) it
runs until it arrives where the reference emulator did. Stores to code in single steps are followed by forgetting what
was translated, whether or not Unicorn notices them itself.

Unicorn is not ground truth: instructions about which it is known to contradict the manual (docs/agreement) end the
comparison without a judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcveto.check.lockstep import CannotFollow, Stopped
from mcveto.machine.emulator import Machine
from mcveto.machine.memory import EXECUTE, READ, WRITE, Region
from mcveto.machine.pcode import Instruction
from mcveto.machine.trace import TraceStep
from mcveto.program.program import Program

if TYPE_CHECKING:
    from mcveto.check.unicorn_registers import UnicornIsa

_PAGE = 4096
_TRANSLATION_BUFFER = 16 << 20
# Instructions a step may consist of, as a bound.
_LONGEST_UNIT = 8
_HIDDEN = {"powerpc": ("xer_so", "xer_ov", "xer_ca"), "x86": ("FS_OFFSET", "GS_OFFSET")}
# Mnemonics (or their beginnings) that Unicorn is known to get wrong, by overlay.
_KNOWN_WRONG = {
    "x86": ("CMPXCHG", "SAHF", "LAHF", "NEG.LOCK"),
    "arm": ("strex", "stlex", "yield"),
    "aarch64": ("stxr", "stlxr", "stxp", "stlxp"),
    "riscv": ("sc.",),
    "powerpc": ("stwcx",),
}


class UnicornFollower:
    name = "unicorn"

    def __init__(self, program: Program) -> None:
        self._program = program
        self._row = program.decoder.row
        self._known_wrong = _KNOWN_WRONG.get(self._row.overlay, ())
        self._engine: Any = None
        self._interrupt: int | None = None
        self._wrote_code = False

    def begin(self, machine: Machine) -> None:
        self.take_over(machine)
        self._engine.hook_add(self._unicorn.UC_HOOK_MEM_WRITE, self._on_write)

    def take_over(self, machine: Machine) -> None:
        """The state of a machine, for stretches; `begin` also prepares for single steps."""
        try:
            import unicorn

            from mcveto.check.unicorn_registers import unicorn_isa
        except ImportError as error:
            raise CannotFollow(f"unicorn cannot be imported: {error}") from None
        self._unicorn = unicorn
        isa = self._program.image.isa
        thumb = bool(machine.pc & self._row.mode_mask) and self._row.overlay == "arm"
        found = unicorn_isa(isa, self._row.general, thumb)
        if found is None:
            raise CannotFollow(f"Unicorn does not have {isa}, or cannot be single-stepped in it")
        self._isa = found
        hidden = [name for name in _HIDDEN.get(self._row.overlay, ()) if machine.read(name)]
        if hidden:
            raise CannotFollow(f"{', '.join(hidden)} cannot be set in Unicorn")
        try:
            self._engine = engine = new_engine(found)
            self._map(engine, machine)
        except unicorn.UcError as error:
            raise CannotFollow(f"Unicorn cannot hold the program: {error}") from None
        engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt)
        self._ids = sorted({bits.register for bits in found.registers.values()})
        self.set_registers({name: machine.read(name) for name in found.registers}, machine.pc)

    def _map(self, engine: Any, machine: Machine) -> None:
        for start, size, protection in page_protections(machine.memory.regions):
            engine.mem_map(start, size, protection)
        for region in machine.memory.regions:
            engine.mem_write(region.start, bytes(region.data))
        self._code = [(r.start, r.end) for r in machine.memory.regions if r.permissions & EXECUTE]

    def _on_interrupt(self, engine: Any, number: int, _: object) -> None:
        self._interrupt = number
        engine.emu_stop()

    def _on_write(self, engine: Any, access: int, address: int, size: int, *_: object) -> None:
        if any(start < address + size and address < end for start, end in self._code):
            self._wrote_code = True

    def step(self, step: TraceStep) -> int:
        mnemonic = self._program.decoder.decode(step.pc, step.bytes).mnemonic
        if mnemonic.startswith(self._known_wrong):
            raise CannotFollow(f"{mnemonic} at {step.pc:#x}, about which Unicorn is known to be wrong")
        unit = len(step.bytes) > 4 and self._row.overlay == "arm"
        if unit and step.next_pc == step.pc:
            raise CannotFollow(f"a step at {step.pc:#x} that is several of Unicorn's and leads to itself")
        self._interrupt, self._wrote_code = None, False
        pc = self._start(step, unit)
        if self._wrote_code and pc == step.pc != step.next_pc:
            # The instruction overwrites itself: Unicorn forgets it and wants to be started again.
            pc = self._start(step, unit)
        if self._wrote_code:
            for start, end in self._code:
                self._engine.ctl_remove_cache(start, end)
        return pc

    def _start(self, step: TraceStep, unit: bool) -> int:
        engine, error = self._engine, None
        # Translation ends there too: a store never hits a block that goes on behind it.
        until = self._row.code_address(step.next_pc if unit else step.pc + len(step.bytes))
        try:
            engine.emu_start(step.pc, until, count=_LONGEST_UNIT if unit else 1)
        except self._unicorn.UcError as failure:
            error = int(failure.errno)
        if self._interrupt is not None:
            raise Stopped(f"interrupt {self._interrupt}")
        pc = int(engine.reg_read(self._isa.program_counter))
        if self._row.overlay == "arm" and engine.query(self._unicorn.UC_QUERY_MODE) & self._unicorn.UC_MODE_THUMB:
            pc |= 1
        fetch_errors = (self._unicorn.UC_ERR_FETCH_UNMAPPED, self._unicorn.UC_ERR_FETCH_PROT)
        if error is not None and not (error in fetch_errors and pc != step.pc):
            raise Stopped(f"an error ({self._unicorn.UcError(error)})")
        return pc

    def stop_at(self, addresses: Iterable[int]) -> None:
        """Where stretches end."""
        for address in addresses:
            self._engine.hook_add(self._unicorn.UC_HOOK_CODE, self._on_stop, begin=address, end=address)

    def _on_stop(self, engine: Any, address: int, *_: object) -> None:
        engine.emu_stop()

    def stretch(self, pc: int, seconds: float) -> int:
        """Runs freely from `pc`, which is none of `stop_at`, to the next that is; where it stops. Raises Stopped."""
        self._interrupt = None
        try:
            self._engine.emu_start(pc, self._row.address_mask, timeout=max(1, int(seconds * 1_000_000)))
        except self._unicorn.UcError as failure:
            raise Stopped(f"an error ({failure})") from None
        if self._interrupt is not None:
            raise Stopped(f"interrupt {self._interrupt}")
        return int(self._engine.reg_read(self._isa.program_counter))

    def knows(self, instructions: Iterable[Instruction]) -> bool:
        """Whether it can be trusted with all of them."""
        return not any(instruction.mnemonic.startswith(self._known_wrong) for instruction in instructions)

    def registers(self) -> Mapping[str, int]:
        raw = dict(zip(self._ids, self._engine.reg_read_batch(self._ids), strict=True))
        return {
            name: raw[bits.register] >> bits.low & (1 << bits.bits) - 1 for name, bits in self._isa.registers.items()
        }

    def set_registers(self, values: Mapping[str, int], pc: int) -> None:
        engine, registers = self._engine, self._isa.registers
        chosen = {registers[name].register for name in values}
        raw = {number: int(engine.reg_read(number)) for number in chosen}
        for name, value in values.items():
            bits = registers[name]
            mask = (1 << bits.bits) - 1 << bits.low
            raw[bits.register] = raw[bits.register] & ~mask | value << bits.low | bits.fixed
        for number, value in raw.items():
            engine.reg_write(number, value)
        if self._row.overlay == "arm":
            self._set_mode(bool(pc & 1))
        # The program counter goes into the next step's start.

    def _set_mode(self, thumb: bool) -> None:
        from unicorn import arm_const

        status = int(self._engine.reg_read(arm_const.UC_ARM_REG_CPSR))
        self._engine.reg_write(arm_const.UC_ARM_REG_CPSR, status | 0x20 if thumb else status & ~0x20)

    def read(self, address: int, size: int) -> bytes:
        try:
            return bytes(self._engine.mem_read(address, size))
        except self._unicorn.UcError as error:
            raise CannotFollow(f"memory at {address:#x} cannot be read back ({error})") from None

    def write(self, address: int, content: bytes) -> None:
        try:
            self._engine.mem_write(address, content)
        except self._unicorn.UcError as error:
            raise CannotFollow(f"memory at {address:#x} cannot be written ({error})") from None

    def close(self) -> None:
        self._engine = None


def new_engine(isa: UnicornIsa) -> Any:
    """An engine without memory; its translation buffer is small, because a gigabyte (the default) may not be there."""
    import unicorn

    engine = unicorn.Uc(isa.architecture, isa.mode)
    engine.ctl_set_tcg_buffer_size(_TRANSLATION_BUFFER)
    if isa.processor is not None:
        engine.ctl_set_cpu_model(isa.processor)
    for register, _, value in isa.status:
        engine.reg_write(register, value)
    return engine


def page_protections(regions: Sequence[Region]) -> list[tuple[int, int, int]]:
    """(start, size, Unicorn's permissions) of whole pages; a page has the permissions of everything on it.

    What a page has beyond the regions is never looked at: the reference emulator would have faulted there.
    """
    import unicorn

    bits = ((READ, unicorn.UC_PROT_READ), (WRITE, unicorn.UC_PROT_WRITE), (EXECUTE, unicorn.UC_PROT_EXEC))
    protections: dict[int, int] = {}
    for region in regions:
        protection = sum(theirs for ours, theirs in bits if region.permissions & ours)
        for page in range(region.start // _PAGE, -(-region.end // _PAGE)):
            protections[page] = protections.get(page, 0) | protection
    found: list[tuple[int, int, int]] = []
    for page, protection in sorted(protections.items()):
        if found and found[-1][0] + found[-1][1] == page * _PAGE and found[-1][2] == protection:
            start, size, _ = found.pop()
            found.append((start, size + _PAGE, protection))
        else:
            found.append((page * _PAGE, _PAGE, protection))
    return found
