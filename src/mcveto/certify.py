"""Writes the certificate of a proof: what an engine claims, in the words of `check.certificate`.

This is the engine's side. Nothing here is trusted: a step that is left out, or a wrong byte, makes the checker refuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mcveto.check.certificate import ANY as ANY_TEXT
from mcveto.check.certificate import FORMAT, HALT, Binary, Certificate, Location, Question, sealed
from mcveto.dpg.location import ANY, Blocks
from mcveto.dpg.location import Location as GraphLocation
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.proof import Proof
from mcveto.dpg.steps import Steps
from mcveto.logic import terms as t
from mcveto.logic.smtlib import expression
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.program.spec import Address, Spec


def certificate_of(program: Program, proof: Proof, version: str, single_steps: bool = False) -> Certificate:
    return _Writer(program, proof, single_steps).certificate(version)


class _Writer:
    def __init__(self, program: Program, proof: Proof, single_steps: bool) -> None:
        self._program = program
        self._blocks = Blocks(program, single_steps)
        self._steps = Steps(program, self._blocks, OutcomeTable(program))
        self._invariants: dict[GraphLocation, list[tuple[Term, ...]]] = {}
        self._starts: set[GraphLocation] = set()
        for node in proof.nodes:
            self._invariants.setdefault(node.location, []).append(node.literals)
            if node.is_start:
                self._starts.add(node.location)
        self._ids = {location: f"L{number}" for number, location in enumerate(sorted(self._invariants))}
        self._at: dict[tuple[tuple[int, ...], int], list[GraphLocation]] = {}
        self._within: dict[tuple[int, ...], list[GraphLocation]] = {}
        for location in self._ids:
            self._at.setdefault((location.frames, location.pc), []).append(location)
            self._within.setdefault(location.frames, []).append(location)

    def certificate(self, version: str) -> Certificate:
        program, image = self._program, self._program.image
        question = Question(
            entry=hex(program.entry),
            targets=_hexes(program.targets),
            halts=_hexes(program.halts),
            replaced=_hexes(program.hooks),
            properties=("reach", "return-address") if program.targets else ("return-address",),
        )
        return sealed(
            Certificate(
                format=FORMAT,
                mcveto=version,
                binary=Binary(name=Path(image.path).name, sha256=image.sha256, isa=image.isa),
                spec=spec_mapping(program.spec),
                question=question,
                assumptions=program.assumptions,
                start=tuple(self._ids[location] for location in sorted(self._starts)),
                locations=tuple(self._location(location) for location in self._ids),
            )
        )

    def _location(self, location: GraphLocation) -> Location:
        steps: dict[str, None] = {}
        refuted: set[int] = set()
        for outcome in self._steps.outcomes(location):
            self._follow(location, outcome, steps, refuted)
        block = self._blocks.of(location)
        return Location(
            id=self._ids[location],
            pc=hex(location.pc),
            code=tuple(f"{item.bytes.hex()} {item.text}" for item in block if item.bytes),
            stack_pointer=_pointer(location.stack_pointer),
            frame_pointer=_pointer(location.frame_pointer),
            frames=tuple(map(hex, location.frames)),
            invariant=tuple(
                tuple(expression(literal) for literal in literals) for literals in self._invariants[location]
            ),
            steps=tuple(steps),
            refuted=_hexes(refuted),
        )

    def _follow(self, source: GraphLocation, outcome: Outcome, steps: dict[str, None], refuted: set[int]) -> None:
        if outcome.unsupported:
            return
        candidates, pc = self._candidates(source, outcome)
        arrivals = [other for other in candidates if self._steps.arrival(source, outcome, other) is not None]
        steps.update((self._ids[other], None) for other in arrivals)
        ends = [end for end in self._steps.ends if self._steps.ends_at(outcome, end) is not t.FALSE]
        if ends:
            steps[HALT] = None
        elif not arrivals and pc is not None:
            refuted.add(pc)

    def _candidates(self, source: GraphLocation, outcome: Outcome) -> tuple[list[GraphLocation], int | None]:
        """Where an outcome may arrive by its frames and, if that is certain, its program counter."""
        frames, target = source.frames, outcome.target
        pc = int(target.data) if target.op == "const" else None
        if outcome.transfer is Transfer.CALL:
            frames = (*frames, outcome.following)
        elif outcome.transfer is Transfer.RETURN:
            if not frames:
                return [], pc
            frames, pc = frames[:-1], frames[-1]
        return (self._within.get(frames, []) if pc is None else self._at.get((frames, pc), [])), pc


def spec_mapping(spec: Spec) -> dict[str, Any]:
    """A spec as its file would hold it, without the binary's name and what examples note about themselves."""
    inputs: dict[str, Any] = {
        "calls": {_address(call.at): {"bits": call.bits, "signed": call.signed} for call in spec.input_calls},
        "registers": list(spec.input_registers),
        "memory": [{"at": _address(item.at), "size": item.size} for item in spec.input_memory],
    }
    mapping: dict[str, Any] = {
        "arch": spec.arch,
        "base": spec.base,
        "entry": None if spec.entry is None else _address(spec.entry),
        "inputs": {key: value for key, value in inputs.items() if value},
        "assume": [_address(item) for item in spec.assume],
        "halt": [_address(item) for item in spec.halt],
        "stack": spec.stack,
        "properties": [
            item.name if item.argument is None else {item.name: [_address(at) for at in item.argument]}
            for item in spec.properties
        ],
    }
    return {key: value for key, value in mapping.items() if value is not None and value not in ({}, [])}


def _address(address: Address) -> str:
    return address if isinstance(address, str) else hex(address)


def _pointer(value: int) -> str:
    return ANY_TEXT if value == ANY else hex(value)


def _hexes(addresses: Iterable[int]) -> tuple[str, ...]:
    return tuple(map(hex, sorted(addresses)))
