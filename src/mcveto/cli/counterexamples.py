"""`mcveto counterexamples`: every way in which a model or a binary violates a property, shortest first.

First line on stdout: PROVED, VIOLATED(<property>) or UNKNOWN(<reason>). Exit code 0 proved, 10 violated, 5 unknown, 2
usage, 3 unreadable input file, 70 internal error. The answer for a model is exact. For a binary each trace of its
pushdown model is tried; if none runs, `verify` decides.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import program_options, read_spec
from mcveto.cli.pages import Pages, run_again
from mcveto.cli.reports import ReportFiles, report_counterexamples, report_model, report_options
from mcveto.errors import UsageError

if TYPE_CHECKING:
    from mcveto.counterexamples.finder import Request
    from mcveto.counterexamples.machine_code import MachineFound
    from mcveto.counterexamples.rendering import Style
    from mcveto.program.spec import Spec
    from mcveto.property.attach import EventPoint
    from mcveto.property.typestate import Typestate
    from mcveto.verdict import Verdict

DEFAULT_COUNT = 20
MODEL_SUFFIX = ".pds"
# What `verify` gets if the traces took all the time there was.
LEAST_SECONDS = 15.0


@click.command()
@program_options
@click.option("--property", "property_file", metavar="FILE|NAME", help="Typestate automaton (.fsm); else the spec's.")
@click.option(
    "--event", "events", multiple=True, metavar="NAME=KIND:ADDRESS", help="Where an event is (binaries only)."
)
@click.option(
    *("--max", "--count", "count"),
    type=click.IntRange(1),
    default=DEFAULT_COUNT,
    show_default=True,
    help="How many to show; more are counted.",
)
@click.option(
    "--recursion",
    default="minimum",
    show_default=True,
    metavar="minimum|N",
    help="Unnecessary recursion: as the paper defines it, or more than N pending calls.",
)
@click.option("--max-length", type=click.IntRange(0), metavar="N", help="Leave longer traces out.")
@click.option("--max-height", type=click.IntRange(1), metavar="N", help="Leave higher stacks out.")
@click.option("--timeout", type=float, default=60.0, show_default=True, metavar="S", help="Seconds for the search.")
@click.option("--tops", is_flag=True, help="Show the top of the stack only.")
@click.option("--unfold", is_flag=True, help="Show every step of long traces.")
@click.option("--model", "model_file", metavar="FILE", help="Write the pushdown model of the binary (.pds).")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
@click.option("--report", metavar="FILE.html", help="Write pages about the result, all in one file, for a browser.")
@click.option("--report-data", metavar="FILE", help="Write the data of these pages as JSON, for `mcveto view`.")
@report_options
def command(
    binary: str | None,
    property_file: str | None,
    events: tuple[str, ...],
    count: int,
    recursion: str,
    max_length: int | None,
    max_height: int | None,
    timeout: float,
    tops: bool,
    unfold: bool,
    model_file: str | None,
    json_file: str | None,
    report: str | None,
    report_data: str | None,
    sarif: str | None,
    witness: str | None,
    coverage: str | None,
    **options: Any,
) -> int:
    """List all minimum-recursion loop-free runs of BINARY, or of a model (.pds), that violate a property."""
    from mcveto.counterexamples.enumeration import Limits
    from mcveto.counterexamples.finder import Request
    from mcveto.counterexamples.rendering import Style
    from mcveto.property.attach import parse_event, require_known
    from mcveto.property.library import find_typestate
    from mcveto.report.json_file import require_writable

    if not 0 < timeout < float("inf"):
        raise UsageError(f"the time limit must be a positive number of seconds, not {timeout}")
    limits = Limits(stack_height=max_height, length=max_length, seconds=timeout)
    request = Request(count, _recursion(recursion), limits)
    points = tuple(map(parse_event, events))
    require_writable(json_file)
    pages = Pages(report, report_data)
    pages.require()
    files = ReportFiles(sarif, witness, coverage)
    files.require_writable()
    style = Style(not tops, unfold)
    if binary is not None and is_model(binary):
        if property_file is None:
            raise UsageError("no property is given", "say --property FILE.fsm, or the name of a bundled one")
        automaton = find_typestate(property_file)
        if points or model_file is not None:
            raise UsageError("--event and --model are for binaries, not for models")
        if witness is not None or coverage is not None:
            raise UsageError("--witness and --coverage are for binaries, not for models", "use --sarif or --json")
        return _on_model(binary, automaton, request, style, json_file, pages, files)
    require_writable(model_file)
    spec = read_spec(**options)
    automaton, given = _asked_for(spec, property_file)
    require_known(points, [automaton], "--event")
    named = {event for event, _ in points}
    # The command line takes over from the spec, event by event.
    points = (*(item for item in given if item[0] not in named), *points)
    spec = replace(spec, properties=())
    return _on_binary(binary, spec, automaton, points, request, style, json_file, model_file, pages, files, options)


def _asked_for(spec: Spec, name: str | None) -> tuple[Typestate, tuple[EventPoint, ...]]:
    """The automaton asked for on the command line, else the only one of the spec; with where the spec says its events
    are."""
    from mcveto.property.attach import find_for, parse_binding, require_known
    from mcveto.property.library import find_typestate

    items = [(item, find_for(spec, str(item.argument))) for item in spec.properties if item.name == "typestate"]
    if name is not None:
        automaton = find_typestate(name)
        items = [(item, known) for item, known in items if known == automaton]
    elif len(items) != 1:
        count = "several typestate properties" if items else "no typestate property"
        raise UsageError(f"no property is given, and the spec has {count}", "say --property FILE.fsm")
    else:
        automaton = items[0][1]
    events = [event for item, _ in items for event in item.events]
    require_known(events, [automaton], f"{spec.path or 'spec'}: events")
    return automaton, tuple(parse_binding(event, where) for event, where in events)


def is_model(path: str) -> bool:
    """Whether a file is a model: by its name, or by the word that it begins with."""
    if path.endswith(MODEL_SUFFIX):
        return True
    try:
        with Path(path).open("rb") as file:
            lines = file.read(4096).split(b"\n")
    except (OSError, ValueError):
        return False
    words = [line.split() for line in lines if line.strip() and not line.lstrip().startswith(b"#")]
    return bool(words) and len(words[0]) >= 2 and words[0][0] in (b"model", b"finite")


def _on_model(
    path: str,
    automaton: Typestate,
    request: Request,
    style: Style,
    json_file: str | None,
    pages: Pages,
    files: ReportFiles,
) -> int:
    from mcveto.cli.main import VERSION
    from mcveto.counterexamples.finder import find_counterexamples
    from mcveto.counterexamples.grouping import grouped, refinements
    from mcveto.counterexamples.model_parser import read_model
    from mcveto.counterexamples.rendering import record, text_lines
    from mcveto.report.json_file import write_json

    found = find_counterexamples(read_model(path), automaton, request)
    groups, passed = grouped(found.witnesses), refinements(found)
    if json_file != "-":
        for line in text_lines(found, groups, passed, style):
            print(line)
    if json_file is not None:
        write_json(
            json_file, record(found, groups, passed, version=VERSION, model=path, command=["mcveto", *sys.argv[1:]])
        )
    if pages.are_wanted:
        from mcveto.viewer.page_data import model_pages

        pages.write(model_pages(found, version=VERSION, command=["mcveto", *sys.argv[1:]], path=path))
    report_model(files, found, path)
    return 10 if found.is_violated else 0


def _on_binary(
    binary: str | None,
    spec: Spec,
    automaton: Typestate,
    points: tuple[EventPoint, ...],
    request: Request,
    style: Style,
    json_file: str | None,
    model_file: str | None,
    pages: Pages,
    files: ReportFiles,
    options: dict[str, Any],
) -> int:
    from mcveto.cli.main import VERSION
    from mcveto.counterexamples.machine_code import MOST_LISTED, machine_counterexamples
    from mcveto.counterexamples.machine_rendering import machine_lines, machine_record
    from mcveto.counterexamples.model_printer import model_text
    from mcveto.program.program import load_program
    from mcveto.program.spec import PropertySpec
    from mcveto.property.attach import bindings_of
    from mcveto.report.json_file import write_json
    from mcveto.report.verdict_text import verdict_lines
    from mcveto.search import Question, search
    from mcveto.verdict import Verdict

    program = load_program(binary, spec)
    seconds = request.limits.seconds or 60.0
    started = time.monotonic()
    bindings = bindings_of(points, automaton)
    result = machine_counterexamples(program, automaton, bindings, request, seconds, most=MOST_LISTED)
    if model_file is not None:
        try:
            Path(model_file).write_text(model_text(result.extracted.model), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {model_file}: {error.strerror or error}") from None
    verdict = Verdict("violated", about=automaton.name)
    decided_by: list[str] = []
    if not result.confirmed:
        name = automaton.path if automaton.path and Path(automaton.path).is_file() else automaton.name
        asked = replace(spec, properties=(PropertySpec("typestate", name),))
        left = max(LEAST_SECONDS, seconds - (time.monotonic() - started))
        answer = search(
            lambda: load_program(binary, asked),
            Question(timeout=left, events=points, keeps_history=pages.are_wanted),
        )
        verdict = answer.verdict
        result = replace(result, is_proved=verdict.kind == "proved")
        decided_by = ["", "no trace of the model runs; this is the answer of verify:"]
        decided_by += list(verdict_lines(verdict, f"{automaton.name}, return-address"))
    if json_file != "-":
        print(verdict.headline)
        for line in (*machine_lines(result, style, request.count), *decided_by):
            print(line)
    if json_file is not None:
        path = program.image.path
        written = machine_record(result, verdict.kind, version=VERSION, path=path, command=["mcveto", *sys.argv[1:]])
        write_json(json_file, written)
    if pages.are_wanted:
        from mcveto.property.ghost import watch
        from mcveto.viewer.page_data import machine_pages

        watched = watch(program, automaton, bindings)
        command = ["mcveto", *sys.argv[1:]]
        made = machine_pages(result, verdict, watched, automaton, version=VERSION, command=command)
        pages.write({**made, "again": _again(binary, options, result, verdict)})
    report_counterexamples(files, result, verdict, automaton, program.assumptions)
    return verdict.exit_code


def _again(binary: str | None, options: dict[str, Any], result: MachineFound, verdict: Verdict) -> list[str]:
    """The command that makes the run of the first counterexample."""
    from mcveto.counterexamples.entry_values import Confirmed
    from mcveto.verdict import VerdictInput

    if result.confirmed:
        outcome = result.confirmed[0].outcome
        assert isinstance(outcome, Confirmed)
        inputs = tuple(VerdictInput(item.value, item.bits, item.where) for item in outcome.inputs)
        if any(item.where.endswith("at entry") for item in inputs):
            return []  # `run` takes them from the spec
        verdict = replace(verdict, inputs=inputs)
    return run_again(binary, options, verdict)


def _recursion(text: str) -> int | None:
    if text == "minimum":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) >= 1):
        raise UsageError(f"--recursion: '{text[:20]}' is neither minimum nor a positive number")
    return int(text)
