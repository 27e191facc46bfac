"""The command line: one module per command; options, one call, print, exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from remediate._version import __version__
from remediate.cli.commands import ENTRIES, Entry, entries_for
from remediate.errors import ExitCode, RemediateError


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"remediate {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Plan, apply, verify and undo the repair of a GPU sandbox that serves a language model.

    remediate reads what is installed, how the GPU is set and how the inference script is laid out, holds them against
    a known-good profile, and makes one plan that closes the gap.

    \b
    remediate plan          look, and change nothing
    remediate apply         make the changes, after asking
    remediate verify        compare again
    remediate rollback      put everything back
    remediate demo          the whole of it on a simulated A100
    """


def make_app(entries: Iterable[Entry] = ENTRIES) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="remediate",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit codes: 0 in agreement or done, 1 failed, 2 usage, 3 differences remain, 4 could not tell or not "
        "doable here.",
    )
    app.callback()(_options)
    for entry in entries:
        entry.register(app)
    return app


def __getattr__(name: str) -> typer.Typer:
    """`app`: all commands, built when somebody asks for it."""
    if name == "app":
        return make_app()
    raise AttributeError(name)


def main() -> None:
    """Run the command line; every error that a person can act on ends as one message and its exit code."""
    # A command lives for a moment and makes little garbage; the default threshold costs a plan 10 ms of 120.
    gc.set_threshold(100_000)
    try:
        make_app(entries_for(sys.argv[1:]))()
    except RemediateError as error:
        from remediate.cli.console import print_error

        print_error(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OK)
    except KeyboardInterrupt:
        typer.echo("interrupted; `remediate history` tells what was done", err=True)
        sys.exit(130)
    except Exception as error:
        if os.environ.get("REMEDIATE_TRACEBACK"):
            raise
        _report_defect(error)
        sys.exit(ExitCode.FAILED)


def _report_defect(error: Exception) -> None:
    from remediate.cli.console import print_error
    from remediate.errors import InternalError

    print_error(
        InternalError(
            f"something unforeseen happened: {type(error).__name__}: {error}",
            cause="a defect in remediate; what was done so far stands in `remediate history`",
            hint="run the command again with REMEDIATE_TRACEBACK=1 and report what it prints",
        )
    )
