"""The answer in plain words: what was found, why, and what to try next."""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.machine.pcode import Transfer
from mcveto.verdict import Verdict, VerdictInput
from mcveto.viewer.code import Code
from mcveto.viewer.replayed import Replayed

MAX_LISTED = 12
# What a run may depend on that nobody enters.
BESIDES = ("undefined", "unspecified", "choice")


def violated_story(verdict: Verdict, code: Code, replayed: Replayed | str, entry: int) -> list[str]:
    """Sentences about a violation that `verify` found."""
    lines = [_inputs_sentence(verdict.inputs)]
    run = replayed.run if isinstance(replayed, Replayed) else None
    place = (
        f" ({code.name(verdict.at)})" if verdict.at is not None and not code.name(verdict.at).startswith("0x") else ""
    )
    length = f", after {run.total:,} instructions" if run is not None else ""
    if verdict.about == "reach":
        at = f"{verdict.at:#x}" if verdict.at is not None else "the target"
        lines.append(f"Execution then gets from the entry {code.name(entry)} to {at}{place}{length}.")
    elif verdict.about == "return-address":
        lines.append(f"A function then does not return to its caller{length}: {verdict.reason}.")
        if run is not None:
            lines += _overwritten(run_of(replayed), code)
    else:
        lines.append(f"The run then breaks the property {verdict.about}{length}: {verdict.reason}.")
        if run is not None:
            lines += automaton_sentences(run_of(replayed), code)
    if isinstance(replayed, Replayed) and replayed.why:
        count = len(replayed.why)
        last = replayed.why[-1]
        lines.append(
            f"The input decides {f'{count} branches' if count > 1 else 'one branch'} on the way; "
            f"{'the last one' if count > 1 else 'it'}, at {code.name(last.pc)}, goes this way because {last.text}."
        )
    elif isinstance(replayed, Replayed) and not replayed.why_left_out:
        lines.append("No branch on the way depends on the input.")
    if verdict.confirmed_by:
        lines.append(f"This was run again to make sure: {', '.join(verdict.confirmed_by)}.")
    return lines


def run_of(replayed: Replayed | str) -> Replayed:
    assert isinstance(replayed, Replayed)
    return replayed


def _inputs_sentence(listed: Sequence[VerdictInput]) -> str:
    inputs = [item for item in listed if not item.where.startswith(BESIDES)]
    if not inputs and len(listed) > 0:
        return "The program has no input of its own; what the run depends on besides is listed below."
    if not inputs:
        return "No particular input is needed: the program does it by itself."
    values = ", ".join(str(item.value) for item in inputs[:MAX_LISTED])
    more = f" and {len(inputs) - MAX_LISTED} more" if len(inputs) > MAX_LISTED else ""
    plural = "inputs are" if len(inputs) > 1 else "input is"
    return f"Give the program this: the {plural} {values}{more}{', in this order' if len(inputs) > 1 else ''}."


def _overwritten(replayed: Replayed, code: Code) -> list[str]:
    """Who last wrote where the return address was read from, if the run shows it."""
    steps = replayed.run.steps
    if not steps or steps[-1].transfer is not Transfer.RETURN:
        return []
    for access in steps[-1].accesses:
        if access.is_write:
            continue
        for step in reversed(steps[:-1]):
            for write in step.accesses:
                overlaps = write.address < access.address + access.size and access.address < write.address + write.size
                if write.is_write and overlaps:
                    if step.transfer is Transfer.CALL:
                        return []  # as the call left it
                    return [
                        f"The return address was read from {access.address:#x}; the last to write there was "
                        f"{step.text} at {code.name(step.pc)} (step {step.number})."
                    ]
    return []


def automaton_sentences(replayed: Replayed, code: Code) -> list[str]:
    """The moves of the automata along a run."""
    moves = []
    before = replayed.run.automata
    for step in replayed.run.steps:
        for (old, _), (new, _) in zip(before, step.automata, strict=True):
            if old != new:
                moves.append(f"{old} → {new} at {code.name(step.pc)}")
        before = step.automata
    if not moves:
        return []
    shown = moves if len(moves) <= MAX_LISTED else [*moves[:4], f"… {len(moves) - 8} more …", *moves[-4:]]
    return [f"What the property saw: {'; '.join(shown)}."]


def proved_story(verdict: Verdict, asked: Sequence[str]) -> list[str]:
    lines = ["No input makes the program do this: " + "; ".join(asked) + "."]
    support = verdict.support
    if support.get("obligations") is not None:
        lines.append(
            f"Why to believe it: invariants hold at {support.get('locations')} places of the code, and an independent "
            f"checker proved all {support['obligations']} obligations about them again, with another solver."
        )
    else:
        lines.append("The proof was not checked a second time (see the warnings).")
    if support.get("halt_reached"):
        lines.append("The proof speaks of something: runs from the entry to a halt exist.")
    lines.append("It holds under the assumptions listed below.")
    return lines


def unknown_story(verdict: Verdict) -> tuple[list[str], list[str]]:
    """What is known, and what to try."""
    reason = verdict.reason
    lines = [
        "This is neither a proof nor a violation: the program may or may not do what was asked.",
        f"The reason given: {reason}.",
    ]
    tries: list[str] = []
    if "time-out" in reason or "ran out of time" in reason or "interrupted" in reason:
        tries.append("more time: --timeout SECONDS")
    if "memory limit" in reason or "out of memory" in reason:
        tries.append("more memory: --memory MB, or none of it said")
    if "import" in reason or "not in it" in reason:
        tries.append("say what the imported functions are: `models`, `inputs` or `halt` in the spec")
    if "unsupported" in reason or "not modelled" in reason or "no semantics" in reason or "system call" in reason:
        tries.append("replace the function around that instruction: make it an input, a halt or a library model")
    if "self-check" in reason:
        tries.append("please report it; the claim that was refused is in the file named on the terminal")
    tries += [
        "another engine: --engine portfolio runs several side by side",
        "another strategy: --strategy paper, or --fold pc where functions recurse",
        "a smaller question: --entry at the function of interest, --halt where it may end",
    ]
    return lines, tries


def model_story(kind: str, name: str, count: str, is_binary: bool) -> list[str]:
    if kind == "violated":
        what = "Each one that is confirmed has an input that was run." if is_binary else "The answer is exact."
        return [f"The property {name} is violated: {count}.", what]
    if kind == "proved":
        return [f"No run of the {'program' if is_binary else 'model'} reaches an error state of the property {name}."]
    return [f"Whether the program violates {name} is not known."]
