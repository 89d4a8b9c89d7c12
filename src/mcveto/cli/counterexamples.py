"""`mcveto counterexamples`: every way in which a model violates a property, shortest first.

First line on stdout: PROVED or VIOLATED(<property>). Exit code 0 proved, 10 violated, 5 unknown, 2 usage, 3 unreadable
input file, 70 internal error. A model is exact: there is no UNKNOWN; but the list may be cut, and then says so.
"""

from __future__ import annotations

import sys

import click

from mcveto.errors import UsageError

DEFAULT_COUNT = 20


@click.command()
@click.argument("model")
@click.option("--property", "property_file", metavar="FILE|NAME", required=True, help="Typestate automaton (.fsm).")
@click.option("--count", type=click.IntRange(1), default=DEFAULT_COUNT, show_default=True, help="How many to show.")
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
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result as JSON; - prints nothing else.")
def command(
    model: str,
    property_file: str,
    count: int,
    recursion: str,
    max_length: int | None,
    max_height: int | None,
    timeout: float,
    tops: bool,
    unfold: bool,
    json_file: str | None,
) -> int:
    """List all minimum-recursion loop-free runs of MODEL (.pds) that violate a property."""
    from mcveto.cli.main import VERSION
    from mcveto.counterexamples.enumeration import Limits
    from mcveto.counterexamples.finder import Request, find_counterexamples
    from mcveto.counterexamples.grouping import grouped, refinements
    from mcveto.counterexamples.model_parser import read_model
    from mcveto.counterexamples.rendering import Style, record, text_lines
    from mcveto.property.library import find_typestate
    from mcveto.report.json_file import require_writable, write_json

    if not timeout > 0:
        raise UsageError(f"the time limit must be a positive number of seconds, not {timeout}")
    limits = Limits(stack_height=max_height, length=max_length, seconds=timeout)
    request = Request(count, _recursion(recursion), limits)
    require_writable(json_file)
    automaton = find_typestate(property_file)
    found = find_counterexamples(read_model(model), automaton, request)
    groups = grouped(found.witnesses)
    passed = refinements(found)
    if json_file != "-":
        for line in text_lines(found, groups, passed, Style(not tops, unfold)):
            print(line)
    if json_file is not None:
        result = record(found, groups, passed, version=VERSION, model=model, command=["mcveto", *sys.argv[1:]])
        write_json(json_file, result)
    return 10 if found.is_violated else 0


def _recursion(text: str) -> int | None:
    if text == "minimum":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) >= 1):
        raise UsageError(f"--recursion: '{text[:20]}' is neither minimum nor a positive number")
    return int(text)
