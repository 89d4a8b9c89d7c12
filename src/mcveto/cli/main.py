"""The `mcveto` command: finds the subcommand, turns every failure into one line and the documented exit code.

Subcommands are imported only when called, and `--version` imports nothing: start-up is part of the answer's time.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import click

VERSION = "0.1.0"
EXIT_USAGE = 2
EXIT_UNKNOWN = 5
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141

COMMANDS = {
    "bench": "Run the programs of the paper and print its table beside ours.",
    "check": "Re-prove a certificate that verify --proof wrote.",
    "counterexamples": "List every way in which a model violates a property.",
    "disasm": "Show the instructions at an address, as the machine decodes them.",
    "doctor": "Say what is installed and whether it works.",
    "models": "List the library models and what they assume.",
    "replay": "Run a counterexample again, on every machine that can.",
    "run": "Execute a binary with given or random inputs.",
    "trace": "Show the symbolic path constraint of a run.",
    "translate": "Write the program as C.",
    "view": "Show a result in the browser, served on this computer alone.",
    "while": "Run, prove, model-check and lower programs of the While language.",
    "verify": "Decide whether any input reaches a target or breaks a return.",
}


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print(f"mcveto {VERSION}")
        return
    if sys.argv[1:2] == ["verify"] and not {"--help", "-h"} & set(sys.argv):
        from mcveto.ahead import get_ready

        get_ready()
    _leave(run_command_line(sys.argv[1:]))


def _leave(exit_code: int) -> NoReturn:
    """Ends the process; without taking it to pieces, which costs time after the answer, if nobody waits for that."""
    import atexit
    import threading

    if not atexit._ncallbacks() and threading.active_count() == 1:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):  # closed, or never there
            sys.exit(exit_code)
        os._exit(exit_code)
    sys.exit(exit_code)


def run_command_line(arguments: list[str]) -> int:
    """Runs one command and returns its exit code."""
    try:
        result = _dispatch(arguments)
        sys.stdout.flush()
        return result
    except KeyboardInterrupt:
        return _complain("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone. Not 0: that would be a verdict nobody saw in full.
        _discard_output()
        return EXIT_CLOSED_PIPE
    except OSError as error:
        if os.environ.get("MCVETO_DEBUG"):
            raise
        _discard_output()
        return _complain(f"cannot write the output: {error.strerror or error}", EXIT_INTERNAL)
    except MemoryError:
        return _complain("out of memory", EXIT_UNKNOWN)
    except Exception as error:
        if os.environ.get("MCVETO_DEBUG"):
            raise
        from mcveto.errors import one_line

        what = one_line(f"{type(error).__name__}: {error}")[:300]
        return _complain(f"internal error: {what} (MCVETO_DEBUG=1 shows where; please report it)", EXIT_INTERNAL)


def _dispatch(arguments: list[str]) -> int:
    import click

    from mcveto.errors import McvetoError, one_line

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    group = _group()
    try:
        # Not group.main(): it prints on interrupts and exits with 1 on a closed pipe.
        with group.make_context("mcveto", list(arguments)) as context:
            result = group.invoke(context)
        return result if isinstance(result, int) else 0
    except McvetoError as error:
        return _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "mcveto"
        message = one_line(" ".join(error.format_message().split())).rstrip(".")
        return _complain(f"{message} (see {command} --help)", EXIT_USAGE)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.Abort:
        return _complain("interrupted", EXIT_INTERRUPTED)


def _complain(message: str, exit_code: int) -> int:
    try:
        sys.stdout.flush()
        print(f"mcveto: {message}", file=sys.stderr)
    except BrokenPipeError:
        _discard_output()
    return exit_code


def _discard_output() -> None:
    """What is still buffered has no reader; the interpreter must not complain about it when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _group() -> click.Group:
    import click

    class LazyGroup(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            return sorted(COMMANDS)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            if cmd_name not in COMMANDS:
                return None
            from importlib import import_module

            command: click.Command = import_module(f"mcveto.cli.{cmd_name}").command
            return command

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            if args and args[0] not in COMMANDS and not args[0].startswith("-"):
                import difflib

                nearest = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.0)
                raise click.UsageError(f"no command '{args[0]}'; did you mean '{nearest[0]}'?", ctx)
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            with formatter.section("Commands"):
                formatter.write_dl(sorted(COMMANDS.items()))

    @click.group(
        cls=LazyGroup,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        epilog="Exit codes: 0 done, 10 target reached, 5 not known, 2 usage, 3 input file, 70 internal error.",
    )
    @click.version_option(VERSION, message="mcveto %(version)s")
    def group() -> None:
        """A model checker for machine code."""

    return group
