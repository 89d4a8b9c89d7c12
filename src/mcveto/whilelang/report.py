"""Results of the checkers as lines of text: the conditions, the counterexample as an initial state and a trace."""

from __future__ import annotations

from mcveto.whilelang.checker import Checked, Counterexample, Result
from mcveto.whilelang.formatter import MATHEMATICAL, formula_text
from mcveto.whilelang.interpreter import Run
from mcveto.whilelang.state import State
from mcveto.whilelang.symex import Exploration

MAX_TRACE_LINES = 200
MAX_CONDITIONS_SHOWN = 100
_ANSWERS = {"valid": "valid", "refuted": "NOT valid", "unknown": "not decided"}


def state_text(state: State) -> str:
    parts = [f"{name} = {value}" for name, value in sorted(state.variables.items())]
    parts += [f"Mem({index}) = {value}" for index, value in sorted(state.memory.items())]
    return ", ".join(parts) or "(empty)"


def condition_lines(checked: list[Checked]) -> list[str]:
    lines = []
    for number, item in enumerate(checked[:MAX_CONDITIONS_SHOWN], 1):
        at = item.condition.at
        where = f" of line {at.line}" if at is not None else ""
        formula = formula_text(item.condition.sequent.formula(), MATHEMATICAL)
        note = f"  ({item.node.note})" if item.node.note else ""
        lines.append(f"VC {number} ({item.condition.why}{where}): {formula}")
        lines.append(f"     {_ANSWERS[item.answer.kind]}{note}")
    if len(checked) > MAX_CONDITIONS_SHOWN:
        lines.append(f"… {len(checked) - MAX_CONDITIONS_SHOWN} more conditions")
    return lines


def trace_lines(run: Run) -> list[str]:
    lines = [f"  start: {state_text(run.initial)}"]
    for change in run.changes[:MAX_TRACE_LINES]:
        target = f"Mem({change.target})" if isinstance(change.target, int) else change.target
        where = f"line {change.at.line}: " if change.at is not None else ""
        lines.append(f"  {where}{'  ' * min(change.depth, 16)}{target} := {change.value}")
    if len(run.changes) > MAX_TRACE_LINES:
        lines.append(f"  … {len(run.changes) - MAX_TRACE_LINES} more steps")
    where = f" at line {run.at.line}" if run.at is not None else ""
    ends = {"ended": "  the program ends", "blocked": f"  {run.detail}{where}", "limit": f"  {run.detail}"}
    lines.append(ends.get(run.kind, f"  Λ{where}: {run.detail}"))
    return lines


def counterexample_lines(found: Counterexample) -> list[str]:
    lines = [f"counterexample (replayed by the interpreter): {found.what}"]
    if found.inputs:
        lines.append(f"  inputs: {', '.join(map(str, found.inputs))}")
    return [*lines, *trace_lines(found.run)]


def result_lines(result: Result) -> list[str]:
    valid = sum(item.answer.kind == "valid" for item in result.checked)
    lines = [f"{len(result.checked)} verification conditions, {valid} valid", *condition_lines(result.checked)]
    if result.counterexample is not None:
        lines += counterexample_lines(result.counterexample)
    return lines


def exploration_lines(found: Exploration) -> list[str]:
    lines = [f"paths: {found.paths}, questions: {len(found.findings)}"]
    for number, item in enumerate(found.findings, 1):
        lines.append(f"path {number} ({item.kind}): {item.path.program_text()}")
        if item.goal is None:
            feasible = {"valid": "infeasible", "refuted": "feasible", "unknown": "not decided"}[item.answer.kind]
            lines.append(f"     {item.text()}: {feasible}")
        else:
            lines.append(f"     {item.text()}: {_ANSWERS[item.answer.kind]}")
    if found.counterexample is not None:
        lines += counterexample_lines(found.counterexample)
    return lines
