"""Names and places of what is installed, and the folder that stands for `/`."""

from __future__ import annotations

import os

UNIT = "remediate-gpu.service"
TARGET = "multi-user.target"
SETTINGS_PATH = "/etc/remediate/gpu.json"
UNIT_FOLDER = "/etc/systemd/system"
"""Units of the administrator (systemd.unit(5)); they go before those of packages."""
UNIT_PATH = f"{UNIT_FOLDER}/{UNIT}"
LINK_PATH = f"{UNIT_FOLDER}/{TARGET}.wants/{UNIT}"
"""What `systemctl enable` makes for `WantedBy=multi-user.target`."""
PACKAGED_FOLDERS = ("/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
ROOT_VARIABLE = "REMEDIATE_SYSTEM_ROOT"


def staging_root() -> str:
    """Absolute folder in place of `/`, as `REMEDIATE_SYSTEM_ROOT` says: an image that is being built. Else empty."""
    given = os.environ.get(ROOT_VARIABLE, "")
    return os.path.realpath(given) if given else ""


def below(root: str, path: str) -> str:
    """An absolute path below the staging root, or itself."""
    return root + path


def systemctl(root: str, *arguments: str) -> tuple[str, ...]:
    """A systemctl argument list; with a staging root it works on the files there and asks no running systemd."""
    return ("systemctl", *((f"--root={root}",) if root else ()), *arguments)
