"""Models of any size: procedures that call two others, themselves and one before them, all taking and releasing a lock.

The only violation is in the last procedure, as far from the start as the calls lead.
"""

from __future__ import annotations

import random

STEPS = 20
PROPERTY = """automaton lock
event lock
event unlock
states free held
start free
error twice
error idle
free -> held on lock
held -> free on unlock
held -> twice on lock
free -> idle on unlock
"""


def grown_model(rules: int) -> str:
    """The text of a model with about so many rules."""
    count = max(3, rules // (STEPS + 4))
    lines = ["model grown", "start f0_0"]
    events = []
    for number in range(count):
        others = (2 * number + 1, 2 * number + 2, number, number // 2)
        for step in range(STEPS - 1):
            lines.append(f"f{number}_{step} -> f{number}_{step + 1}")
            if step % 5 == 3:
                callee = others[step // 5] if others[step // 5] < count else number
                lines.append(f"f{number}_{step} -> f{callee}_0 f{number}_{step + 1}")
        lines.append(f"f{number}_{STEPS - 1} -> pop")
        events += [f"event f{number}_1: lock", f"event f{number}_2: unlock"]
    events.append(f"event f{count - 1}_7: unlock")
    return "\n".join(lines + events)


def chain(rules: int) -> str:
    """One step after the other, the violation at the end."""
    steps = [f"n{number} -> n{number + 1}" for number in range(rules)]
    return "\n".join(["finite chain", "start n0", *steps, f"event n{rules - 1}: unlock"])


def deep(rules: int) -> str:
    """Procedures that call one another, each only the next; the violation is in the innermost."""
    count = rules // 3
    lines = ["model deep", "start p0"]
    for number in range(count):
        lines += [f"p{number} -> p{number + 1} r{number}", f"p{number} -> r{number}", f"r{number} -> pop"]
    return "\n".join([*lines, f"p{count} -> pop", f"event p{count}: unlock"])


def wide(rules: int) -> str:
    """One procedure that calls all others, which are right, and is wrong itself, at its end."""
    count = rules // 4
    lines, events = ["model wide", "start m0"], []
    for n in range(count):
        lines += [f"m{n} -> f{n} m{n + 1}", f"f{n} -> g{n}", f"g{n} -> pop", f"m{n} -> m{n + 1}"]
        events += [f"event f{n}: lock", f"event g{n}: unlock"]
    return "\n".join([*lines, f"m{count} -> x", "x -> pop", *events, "event x: unlock"])


def knot(rules: int) -> str:
    """Procedures that call three others each, in no order, with locks taken here and released there."""
    chosen = random.Random(1)
    count = rules // 8
    lines, events = ["model knot", "start f0"], []
    for n in range(count):
        a, b, c = (chosen.randrange(count) for _ in range(3))
        lines += [f"f{n} -> f{a} u{n}", f"u{n} -> f{b} v{n}", f"v{n} -> f{c} w{n}", f"w{n} -> pop"]
        lines += [f"f{n} -> u{n}", f"u{n} -> v{n}", f"v{n} -> w{n}", f"f{n} -> pop"]
        events.append(f"event f{n}: lock" if n % 2 else f"event w{n}: unlock")
    return "\n".join(lines + events)


SHAPES = {"grown": grown_model, "chain": chain, "deep": deep, "wide": wide, "knot": knot}
