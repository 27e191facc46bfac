"""`remediate apply`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.model import Plan
    from remediate.runs.execute import ApplyResult
    from remediate.runs.store import Store


class Consent(msgspec.Struct, frozen=True):
    """What the options agree to beforehand. With `yes` nothing is asked."""

    yes: bool
    allow_disruption: bool
    confirm_within_s: int | None


def apply(
    *,
    plan_file: Annotated[
        Path | None,
        typer.Argument(metavar="[PLAN]", help="A saved plan; without one a new plan is made.", show_default=False),
    ] = None,
    folder: options.FolderOption = Path(),
    profile: options.ProfileOption = None,
    python: options.PythonOption = None,
    script: options.ScriptOption = None,
    requirements: options.RequirementsOption = None,
    gpu: options.GpuOption = None,
    board: options.BoardOption = None,
    only: options.OnlyOption = None,
    unsafe_fixes: options.UnsafeOption = False,
    installer: options.InstallerOption = None,
    prune: options.PruneOption = False,
    smoke: options.SmokeOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    yes: options.YesOption = False,
    allow_disruption: Annotated[
        bool, typer.Option("--allow-disruption", help="With --yes: also change GPUs that processes use.")
    ] = False,
    confirm_within: Annotated[
        int | None,
        typer.Option(
            "--confirm-within",
            metavar="SECONDS",
            min=1,
            max=86400,
            help="Undo everything again unless it is confirmed in time.",
        ),
    ] = None,
    state_dir: options.StateOption = None,
) -> None:
    """Make the changes of a plan, journal each step, and read each one back.

    The host is looked at again first: a plan that rests on a fact that has moved is refused, and the fact is named.
    Every file is backed up, every former value noted; `remediate rollback` restores them. A second apply finds
    nothing to do and runs no command. Without root the rest is done, the lines that need it are printed, and the
    exit code is 4.

    \b
    remediate apply                 plan, ask, apply
    remediate apply plan.json       exactly a saved plan
    remediate apply --yes           without asking, for a script
    remediate apply --only gpu      one subject
    remediate apply --yes --allow-disruption    also while processes use the GPU
    remediate apply --confirm-within 120    undone again unless you type yes, or
                                    run `remediate confirm`, within 2 minutes:
                                    for a machine that you reach over SSH
    """
    from remediate.cli.console import Console
    from remediate.cli.session import get_plan
    from remediate.documents import decode_plan, read_document
    from remediate.errors import UsageError
    from remediate.runs.confirm import refuse_unconfirmed
    from remediate.runs.store import Store

    store = Store(state_dir)
    console = Console()
    subjects = options.names(only)
    if not dry_run:
        _finish_interrupted(console, store, yes)
        refuse_unconfirmed(store)
    if plan_file is not None:
        if installer or prune or smoke:
            raise UsageError(
                "a saved plan is applied as it is",
                cause="`--installer`, `--prune` and `--smoke` are part of it",
                hint="give them to `remediate plan -o FILE`",
            )
        made = decode_plan(read_document(plan_file), str(plan_file))
    else:
        target = options.Target(
            folder, python, tuple(script or ()), requirements, tuple(gpu or ()), board, subjects, state_dir
        )
        target = replace(target, install=options.install_options(installer, prune=prune, smoke=smoke))
        made = get_plan(target, profile, unsafe_fixes=unsafe_fixes)
    if dry_run:
        _show_dry_run(console, made, subjects)
        return
    consent = Consent(yes, allow_disruption, confirm_within)
    _run(console, made, store, subjects, consent)


def _run(
    console: Console,
    made: Plan,
    store: Store,
    only: tuple[str, ...],
    consent: Consent,
) -> None:
    from remediate import api
    from remediate.cli.confirm import settle
    from remediate.cli.report import print_noticed, print_plan
    from remediate.cli.session import check_code
    from remediate.cli.steps import StepPrinter
    from remediate.runs.consent import noticed_now
    from remediate.runs.execute import apply_plan

    chosen = [change for change in made.changes if not only or change.subject in only]
    if not chosen:
        print_plan(console, made)
        raise typer.Exit(check_code(made))
    settings = api.config_of(made.request).settings
    if not consent.yes:
        print_plan(console, made)
        print_noticed(console, noticed_now(made, chosen, store, settings))
        ask(f"Make {'this change' if len(chosen) == 1 else f'these {len(chosen)} changes'}?")
    events = StepPrinter(console, "setting")
    result = apply_plan(
        made,
        store=store,
        settings=settings,
        only=only,
        events=events,
        confirm_within_s=consent.confirm_within_s,
        # Who answered yes was shown who notices.
        allow_disruption=consent.allow_disruption or not consent.yes,
    )
    code = _report(console, made, result)
    if result.confirm_by:
        code = settle(console, store, result.run_id, code, may_ask=not consent.yes and result.failure is None)
    raise typer.Exit(code)


def _report(console: Console, made: Plan, result: ApplyResult) -> int:
    from remediate.cli.console import print_error
    from remediate.cli.report import plural
    from remediate.cli.steps import print_root_lines
    from remediate.errors import ExitCode

    titles = {change.id: change.title for change in made.changes}
    for change_id in result.already:
        console.item("=", "green", f"{titles[change_id]}: already so")
    if result.needs_root:
        print_root_lines(console, result.needs_root, "remediate apply")
    if result.failure is not None:
        print_error(result.failure)
        console.heading(f"Run {result.run_id} stopped")
        for change_id in result.done:
            console.item("+", "green", f"done: {titles[change_id]}")
        for change_id in result.not_done:
            console.item("-", "red", f"not done: {titles[change_id]}")
        console.text("`remediate rollback` undoes what was done; `remediate plan` shows what remains.")
        return result.failure.exit_code
    console.line()
    if result.done:
        console.text(
            f"{plural(len(result.done), 'change')} made in run {result.run_id}; `remediate rollback` undoes them.",
            style="bold",
        )
    elif not result.needs_root:
        console.text("Nothing to do: every change is already made.", style="bold")
    return ExitCode.UNKNOWN if result.needs_root or made.unknowns else ExitCode.OK


def _show_dry_run(console: Console, made: Plan, only: tuple[str, ...]) -> None:
    from remediate.cli.report import print_plan
    from remediate.cli.session import check_code

    print_plan(console, made)
    if not any(not only or change.subject in only for change in made.changes):
        raise typer.Exit(check_code(made))
    console.heading("Dry run")
    for change in made.changes:
        if not only or change.subject in only:
            console.item("~", "magenta", f"would set {change.title}: {change.before or 'absent'} -> {change.after}")


def _finish_interrupted(console: Console, store: Store, yes: bool) -> None:
    from remediate.cli.confirm import settle
    from remediate.cli.console import print_error
    from remediate.cli.steps import StepPrinter
    from remediate.errors import ExitCode
    from remediate.runs.execute import finish_run, interrupted_run
    from remediate.runs.journal import RunStatus

    run = interrupted_run(store)
    if run is None or run.status is not RunStatus.INTERRUPTED:
        return  # An interrupted rollback is refused by apply_plan, with the command that finishes it.
    console.heading(f"Run {run.id} of {run.began_at} in {run.plan.request.folder} was interrupted")
    for change in run.changes:
        console.item("i", "cyan", f"{change.title}: {run.change_status(change.id)}")
    if not yes:
        ask("Finish it? (`remediate rollback` undoes it instead)")
    result = finish_run(run, store=store, events=StepPrinter(console, "setting"))
    if result.failure is not None:
        print_error(result.failure)
        raise typer.Exit(result.failure.exit_code)
    console.text(f"Run {run.id} is finished.", style="bold")
    if result.confirm_by:
        raise typer.Exit(settle(console, store, run.id, ExitCode.OK, may_ask=not yes))


def ask(question: str) -> None:
    """Ask on the terminal.

    Raises:
        UsageError: there is no terminal to ask on.
        typer.Exit: the answer is no; exit code 3, for differences remain.
    """
    from remediate.errors import ExitCode, UsageError

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "nothing was changed, for there is no terminal to ask on",
            cause="standard input or standard error is not a terminal",
            hint="add `--yes` to make the changes without asking, or `--dry-run` to see them",
        )
    if not typer.confirm(question, default=False, err=True):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(ExitCode.DIFFERS)
