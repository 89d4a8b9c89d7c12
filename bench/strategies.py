"""Runs examples with both strategies of directed proof generation and prints verdicts and times side by side.

    python bench/strategies.py [--timeout S] SPEC...

One line per spec: what is expected, and for each strategy the verdict, wall-clock and CPU seconds of the whole answer.
A wrong verdict is marked; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcveto.program.program import Program, load_program
from mcveto.program.spec import Spec, load_spec
from mcveto.search import Question, search
from mcveto.verdict import Verdict

STRATEGIES = ("auto", "paper")


def decide(spec: Spec, strategy: str, timeout: float) -> Verdict:
    def load() -> Program:
        return load_program(None, spec)

    return search(load, Question(strategy=strategy, timeout=timeout)).verdict


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="compare the strategies auto and paper")
    parser.add_argument("specs", nargs="+", type=Path)
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for each program and strategy")
    options = parser.parse_args(arguments)
    wrong = 0
    solved = dict.fromkeys(STRATEGIES, 0)
    print(f"{'program':<34} {'expected':<9}" + "".join(f" {name:<9} {'s':>6} {'CPU':>6}" for name in STRATEGIES))
    for path in options.specs:
        spec = load_spec(str(path))
        cells = []
        for strategy in STRATEGIES:
            verdict = decide(spec, strategy, options.timeout)
            counts = verdict.statistics
            mark = verdict.kind
            if verdict.kind == spec.expected:
                solved[strategy] += 1
            elif verdict.kind != "unknown":
                wrong += 1
                mark = "WRONG"
            cells.append(f" {mark:<9} {counts['seconds']:6.2f} {counts['cpu_seconds']:6.2f}")
        name = f"{path.parent.name}/{path.stem}"
        print(f"{name:<34} {spec.expected or '':<9}" + "".join(cells), flush=True)
    print(f"{len(options.specs)} programs; solved: " + ", ".join(f"{name} {solved[name]}" for name in STRATEGIES))
    print(f"wrong: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
