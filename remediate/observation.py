"""Facts from the live host: every subject's part, and the host's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from remediate._version import __version__
from remediate.model import SCHEMA_VERSION, Facts, Host, Reading, Request, Unknown, UnknownKind
from remediate.registry import select_subjects
from remediate.subject import Begun, Ledger, Observed, Settings, Subject

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def observe(request: Request, settings: Settings | None = None, ledger: Ledger | None = None) -> Facts:
    """Read the host. What can't be read is `Unknown` in its place.

    Raises:
        ObserveError: something that the request names explicitly does not exist or can't be read.
    """
    settings = settings or Settings()
    ledger = ledger or Ledger()
    observed = _observe_all(select_subjects(request.only), request, settings, ledger)
    return Facts(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        observed_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        request=request,
        host=observe_host(),
        choices=tuple(choice for part in observed.values() for choice in part.choices),
        sections={name: part.facts for name, part in observed.items()},
    )


def _observe_all(
    subjects: Sequence[Subject], request: Request, settings: Settings, ledger: Ledger
) -> dict[str, Observed]:
    """Each subject's part in registry order. What takes a while is started first and collected last."""
    begun: dict[str, Begun | None] = {}
    try:
        for subject in subjects:
            begun[subject.name] = subject.begin(request)
        waiting_last = sorted(subjects, key=lambda subject: begun[subject.name] is not None)
        observed = {
            subject.name: subject.observe(request, settings, ledger, begun[subject.name]) for subject in waiting_last
        }
    finally:
        for started in begun.values():
            if started is not None:
                started.close()
    return {subject.name: observed[subject.name] for subject in subjects}


def observe_host() -> Host:
    """The machine's kind, its boot and this process's rights."""
    system = os.uname()
    return Host(system.sysname, system.machine, read_boot_id(), is_root=os.geteuid() == 0)


def read_boot_id() -> Reading[str]:
    """The kernel's random id of this boot; `Unknown` off Linux."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        return Unknown(UnknownKind.NOT_READ, f"{_BOOT_ID}: {error}")
