"""Pages for the tests: of real programs without a long search, and made-up ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from mcveto.counterexamples.finder import find_counterexamples
from mcveto.counterexamples.model_parser import read_model
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.property.attach import attach
from mcveto.property.library import find_typestate
from mcveto.search import Question, search
from mcveto.verdict import Verdict, VerdictInput
from mcveto.viewer.page_data import empty_pages, model_pages, verdict_pages

EXAMPLES = Path(__file__).parents[2] / "examples"
HOSTILE = '"><img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>\u202e\u2028<!--{{a}}'


def demo_pages() -> dict[str, Any]:
    """The lock of the demo, opened by three bytes."""
    program = load_program(None, load_spec(str(EXAMPLES / "demo" / "demo.yaml")))
    inputs = tuple(VerdictInput(value, 8, "call of 0x8048100") for value in (103, 32, 25))
    verdict = Verdict("violated", "reach", "0x8048110 is reached", inputs, ("emulator",), at=0x8048110)
    pages = verdict_pages(verdict, attach(program), version="0", command=["mcveto"], targets=sorted(program.targets))
    return {**pages, "again": ["mcveto", "run", "--inputs=103,32,25"]}


def model_sample() -> dict[str, Any]:
    found = find_counterexamples(
        read_model(str(EXAMPLES / "models" / "fig2.pds")), find_typestate(str(EXAMPLES / "models" / "fig2.fsm"))
    )
    return model_pages(found, version="0", command=["mcveto"], path="fig2.pds")


def searched(name: str, strategy: str) -> dict[str, Any]:
    """The pages of a real search of an example."""
    spec = load_spec(str(EXAMPLES / name))
    answer = search(lambda: load_program(None, spec), Question(strategy=strategy, keeps_history=True))
    assert answer.subject is not None
    program = load_program(None, spec)
    return verdict_pages(
        answer.verdict, attach(program), version="0", command=["mcveto"], targets=sorted(program.targets)
    )


def unknown_pages() -> dict[str, Any]:
    program = load_program(None, load_spec(str(EXAMPLES / "demo" / "demo.yaml")))
    verdict = Verdict("unknown", reason="time-out")
    return verdict_pages(verdict, attach(program), version="0", command=["mcveto"], targets=())


COLUMNS = 70


def large_pages(count: int = 5_000) -> dict[str, Any]:
    """Two functions of many blocks: one with branches, loops and a word to look for, one a single endless line."""
    generator = random.Random(1)
    targets: list[set[int]] = [set() for _ in range(count)]
    for number in range(count):
        if number < COLUMNS:
            targets[0].add(number)
        else:
            targets[number - COLUMNS].add(number)
        below = number + COLUMNS + generator.randrange(-4, 5)
        targets[number].add(min(count - 1, below))
        if generator.random() < 0.1:
            targets[number].add(min(count - 1, number + COLUMNS * generator.randrange(2, 8)))
        if generator.random() < 0.03:
            targets[number].add(max(0, number - COLUMNS * generator.randrange(1, 6)))
    line = [{min(count - 1, number + 1)} for number in range(count)]
    pages = empty_pages("0", ["mcveto"], "large.elf")
    pages["subject"]["entry"] = "0x10000"
    functions = [_function("large", 0x10000, targets, generator), _function("tall", 0x100000, line, generator)]
    functions[0]["blocks"][4321]["lines"][0][2] = "MOV EAX,needle"
    pages["code"]["functions"] = functions
    pages["code"]["executed"] = [f"{0x10000 + 16 * number:#x}" for number in range(0, count, 3)]
    return pages


def _function(name: str, base: int, targets: list[set[int]], generator: random.Random) -> dict[str, Any]:
    blocks = []
    for number, following in enumerate(targets):
        at = base + 16 * number
        lines = [[f"{at + offset:#x}", "90", "NOP"] for offset in range(generator.randrange(1, 8))]
        out = [["taken", f"{base + 16 * target:#x}"] for target in sorted(following - {number})]
        blocks.append({"at": lines[0][0], "name": f"{name}_{number}", "lines": lines, "out": out})
    return {"name": name, "entry": f"{base:#x}", "blocks": blocks}


def hostile_pages() -> dict[str, Any]:
    """Every text that could come from a file of others is an attack."""
    pages = demo_pages()
    model = model_sample()
    for key in ("automata", "groups", "refinements"):
        pages[key] = model[key]
    pages["traces"] += [{**trace, "number": trace["number"] + 1} for trace in model["traces"]]
    spoilt: dict[str, Any] = _spoilt(pages, "")
    spoilt["invariants"] = [{"at": "0x8048140", "name": HOSTILE, "calls": [HOSTILE], "alternatives": [[HOSTILE]]}]
    spoilt["refinements"] = [{"what": HOSTILE, "is_event": True, "nodes": [HOSTILE], "lines": [HOSTILE]}]
    change = [["node", 1, "0x8048140", HOSTILE, 1], ["edge", 1, 0, HOSTILE]]
    spoilt["timeline"]["events"] = [["begin", 0.0, HOSTILE, None, 1, []], [HOSTILE, 0.1, HOSTILE, HOSTILE, 1, change]]
    return spoilt


_KEPT = {"schema", "kind", "at", "entry", "n", "status", "lines", "out", "executed"}


def _spoilt(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return value if key in _KEPT else value + HOSTILE
    if isinstance(value, dict):
        return {(name + HOSTILE if key == "values" else name): _spoilt(item, name) for name, item in value.items()}
    if isinstance(value, list) and key == "lines":
        return [[item[0], item[1] + HOSTILE, item[2] + HOSTILE] for item in value]
    if isinstance(value, list):
        return [_spoilt(item, key) for item in value]
    return value
