"""Options and files of the reports that `verify` and `counterexamples` write for other programs.

--sarif (SARIF 2.1.0), --witness (YAML, as SV-COMP's witnesses) and --coverage (drcov). What they are made from is put
together here, from the answer and from the runs, which are executed once more for it.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mcveto.errors import McvetoError, UsageError
from mcveto.late_methods import dataclass

if TYPE_CHECKING:
    from mcveto.counterexamples.finder import Found
    from mcveto.counterexamples.machine_code import MachineFound
    from mcveto.machine.trace import TraceStep
    from mcveto.program.program import Program
    from mcveto.program.spec import Spec
    from mcveto.property.attach import Attached
    from mcveto.property.typestate import Typestate
    from mcveto.report.result import AskedProperty, Invariant, Reported, ReportedRun
    from mcveto.search import Answer, Question
    from mcveto.verdict import Verdict, VerdictInput

Command = TypeVar("Command", bound=Callable[..., Any])
_ABOUT = {
    "reach": "Execution reaches an address that it must not reach.",
    "return-address": "A return goes elsewhere than behind its call.",
}
_CHOICE = "choice of property "
_UNDEFINED = "undefined value at "


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where which report goes; None: nowhere."""

    sarif: str | None = None
    witness: str | None = None
    coverage: str | None = None

    def __bool__(self) -> bool:
        return any((self.sarif, self.witness, self.coverage))

    def require_writable(self) -> None:
        from mcveto.report.json_file import require_writable

        for destination in (self.sarif, self.witness, self.coverage):
            if destination == "-":
                raise UsageError("reports go to files, not to standard output", "name a file")
            require_writable(destination)

    def write(self, reported: Reported) -> None:
        from mcveto.report.json_file import write_json

        if self.sarif is not None:
            from mcveto.report.sarif import sarif_log

            write_json(self.sarif, sarif_log(reported))
        if self.witness is not None:
            self._write_witness(self.witness, reported)
        if self.coverage is not None and reported.module is not None:
            from mcveto.report.drcov import drcov_bytes

            _write_bytes(self.coverage, drcov_bytes(reported.module, reported.executed_blocks()))

    @staticmethod
    def _write_witness(destination: str, reported: Reported) -> None:
        from mcveto.report.witness import witness_entries, witness_text

        if witness_entries(reported):
            _write_bytes(destination, witness_text(reported).encode(errors="backslashreplace"))
        elif reported.kind == "proved":
            print("mcveto: no witness is written, this proof comes without a certificate", file=sys.stderr)
        else:
            print(f"mcveto: no witness is written, the answer is {reported.kind}", file=sys.stderr)


def report_options(command: Command) -> Command:
    """The options; the command gets them as `report_files`."""
    for option in reversed(
        (
            click.option("--sarif", metavar="FILE", help="Write the result as SARIF 2.1.0."),
            click.option("--witness", metavar="FILE", help="Write a witness (YAML, as in SV-COMP, with addresses)."),
            click.option("--coverage", metavar="FILE", help="Write which code was executed (drcov, version 2)."),
        )
    ):
        command = option(command)
    return command


def report_verdict(files: ReportFiles, answer: Answer, binary: str | None, spec: Spec, question: Question) -> None:
    """Writes the reports of a verdict; does nothing unless some are wanted."""
    if not files:
        return
    from mcveto.program.program import load_program
    from mcveto.property.attach import attach
    from mcveto.report.executed_run import module_of

    verdict, subject = answer.verdict, answer.subject
    asked = [_asked("return-address", _ABOUT["return-address"])]
    reported = _reported(verdict, tuple(asked))
    if subject is not None:
        attached = attach(load_program(binary, spec), question.events)
        asked = [*_asked_of(attached.automata), *asked]
        if subject.targets:
            asked.insert(0, _asked("reach", _ABOUT["reach"], subject.targets))
        notes = list(subject.notes)
        runs: tuple[ReportedRun, ...] = ()
        if verdict.kind == "violated":
            run = _run_of(attached, verdict)
            runs = (run,)
            if not run.blocks:
                notes.append("the steps of the run are not listed: it could not be repeated")
        reported = replace(
            reported,
            properties=tuple(asked),
            module=module_of(attached.program),
            runs=runs,
            notes=tuple(notes),
            invariants=tuple(_invariants(verdict.certificate, attached.program)),
        )
    files.write(reported)


