"""`mcveto view`: the pages of a result, served on this computer until Ctrl-C.

RESULT is what --report-data wrote, or the JSON result of `verify` or `counterexamples`. The address printed contains a
random token; nobody without it is served. Exit code 0 after Ctrl-C, 2 usage, 3 unreadable result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mcveto.errors import InputFileError, McvetoError, UsageError
from mcveto.verdict import Verdict

MAX_BYTES = 1 << 29


@click.command()
@click.argument("result")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen (default: any free port).")
@click.option("--browser", is_flag=True, help="Open the pages in the browser.")
def command(result: str, port: int, browser: bool) -> int:
    """Show RESULT in the browser, at an address that only this computer can reach."""
    from mcveto.viewer.html_file import html_text, require_front_end
    from mcveto.viewer.server import PageServer

    require_front_end()
    html = html_text(pages_of(result))
    try:
        server = PageServer(html, port)
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror or error}") from None
    with server:
        print(f"the pages are at {server.url} (Ctrl-C ends it)", flush=True)
        if browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def pages_of(path: str) -> dict[str, Any]:
    """The pages of a result file; raises InputFileError."""
    from mcveto.viewer.from_result import counterexample_pages, read_result, summary_pages, verdict_of
    from mcveto.viewer.page_data import SCHEMA

    try:
        if not Path(path).is_file():
            raise InputFileError(f"cannot read {path}: no such file")
        if Path(path).stat().st_size > MAX_BYTES:
            raise InputFileError(f"{path} is larger than {MAX_BYTES} bytes")
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InputFileError(f"cannot read {path}: {error}") from None
    record = read_result(content, path)
    match record.get("schema"):
        case name if name == SCHEMA:
            return record
        case "mcveto-verdict-1":
            verdict = verdict_of(record, path)
            try:
                return _with_program(record, verdict)
            except (McvetoError, click.ClickException) as error:
                return summary_pages(record, verdict, str(error))
        case "mcveto-counterexamples-1":
            return counterexample_pages(record, path)
    raise InputFileError(
        f"{path} is no result that can be shown", "write one with verify or counterexamples: --report-data or --json"
    )


def _with_program(record: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    """The pages with code and run, from the program that the result's command names."""
    import inspect

    from mcveto.cli.options import read_spec
    from mcveto.cli.pages import run_again
    from mcveto.cli.verify import command as verify
    from mcveto.program.program import load_program
    from mcveto.property.attach import attach, parse_event, with_typestates
    from mcveto.search import PROPERTIES
    from mcveto.viewer.from_result import MORE
    from mcveto.viewer.page_data import verdict_pages

    arguments = [str(item) for item in record["command"] or []]
    if arguments[1:2] != ["verify"]:
        raise InputFileError("its command is not one of verify")
    with verify.make_context("verify", arguments[2:]) as context:
        options = dict(context.params)
    spec = read_spec(**{name: options[name] for name in inspect.signature(read_spec).parameters})
    typestates = [name for name in options["properties"] if name == "typestate" or name not in PROPERTIES]
    program = load_program(options["binary"], with_typestates(spec, typestates))
    if program.image.sha256 != (record.get("binary") or {}).get("sha256"):
        raise InputFileError(f"{program.image.path} is not the file that the result is about")
    attached = attach(program, tuple(map(parse_event, options["events"])))
    version = str(record.get("mcveto"))
    pages = verdict_pages(verdict, attached, version=version, command=arguments, targets=sorted(program.targets))
    pages["notes"].append(MORE)
    return {**pages, "again": run_again(options["binary"], options, verdict)}
