"""All that the pages show, as one JSON object: the bundle that --report writes into its file and --report-data alone.

`schema` names the version. Addresses and other numbers that can exceed 53 bits are texts. Every key is always there.
The text in it comes from binaries and files of others; the pages treat it as text and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.extraction import OVER_APPROXIMATED
from mcveto.counterexamples.feasible import Dies, NeverReached, Open
from mcveto.counterexamples.finder import Found
from mcveto.counterexamples.grouping import Group, Refinement, grouped, refinements
from mcveto.counterexamples.machine_code import MachineFound, Tried
from mcveto.counterexamples.machine_rendering import completeness
from mcveto.counterexamples.rendering import count_text
from mcveto.dpg.history import History
from mcveto.machine.faults import Unsupported
from mcveto.program.inputs import ConsumedInput
from mcveto.program.program import Program
from mcveto.property.attach import Attached
from mcveto.property.ghost import Watched
from mcveto.property.typestate import Typestate
from mcveto.verdict import STATISTICS, Verdict, VerdictInput
from mcveto.viewer.code import Code, Jumps
from mcveto.viewer.replayed import Replayed, replayed_trace, replayed_violation
from mcveto.viewer.run_record import run_record
from mcveto.viewer.story import (
    BESIDES,
    automaton_sentences,
    model_story,
    proved_story,
    unknown_story,
    violated_story,
)
from mcveto.viewer.traces import MAX_STATES, run_states, witness_states

SCHEMA = "mcveto-pages-1"
MAX_REPLAYED = 20
_GHOST_STATE = re.compile(r"\bghost(\d+)_state (=|!=) (\d+)\b")
_GHOST_VARIABLE = re.compile(r"\bghost(\d+)_(\w+)")

Data = dict[str, Any]


def empty_pages(version: str, command: Sequence[str], path: str) -> Data:
    """A bundle with nothing in it yet."""
    return {
        "schema": SCHEMA,
        "mcveto": version,
        "command": list(command),
        "subject": {
            "path": path,
            "name": PurePath(path).name,
            "sha256": None,
            "isa": None,
            "entry": None,
            "is_model": False,
            "checked": [],
        },
        "verdict": {
            "kind": "unknown",
            "headline": "UNKNOWN",
            "about": None,
            "reason": None,
            "at": None,
            "found_by": None,
        },
        "story": [],
        "tries": [],
        "inputs": [],
        "again": [],
        "why": [],
        "why_left_out": "",
        "confirmed_by": [],
        "assumptions": [],
        "warnings": [],
        "notes": [],
        "aftermath": [],
        "statistics": {},
        "support": {},
        "automata": [],
        "traces": [],
        "complete": None,
        "groups": [],
        "refinements": [],
        "runs": [],
        "code": {"functions": [], "executed": [], "coverage": "", "notes": []},
        "invariants": [],
        "invariants_left_out": 0,
        "timeline": {"events": [], "left_out": 0, "why_empty": "", "log": []},
    }


def verdict_pages(
    verdict: Verdict, attached: Attached, *, version: str, command: Sequence[str], targets: Sequence[int]
) -> Data:
    """The pages of an answer of `verify`; `targets` are those asked about, without the properties' own."""
    program = attached.program
    data = empty_pages(version, command, program.image.path)
    code_address = program.decoder.row.code_address
    asked = [f"reach {target:#x}" for target in targets] + [f"break the property {name}" for name in attached.names]
    asked.append("return to where it was not called from")
    data["subject"] |= {
        "sha256": program.image.sha256,
        "isa": program.image.isa,
        "entry": f"{code_address(program.entry):#x}",
        "checked": asked,
    }
    verdict_summary(data, verdict)
    data["automata"] = [_automaton_record(item) for item in attached.automata]
    data["notes"] = list(program.notes)
    history = verdict.history
    replayed: Replayed | str = "there is no violation to run"
    if verdict.kind == "violated":
        replayed = replayed_violation(program, verdict.about, verdict.inputs, attached.automata)
    code = _code(data, program, [replayed], history, verdict)
    if verdict.kind == "violated":
        data["story"] = violated_story(verdict, code, replayed, program.entry)
        _add_run(data, program, code, replayed, verdict.inputs, verdict.reason)
    elif verdict.kind == "proved":
        data["story"] = proved_story(verdict, asked)
    else:
        data["story"], data["tries"] = unknown_story(verdict)
    _add_history(data, program, code, history, attached.automata)
    _name_calls(data, program)
    return data


