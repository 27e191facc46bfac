"""Facts from the live host: every subject's part, and the host's own."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from remediate._version import __version__
from remediate.model import SCHEMA_VERSION, Choice, Facts, Host, Reading, Request, Unknown, UnknownKind
from remediate.registry import select_subjects
from remediate.subject import Ledger, Settings

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def observe(request: Request, settings: Settings | None = None, ledger: Ledger | None = None) -> Facts:
    """Read the host. What can't be read is `Unknown` in its place.

    Raises:
        ObserveError: something that the request names explicitly does not exist or can't be read.
    """
    settings = settings or Settings()
    ledger = ledger or Ledger()
    sections = {}
    choices: list[Choice] = []
    for subject in select_subjects(request.only):
        observed = subject.observe(request, settings, ledger)
        sections[subject.name] = observed.facts
        choices += observed.choices
    return Facts(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        observed_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        request=request,
        host=observe_host(),
        choices=tuple(choices),
        sections=sections,
    )


def observe_host() -> Host:
    """The machine's kind, its boot and this process's rights."""
    return Host(system=platform.system(), machine=platform.machine(), boot_id=read_boot_id(), is_root=os.geteuid() == 0)


def read_boot_id() -> Reading[str]:
    """The kernel's random id of this boot; `Unknown` off Linux."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        return Unknown(UnknownKind.NOT_READ, f"{_BOOT_ID}: {error}")
