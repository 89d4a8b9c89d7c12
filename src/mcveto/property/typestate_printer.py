"""A typestate automaton as the text that `typestate_parser` reads back to an equal one."""

from __future__ import annotations

from mcveto.property.typestate import ANY, Event, Name, Operand, Pattern, Transition, Typestate, shown


def typestate_text(automaton: Typestate) -> str:
    lines = [f"automaton {automaton.name}"]
    if automaton.about:
        lines.append(f"about {automaton.about}")
    in_place = {name for name, event in automaton.events.items() if _is_in_place(name, event)}
    lines += [_event_line(name, event) for name, event in automaton.events.items() if name not in in_place]
    lines += [f"var {name} = {shown(value)}" for name, value in automaton.variables.items()]
    lines.append(f"states {' '.join(automaton.states)}")
    lines.append(f"start {' '.join(automaton.starts)}")
    for name, message in automaton.errors.items():
        lines.append(f"error {name} {shown(message)}" if message else f"error {name}")
    lines.append("")
    lines += [transition_text(transition) for transition in automaton.transitions]
    return "\n".join(lines) + "\n"


def transition_text(transition: Transition) -> str:
    text = f"{transition.source} -> {transition.target} on {_pattern_text(transition.pattern)}"
    if transition.guards:
        comparisons = (f"{_operand(g.left)} {g.relation.value} {_operand(g.right)}" for g in transition.guards)
        text += f" when {' and '.join(comparisons)}"
    if transition.assignments:
        text += f" do {', '.join(f'{a.variable} := {_operand(a.value)}' for a in transition.assignments)}"
    return text


def _is_in_place(name: str, event: Event) -> bool:
    return len(event.points) == 1 and name == str(event.points[0])


def _event_line(name: str, event: Event) -> str:
    parameters = f"({', '.join(map(str, event.parameters))})" if event.parameters else ""
    points = f" = {' | '.join(map(str, event.points))}" if event.points else ""
    return f"event {name}{parameters}{points}"


def _pattern_text(pattern: Pattern) -> str:
    if pattern.event == ANY or not pattern.parameters:
        return pattern.event
    return f"{pattern.event}({', '.join('_' if item is None else _operand(item) for item in pattern.parameters)})"


def _operand(operand: Operand) -> str:
    return operand.name if isinstance(operand, Name) else shown(operand.value)
