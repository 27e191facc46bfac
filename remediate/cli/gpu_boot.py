"""`remediate gpu-boot`, which the boot unit runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.model import Plan
    from remediate.runs.reapply import ReapplyResult
    from remediate.runs.store import Store


def gpu_boot(
    *,
    file: Annotated[
        Path, typer.Option("--file", metavar="FILE", help="Settings file that `remediate apply` wrote.")
    ] = Path("/etc/remediate/gpu.json"),
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for the driver.")
    ] = 120,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be set, and set nothing.")] = False,
    board: options.BoardOption = None,
    state_dir: options.StateOption = None,
) -> None:
    """Set the GPUs as a fixed file says; the boot unit runs this.

    It waits for the driver, compares each GPU with the file's wishes, sets what differs and reads it back. Running it
    again does nothing. A GPU that fails does not keep the others from being set.

    Exit 0 when everything is as the file says, 1 when a setting failed, 2 when the file can't be used, 3 when
    something still differs, 4 when something could not be told or is not supported here, or without rights.
    """
    from remediate.cli.console import Console
    from remediate.cli.steps import StepPrinter
    from remediate.documents import read_document
    from remediate.gpu.boot.settings import decode_settings
    from remediate.runs.boot import Pacing, plan_for_boot
    from remediate.runs.reapply import reapply
    from remediate.runs.store import Store

    console = Console()
    store = Store(state_dir)
    if not dry_run and _revert_unconfirmed(console, store) and not file.exists():
        console.text(f"`{file}` is gone with it; nothing is to be set.")
        return
    settings = decode_settings(read_document(file), str(file))
    pacing = Pacing(wait_s=wait)
    console.text(f"GPU settings of profile `{settings.profile.name}` from `{file}`")
    made = plan_for_boot(settings, store, board=board, pacing=pacing, say=console.text)
    if dry_run:
        _report(console, made, None)
        raise typer.Exit(_code(made))
    result = reapply(made, store=store, events=StepPrinter(console, "setting"))
    after = plan_for_boot(settings, store, board=board, pacing=Pacing(wait_s=0))
    _report(console, after, result)
    raise typer.Exit(_code(after, result))


def _revert_unconfirmed(console: Console, store: Store) -> bool:
    """Undo a run that a restart came before: nobody confirmed it, and it may be why the machine was restarted.

    Raises:
        UnconfirmedRunError: it could not be undone; nothing is set then.
    """
    from remediate.runs.confirm import is_watched, refuse_unconfirmed, unsettled_run
    from remediate.runs.watch import revert_unconfirmed

    run = unsettled_run(store)
    if run is None:
        return False
    if not is_watched(run.folder):
        console.text(f"Run {run.id} was not confirmed before this machine was restarted; it is undone.")
        revert_unconfirmed(run, store)
    refuse_unconfirmed(store)
    return True


def _report(console: Console, made: Plan, result: ReapplyResult | None) -> None:
    from remediate.cli.console import print_error
    from remediate.cli.report import print_finding
    from remediate.cli.verify import verdict
    from remediate.model import Outcome

    for failed in result.failed if result else ():
        print_error(failed.error)
    for change in made.changes:
        if result is None:
            console.item("~", "magenta", f"would set {change.title}: {change.before or 'absent'} -> {change.after}")
    for finding in made.findings:
        if finding.outcome is not Outcome.SAME and not finding.is_advice:
            print_finding(console, finding, with_reason=False)
    console.text(verdict(made))


def _code(made: Plan, result: ReapplyResult | None = None) -> int:
    from remediate.cli.session import check_code
    from remediate.errors import ExitCode, NeedsRootError

    errors = [failed.error for failed in result.failed] if result else []
    if any(not isinstance(error, NeedsRootError) for error in errors):
        return ExitCode.FAILED
    return ExitCode.UNKNOWN if errors else check_code(made)
