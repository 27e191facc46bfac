"""`remediate rollback` and `remediate history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.runs.journal import Run
    from remediate.runs.rollback import RollbackResult


def rollback(
    *,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Number of the run. Default: this folder's last one.")
    ] = None,
    folder: options.FolderOption = Path(),
    only: options.OnlyOption = None,
    yes: options.YesOption = False,
    state_dir: options.StateOption = None,
) -> None:
    """Undo a run: every file, setting and package set to what was there before.

    The former values are restored, not the defaults. What somebody changed after the run is not overwritten: then
    nothing is undone and the change is named. A rollback that was interrupted is finished by running it again.
    """
    from remediate.cli.apply import ask
    from remediate.cli.console import Console
    from remediate.cli.steps import StepPrinter
    from remediate.runs.rollback import find_run, rollback_run
    from remediate.runs.store import Store

    store = Store(state_dir)
    console = Console()
    found = find_run(store, run, None if run else folder.resolve())
    console.heading(f"Undo run {found.id} of {found.began_at} in {found.plan.request.folder} ({found.status})")
    for change in reversed(found.changes):
        console.item("-", "magenta", f"{change.title}: {change.after or 'absent'} -> {change.before or 'absent'}")
    if not yes:
        ask("Undo it?")
    result = rollback_run(found, store=store, only=options.names(only), events=StepPrinter(console, "restoring"))
    raise typer.Exit(_report(console, found, result))


def _report(console: Console, found: Run, result: RollbackResult) -> int:
    from remediate.cli.console import print_error
    from remediate.cli.report import plural
    from remediate.errors import ExitCode

    titles = {change.id: change.title for change in found.changes}
    if result.failure is not None:
        print_error(result.failure)
    if result.needs_root:
        console.heading("These need root and were not undone; run `sudo remediate rollback`:")
        for change in result.needs_root:
            console.item("-", "magenta", change.title)
    console.line()
    if not result.left:
        console.text(f"Run {found.id} is undone.", style="bold")
        return ExitCode.OK
    console.text(f"{plural(len(result.left), 'change')} of run {found.id} left as made:", style="bold")
    for change_id in result.left:
        console.item("!", "magenta", titles[change_id])
    if result.failure is not None:
        return result.failure.exit_code
    return ExitCode.UNKNOWN if result.needs_root else ExitCode.OK


def history(
    *,
    json: options.JsonOption = False,
    state_dir: options.StateOption = None,
) -> None:
    """List the runs of all folders, the newest last, with what each changed."""
    from remediate.cli.console import Console
    from remediate.cli.session import print_document
    from remediate.documents import encode
    from remediate.runs.history import History, summarize_runs
    from remediate.runs.store import Store

    runs = summarize_runs(Store(state_dir))
    if json:
        print_document(encode(History(runs=runs)))
        return
    console = Console()
    if not runs:
        console.text("No runs yet.")
    for summary in runs:
        state = ", ".join(word for word in (summary.status, summary.confirmation) if word)
        console.heading(f"{summary.id}  {summary.began_at}  {state}")
        console.labelled("folder:", f"{summary.folder}, profile {summary.profile}", indent=2)
        for change in summary.changes:
            console.item(
                "~",
                "magenta",
                f"{change.title}: {change.before or 'absent'} -> {change.after or 'absent'}",
                tail=change.status,
            )
