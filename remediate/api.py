"""The public functions for embedding: load_profile, observe, plan, apply, verify, rollback."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remediate.config import Config, load_config
from remediate.errors import ProfileError, UsageError
from remediate.model import Choice, Facts, Finding, InstallOptions, Plan, Request
from remediate.observation import observe as observe_request
from remediate.observation import read_boot_id
from remediate.planner import announce, make_plan
from remediate.profile.load import ResolvedProfile, load_profile, shipped_names
from remediate.profile.schema import Profile
from remediate.profile.select import select
from remediate.registry import trials
from remediate.runs.store import Store

if TYPE_CHECKING:
    from remediate.runs.events import Events
    from remediate.runs.execute import ApplyResult
    from remediate.runs.rollback import RollbackResult


def observe(
    folder: str | Path = ".",
    *,
    python: str | None = None,
    scripts: Iterable[str] = (),
    requirements: str | None = None,
    gpus: Iterable[str] = (),
    board: str | None = None,
    only: Iterable[str] = (),
    state_dir: str | Path | None = None,
    sample_s: float = 0.0,
    install: InstallOptions | None = None,
    check_files: bool = False,
) -> Facts:
    """Facts of a sandbox folder and its host, as `remediate facts` gives them.

    Args:
        folder: the sandbox; its `remediate.toml` fills in what is not given here.
        python: interpreter or environment folder; None looks for one.
        scripts: inference scripts; empty looks for them.
        requirements: requirements file; None looks for one.
        gpus: UUIDs or indices; empty means all.
        board: name or path of a simulated board, in place of the real GPUs.
        only: names of the subjects to look at; empty means all.
        state_dir: state folder with the ledger of earlier runs; None means the default one.
        sample_s: seconds for which the GPUs are read again and again; 0 reads them once.
        install: how packages are to be installed, once a plan is made from the facts.
        check_files: compare installed files with the record of their installation; reads gigabytes for a torch.

    Raises:
        ObserveError: something that was named explicitly does not exist or can't be read.
        ConfigError: the folder's configuration can't be used.
    """
    asked = make_request(
        folder, python=python, scripts=scripts, requirements=requirements, gpus=gpus, board=board, only=only
    )
    asked = msgspec.structs.replace(asked, install=install or InstallOptions())
    config = load_config(Path(asked.folder))
    request = msgspec.structs.replace(config.fill(asked), sample_s=sample_s, check_files=check_files)
    facts = observe_request(request, config.settings, _store(state_dir).ledger(read_boot_id()))
    return msgspec.structs.replace(facts, choices=config.choices + facts.choices)


def import_reports(files: Iterable[str | Path], *, csv_fields: Iterable[str] = (), folder: str | Path = ".") -> Facts:
    """Facts from what nvidia-smi, pip or torch printed, as `remediate facts import` makes them. No host is looked at.

    Args:
        files: outputs in any mixture; they are recognised by their content.
        csv_fields: columns of CSV files without a header, as nvidia-smi's `--query-gpu` names them.
        folder: its configuration counts when a plan is made.

    Raises:
        DocumentError: a file can't be read, is nothing that is known, or contradicts another one.
    """
    from remediate.importing import import_reports as import_places

    return import_places(map(str, files), csv_fields=tuple(csv_fields), folder=folder).facts


def plan(facts: Facts, profile: ResolvedProfile | str | None = None, *, unsafe_fixes: bool = False) -> Plan:
    """The plan that brings the facts into the profile.

    Args:
        facts: from `observe`, or from a document of another host.
        profile: a loaded profile, a name or path; None takes what the folder's configuration names, else the shipped
            one that fits the host.
        unsafe_fixes: also plan script edits that may change what a script means.

    Raises:
        ProfileError: the profile can't be used, or none fits.
    """
    config = config_of(facts.request)
    resolved, choice = choose_profile(facts, profile, config)
    settings = msgspec.structs.replace(config.settings, unsafe_fixes=unsafe_fixes)
    made = make_plan(facts, resolved, settings)
    return msgspec.structs.replace(made, choices=(*made.choices, choice))


def apply(
    plan: Plan,
    *,
    only: Iterable[str] = (),
    state_dir: str | Path | None = None,
    events: Events | None = None,
    confirm_within_s: float | None = None,
    allow_disruption: bool = False,
) -> ApplyResult:
    """Make the plan's changes, without asking. See `remediate.runs.execute.apply_plan` for what it raises.

    Args:
        plan: from `plan`, or read from a file.
        only: names of the subjects to change; empty for all.
        state_dir: state folder; None means the default one.
        events: told about each step.
        confirm_within_s: undo all of it unless `confirm` is called within so many seconds after the last change.
        allow_disruption: also change GPUs that processes use.
    """
    from remediate.runs.execute import apply_plan

    settings = config_of(plan.request).settings
    return apply_plan(
        plan,
        store=_store(state_dir),
        settings=settings,
        only=only,
        events=events,
        confirm_within_s=confirm_within_s,
        allow_disruption=allow_disruption,
    )


def confirm(run: str | None = None, *, state_dir: str | Path | None = None) -> None:
    """Let a run stay that would else be undone; None means the last one. See `remediate.runs.confirm.confirm_run`."""
    from remediate.runs.confirm import confirm_run

    confirm_run(_store(state_dir), run)


def verify(
    profile: ResolvedProfile | str | None = None,
    facts: Facts | None = None,
    folder: str | Path = ".",
    *,
    smoke: bool = False,
) -> tuple[Finding, ...]:
    """The findings of a fresh comparison. `facts` None observes `folder`. The same errors as `observe` and `plan`.

    Args:
        smoke: try the environment out as well; see `try_out`.
    """
    observed = facts or observe(folder)
    tried = try_out(observed, profile) if smoke else ()
    return (*plan(observed, profile).findings, *tried)


def try_out(facts: Facts, profile: ResolvedProfile | str | None = None) -> tuple[Finding, ...]:
    """What only running something on this host tells: a tiny model in the target environment. Takes 5 to 60 s.

    Raises:
        ProfileError: as `plan`.
        ApplyError: it could not be started, or did not end in time.
    """
    config = config_of(facts.request)
    resolved, _ = choose_profile(facts, profile, config)
    found = (trial(facts, resolved.profile) for name, trial in trials().items() if name in facts.sections)
    return tuple(finding for part in found for finding in part if finding.code not in config.settings.ignore)


def rollback(
    run: str | None = None,
    *,
    folder: str | Path = ".",
    only: Iterable[str] = (),
    state_dir: str | Path | None = None,
    events: Events | None = None,
) -> RollbackResult:
    """Undo a run, or the last run of `folder`. See `remediate.runs.rollback` for what it raises."""
    from remediate.runs.rollback import find_run, rollback_run

    store = _store(state_dir)
    found = find_run(store, run, None if run else Path(folder).resolve())
    return rollback_run(found, store=store, only=only, events=events)


def make_request(
    folder: str | Path,
    *,
    python: str | None = None,
    scripts: Iterable[str] = (),
    requirements: str | None = None,
    gpus: Iterable[str] = (),
    board: str | None = None,
    only: Iterable[str] = (),
) -> Request:
    """A request with absolute paths, so that a plan means the same from every folder.

    Raises:
        UsageError: the folder does not exist.
    """
    base = _existing_folder(folder)
    return Request(
        folder=str(base),
        python=None if python is None else _absolute(python, keep_plain=True),
        scripts=tuple(_absolute(script) for script in scripts),
        requirements=None if requirements is None else _absolute(requirements),
        gpus=tuple(gpus),
        board=None if board is None else _absolute(board, keep_plain=True),
        only=tuple(only),
    )


def _existing_folder(folder: str | Path) -> Path:
    try:
        base = Path(folder).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"folder `{folder}` can't be used", cause=str(error), hint="name one that exists") from error
    if not base.is_dir():
        raise UsageError(f"`{folder}` is no folder", hint="name the folder of the sandbox")
    return base


def config_of(request: Request) -> Config:
    """The configuration of the request's folder; empty where that folder is on another host."""
    folder = Path(request.folder)
    return load_config(folder)


