"""What happened, from the journals."""

from __future__ import annotations

import msgspec

from remediate.model import SCHEMA_VERSION
from remediate.runs.journal import load_run
from remediate.runs.store import Store


class ChangeSummary(msgspec.Struct, frozen=True):
    """One change of a run; `status` as `ChangeStatus`."""

    id: str
    title: str
    before: str
    after: str
    status: str


class RunSummary(msgspec.Struct, frozen=True):
    """One run; `status` as `RunStatus`, `began_at` in UTC."""

    id: str
    began_at: str
    folder: str
    profile: str
    status: str
    changes: tuple[ChangeSummary, ...]


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
        )
        for run in runs
        if run is not None
    )
