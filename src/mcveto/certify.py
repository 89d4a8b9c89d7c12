"""Writes the certificate of a proof: what an engine claims, in the words of `check.certificate`.

This is the engine's side. Nothing here is trusted: a step that is left out, or a wrong byte, makes the checker refuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from mcveto.check.certificate import ANY as ANY_TEXT
from mcveto.check.certificate import (
    FORMAT,
    HALT,
    Binary,
    Certificate,
    Edge,
    History,
    Location,
    Question,
    Source,
    sealed,
    source,
)
from mcveto.check.records import Frame, Procedure
from mcveto.dpg.location import ANY, Blocks, Fold
from mcveto.dpg.location import Location as GraphLocation
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.proof import Proof
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.quantified import NAME as CELL
from mcveto.dpg.strengthen.quantified import speaks_of_all
from mcveto.dpg.summaries.summary import ProcedureClaims, ProcedureProof
from mcveto.dpg.ways import Kind
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.smtlib import expression
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.program.spec_mapping import spec_mapping
from mcveto.property.attach import Attached, event_text
from mcveto.whilelang.models.catalogue import FILES as MODEL_FILES
from mcveto.whilelang.models.catalogue import source as models_text

ANY_CELL = "any!cell"


@dataclass(frozen=True, slots=True)
class Context:
    """What the question rests on besides the binary and its spec, in the order the checker expects it."""

    sources: tuple[Source, ...] = ()
    events: tuple[str, ...] = ()
    typestates: tuple[str, ...] = ()
    watched: tuple[int, ...] | None = None


def context_of(attached: Attached) -> Context:
    """The property files, the library models or the While program that the question is about."""
    program = attached.program
    if program.image.format == "while":
        return Context((source("while", Path(program.image.path).name, program.image.text),))
    named = [str(item.argument) for item in program.spec.properties if item.name == "typestate"]
    found = [source("typestate", name, item.text) for name, item in zip(named, attached.sources, strict=True)]
    if program.spec.models:
        found += [source("model", name, models_text(name)) for name in MODEL_FILES]
    watched: tuple[int, ...] | None = None
    if (guarded := attached.guarded) is not None:
        watched = (guarded.bounds.depth, guarded.bounds.blocks, *sorted(guarded.watching.excused))
    return Context(tuple(found), tuple(map(event_text, attached.events)), attached.names, watched)


def certificate_of(
    program: Program,
    proof: Proof | ProcedureProof,
    version: str,
    single_steps: bool = False,
    context: Context | None = None,
) -> Certificate:
    if isinstance(proof, ProcedureProof):
        claims = tuple(map(_procedure, proof.procedures))
        return assembled(program, version, context or Context(), (), (), procedures=claims)
    return _Writer(program, proof, single_steps).certificate(version, context or Context())


def assembled(
    program: Program,
    version: str,
    context: Context,
    start: tuple[str, ...],
    locations: tuple[Location, ...],
    history: tuple[History, ...] = (),
    procedures: tuple[Procedure, ...] = (),
) -> Certificate:
    """The whole file, for a claim about a program."""
    image = program.image
    reach = ("reach",) if any(item.name == "reach" for item in program.spec.properties) else ()
    question = Question(
        entry=hex(program.entry),
        targets=hexes(program.targets),
        halts=hexes(program.halts),
        replaced=hexes(program.hooks),
        properties=(*reach, "return-address", *context.typestates),
    )
    return sealed(
        Certificate(
            format=FORMAT,
            mcveto=version,
            binary=Binary(name=Path(image.path).name, sha256=image.sha256, isa=image.isa),
            spec={} if image.format == "while" else spec_mapping(program.spec),
            sources=context.sources,
            events=context.events,
            watched=context.watched,
            question=question,
            assumptions=program.assumptions,
            history=history,
            start=start,
            locations=locations,
            procedures=procedures,
        )
    )


def _procedure(claims: ProcedureClaims) -> Procedure:
    kept = None
    if claims.frame is not None:
        written = tuple((hex(start), hex(end)) for start, end in claims.frame.written)
        kept = Frame(below=hex(claims.frame.stack[0]), above=hex(claims.frame.above), written=written)
    return Procedure(
        pc=hex(claims.pc),
        requires=tuple(map(expression, claims.requires)),
        ensures=tuple(map(expression, claims.ensures)),
        frame=kept,
    )


@dataclass
class _Claim:
    """A location of the certificate: where call strings are kept all nodes of a location, else a single node."""

    name: str
    location: GraphLocation
    alternatives: list[tuple[Term, ...]]
    is_start: bool = False
    steps: dict[str, None] = field(default_factory=dict)
    calls: list[Edge] = field(default_factory=list)
    returns: list[Edge] = field(default_factory=list)
    refuted: set[int] = field(default_factory=set)

    def next(self) -> list[str]:
        return [name for name in self.steps if name != HALT] + [edge.to for edge in (*self.calls, *self.returns)]


class _Writer:
    def __init__(self, program: Program, proof: Proof, single_steps: bool) -> None:
        self._program = program
        self._blocks = Blocks(program, single_steps)
        self._steps = Steps(
            program, self._blocks, OutcomeTable(program), Fold.FRAME if proof.edges is None else Fold.PC
        )
        self._claims = _claims_of_locations(proof) if proof.edges is None else _claims_of_nodes(proof)
        self._by_name = {claim.name: claim for claim in self._claims}
        self._at: dict[tuple[tuple[int, ...] | None, int], list[_Claim]] = {}
        self._within: dict[tuple[int, ...] | None, list[_Claim]] = {}
        for claim in self._claims:
            self._at.setdefault((claim.location.frames, claim.location.pc), []).append(claim)
            self._within.setdefault(claim.location.frames, []).append(claim)

    def certificate(self, version: str, context: Context) -> Certificate:
        start = tuple(claim.name for claim in self._claims if claim.is_start)
        bits = self._program.decoder.row.address_bits
        literals = [literal for claim in self._claims for way in claim.alternatives for literal in way]
        history = (History(name=ANY_CELL, bits=bits, begins=""),) if any(map(speaks_of_all, literals)) else ()
        return assembled(self._program, version, context, start, tuple(map(self._location, self._claims)), history)

    def _location(self, claim: _Claim) -> Location:
        location = claim.location
        for outcome in self._steps.outcomes(location):
            if not outcome.unsupported:
                self._follow(claim, outcome)
        block = self._blocks.of(location)
        return Location(
            id=claim.name,
            pc=hex(location.pc),
            code=tuple(f"{item.bytes.hex()} {item.text}" for item in block if item.bytes),
            stack_pointer=pointer_text(location.stack_pointer),
            frame_pointer=pointer_text(location.frame_pointer),
            frames=None if location.frames is None else tuple(map(hex, location.frames)),
            invariant=tuple(tuple(map(_text, literals)) for literals in claim.alternatives),
            steps=tuple(claim.steps),
            refuted=hexes(claim.refuted - {self._by_name[name].location.pc for name in claim.next()}),
            calls=tuple(claim.calls),
            returns=tuple(claim.returns),
        )

    def _follow(self, source: _Claim, outcome: Outcome) -> None:
        """Where an outcome may lead: the steps of the call-string form, halts, and what is refuted."""
        arrivals, pc = self._arrivals(source, outcome)
        if source.location.frames is not None:
            source.steps.update((claim.name, None) for claim in arrivals)
        if any(self._steps.ends_at(outcome, end) is not t.FALSE for end in self._steps.ends):
            source.steps[HALT] = None
        elif not arrivals and pc is not None:
            source.refuted.add(pc)

    def _arrivals(self, source: _Claim, outcome: Outcome) -> tuple[list[_Claim], int | None]:
        """Where an outcome may arrive by its frames, and its program counter if that is certain."""
        frames, target = source.location.frames, outcome.target
        pc = int(target.data) if target.op == "const" else None
        if frames is not None and outcome.transfer is Transfer.CALL:
            frames = (*frames, outcome.following)
        elif frames and outcome.transfer is Transfer.RETURN:
            frames, pc = frames[:-1], frames[-1]
        found = self._within.get(frames, []) if pc is None else self._at.get((frames, pc), [])
        if frames is None:
            return found, pc
        return [item for item in found if self._steps.arrival(source.location, outcome, item.location) is not None], pc


def _claims_of_locations(proof: Proof) -> list[_Claim]:
    claims: dict[GraphLocation, _Claim] = {}
    for location in sorted({node.location for node in proof.nodes}):
        claims[location] = _Claim(f"L{len(claims)}", location, [])
    for node in proof.nodes:
        claims[node.location].alternatives.append(node.literals)
        claims[node.location].is_start |= node.is_start
    return list(claims.values())


def _claims_of_nodes(proof: Proof) -> list[_Claim]:
    claims = [
        _Claim(f"N{number}", node.location, [node.literals], node.is_start) for number, node in enumerate(proof.nodes)
    ]
    for edge in proof.edges or ():
        source, to = claims[edge.source], claims[edge.target].name
        if edge.way.kind is Kind.INTERNAL:
            source.steps[to] = None
        else:
            edges = source.calls if edge.way.kind is Kind.CALL else source.returns
            edges.append(Edge(to=to, expecting=hex(edge.way.address)))
    return claims


def _text(literal: Term) -> str:
    """A condition; the cell of which nothing is known is a variable of the history that never changes."""
    cells = [variable for variable in t.free_variables([literal]) if variable.data == CELL]
    return expression(substitute(literal, {cell: t.var(ANY_CELL, cell.width) for cell in cells}))


def pointer_text(value: int) -> str:
    return ANY_TEXT if value == ANY else hex(value)


def hexes(addresses: Iterable[int]) -> tuple[str, ...]:
    return tuple(map(hex, sorted(addresses)))
