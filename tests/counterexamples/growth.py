"""Models of any size: procedures that call two others, themselves and one before them, all taking and releasing a lock.

The only violation is in the last procedure, as far from the start as the calls lead.
"""

from __future__ import annotations

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
