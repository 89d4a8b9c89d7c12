"""`mcveto verify`: does some input reach a target, or break the discipline of calls and returns?

First line on stdout: PROVED, VIOLATED(<property>) or UNKNOWN(<reason>). Exit code 0 proved, 10 violated, 5 unknown
(also time-out, memory limit and Ctrl-C), 2 usage, 3 unreadable input file, 70 internal error.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import MAX_SEED, program_options, read_spec
from mcveto.cli.pages import Pages, run_again
from mcveto.cli.progress import ProgressDisplay
from mcveto.cli.reports import ReportFiles, report_options, report_verdict
from mcveto.errors import UsageError
from mcveto.search import (
    ALIASINGS,
    BITWISE,
    DEFAULT_TIMEOUT,
    ENGINES,
    FOLDS,
    FRONTIERS,
    PROPERTIES,
    STEPS,
    STRATEGIES,
    Answer,
    ProgramFile,
    Question,
    Subject,
    require_available,
    search,
)

if TYPE_CHECKING:
    from mcveto.program.spec import Spec
    from mcveto.property.attach import EventPoint

SAFETY = ("memory-safety", "no-fault")


@click.command()
@program_options
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME|FILE",
    help="reach, return-address (always on), memory-safety, no-fault, or a typestate automaton (.fsm).",
)
@click.option(
    "--event", "events", multiple=True, metavar="NAME=KIND:ADDRESS", help="Where an event of a typestate automaton is."
)
@click.option(
    "--engine",
    help=f"One of {', '.join(ENGINES)}, external:COMMAND (default: dpg; portfolio for memory-safety and no-fault).",
)
@click.option("--strategy", default="auto", show_default=True, help=f"One of {', '.join(STRATEGIES)}.")
@click.option("--fold", default="auto", show_default=True, help=f"When traces meet: one of {', '.join(FOLDS)}.")
@click.option("--steps", default="block", show_default=True, help=f"Step size: one of {', '.join(STEPS)}.")
@click.option("--frontier", default="path", show_default=True, help=f"Which are tried: one of {', '.join(FRONTIERS)}.")
@click.option("--closest", type=int, default=1, show_default=True, metavar="K", help="For start, target: how many.")
@click.option("--aliasing", default="witness", show_default=True, help=f"As in: one of {', '.join(ALIASINGS)}.")
@click.option("--after-violation", is_flag=True, help="Say where control can go after a return that does not match.")
@click.option("--timeout", type=float, default=DEFAULT_TIMEOUT, show_default=True, metavar="S", help="Seconds.")
@click.option("--memory", type=int, metavar="MB", help="Limit of the resident memory.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=0, help="Draws the first run's inputs.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
@click.option("--quiet", is_flag=True, help="Print only the first line, and no progress.")
@click.option("--unwind", type=int, metavar="N", help="For engine bmc: how often a loop is entered again.")
@click.option("--merge", is_flag=True, help="For engine symex: paths that meet become one.")
@click.option("--bitwise", default="interpreted", show_default=True, help=f"For cegar: one of {', '.join(BITWISE)}.")
@click.option("--proof", metavar="FILE", help="Write the certificate of a proof, for `mcveto check`.")
@click.option("--self-check/--no-self-check", default=True, help="Re-prove a proof before it is printed (default).")
@click.option("--cex", metavar="DIR", help="On a violation, write a folder that repeats it without mcveto.")
@click.option("--report", metavar="FILE.html", help="Write pages about the result, all in one file, for a browser.")
@click.option("--report-data", metavar="FILE", help="Write the data of these pages as JSON, for `mcveto view`.")
@report_options
def command(
    binary: str | None,
    properties: tuple[str, ...],
    events: tuple[str, ...],
    engine: str | None,
    strategy: str,
    fold: str,
    steps: str,
    frontier: str,
    closest: int,
    aliasing: str,
    after_violation: bool,
    timeout: float,
    memory: int | None,
    seed: int,
    json_file: str | None,
    quiet: bool,
    unwind: int | None,
    merge: bool,
    bitwise: str,
    proof: str | None,
    self_check: bool,
    cex: str | None,
    report: str | None,
    report_data: str | None,
    sarif: str | None,
    witness: str | None,
    coverage: str | None,
    **options: Any,
) -> int:
    """Decide whether BINARY can reach a target or return to where it was not called from, for any input."""
    from dataclasses import replace

    from mcveto.program.spec import PropertySpec
    from mcveto.report.json_file import require_folder, require_writable

    pages = Pages(report, report_data)
    pages.require()
    typestates = [name for name in properties if name == "typestate" or name not in PROPERTIES]
    for name in properties:
        if name not in typestates:
            require_available("property", name, PROPERTIES)
    spec = read_spec(**options)
    points: tuple[EventPoint, ...] = ()
    if typestates or events:
        from mcveto.property.attach import parse_event, with_typestates

        spec = with_typestates(spec, typestates)
        points = tuple(map(parse_event, events))
    asked = {item.name for item in spec.properties}
    more = [PropertySpec(name) for name in SAFETY if name in properties and name not in asked]
    spec = replace(spec, properties=(*spec.properties, *more))
    if engine is None:
        # Errors of memory are mostly found, and excluded, within bounds: symbolic execution is asked as well.
        is_plain = (strategy, fold, steps, unwind, merge) == ("auto", "auto", "block", None, False)
        engine = "portfolio" if is_plain and (more or asked.intersection(SAFETY)) else "dpg"
    question = Question(
        engine=engine,
        strategy=strategy,
        fold=fold,
        steps=steps,
        timeout=timeout,
        memory_mb=memory,
        seed=seed,
        frontier=frontier,
        closest=closest,
        aliasing=aliasing,
        after_violation=after_violation,
        self_check=self_check,
        events=points,
        unwind=unwind,
        merge=merge,
        bitwise=bitwise,
        certificate=proof is not None,
        keeps_history=pages.are_wanted,
    )
    if "reach" in properties and not any(item.name == "reach" for item in spec.properties):
        raise UsageError("property reach needs an address", "give --target ADDRESS")
    require_writable(json_file)
    require_writable(proof)
    files = ReportFiles(sarif, witness, coverage)
    files.require_writable()
    if cex is not None:
        require_folder(cex)
    answer = _search(binary, spec, question, silent=quiet or json_file == "-")
    _print(answer, quiet, json_file)
    _write_proof(answer, proof)
    if json_file is not None:
        _write_json(answer, json_file, binary or spec.binary, seed, proof)
    if cex is not None and answer.verdict.kind == "violated":
        _write_folder(answer, cex, binary, spec)
    if pages.are_wanted:
        pages.write(_pages(answer, binary, spec, question, options))
    report_verdict(files, answer, binary, spec, question)
    return answer.verdict.exit_code


def _write_folder(answer: Answer, cex: str, binary: str | None, spec: Spec) -> None:
    from pathlib import Path

    from mcveto.check.cex_folder import write_folder
    from mcveto.check.counterexample import REPLAYABLE, counterexample_of
    from mcveto.check.recording import recorded
    from mcveto.cli.main import VERSION
    from mcveto.program.program import load_program

    if answer.verdict.about not in REPLAYABLE:
        print(f"mcveto: no folder is written for a violation of {answer.verdict.about}", file=sys.stderr)
        return
    try:
        recording = recorded(load_program(binary, spec), counterexample_of(answer.verdict))
    except UsageError as error:  # too long to be written down instruction by instruction
        print(f"mcveto: no folder is written: {error}", file=sys.stderr)
        return
    write_folder(Path(cex), answer.verdict, recording, VERSION)


def _pages(
    answer: Answer, binary: str | None, spec: Spec, question: Question, options: dict[str, Any]
) -> dict[str, Any]:
    from mcveto.cli.main import VERSION
    from mcveto.program.program import load_program
    from mcveto.property.attach import attach
    from mcveto.viewer.page_data import add_log, unloaded_pages, verdict_pages

    command = ["mcveto", *sys.argv[1:]]
    log = [(item.seconds, item.frontier, item.counts) for item in answer.log]
    if answer.subject is None:
        pages = unloaded_pages(answer.verdict, version=VERSION, command=command, path=binary or spec.binary or "")
        add_log(pages, log)
        return pages
    program = load_program(binary, spec)
    attached = attach(program, question.events)
    targets = sorted(program.targets)
    pages = verdict_pages(answer.verdict, attached, version=VERSION, command=command, targets=targets)
    add_log(pages, log)
    return {**pages, "again": run_again(binary, options, answer.verdict)}


def _search(binary: str | None, spec: Spec, question: Question, silent: bool) -> Answer:
    display = ProgressDisplay(silent=silent)
    try:
        return search(ProgramFile(binary, spec), question, display.show)
    finally:
        display.clear()


def _print(answer: Answer, quiet: bool, json_file: str | None) -> None:
    from mcveto.report.verdict_text import verdict_lines

    if json_file == "-":
        return
    for line in verdict_lines(answer.verdict, _asked(answer.subject)):
        print(line)
        if quiet:
            break
    else:
        for note in answer.subject.notes if answer.subject is not None else ():
            print(f"note: {note}")


def _asked(subject: Subject | None) -> str:
    targets = [f"{target:#x}" for target in subject.targets] if subject is not None else []
    typestates = subject.typestates if subject is not None else ()
    return ", ".join([*([f"reach {' '.join(targets)}"] if targets else []), *typestates, "return-address"])


def _write_proof(answer: Answer, proof: str | None) -> None:
    """The certificate of a proof, or all that is known of a claim that our own check refused, to be reported."""
    from mcveto.report.json_file import write_json, write_text

    verdict = answer.verdict
    if verdict.kind == "proved" and proof is not None and verdict.certificate:
        write_text(proof, verdict.certificate)
    elif proof is not None and verdict.kind == "proved":
        print("mcveto: no certificate is written, this engine makes none", file=sys.stderr)
    elif verdict.is_internal_error and verdict.reason.startswith("self-check failed"):
        sha256 = answer.subject.sha256 if answer.subject is not None else ""
        name = f"mcveto-self-check-{sha256[:12]}.json"
        arguments = ["mcveto", *sys.argv[1:]]
        bundle = {"reason": verdict.reason, "command": arguments, "binary": sha256, "certificate": verdict.certificate}
        write_json(name, bundle)
        print(f"mcveto: {name} holds the claim that was refused; please report it", file=sys.stderr)


def _write_json(answer: Answer, json_file: str, path: str | None, seed: int, proof: str | None) -> None:
    from mcveto.cli.main import VERSION
    from mcveto.report.json_file import write_json
    from mcveto.report.verdict_json import verdict_record

    subject = answer.subject
    record = verdict_record(
        answer.verdict,
        version=VERSION,
        path=subject.path if subject is not None else path,
        sha256=subject.sha256 if subject is not None else None,
        command=["mcveto", *sys.argv[1:]],
        seed=seed,
        proof_file=proof,
    )
    write_json(json_file, record)