def unloaded_pages(verdict: Verdict, *, version: str, command: Sequence[str], path: str) -> Data:
    """The pages of a search that was ended before the program was loaded."""
    data = empty_pages(version, command, path)
    verdict_summary(data, verdict)
    data["story"], data["tries"] = unknown_story(verdict)
    data["timeline"]["why_empty"] = "the search was ended before the program was loaded"
    return data


def verdict_summary(data: Data, verdict: Verdict) -> None:
    data["verdict"] = {
        "kind": verdict.kind,
        "headline": verdict.headline,
        "about": verdict.about or None,
        "reason": verdict.reason or None,
        "at": None if verdict.at is None else f"{verdict.at:#x}",
        "found_by": verdict.found_by or None,
    }
    data["inputs"] = _inputs(verdict.inputs)
    data["confirmed_by"] = list(verdict.confirmed_by)
    data["assumptions"] = list(verdict.assumptions)
    data["warnings"] = list(verdict.warnings)
    data["aftermath"] = list(verdict.aftermath)
    data["statistics"] = {name: verdict.statistics[name] for name in STATISTICS if name in verdict.statistics}
    data["support"] = dict(verdict.support)


def _inputs(inputs: Iterable[VerdictInput | ConsumedInput]) -> list[Data]:
    """Calls of input functions are named as the conditions name them: in0, in1, …"""
    found = []
    calls = 0
    for item in inputs:
        name = ""
        if item.where.startswith("call of"):
            name, calls = f"in{calls}", calls + 1
        unsigned = item.value & ((1 << item.bits) - 1)
        character = chr(unsigned) if item.bits == 8 and 0x20 < unsigned < 0x7F else ""
        found.append(
            {
                "name": name,
                "value": str(item.value),
                "hex": f"{unsigned:#x}",
                "character": character,
                "bits": item.bits,
                "where": item.where,
            }
        )
    return found


def _name_calls(data: Data, program: Program) -> None:
    """Names the input functions that have names."""
    names = {
        f"call of {address:#x}": f"call of {name} ({address:#x})" for name, address in program.image.symbols.items()
    }
    for item in (*data["inputs"], *(item for trace in data["traces"] for item in trace["inputs"])):
        item["where"] = names.get(item["where"], item["where"])


def _automaton_record(automaton: Typestate) -> Data:
    return {
        "name": automaton.name,
        "states": list(automaton.states),
        "start": list(automaton.starts),
        "errors": {name: message or "" for name, message in automaton.errors.items()},
    }


def _code(
    data: Data,
    program: Program,
    replays: Sequence[Replayed | str],
    history: History | None,
    verdict: Verdict | None = None,
) -> Code:
    """The listing, with what the search and the runs shown executed."""
    executed: set[int] = set(history.executed) if history is not None else set()
    what = "all runs of the search" if history is not None else "the runs shown; those of the search are not recorded"
    if history is None and verdict is not None and (verdict.executed or verdict.followed):
        executed |= _in_blocks(program, (*verdict.executed, *verdict.followed))
        what = "all runs and symbolic paths of the search, until it ended"
    jumps = Jumps()
    for replayed in replays:
        if isinstance(replayed, Replayed):
            executed |= replayed.run.executed
            for known, new in ((jumps.jumps, replayed.run.jumps.jumps), (jumps.calls, replayed.run.jumps.calls)):
                for pc, targets in new.items():
                    known.setdefault(pc, set()).update(targets)
    code = Code(program, executed, jumps)
    code_address = program.decoder.row.code_address
    data["code"] = {
        "functions": code.record(),
        "executed": [f"{address:#x}" for address in sorted({code_address(pc) for pc in executed})],
        "coverage": what if executed else "",
        "notes": list(code.notes),
    }
    return code