def choose_profile(
    facts: Facts, wanted: ResolvedProfile | str | None, config: Config
) -> tuple[ResolvedProfile, Choice]:
    """The profile to hold the facts against, and why it was taken.

    Raises:
        ProfileError: it can't be used, or none was named and none fits.
    """
    if isinstance(wanted, ResolvedProfile):
        return wanted, Choice("profile", wanted.profile.name, "it was given")
    if wanted is not None:
        return load_profile(wanted), Choice("profile", wanted, "it was asked for")
    if config.profile is not None:
        return load_profile(config.profile), Choice("profile", config.profile, f"`{config.place}` names it")
    shipped = [load_profile(name) for name in shipped_names()]
    announced = announce(facts, Profile(schema_version=1, name="none"))
    found, because = select((candidate.profile for candidate in shipped), announced)
    if found is None:
        raise ProfileError(
            "no shipped profile fits this host",
            cause=because,
            hint="name one with `--profile NAME`; `remediate profiles list` shows them all",
        )
    resolved = next(candidate for candidate in shipped if candidate.profile is found)
    return resolved, Choice("profile", found.name, because)


def _absolute(path: str, *, keep_plain: bool = False) -> str:
    """`keep_plain`: a word without a separator that is no file here is a name and stays as it is."""
    if keep_plain and "/" not in path and not Path(path).exists():
        return path
    return str(Path(path).absolute())


def _store(state_dir: str | Path | None) -> Store:
    return Store(None if state_dir is None else Path(state_dir))
