"""The `mcveto` command: finds the subcommand, turns every failure into one line and the documented exit code.

Subcommands are imported only when called, and `--version` imports nothing: start-up is part of the answer's time.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

VERSION = "0.1.0"
EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130

COMMANDS = {
    "bench": "Run the programs of the paper and print its table beside ours.",
    "disasm": "Show the instructions at an address, as the machine decodes them.",
    "doctor": "Say what is installed and whether it works.",
    "run": "Execute a binary with given or random inputs.",
    "trace": "Show the symbolic path constraint of a run.",
    "verify": "Decide whether any input reaches a target or breaks a return.",
}


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print(f"mcveto {VERSION}")
        return
    sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: list[str]) -> int:
    """Runs one command and returns its exit code."""
    import click

    from mcveto.errors import McvetoError, one_line

    try:
        result = _group().main(args=arguments, prog_name="mcveto", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except McvetoError as error:
        return _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        return _complain(f"{one_line(error.format_message())} (see mcveto --help)", EXIT_USAGE)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _complain("interrupted", EXIT_INTERRUPTED)
    except click.exceptions.Exit as error:
        return error.exit_code
    except BrokenPipeError:
        # The reader has gone; the interpreter must not complain about it when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("MCVETO_DEBUG"):
            raise
        what = one_line(f"{type(error).__name__}: {error}")
        return _complain(f"internal error: {what} (MCVETO_DEBUG=1 shows where; please report it)", EXIT_INTERNAL)


def _complain(message: str, exit_code: int) -> int:
    print(f"mcveto: {message}", file=sys.stderr)
    return exit_code


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
                raise click.UsageError(f"no command '{args[0]}'; did you mean '{nearest[0]}'?")
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            with formatter.section("Commands"):
                formatter.write_dl(sorted(COMMANDS.items()))

    @click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(VERSION, message="mcveto %(version)s")
    def group() -> None:
        """A model checker for machine code."""

    return group
