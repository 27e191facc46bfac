"""Changes that somebody notices are made only where that was agreed to, by what is true when they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import FolderSubject

from remediate.errors import DisruptionError, ExitCode
from remediate.model import Plan, Request
from remediate.observation import observe
from remediate.planner import make_plan
from remediate.profile.load import load_profile
from remediate.runs.consent import noticed_now
from remediate.runs.execute import apply_plan
from remediate.runs.store import Store

SOMEBODY = ("GPU 0: 4242 python (alice), compute, 12288 MiB",)


@pytest.fixture
def plan(folder: Path, subject: FolderSubject) -> Plan:
    return make_plan(observe(Request(str(folder))), load_profile("base"))


def test_nothing_is_changed_without_consent(plan: Plan, folder: Path, subject: FolderSubject, store: Store) -> None:
    """Somebody came after the plan was made."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    subject.noticed_by = SOMEBODY
    with pytest.raises(DisruptionError) as caught:
        apply_plan(plan, store=store)
    assert caught.value.affected == SOMEBODY
    assert caught.value.exit_code is ExitCode.DIFFERS
    assert "alice" in str(caught.value)
    assert "--allow-disruption" in caught.value.hint
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert store.run_folders() == ()


def test_made_with_consent(plan: Plan, subject: FolderSubject, store: Store) -> None:
    subject.noticed_by = SOMEBODY
    assert noticed_now(plan, plan.changes, store) == SOMEBODY
    assert apply_plan(plan, store=store, allow_disruption=True).failure is None


def test_nothing_is_asked_where_nothing_is_left_to_do(plan: Plan, subject: FolderSubject, store: Store) -> None:
    apply_plan(plan, store=store)
    subject.noticed_by = SOMEBODY
    assert len(apply_plan(plan, store=store).already) == 3


def test_what_needs_root_disturbs_nobody_without_it(
    plan: Plan, subject: FolderSubject, store: Store, folder: Path
) -> None:
    subject.root = True
    subject.noticed_by = SOMEBODY
    made = make_plan(observe(Request(str(folder))), load_profile("base"))
    assert len(apply_plan(made, store=store, is_root=False).needs_root) == 3
