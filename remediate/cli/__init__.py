"""The command line: one module per command; options, one call, print, exit code."""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated

import typer

from remediate._version import __version__
from remediate.cli import (
    advisories,
    apply,
    confirm,
    demo,
    explain,
    facts,
    gpu_boot,
    plan,
    profiles,
    render,
    rollback,
    scan,
    verify,
    wheelhouse,
)
from remediate.errors import ExitCode, RemediateError

app = typer.Typer(
    name="remediate",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 in agreement or done, 1 failed, 2 usage, 3 differences remain, 4 could not tell or not "
    "doable here.",
)
app.command(short_help="Show what differs, and the changes that would close the gap.")(plan.plan)
app.command(short_help="Make a plan's changes, each journalled and read back.")(apply.apply)
app.command(short_help="Compare with the profile again, one line a finding.")(verify.verify)
app.command(short_help="Undo a run: everything as it was before.")(rollback.rollback)
app.command(short_help="Keep a run that would else be undone.")(confirm.confirm)
app.command(short_help="Look through many scripts and notebooks.")(scan.scan)
app.add_typer(render.app, name="render", short_help="Write files from the templates.")
app.command(short_help="List known vulnerabilities and regressions of the versions.")(advisories.advisories)
app.command(short_help="List the runs of all folders.")(rollback.history)
app.add_typer(facts.app, name="facts", short_help="Show what is installed, set and laid out; import reports.")
app.command(short_help="Show a saved plan again.")(plan.show)
app.command(short_help="Say what a finding's code means.")(explain.explain)
app.add_typer(profiles.app, name="profiles")
app.add_typer(profiles.app, name="profile", hidden=True)
app.command(short_help="Collect a profile's files for a host without network.")(wheelhouse.wheelhouse)
app.command(short_help="Walk through the incident on a simulated A100.")(demo.demo)
app.command("gpu-boot", hidden=True)(gpu_boot.gpu_boot)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"remediate {__version__}")
        raise typer.Exit


@app.callback()
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


def main() -> None:
    """Run the command line; every error that a person can act on ends as one message and its exit code."""
    # A command lives for a moment and makes little garbage; the default threshold costs a plan 10 ms of 120.
    gc.set_threshold(100_000)
    try:
        app()
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
