"""Make a plan's changes: lock, re-observe, refuse what is stale, journal each step, stop at the first failure."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remediate.errors import InterruptedRunError, RemediateError, StalePlanError
from remediate.model import Change, Facts, Performed, Plan, State
from remediate.observation import observe, read_boot_id
from remediate.planner import moved_facts
from remediate.registry import subject_named
from remediate.runs.confirm import refuse_unconfirmed, watched
from remediate.runs.consent import refuse_disruption
from remediate.runs.events import Events, Silent
from remediate.runs.journal import ChangeStatus, EntryKind, Run, RunStatus, load_run, start_run
from remediate.runs.store import Store
from remediate.subject import Context, Ledger, Settings


class ApplyResult(msgspec.Struct, frozen=True):
    """What a run came to.

    Attributes:
        run_id: number of the run; empty when nothing had to be done.
        done: ids of the changes that were made, in order.
        already: ids whose goal was already met.
        needs_root: changes that were not tried for lack of rights.
        not_done: ids that were not tried after a failure, the failed one first.
        failure: the error that stopped the run.
        confirm_by: until when the run has to be confirmed, UTC, ISO 8601; empty where that was not asked for.
    """

    run_id: str = ""
    done: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    needs_root: tuple[Change, ...] = ()
    not_done: tuple[str, ...] = ()
    failure: RemediateError | None = None
    confirm_by: str = ""


class _Progress(msgspec.Struct):
    done: list[str] = []
    not_done: list[str] = []
    failure: RemediateError | None = None


def apply_plan(
    plan: Plan,
    *,
    store: Store | None = None,
    settings: Settings | None = None,
    only: Iterable[str] = (),
    events: Events | None = None,
    is_root: bool | None = None,
    confirm_within_s: float | None = None,
    allow_disruption: bool = False,
) -> ApplyResult:
    """Make the changes of `plan`, as those same bytes and argument lists.

    Changes whose goal is met are left alone; when nothing is left, nothing is written and no command is run. The
    first failure stops the run: it is in the result, not raised, for the changes before it stay made.

    Args:
        plan: as `planner.make_plan` gave it or as read from a file.
        store: the state folder; the default one if None.
        settings: what `remediate.toml` says, for the re-observation.
        only: names of the subjects to change; empty for all.
        events: told about each step.
        is_root: whether changes that need root are tried; None asks the operating system.
        confirm_within_s: undo all of it unless `confirm.confirm_run` is called within so many seconds after the last
            change; a process that outlives this one sees to it. None: it stays.
        allow_disruption: make changes also where somebody notices, as a process on a GPU whose clocks change.

    Raises:
        LockHeldError: another run goes on.
        InterruptedRunError: an earlier run is to be finished or rolled back first.
        UnconfirmedRunError: an earlier run is to be confirmed or rolled back first.
        StalePlanError: a fact that a change depends on has moved.
        DisruptionError: somebody would notice a change, and that is not allowed.
        ObserveError: the host can't be read any more.
    """
    store = store or Store()
    rights = os.geteuid() == 0 if is_root is None else is_root
    wanted = set(only)
    selected = [change for change in plan.changes if not wanted or change.subject in wanted]
    if not selected:
        return ApplyResult()
    with store.lock():
        refuse_interrupted(store)
        refuse_unconfirmed(store)
        ledger = store.ledger(read_boot_id())
        facts = observe(plan.request, settings, ledger)
        met = {change.id for change in selected if _is_met(change, plan, store, ledger)}
        rest = [change for change in selected if change.id not in met]
        refuse_stale(rest, facts)
        allowed = [change for change in rest if rights or not change.needs_root]
        needs_root = tuple(change for change in rest if change.needs_root and not rights)
        if not allowed:
            already = tuple(change.id for change in selected if change.id in met)
            return ApplyResult(already=already, needs_root=needs_root)
        if not allow_disruption:
            refuse_disruption(allowed, facts)
        chosen = tuple(change.id for change in allowed)
        run = start_run(store.create_run(), plan, chosen, read_boot_id(), confirm_within_s)
        with watched(run, store):
            progress = _perform_all(run, allowed, store, rights, events or Silent())
    return ApplyResult(
        run_id=run.id,
        done=tuple(progress.done),
        already=tuple(change.id for change in selected if change.id in met),
        needs_root=needs_root,
        not_done=tuple(progress.not_done),
        failure=progress.failure,
        confirm_by=run.deadline,
    )


def finish_run(run: Run, *, store: Store, events: Events | None = None, is_root: bool | None = None) -> ApplyResult:
    """Go on with an interrupted run: what was done is kept, the change in progress and the rest are made.

    Raises:
        LockHeldError: the run still goes on in another process.
    """
    rights = os.geteuid() == 0 if is_root is None else is_root
    with store.lock():
        pending = [change for change in run.changes if run.change_status(change.id) is not ChangeStatus.DONE]
        with watched(run, store):
            progress = _perform_all(run, pending, store, rights, events or Silent())
    return ApplyResult(
        run_id=run.id,
        done=tuple(progress.done),
        not_done=tuple(progress.not_done),
        failure=progress.failure,
        confirm_by=run.deadline,
    )


def interrupted_run(store: Store) -> Run | None:
    """The run whose process died before its end, or the rollback that was not finished; None if there is none."""
    for folder in reversed(store.run_folders()):
        run = load_run(folder)
        if run is not None:
            unfinished = (RunStatus.INTERRUPTED, RunStatus.ROLLBACK_INTERRUPTED)
            return run if run.status in unfinished else None
    return None


def refuse_interrupted(store: Store) -> None:
    """Raise `InterruptedRunError` when an earlier run has to be finished or rolled back first."""
    run = interrupted_run(store)
    if run is None:
        return
    raise InterruptedRunError(
        f"run {run.id} in `{run.plan.request.folder}` was interrupted",
        cause="; ".join(f"{change.title}: {run.change_status(change.id)}" for change in run.changes),
        hint=(
            "run `remediate rollback` to finish undoing it"
            if run.status is RunStatus.ROLLBACK_INTERRUPTED
            else "run `remediate apply` to finish it, or `remediate rollback` to undo it"
        ),
    )


def refuse_stale(changes: Iterable[Change], facts: Facts) -> None:
    """Raise `StalePlanError` when a fact that one of the changes depends on has moved."""
    moved = moved_facts(tuple(changes), facts)
    if moved:
        raise StalePlanError(moved)


def make_context(run_folder: Path, plan: Plan, rights: bool, events: Events) -> Context:
    """The context for performing, undoing and checking the changes of one run."""
    return Context(
        run_folder=run_folder,
        temporary_suffix=f".remediate-{run_folder.name}-tmp",
        request=plan.request,
        is_root=rights,
        progress=events.progress,
    )


def _is_met(change: Change, plan: Plan, store: Store, ledger: Ledger) -> bool:
    """Whether the host stands as the change leaves it; where that can't be read, whether an earlier run made it so."""
    subject = subject_named(change.subject)
    context = make_context(store.root / "runs" / "none", plan, False, Silent())
    state = subject.state(change.operation, context)
    if state is not State.UNKNOWN:
        return state is State.AFTER
    traces = subject.remember(change.operation, True)
    return bool(traces) and all(ledger.entries.get(key) == value for key, value in traces.items())


def _perform_all(run: Run, changes: list[Change], store: Store, rights: bool, events: Events) -> _Progress:
    context = make_context(run.folder, run.plan, rights, events)
    progress = _Progress()
    for index, change in enumerate(changes):
        try:
            _perform(run, change, store, context, events)
        except RemediateError as error:
            run.append(EntryKind.FAILED, change.id, detail=str(error))
            progress.failure = error
            progress.not_done = [rest.id for rest in changes[index:]]
            break
        progress.done.append(change.id)
    run.append(EntryKind.END)
    return progress


def _perform(run: Run, change: Change, store: Store, context: Context, events: Events) -> Performed:
    subject = subject_named(change.subject)
    prepared = run.prepared(change.id)
    if prepared is None:
        prepared = subject.prepare(change.operation, context)
        run.append(EntryKind.INTENT, change.id, prepared=prepared)
    events.starting(change)
    performed = subject.perform(change.operation, prepared, context)
    store.remember(read_boot_id(), run.id, dict(subject.remember(change.operation, True)))
    run.append(EntryKind.DONE, change.id, detail=performed.detail, output=performed.output, prepared=performed.undo)
    events.finished(change, performed)
    return performed
