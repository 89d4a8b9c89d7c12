"""Counterexamples as the pages list them: runs and witnesses in one form, state after state.

A state has the label of the step that led to it (call, direct, exit), the stack with its top first, and the automaton's
configuration. A state *changes* if that step moved the automaton. `notes` are what else happens in the step that leaves
it: an input is read, a decision depends on inputs. States with neither are folded by the pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcveto.counterexamples.extraction import Extracted
from mcveto.counterexamples.trace import Witness
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.property.typestate import shown
from mcveto.viewer.code import Code
from mcveto.viewer.replayed import Replayed
from mcveto.viewer.run_record import Automata, Step

MAX_STACK = 40
MAX_STATES = 100_000
_LABELS = {Transfer.CALL: "call", Transfer.RETURN: "exit", Transfer.FALL: "direct", Transfer.JUMP: "direct"}


def cut_stack(stack: Sequence[str]) -> list[str]:
    """A stack, top first, without the middle of a very high one."""
    if len(stack) <= MAX_STACK:
        return list(stack)
    half = MAX_STACK // 2
    return [*stack[:half], f"… {len(stack) - 2 * half} more …", *stack[-half:]]


def witness_states(witness: Witness, extracted: Extracted | None, program: Program | None) -> list[dict[str, Any]]:
    states = []
    for number in range(len(witness.states)):
        node = witness.node(number)
        address = extracted.addresses.get(node) if extracted is not None else None
        if address is not None and program is not None:
            address = program.decoder.row.code_address(address)
        control = witness.control(number)
        is_last = number == len(witness)
        states.append(
            {
                "kind": "start" if number == 0 else witness.kind(number - 1).value,
                "node": (f"{control}: " if control != "." else "") + (node or "(empty stack)"),
                "stack": cut_stack(witness.stack(number)),
                "state": witness.automaton_state(number),
                "values": {name: shown(value) for name, value in witness.values(number).items()},
                "events": [] if is_last else [str(label) for label in witness.labels(number)],
                "changes": number > 0 and witness.is_interesting(number - 1),
                "notes": [],
                "at": None if address is None else f"{address:#x}",
                "step": None,
            }
        )
    return states


def run_states(
    program: Program, code: Code, replayed: Replayed, inputs: Sequence[str], end: str
) -> list[dict[str, Any]]:
    """The states of a run, one for each instruction; `inputs` says of each input what it is, `end` what is wrong."""
    run = replayed.run
    decisions: dict[int, list[str]] = {}
    for item in replayed.why:
        what = "goes on because" if item.kind == "branch" else "jumps on with"
        decisions.setdefault(item.step, []).append(f"{what} {item.text}")
    states: list[dict[str, Any]] = []
    before: Step | None = None
    automata = earlier = run.automata
    for step in run.steps:
        notes = list(decisions.get(step.number, ()))
        if step.input is not None and step.input < len(inputs):
            notes.insert(0, f"reads {inputs[step.input]}")
        if before is not None and step.number != before.number + 1:
            notes.insert(0, f"{step.number - before.number - 1} steps before this one are not shown")
        state = _run_state(program, code, step.pc, before, step.frames, notes, step.number, step.text)
        states.append({**state, **_configuration(automata), "changes": automata != earlier})
        before, earlier, automata = step, automata, step.automata
    if before is not None:
        frames = before.frames
        if before.transfer is Transfer.RETURN:
            frames = frames[:-1]
        elif before.transfer is Transfer.CALL:
            frames = (*frames, (before.pc + len(before.code)) & program.decoder.row.address_mask)
        state = _run_state(program, code, run.end, before, frames, [end], run.total, code.text(run.end) or "")
        states.append({**state, **_configuration(automata), "changes": automata != earlier})
    return states


def _configuration(automata: Automata) -> dict[str, Any]:
    return {
        "state": ", ".join(state for state, _ in automata),
        "values": {name: f"{value:#x}" for _, values in automata for name, value in values},
    }


def _run_state(
    program: Program,
    code: Code,
    pc: int,
    before: Step | None,
    frames: tuple[int, ...],
    notes: list[str],
    number: int,
    text: str,
) -> dict[str, Any]:
    name = code.name(pc)
    return {
        "kind": "start" if before is None else _LABELS[before.transfer],
        "node": name,
        "stack": cut_stack([name, *(code.name(frame) for frame in reversed(frames))]),
        "events": [],
        "notes": notes,
        "at": f"{program.decoder.row.code_address(pc):#x}",
        "step": number,
        "text": text,
    }
