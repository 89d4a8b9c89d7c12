"""Short random runs on the emulator; those that take a step nobody took are worth a symbolic run.

Inputs are drawn in the styles programs tend to care about: truth values, small numbers, the numbers that guards compare
with. The emulator is an order of magnitude faster than a symbolic run, and combinations of branches that no single
changed decision reaches are found by chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from mcveto.dpg.runs import Choices
from mcveto.machine.pcode import FreshOrigin
from mcveto.program.program import Program


class Fuzzer:
    def __init__(self, program: Program, seed: int) -> None:
        self._program = program
        self._seed = seed
        self._generator = random.Random(f"fuzz {seed}")
        self._steps: set[tuple[int, int]] = set()

    def tests(self, runs: int, max_steps: int, numbers: Sequence[int]) -> Iterator[Choices]:
        """Inputs of random runs that took a step no earlier one took; `numbers` are worth trying as inputs."""
        styles: list[Sequence[int]] = [(0, 1), tuple(range(8)), (0, 1, *numbers)]
        for number in range(runs):
            style = styles[number % len(styles)]
            values, steps = self._run(style, max_steps)
            if not steps <= self._steps:
                self._steps |= steps
                yield Choices(values, seed=self._seed)

    def _run(self, style: Sequence[int], max_steps: int) -> tuple[dict[int, int], set[tuple[int, int]]]:
        """The input values by position among the fresh ones, and the steps between addresses."""
        made: list[int | None] = []

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            if origin is not FreshOrigin.INPUT:
                made.append(None)
                return usual
            value = self._generator.choice(style) & ((1 << bits) - 1)
            made.append(value)
            return value

        machine = self._program.machine_from(fresh, seed=self._seed)
        machine.run(max_steps)
        steps = {(step.pc, step.next_pc) for step in machine.trace}
        if machine.pc in machine.targets:
            steps.add((machine.pc, machine.pc))
        return {at: value for at, value in enumerate(made) if value is not None}, steps