def _in_blocks(program: Program, blocks: Iterable[tuple[int, int]]) -> set[int]:
    """The program counters of the instructions in blocks of code (address, size)."""
    found: set[int] = set()
    for address, size in blocks:
        pc = address
        while pc < address + size and pc not in found:
            code = program.space.fixed_bytes(pc, min(program.decoder.row.longest_unit(pc), address + size - pc))
            if code is None:
                break
            found.add(pc)
            try:
                pc += program.decoder.decode(pc, code).size or 1
            except Unsupported:
                break
    return found


def _add_run(
    data: Data,
    program: Program,
    code: Code,
    replayed: Replayed | str,
    inputs: Sequence[VerdictInput],
    what: str,
) -> None:
    if isinstance(replayed, str):
        data["notes"].append(f"the run is not shown: {replayed}")
        return
    trace = _trace(0, "confirmed", what, "", inputs, run_states(program, code, replayed, _told(inputs), what))
    data["traces"] = [{**trace, "run": 0, "length": replayed.run.total}]
    data["runs"] = [run_record(program, replayed.run, "the violation")]
    data["why"] = _conditions(program, code, replayed)
    data["why_left_out"] = replayed.why_left_out


def _conditions(program: Program, code: Code, replayed: Replayed) -> list[Data]:
    address = program.decoder.row.code_address
    return [
        {"step": item.step, "at": f"{address(item.pc):#x}", "name": code.name(item.pc), "text": item.text}
        for item in replayed.why
    ]


def _told(inputs: Iterable[VerdictInput | ConsumedInput]) -> list[str]:
    """What is read, by the number of the input: those of the entry first, then one for every call."""
    return [
        f"input {number} = {item.value}" for number, item in enumerate(inputs) if not item.where.startswith(BESIDES)
    ]


def _trace(
    number: int,
    status: str,
    means: str,
    reason: str,
    inputs: Iterable[VerdictInput | ConsumedInput],
    states: list[Data],
) -> Data:
    return {
        "number": number + 1,
        "status": status,
        "means": means,
        "reason": reason,
        "error": states[-1]["state"] if states else "",
        "length": max(0, len(states) - 1),
        "inputs": _inputs(inputs),
        "states": states,
        "dies_at": None,
        "run": None,
        "why": [],
        "story": [],
    }


def model_pages(found: Found, *, version: str, command: Sequence[str], path: str) -> Data:
    """The pages of the counterexamples of a model."""
    data = empty_pages(version, command, path)
    automaton = found.product.automaton
    kind = "violated" if found.is_violated else "proved"
    headline = f"VIOLATED({automaton.name})" if found.is_violated else "PROVED"
    data["verdict"] |= {"kind": kind, "headline": headline, "about": automaton.name}
    data["subject"] |= {"is_model": True, "checked": [f"property {automaton.name}"]}
    data["automata"] = [_automaton_record(automaton)]
    data["notes"] = list(found.notes)
    data["story"] = model_story(kind, automaton.name, count_text(found), False)
    kept = 0
    for number, witness in enumerate(found.witnesses):
        kept += len(witness.states)
        if kept > MAX_STATES and number:
            data["notes"].append(f"counterexamples from {number + 1} on are too long for the pages")
            break
        means = automaton.errors[witness.automaton_state(len(witness))]
        data["traces"].append(_trace(number, "in the model", means, "", (), witness_states(witness, None, None)))
    if found.is_violated:
        data["complete"] = count_text(found)
        _add_common(data, grouped(found.witnesses), refinements(found))
        data["story"] += _first_trace_sentences(data)
    data["timeline"]["why_empty"] = "a model is decided without a search that could be replayed"
    return data


