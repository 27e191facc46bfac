"""`remediate confirm`, and the question that `apply --confirm-within` ends with."""

from __future__ import annotations

import select
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.runs.journal import Run
    from remediate.runs.store import Store

_PAUSE_S = 0.3
_UNDO_S = 600.0
"""How long the undoing is waited for before it is left to itself."""


def confirm(
    *,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Number of the run. Default: the last one.")
    ] = None,
    state_dir: options.StateOption = None,
) -> None:
    """Let a run stay that `apply --confirm-within` would else undo.

    From any shell of the same user. Exit 0 when the run stays, 1 when it is too late.
    """
    from remediate.cli.console import Console
    from remediate.runs.confirm import confirm_run
    from remediate.runs.store import Store

    kept = confirm_run(Store(state_dir), run)
    Console().text(f"Run {kept.id} stays; `remediate rollback {kept.id}` still undoes it.", style="bold")


def settle(console: Console, store: Store, run_id: str, code: int, *, may_ask: bool) -> int:
    """Ask whether the run stays, where somebody is there to ask; else say how it is confirmed.

    Returns:
        `code` where the run stays or is still open, 3 where it was undone.
    """
    from remediate.runs.journal import load_run

    run = load_run(store.run_folder(run_id))
    if run is None or not run.is_unsettled:
        return code
    console.text(f"Run {run.id} is undone at {run.deadline} unless it is confirmed, from any shell:")
    console.line(f"remediate confirm {run.id}", indent=2)
    if not (may_ask and sys.stdin.isatty() and sys.stderr.isatty()):
        return code
    return _ask(console, store, run, code)


def _ask(console: Console, store: Store, run: Run, code: int) -> int:
    from remediate.errors import ExitCode
    from remediate.runs.confirm import confirm_run

    answer = _wait_for_answer(run)
    if answer is True:
        confirm_run(store, run.id)
    elif answer is False:
        _undo(console, store, run)
    else:
        _wait_for_watcher(run)
    run.reload()
    if run.is_unsettled:
        console.text(f"Run {run.id} is left to its watcher; `remediate history` tells how it went.")
        return code
    is_kept = answer is True or not _is_undone(run)
    console.text(f"Run {run.id} stays." if is_kept else f"Run {run.id} is undone.", style="bold")
    return code if is_kept else ExitCode.DIFFERS


def _wait_for_answer(run: Run) -> bool | None:
    """True for yes, False for no; None when somebody else settled it, the time is up, or nobody is there any more."""
    while True:
        typer.echo("Keep it? Type yes or no: ", nl=False, err=True)
        line = _read_line(run)
        if line is None:
            typer.echo(err=True)
            return None
        answer = line.strip().lower()
        if answer in ("yes", "y", "no", "n"):
            return answer.startswith("y")


def _read_line(run: Run) -> str | None:
    from remediate.runs.journal import Confirmation

    while run.confirmation is Confirmation.AWAITED and run.is_unsettled:
        if select.select([sys.stdin], [], [], _PAUSE_S)[0]:
            return sys.stdin.readline() or None
        run.reload()
    return None


def _undo(console: Console, store: Store, run: Run) -> None:
    from remediate.cli.console import print_error
    from remediate.cli.steps import StepPrinter
    from remediate.runs.rollback import rollback_run

    result = rollback_run(run, store=store, events=StepPrinter(console, "restoring"))
    if result.failure is not None:
        print_error(result.failure)


def _wait_for_watcher(run: Run) -> None:
    from remediate.runs.confirm import is_watched

    end = time.monotonic() + _UNDO_S
    while is_watched(run.folder) and time.monotonic() < end:
        time.sleep(_PAUSE_S)


def _is_undone(run: Run) -> bool:
    from remediate.runs.journal import RunStatus

    return run.status is RunStatus.ROLLED_BACK


def warn_of_unsettled(store: Store) -> None:
    """Say on standard error that an earlier run waits for its confirmation; plan and verify look at its changes."""
    if not store.may_be_unsettled():
        return
    from remediate.runs.confirm import explain_unsettled, unsettled_run

    run = unsettled_run(store)
    if run is not None:
        typer.echo(
            f"note: run {run.id} is not confirmed: {explain_unsettled(run)}\n"
            f"  `remediate confirm {run.id}` keeps it, `remediate rollback {run.id}` undoes it",
            err=True,
        )
