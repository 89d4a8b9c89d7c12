"""`mcveto while`: programs of the While language are run, formatted, proved, model-checked and lowered to P-code.

First line on stdout: the verdict (PROVED, VIOLATED(…), UNKNOWN(…)) or how the run ended; exit codes as everywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcveto.errors import InputFileError, UsageError
from mcveto.verdict import EXIT_CODES

if TYPE_CHECKING:
    from mcveto.machine.pcode import Op, Varnode
    from mcveto.whilelang.forward import Bounds
    from mcveto.whilelang.state import State
    from mcveto.whilelang.syntax import Module

MAX_BOUND = 10_000


@click.group()
def command() -> None:
    """Programs of the While language: run, format, prove, bmc, symex, lower, verify."""


def _file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    function = click.option("--theory", metavar="NAME", help="Z, u32, s8, …; default: what the file says, else Z.")(
        function
    )
    return click.argument("file")(function)


def _bound_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--property",
            "about",
            type=click.Choice(["contract", "memory-safety"]),
            default="contract",
            show_default=True,
            help="The contract, or only that no pointer makes the program abort.",
        ),
        click.option("--timeout", type=click.FloatRange(0.1, 1e6), default=60.0, show_default=True, help="Seconds."),
        click.option("--recursion", type=click.IntRange(0, MAX_BOUND), help="Depth of recursion; default: the bound."),
        click.option(
            "--unwind-loop", "loops", multiple=True, metavar="LINE=N", help="The bound of the loop that starts there."
        ),
        click.option(
            "--unwind",
            type=click.IntRange(0, MAX_BOUND),
            default=8,
            show_default=True,
            help="How often loops are unfolded.",
        ),
    ):
        function = option(function)
    return function


def _bounds(unwind: int, loops: tuple[str, ...], recursion: int | None) -> Bounds:
    from mcveto.whilelang.forward import Bounds

    lines: dict[int, int] = {}
    for text in loops:
        match = re.fullmatch(r"([0-9]{1,7})=([0-9]{1,5})", text)
        if match is None:
            raise UsageError(f"--unwind-loop '{text[:40]}' is not LINE=N", "e.g. --unwind-loop 4=10")
        lines[int(match[1])] = int(match[2])
    return Bounds(unwind, lines, recursion)


def _load(file: str, theory: str | None, about: str = "contract") -> Module:
    from mcveto.whilelang.guards import memory_safety
    from mcveto.whilelang.source import load_module

    module = load_module(file, theory)
    return module if about == "contract" else memory_safety(module)


def _limited(work: Callable[[], tuple[int, list[str], dict[str, str]]], timeout: float) -> int:
    """Runs a checker in a watched process, prints its lines, writes its files; returns its exit code."""
    from mcveto.limits import End, ResourceLimits, run_limited

    def here(send: Callable[[Any], None]) -> tuple[int, list[str], dict[str, str]]:
        sys.setrecursionlimit(20_000)
        try:
            return work()
        except RecursionError:
            return EXIT_CODES["unknown"], ["UNKNOWN(the program is nested too deeply)"], {}

    finished = run_limited(here, ResourceLimits(timeout + 5.0))
    if finished.result is None:
        print(f"UNKNOWN({finished.end.value if finished.end is not End.CRASHED else finished.detail})")
        return 70 if finished.end is End.CRASHED else EXIT_CODES["unknown"]
    code, lines, files = finished.result
    for line in lines:
        print(line)
    for name, content in files.items():
        _write(name, content)
    return code


def _write(name: str, content: str) -> None:
    if name == "-":
        print(content, end="")
        return
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror or error}") from None


def _numbers(texts: tuple[str, ...], option: str) -> list[tuple[str, int]]:
    result = []
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            result.append((name.strip(), int(value, 0)))
        except ValueError:
            raise UsageError(f"{option} '{text[:40]}' is not NAME=NUMBER") from None
        if not equals:
            raise UsageError(f"{option} '{text[:40]}' is not NAME=NUMBER")
    return result


def _initial(module: Module, variables: tuple[str, ...], cells: tuple[str, ...]) -> State:
    from mcveto.whilelang.rewriting import module_variables
    from mcveto.whilelang.state import State
    from mcveto.whilelang.theory import theory_named

    theory = theory_named(module.theory)
    known = module_variables(module)
    state = State(dict.fromkeys(known, 0))
    for name, value in _numbers(variables, "--set"):
        if name not in known:
            raise UsageError(f"the program has no variable '{name[:40]}'", f"it has {', '.join(known) or 'none'}")
        state.variables[name] = theory.wrap(value)
    for text, value in _numbers(cells, "--cell"):
        if not text.isdecimal() or not 0 <= int(text) < module.cells:
            raise UsageError(f"there is no memory cell {text[:40]}", f"the memory has {module.cells} cells, from 0")
        state.memory[int(text)] = theory.wrap(value)
    return state


@command.command("run")
@_file_options
@click.option("--set", "variables", multiple=True, metavar="X=N", help="Initial value of a variable; else 0.")
@click.option("--cell", "cells", multiple=True, metavar="I=N", help="Initial content of a memory cell; else 0.")
@click.option("--inputs", default="", metavar="V,V,…", help="Values for input(), then 0.")
@click.option("--trace", is_flag=True, help="Print the trace.")
@click.option("--max-steps", type=click.IntRange(1, 1 << 40), default=1_000_000, show_default=True)
def run_command(
    file: str,
    theory: str | None,
    variables: tuple[str, ...],
    cells: tuple[str, ...],
    inputs: str,
    trace: bool,
    max_steps: int,
) -> int:
    """Run FILE from an initial state; first line ENDED, ABORTED(why), BLOCKED or LIMIT."""
    from mcveto.program.inputs import parse_inputs
    from mcveto.whilelang.interpreter import Interpreter, violation
    from mcveto.whilelang.report import state_text, trace_lines

    module = _load(file, theory)
    interpreter = Interpreter(module, max_steps)
    initial = _initial(module, variables, cells)
    given = iter(parse_inputs(inputs))
    in_contract = interpreter.satisfies(module.pre, initial) is True
    run = interpreter.run(initial, lambda: next(given, 0))
    print(f"ABORTED({run.why})" if run.kind == "aborted" else run.kind.upper())
    if run.detail:
        print(f"{run.detail}{f' (line {run.at.line})' if run.at is not None else ''}")
    print(f"final state: {state_text(run.final)}" if run.kind != "aborted" else "final state: Λ")
    if trace:
        for line in trace_lines(run):
            print(line)
    if not in_contract:
        print("note: the initial state is outside the precondition")
        return 5 if run.kind == "limit" else 0
    if violation(module, run) == "postcondition":
        print("the postcondition does not hold")
    if run.kind == "limit":
        return EXIT_CODES["unknown"]
    return EXIT_CODES["violated"] if violation(module, run) else 0


@command.command("format")
@click.argument("file")
@click.option("--write", is_flag=True, help="Rewrite FILE.")
@click.option("--check", is_flag=True, help="Exit code 10 if FILE is not formatted.")
def format_command(file: str, write: bool, check: bool) -> int:
    """Print FILE in its standard form (comments are lost; --write refuses a file that has some)."""
    from mcveto.whilelang.formatter import module_text
    from mcveto.whilelang.parser import parse
    from mcveto.whilelang.source import read_source

    source = read_source(file)
    text = module_text(parse(source, file))
    if check:
        return 0 if text == source else EXIT_CODES["violated"]
    if write:
        if "#" in source:
            raise InputFileError(f"{file} has comments, which the formatter would delete", "format it to stdout")
        _write(file, text)
    else:
        print(text, end="")
    return 0


@command.command("prove")
@_file_options
@_bound_options
@click.option(
    "--rule",
    type=click.Choice(["context", "substitution"]),
    default="context",
    show_default=True,
    help="[:=]= keeps assignments in the context, [:=] substitutes.",
)
@click.option("--rename", type=click.Choice(["needed", "always"]), default="needed", show_default=True)
@click.option("--no-invariants", is_flag=True, help="Unfold loops that have an invariant, too.")
@click.option("--no-tree", is_flag=True, help="Do not print the derivation.")
@click.option("--html", "html_file", metavar="FILE", help="Write the derivation as a page.")
@click.option("--latex", "latex_file", metavar="FILE", help="Write the derivation as LaTeX (bussproofs).")
def prove_command(
    file: str,
    theory: str | None,
    unwind: int,
    loops: tuple[str, ...],
    recursion: int | None,
    timeout: float,
    about: str,
    rule: str,
    rename: str,
    no_invariants: bool,
    no_tree: bool,
    html_file: str | None,
    latex_file: str | None,
) -> int:
    """Prove the contract of FILE in dynamic logic; loops by their invariant, or unfolded with unwinding assertions."""
    module = _load(file, theory, about)
    bounds = _bounds(unwind, loops, recursion)

    def work() -> tuple[int, list[str], dict[str, str]]:
        from mcveto.whilelang.backward import BackwardDerivation
        from mcveto.whilelang.checker import check
        from mcveto.whilelang.forward import ForwardDerivation
        from mcveto.whilelang.report import counterexample_lines, result_lines
        from mcveto.whilelang.tree_text import html_page, latex_document, text_lines

        derivation: ForwardDerivation | BackwardDerivation
        if rule == "context":
            derivation = ForwardDerivation(module, bounds, "assert", rename=rename, use_invariants=not no_invariants)
        else:
            derivation = BackwardDerivation(module, bounds, "assert")
        result = check(module, derivation, seconds=timeout, resolve=True)
        lines = [result.headline, *([] if no_tree else text_lines(result.tree)), *result_lines(result)]
        files: dict[str, str] = {}
        if html_file is not None:
            found = result.counterexample
            extra = [] if found is None else counterexample_lines(found)
            files[html_file] = html_page(result.tree, file, result.headline, extra)
        if latex_file is not None:
            files[latex_file] = latex_document(result.tree, file)
        return EXIT_CODES[result.kind], lines, files

    return _limited(work, timeout)


@command.command("bmc")
@_file_options
@_bound_options
@click.option(
    "--cut",
    type=click.Choice(["assert", "assume", "replace"]),
    default="assert",
    show_default=True,
    help="At the bound: unwinding assertions, only paths that leave, or the postcondition alone (as in the lecture).",
)
def bmc_command(
    file: str,
    theory: str | None,
    unwind: int,
    loops: tuple[str, ...],
    recursion: int | None,
    timeout: float,
    about: str,
    cut: str,
) -> int:
    """Bounded model checking of FILE: every verification condition up to the bound."""
    module = _load(file, theory, about)
    bounds = _bounds(unwind, loops, recursion)

    def work() -> tuple[int, list[str], dict[str, str]]:
        from mcveto.whilelang.checker import check
        from mcveto.whilelang.forward import ForwardDerivation
        from mcveto.whilelang.report import result_lines

        derivation = ForwardDerivation(module, bounds, cut, use_invariants=False)
        result = check(module, derivation, seconds=timeout)
        return EXIT_CODES[result.kind], [result.headline, *result_lines(result)], {}

    return _limited(work, timeout)


@command.command("symex")
@_file_options
@_bound_options
@click.option("--invariant", metavar="P", help="A formula to check at every point of every path.")
@click.option("--all-paths", is_flag=True, help="Follow infeasible paths to their end, too.")
@click.option("--graph", is_flag=True, help="Print the control-flow graph.")
def symex_command(
    file: str,
    theory: str | None,
    unwind: int,
    loops: tuple[str, ...],
    recursion: int | None,
    timeout: float,
    about: str,
    invariant: str | None,
    all_paths: bool,
    graph: bool,
) -> int:
    """Symbolic execution of FILE: path formulas to every error, to the exit, and to every point of an invariant."""
    module = _load(file, theory, about)
    bounds = _bounds(unwind, loops, recursion)
    formula = None
    if invariant is not None:
        from mcveto.whilelang.parser import parse_formula

        formula = parse_formula(invariant, "--invariant", module.theory)

    def work() -> tuple[int, list[str], dict[str, str]]:
        from mcveto.whilelang.report import exploration_lines
        from mcveto.whilelang.symex import SymbolicExecution

        execution = SymbolicExecution(module, bounds, invariant=formula, prune=not all_paths, seconds=timeout)
        found = execution.explore()
        shown = found.graph.lines() if graph else []
        return EXIT_CODES[found.kind], [found.headline, *shown, *exploration_lines(found)], {}

    return _limited(work, timeout)


@command.command("lower")
@_file_options
def lower_command(file: str, theory: str | None) -> int:
    """Print the P-code of FILE (machine integers of 8, 16, 32 or 64 bits)."""
    from mcveto.whilelang.lowering import lower

    lowered = lower(_load(file, theory))
    aborts = {address: kind for kind, address in lowered.aborts.items()}
    names = {(offset, size): name for name, offset, size in lowered.registers}
    for instruction in lowered.instructions:
        mark = f"  # abort: {aborts[instruction.pc]}" if instruction.pc in aborts else ""
        print(f"{instruction.pc:#x}  {instruction.text}{mark}")
        for op in instruction.ops:
            print(f"    {_operation(op, names)}")
    return 0


def _operation(op: Op, names: dict[tuple[int, int], str]) -> str:
    def shown(node: Varnode) -> str:
        match node.space.name:
            case "REGISTER":
                return names[node.offset, node.size]
            case "CONST":
                return f"{node.offset:#x}:{node.size}"
            case "UNIQUE":
                return f"t{(node.offset & 0xFFFFFFFF) // 16}:{node.size}"
        return f"{node.offset:#x}"

    inputs = ", ".join(map(shown, op.inputs))
    return f"{shown(op.output)} = {op.opcode} {inputs}" if op.output is not None else f"{op.opcode} {inputs}"


@command.command("verify")
@_file_options
@click.option("--timeout", type=click.FloatRange(0.1, 1e6), default=60.0, show_default=True, help="Seconds.")
@click.option("--seed", type=click.IntRange(0, 1 << 32), default=0)
@click.option("--proof", metavar="FILE", help="Write the certificate of a proof, for `mcveto check FILE.json FILE.w`.")
def verify_command(file: str, theory: str | None, timeout: float, seed: int, proof: str | None) -> int:
    """Lower FILE and let directed proof generation decide its contract, as it does for machine code."""
    from mcveto.program.while_program import entry_of, while_program
    from mcveto.report.json_file import require_writable, write_text
    from mcveto.report.verdict_text import verdict_lines
    from mcveto.search import Question, search
    from mcveto.whilelang.checker import replay
    from mcveto.whilelang.report import counterexample_lines

    module = _load(file, theory)
    require_writable(proof)
    answer = search(lambda: while_program(module, file), Question(timeout=timeout, seed=seed))
    verdict = answer.verdict
    found = None
    if verdict.kind == "violated":
        found = replay(module, *entry_of(module, verdict.inputs))
        if found is None:
            print("UNKNOWN(self-check failed: the interpreter does not confirm the counterexample)")
            return EXIT_CODES["unknown"]
        print(f"VIOLATED({found.what})")
    for number, line in enumerate(verdict_lines(verdict, "abort, postcondition")):
        if found is not None and number == 0:
            continue
        if not line.startswith(("input ", "reason: 0x", "… and")):
            print(line)
    for line in counterexample_lines(found) if found is not None else ():
        print(line)
    if proof is not None and verdict.kind == "proved":
        write_text(proof, verdict.certificate)
    return verdict.exit_code
