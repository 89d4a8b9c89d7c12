"""mcveto: a model checker for machine code.

In a notebook: `program = mcveto.load("prog.elf", targets=["error"], inputs=["read"])`, then
`verdict = mcveto.verify(program, timeout=60)`; `verdict.headline`, `verdict.inputs` and `verdict.assumptions` say what
was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcveto.program.program import Program
    from mcveto.program.spec import Address
    from mcveto.verdict import Verdict

__all__ = ["Verdict", "load", "verify"]


def load(
    binary: str | None = None,
    spec: str | None = None,
    *,
    entry: Address | None = None,
    targets: Iterable[Address] = (),
    inputs: Iterable[Address] = (),
    halts: Iterable[Address] = (),
) -> Program:
    """A binary and what is asked of it: from a spec file (which may name the binary), from the arguments, or both.

    Addresses are numbers or text such as "main" or "main+0x10". `inputs` are functions whose calls return 32-bit
    inputs; a spec file can say more. Raises `mcveto.errors.InputFileError` or `UsageError`.
    """
    from dataclasses import replace

    from mcveto.program.program import load_program
    from mcveto.program.spec import InputCall, PropertySpec, Spec, load_spec

    base = load_spec(spec) if spec is not None else Spec()
    wanted = tuple(targets)
    return load_program(
        binary,
        replace(
            base,
            entry=base.entry if entry is None else entry,
            input_calls=(*base.input_calls, *map(InputCall, inputs)),
            halt=(*base.halt, *halts),
            properties=(*base.properties, *((PropertySpec("reach", wanted),) if wanted else ())),
        ),
    )


def verify(
    program: Program,
    *,
    engine: str = "dpg",
    strategy: str = "auto",
    fold: str = "auto",
    steps: str = "block",
    timeout: float | None = 300.0,
    memory_mb: int | None = None,
    seed: int = 0,
) -> Verdict:
    """The verdict on a loaded program.

    The search runs in a child process, so that its limits hold; Ctrl-C ends it with an UNKNOWN verdict. Raises
    `mcveto.errors.UsageError` for a choice that does not exist, or not yet.
    """
    from mcveto.search import Question, search

    question = Question(engine, strategy, fold, steps, timeout, memory_mb, seed)
    return search(lambda: program, question).verdict


def __getattr__(name: str) -> Any:
    # Importing the package must cost nothing: the command line does it for every command.
    if name == "Verdict":
        from mcveto.verdict import Verdict

        return Verdict
    raise AttributeError(f"module 'mcveto' has no attribute '{name}'")