def _first_trace_sentences(data: Data) -> list[str]:
    """The shortest trace told by the moves of its automaton."""
    if not data["traces"]:
        return []
    states = data["traces"][0]["states"]
    moves = [
        f"{before['state']} → {after['state']} at {before['node']}"
        + (f" ({', '.join(before['events'])})" if before["events"] else "")
        for before, after in pairwise(states)
        if after["changes"]
    ]
    shown = moves if len(moves) <= 8 else [*moves[:3], f"… {len(moves) - 6} more …", *moves[-3:]]
    return [f"The shortest counterexample has {len(states) - 1} steps. What the property saw: {'; '.join(shown)}."]


def _add_common(data: Data, groups: Iterable[Group], passed: Iterable[Refinement]) -> None:
    data["groups"] = [
        {
            "error": group.error,
            "node": group.node,
            "members": [number + 1 for number in group.members],
            "nodes": list(group.nodes),
            "events": [str(event) for event in group.events],
        }
        for group in groups
    ]
    data["refinements"] = [
        {"what": item.what, "is_event": item.is_event, "nodes": list(item.nodes), "lines": list(item.lines)}
        for item in passed
    ]


def machine_pages(
    result: MachineFound,
    verdict: Verdict,
    watched: Watched,
    automaton: Typestate,
    *,
    version: str,
    command: Sequence[str],
) -> Data:
    """The pages of the counterexamples of a binary; `verdict` is that of `verify` where no trace was confirmed."""
    program = watched.program
    data = empty_pages(version, command, program.image.path)
    code_address = program.decoder.row.code_address
    data["subject"] |= {
        "sha256": program.image.sha256,
        "isa": program.image.isa,
        "entry": f"{code_address(program.entry):#x}",
        "checked": [f"break the property {automaton.name}"],
    }
    confirmed = result.confirmed
    replays = [
        replayed_trace(program, item.outcome, automaton)
        for item in confirmed[:MAX_REPLAYED]
        if isinstance(item.outcome, Confirmed)
    ]
    if confirmed:
        first = confirmed[0].outcome
        assert isinstance(first, Confirmed)
        means = result.errors[first.error][1]
        inputs = tuple(VerdictInput(item.value, item.bits, item.where) for item in first.inputs)
        verdict = replace(verdict, reason=means, inputs=inputs, confirmed_by=("emulator",), at=None)
        verdict = replace(verdict, assumptions=program.assumptions)
    verdict_summary(data, verdict)
    data["automata"] = [_automaton_record(automaton)]
    data["notes"] = [*program.notes, OVER_APPROXIMATED, *result.extracted.gaps]
    code = _code(data, program, replays, verdict.history)
    for item in (*confirmed, *(item for item in result.tried if not isinstance(item.outcome, Confirmed))):
        _add_tried(data, result, item, program, code)
    for number, replayed in enumerate(replays):
        if isinstance(replayed, Replayed):
            trace = data["traces"][number]
            trace["run"] = len(data["runs"])
            trace["why"] = _conditions(program, code, replayed)
            trace["story"] = automaton_sentences(replayed, code)
            data["runs"].append(run_record(program, replayed.run, f"counterexample {number + 1}"))
    data["complete"] = f"{len(confirmed)} of {len(result.tried)} traces have an input; {completeness(result)}"
    if confirmed:
        feasible = replace(result.found, witnesses=tuple(item.witness for item in confirmed))
        _add_common(data, grouped(feasible.witnesses), refinements(feasible))
        replayed = replays[0]
        first_run = replayed if isinstance(replayed, Replayed) else None
        data["story"] = violated_story(verdict, code, replayed, program.entry)
        many = f"are {len(confirmed)} counterexamples" if len(confirmed) > 1 else "is one counterexample"
        data["story"].append(f"There {many} with an input; {completeness(result)}.")
        data["why"] = _conditions(program, code, first_run) if first_run is not None else []
    elif verdict.kind == "unknown":
        data["story"], data["tries"] = unknown_story(verdict)
    else:
        data["story"] = model_story(verdict.kind, automaton.name, data["complete"], True)
    _add_history(data, program, code, verdict.history, [automaton])
    if verdict.history is None:
        data["timeline"]["why_empty"] = "traces were tried one by one; there is no search to replay"
    _name_calls(data, program)
    return data


