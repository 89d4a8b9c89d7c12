"""Random runs: inputs drawn in the styles that programs tend to care about, on the emulator.

Errors of memory often need nothing but a long text, a large number or an unlucky digit; a run costs a thousandth of a
path of symbolic execution. A run that reaches a target is a violation, to be confirmed as every other; that none does
says nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from mcveto.engines.reached import violation
from mcveto.machine.emulator import Machine
from mcveto.machine.faults import Unsupported
from mcveto.machine.trace import Trace
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict

_MAX_STEPS = 20_000
_MAX_RUNS = 3_000
_DIGITS = b"0123456789"
_OTHERS = b" \t\n-+./,:;<>=%&?()[]{}'\"\\@#*ABCXYZabcxyz_\0\x7f\x80\xff"
Draw = Callable[[random.Random, int], int]


def _digit(generator: random.Random, bits: int) -> int:
    return generator.choice(_DIGITS)


def _letter(generator: random.Random, bits: int) -> int:
    return generator.choice(b"aA0/.<")


def _text(generator: random.Random, bits: int) -> int:
    return generator.choice(_OTHERS) if generator.random() < 0.5 else generator.choice(_DIGITS)


def _small(generator: random.Random, bits: int) -> int:
    return generator.randrange(-2, 40)


def _extreme(generator: random.Random, bits: int) -> int:
    top = (1 << bits) - 1
    return generator.choice(
        (0, 1, top, top >> 1, (top >> 1) + 1, generator.getrandbits(bits), 1 << generator.randrange(bits))
    )


STYLES: tuple[Draw, ...] = (_digit, _extreme, _letter, _small, _text)


class StyledSource(InputSource):
    """Inputs of one style, now and then of another."""

    def __init__(self) -> None:
        super().__init__()
        self.restart("", _small)

    def restart(self, seed: str, style: Draw) -> None:
        self.consumed = []
        self._generator = random.Random(seed)
        self._style = style

    def _draw(self, bits: int) -> int:
        style = self._style if self._generator.random() < 0.9 else self._generator.choice(STYLES)
        return style(self._generator, bits) & ((1 << bits) - 1)


class _Machine(Machine):
    """A machine that can go back to where it started, with all that it has decoded."""

    def keep(self, program: Program, source: InputSource) -> None:
        self._program, self._source = program, source
        self._kept = (dict(self.registers), [bytes(region.data) for region in self.memory.regions])

    def restart(self) -> None:
        """The entry state with new inputs, consumed in the usual order."""
        program, (registers, contents) = self._program, self._kept
        for region, content in zip(self.memory.regions, contents, strict=True):
            region.data[:] = content
        self.registers.clear()
        self.registers.update(registers)
        for register in program.input_registers:
            (piece,) = program.decoder.layout.named(register.name)
            self.registers[piece.cell.number] = self._source.next(register.bits, f"register {register.name}")
        for start, end in program.input_memory:
            for address in range(start, end):
                self.memory.poke(address, bytes([self._source.next(8, f"memory {address:#x}")]))
        self.pc = program.entry
        self.trace = Trace(self.pc)
        self._single_paths.clear()


def random_runs(
    program: Program,
    seconds: float,
    seed: int,
    tell: Callable[[dict[str, float | int], str], None],
    most: float = _MAX_RUNS,
) -> Verdict:
    """A violation that one of so many random runs shows, or unknown."""
    until = time.monotonic() + seconds
    number = 0
    source = StyledSource()
    machine = program.machine(source, make=_Machine)
    assert isinstance(machine, _Machine)
    machine.keep(program, source)
    while number < most and time.monotonic() < until:
        source.restart(f"{seed}/{number}", STYLES[number % len(STYLES)])
        machine.restart()
        number += 1
        try:
            outcome = machine.run(_MAX_STEPS)
        except Unsupported:
            continue
        found = violation(program, machine, source, {"concrete_runs": number}) if outcome.kind == "target" else None
        if found is not None:
            return found
        tell({"concrete_runs": number}, "")
        if not source.consumed:
            break
    return Verdict(
        "unknown",
        reason=f"no violation in {number} random runs",
        assumptions=program.assumptions,
        statistics={"concrete_runs": number},
    )