def report_counterexamples(
    files: ReportFiles, result: MachineFound, verdict: Verdict, automaton: Typestate, assumptions: Sequence[str]
) -> None:
    """Writes the reports of the counterexamples of a binary."""
    if not files:
        return
    from mcveto.counterexamples.entry_values import Confirmed, machine_with
    from mcveto.counterexamples.extraction import OVER_APPROXIMATED
    from mcveto.report.executed_run import Watcher, module_of, place_of_last_event
    from mcveto.report.result import ReportedRun
    from mcveto.verdict import VerdictInput

    watched = result.watched
    program = watched.program
    watcher = Watcher(
        program, _events(program, watched.events), {watched.state_cell: (automaton.name, automaton.states)}
    )
    runs = []
    for item in result.confirmed:
        outcome = item.outcome
        assert isinstance(outcome, Confirmed)
        machine = machine_with(program, outcome.entry)
        inputs = tuple(VerdictInput(one.value, one.bits, one.where) for one in outcome.inputs)

        def steps(machine: Any = machine, count: int = outcome.steps) -> Iterator[TraceStep]:
            for number in range(count):
                machine.step()
                yield machine.trace[number]

        blocks = tuple(watcher.blocks(steps(), machine.read, inputs))
        runs.append(
            ReportedRun(
                automaton.name,
                watched.errors[outcome.error][1],
                inputs,
                place_of_last_event(blocks) if blocks else program.entry,
                blocks,
                ("emulator",),
                _registers(program, outcome.entry.registers.items()),
                tuple(sorted(outcome.entry.memory.items())),
            )
        )
    reported = _reported(verdict, tuple(_asked_of([automaton])))
    notes = (OVER_APPROXIMATED, *result.extracted.gaps)
    if not runs and verdict.kind == "violated":
        notes = (*notes, "the violation was found by verify, whose reports show its run")
    files.write(
        replace(
            reported,
            module=module_of(program),
            runs=tuple(runs),
            more=result.found.more,
            is_complete=result.is_exhaustive,
            assumptions=tuple(assumptions),
            notes=notes,
        )
    )


def report_model(files: ReportFiles, found: Found, path: str) -> None:
    """Writes the reports of the counterexamples of a model, which has no addresses: SARIF only."""
    if not files:
        return
    from mcveto.report.result import ModelRun, ModelStep, Module
    from mcveto.verdict import Verdict

    automaton = found.product.automaton
    runs = []
    for witness in found.witnesses:
        error = witness.automaton_state(len(witness))
        steps = tuple(
            ModelStep(
                "start" if number == 0 else witness.kind(number - 1).value,
                witness.stack(number),
                witness.automaton_state(number),
                tuple(map(str, witness.labels(number))) if number < len(witness) else (),
                number > 0 and witness.is_interesting(number - 1),
            )
            for number in range(len(witness.states))
        )
        runs.append(ModelRun(automaton.name, error, automaton.errors[error], steps))
    verdict = Verdict("violated" if found.is_violated else "proved", about=automaton.name if found.is_violated else "")
    files.write(
        replace(
            _reported(verdict, tuple(_asked_of([automaton]))),
            module=Module(path),
            model_runs=tuple(runs),
            more=found.more,
            is_complete=found.is_exhaustive and not found.notes,
            notes=found.notes,
        )
    )


def _asked(name: str, about: str, places: tuple[int, ...] = ()) -> AskedProperty:
    from mcveto.report.result import AskedProperty

    return AskedProperty(name, about, places)


def _asked_of(automata: Sequence[Typestate]) -> list[AskedProperty]:
    return [_asked(item.name, item.about or f"The automaton {item.name} reaches an error.") for item in automata]


def _reported(verdict: Verdict, asked: tuple[AskedProperty, ...]) -> Reported:
    from mcveto.cli.main import VERSION
    from mcveto.report.result import Reported

    return Reported(
        VERSION,
        ("mcveto", *sys.argv[1:]),
        verdict.exit_code,
        verdict.kind,
        verdict.about,
        verdict.reason,
        asked,
        None,
        assumptions=verdict.assumptions,
        executed=verdict.executed,
    )


def _run_of(attached: Attached, verdict: Verdict) -> ReportedRun:
    """The run of a violation, executed once more; without its blocks if that fails."""
    from mcveto.check.counterexample import counterexample
    from mcveto.check.reference_run import MAX_STEPS, ReferenceRun, turns_of
    from mcveto.report.executed_run import Watcher, place_of_last_event
    from mcveto.report.result import ReportedRun

    program = attached.program
    code_address = program.decoder.row.code_address
    error = verdict.reason or verdict.about
    at = code_address(verdict.at) if verdict.at is not None else program.entry
    bare = ReportedRun(verdict.about, error, verdict.inputs, at, (), verdict.confirmed_by)
    about = verdict.about if verdict.about == "return-address" else "reach"
    try:
        example = counterexample(about, _as_undefined(verdict.inputs))
        turns, violation = turns_of(program, example, MAX_STEPS)
    except McvetoError:
        return bare
    if isinstance(violation, str):
        return bare
    run = ReferenceRun(program, example, turns)

    def steps() -> Iterator[TraceStep]:
        while run.steps < violation.steps:
            step = run.step()
            if isinstance(step, str):
                return
            yield step

    watcher = Watcher(program, _events(program, attached.places), attached.cells)
    blocks = tuple(watcher.blocks(steps(), run.machine.read, verdict.inputs))
    if blocks and verdict.at in attached.errors:
        at = place_of_last_event(blocks)
    elif blocks and about == "return-address":
        at = blocks[-1].last_pc
    return replace(
        bare,
        at=at,
        blocks=blocks,
        registers=_registers(program, example.registers),
        memory=example.memory,
    )