def _add_tried(data: Data, result: MachineFound, item: Tried, program: Program, code: Code) -> None:
    if sum(len(trace["states"]) for trace in data["traces"]) > MAX_STATES:
        return
    outcome = item.outcome
    states = witness_states(item.witness, result.extracted, program)
    number = len(data["traces"])
    match outcome:
        case Confirmed():
            trace = _trace(number, "confirmed", result.errors[outcome.error][1], "", outcome.inputs, states)
        case Dies():
            reason = f"no input gets beyond {item.witness.node(outcome.position)} (the branch at {outcome.pc:#x})"
            trace = _trace(number, "infeasible", "", reason, (), states)
            trace["dies_at"] = outcome.position
        case NeverReached():
            trace = _trace(number, "infeasible", "", "its error is proved to be never reached", (), states)
        case Open():
            trace = _trace(number, "undecided", "", outcome.why, (), states)
    data["traces"].append(trace)


def _readable(text: str, automata: Sequence[Typestate]) -> str:
    """A predicate with the ghost registers of automata called by the names in their files."""

    def state(match: re.Match[str]) -> str:
        number, relation, value = int(match[1]), match[2], int(match[3])
        if number >= len(automata) or value >= len(automata[number].states):
            return match[0]
        return f"{automata[number].name} {'is' if relation == '=' else 'is not'} {list(automata[number].states)[value]}"

    def variable(match: re.Match[str]) -> str:
        return f"{automata[int(match[1])].name}.{match[2]}" if int(match[1]) < len(automata) else match[0]

    return _GHOST_VARIABLE.sub(variable, _GHOST_STATE.sub(state, text))


def _add_history(
    data: Data, program: Program, code: Code, history: History | None, automata: Sequence[Typestate]
) -> None:
    if history is None:
        data["timeline"]["why_empty"] = "the search has no graph to replay: its engine is not dpg, or it was cut off"
        return
    address = program.decoder.row.code_address
    data["invariants"] = [
        {
            "at": f"{address(claim.pc):#x}",
            "name": code.name(claim.pc),
            "calls": None if claim.frames is None else [code.name(frame) for frame in claim.frames[1:]],
            "alternatives": [[_readable(text, automata) for text in literals] for literals in claim.alternatives],
        }
        for claim in history.claimed
    ]
    data["invariants_left_out"] = history.claims_left_out
    events = []
    for event in history.events:
        changes = [
            [change[0], change[1], f"{address(int(change[2])):#x}", code.name(int(change[2])), change[3]]
            if change[0] == "node"
            else list(change)
            for change in event.changes
        ]
        at = None if event.at is None else f"{address(event.at):#x}"
        events.append([event.kind, event.seconds, _readable(event.text, automata), at, event.graph, changes])
    data["timeline"] |= {"events": events, "left_out": history.left_out, "why_empty": ""}


def add_log(data: Data, log: Iterable[tuple[float, str, Mapping[str, float | int]]]) -> None:
    """What the search said of itself: when, where it was, and how much it had done by then."""
    data["timeline"]["log"] = [
        [round(seconds, 1), where, {name: counts[name] for name in STATISTICS if name in counts}]
        for seconds, where, counts in log
    ]
