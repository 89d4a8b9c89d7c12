"""One question, answered by angr; runs in angr's own environment and knows nothing of mcveto.

Reads a task as JSON from stdin (see `compare.py`) and prints an answer as JSON. "violated" means that a target was
found, "exhausted" that no path was left and none was lost, everything else is "unknown" with a reason. angr does not
check return addresses: a program whose only violation is such a return counts as a wrong "exhausted" or an "unknown".
"""

from __future__ import annotations

import importlib
import json
import logging
import signal
import sys
import time
from typing import Any


def main() -> None:
    task = json.load(sys.stdin)
    started = time.monotonic()
    logging.disable(logging.CRITICAL)
    angr, claripy = importlib.import_module("angr"), importlib.import_module("claripy")
    imported = time.monotonic()
    task["cpu"] = time.process_time()
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, task["limit"])
    try:
        found = answer(angr, claripy, task, imported)
    except TimeoutError:
        found = {"verdict": "unknown", "reason": "limit", "seconds": time.monotonic() - imported, "cpu": 0.0}
    print(json.dumps(found | {"import_seconds": imported - started}))


def give_up(number: int, frame: object) -> None:
    raise TimeoutError


def answer(angr: Any, claripy: Any, task: dict[str, Any], imported: float) -> dict[str, Any]:
    project = angr.Project(
        task["binary"],
        auto_load_libs=False,
        selfmodifying_code=task["writable_code"],
        rebase_granularity=0x1000,
    )

    class Input(angr.SimProcedure):  # type: ignore[misc]
        def run(self, bits: int = 32, signed: bool = False) -> Any:
            value = claripy.BVS("input", bits)
            width = self.state.arch.bits
            if bits < width:
                value = value.sign_extend(width - bits) if signed else value.zero_extend(width - bits)
            return value

    class Assume(angr.SimProcedure):  # type: ignore[misc]
        def run(self, condition: Any) -> None:
            self.state.add_constraints(condition != 0)

    for address, bits, signed in task["calls"]:
        project.hook(address, Input(bits=bits, signed=signed))
    for address in task["assume"]:
        project.hook(address, Assume())
    fill = {angr.options.SYMBOL_FILL_UNCONSTRAINED_MEMORY, angr.options.SYMBOL_FILL_UNCONSTRAINED_REGISTERS}
    state = project.factory.call_state(task["entry"], ret_addr=0xFFFF0000, add_options=fill)
    for address, size in task["memory"]:
        state.memory.store(address, claripy.BVS("memory", 8 * size))
    manager = project.factory.simulation_manager(state)
    manager.explore(find=task["targets"], avoid=[*task["halts"], 0xFFFF0000])
    result: dict[str, Any] = {"seconds": time.monotonic() - imported, "cpu": time.process_time() - task["cpu"]}
    if manager.found:
        feasible = manager.found[0].satisfiable()
        return result | {"verdict": "violated" if feasible else "unknown", "reason": ""}
    lost = {
        name: len(stash) for name, stash in manager.stashes.items() if name in ("unconstrained", "errored") and stash
    }
    if manager.errored:
        lost["errored"] = len(manager.errored)
    if manager.active or lost:
        return result | {"verdict": "unknown", "reason": ", ".join(f"{n} {name}" for name, n in lost.items())}
    return result | {"verdict": "exhausted", "reason": ""}


if __name__ == "__main__":
    main()
