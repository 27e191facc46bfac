"""What happened, from the journals."""

from __future__ import annotations

import msgspec

from remediate.model import SCHEMA_VERSION
from remediate.runs.journal import Confirmation, Run, load_run
from remediate.runs.store import Store


class ChangeSummary(msgspec.Struct, frozen=True):
    """One change of a run; `status` as `ChangeStatus`."""

    id: str
    title: str
    before: str
    after: str
    status: str


class RunSummary(msgspec.Struct, frozen=True):
    """One run; `status` as `RunStatus`, `began_at` in UTC, `confirmation` as `Confirmation` with its deadline."""

    id: str
    began_at: str
    folder: str
    profile: str
    status: str
    changes: tuple[ChangeSummary, ...]
    confirmation: str = ""
    confirm_by: str = ""


class History(msgspec.Struct, frozen=True):
    """The document that `history --json` prints."""

    runs: tuple[RunSummary, ...]
    schema_version: int = SCHEMA_VERSION
    kind: str = "remediate-history"


def summarize_runs(store: Store) -> tuple[RunSummary, ...]:
    """All runs, oldest first; a run whose process died before it began anything is left out."""
    runs = (load_run(folder) for folder in store.run_folders())
    return tuple(
        RunSummary(
            run.id,
            run.began_at,
            run.plan.request.folder,
            run.plan.profile_name,
            run.status,
            tuple(
                ChangeSummary(change.id, change.title, change.before, change.after, run.change_status(change.id))
                for change in run.changes
            ),
            _confirmation(run),
            run.deadline,
        )
        for run in runs
        if run is not None
    )


def _confirmation(run: Run) -> str:
    """Nothing for a run that a person undid while it waited: its status says all."""
    return "" if run.confirmation is Confirmation.AWAITED and not run.is_unsettled else run.confirmation