def _events(program: Program, events: dict[int, tuple[str, ...]]) -> Mapping[int, tuple[str, ...]]:
    """The events by their places, with the system calls that are found while the program runs."""
    from mcveto.property.system_calls import WatchingDecoder

    decoder = program.decoder
    return ChainMap(events, decoder.places) if isinstance(decoder, WatchingDecoder) else events


def _as_undefined(inputs: Sequence[VerdictInput]) -> list[VerdictInput]:
    """Choices of automata as what they are to the machine: fresh values at a place."""
    return [
        replace(item, where=_UNDEFINED + item.where.rpartition(" ")[2]) if item.where.startswith(_CHOICE) else item
        for item in inputs
    ]


def _registers(program: Program, values: Any) -> tuple[tuple[str, int, int], ...]:
    layout = program.decoder.layout
    return tuple(
        (name, layout.significant_bits(layout.by_name[name]), value) for name, value in values if name in layout.by_name
    )


def _invariants(certificate: str, program: Program) -> Iterator[Invariant]:
    """What a certificate claims at each program counter: one of the alternatives of one of its locations there."""
    if not certificate:
        return
    from mcveto.report.result import Invariant

    row = program.decoder.row
    content = json.loads(certificate)
    locations = content["locations"]
    # A proof along paths speaks of values that were read earlier: at an address, there are such values.
    earlier = {item["name"]: _sort(item["bits"], row.address_bits) for item in content.get("history", ())}
    # One about all cells of memory speaks of any address: what some location there says of it holds for every one.
    is_noted = any(location.get("notes") for location in locations)
    general = {item["name"] for item in content.get("history", ()) if not item.get("begins") and not is_noted}
    claims: dict[int, list[str]] = {}
    count = itertools.count()
    for location in locations:
        places = [
            f"(= {register} #x{int(location[key], 16):0{row.address_bits // 4}x})"
            for register, key in ((row.stack_pointer, "stack_pointer"), (row.frame_pointer, "frame_pointer"))
            if location[key] != "any"
        ]
        alternatives = [_all([_apart(next(count), literal) for literal in one]) for one in location["invariant"]]
        claim = _all([*places, _any(alternatives)])
        claim = _bound("exists", {name: sort for name, sort in earlier.items() if name not in general}, claim)
        claims.setdefault(int(location["pc"], 16), []).append(claim)
    heads = _loop_heads(locations)
    for pc in sorted(claims):
        told = _any(list(dict.fromkeys(claims[pc])))
        told = _bound("forall", {name: earlier[name] for name in sorted(general)}, told)
        yield Invariant(row.code_address(pc), pc in heads, told)


def _bound(quantifier: str, sorts: dict[str, str], claim: str) -> str:
    """The claim with its variables of these names bound."""
    names = [name for name in dict.fromkeys(re.findall(r"[^\s()|]+", claim)) if name in sorts]
    return f"({quantifier} ({' '.join(f'({name} {sorts[name]})' for name in names)}) {claim})" if names else claim


def _sort(bits: int, address_bits: int) -> str:
    return f"(_ BitVec {bits})" if bits else f"(Array (_ BitVec {address_bits}) (_ BitVec 8))"


def _apart(number: int, literal: str) -> str:
    """The literal with the names that it binds made its own: some readers want every name bound once."""
    return re.sub(r"\?(\d+)", rf"?{number}_\1", literal)


def _all(parts: Sequence[str]) -> str:
    real = [part for part in parts if part != "true"]
    return real[0] if len(real) == 1 else f"(and {' '.join(real)})" if real else "true"


def _any(parts: Sequence[str]) -> str:
    if "true" in parts:
        return "true"
    return parts[0] if len(parts) == 1 else f"(or {' '.join(parts)})" if parts else "false"


def _loop_heads(locations: Sequence[dict[str, Any]]) -> set[int]:
    """Program counters of locations that a depth-first search comes back to while it is still below them."""
    following = {
        item["id"]: [name for name in item["steps"] if name != "halt"]
        + [edge["to"] for edge in (*item.get("calls", ()), *item.get("returns", ()))]
        for item in locations
    }
    pcs = {item["id"]: int(item["pc"], 16) for item in locations}
    heads: set[int] = set()
    state: dict[str, int] = {}
    for root in following:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(following[root]))]
        while stack:
            name, rest = stack[-1]
            other = next(rest, None)
            if other is None:
                state[name] = 2
                stack.pop()
            elif state.get(other) == 1:
                heads.add(pcs[other])
            elif other in following and other not in state:
                state[other] = 1
                stack.append((other, iter(following[other])))
    return heads


def _write_bytes(destination: str, content: bytes) -> None:
    try:
        Path(destination).write_bytes(content)
    except OSError as error:
        raise UsageError(f"cannot write {destination}: {error.strerror or error}") from None
