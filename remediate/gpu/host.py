"""What the operating system says about the GPUs' surroundings: rights, nvidia-persistenced, nvidia-smi, processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

from remediate.model import Reading, Unknown, UnknownKind

_CAP_SYS_ADMIN = 1 << 21
"""capability.h, CAP_SYS_ADMIN."""
_DAEMON_SOCKET = Path("/run/nvidia-persistenced/socket")
_DAEMON_SOCKET_OLD = Path("/var/run/nvidia-persistenced/socket")


class Surroundings(Protocol):
    """The host as far as it matters to GPUs. `LiveHost` reads it, a simulated board plays it."""

    def smi_path(self) -> Reading[str]:
        """Path of nvidia-smi."""
        ...

    def persistence_daemon(self) -> Reading[bool]:
        """Whether nvidia-persistenced runs."""
        ...

    def has_cap_sys_admin(self) -> Reading[bool]:
        """Whether this process has CAP_SYS_ADMIN."""
        ...

    def process_user(self, pid: int) -> Reading[str]:
        """Who runs a process."""
        ...


class LiveHost:
    """This machine, through PATH and /proc."""

    def smi_path(self) -> Reading[str]:
        """As PATH finds it."""
        found = shutil.which("nvidia-smi")
        return found or Unknown(UnknownKind.NOT_SUPPORTED, "nvidia-smi is not on PATH")

    def persistence_daemon(self) -> Reading[bool]:
        """By its socket (nvidia-persistenced(1)). False in a container that does not mount it."""
        return _DAEMON_SOCKET.exists() or _DAEMON_SOCKET_OLD.exists()

    def has_cap_sys_admin(self) -> Reading[bool]:
        """Bit 21 of CapEff in /proc/self/status (proc_pid_status(5))."""
        try:
            status = Path("/proc/self/status").read_text("utf-8")
            mask = next(line for line in status.splitlines() if line.startswith("CapEff:"))
            return bool(int(mask.split()[1], 16) & _CAP_SYS_ADMIN)
        except (OSError, StopIteration, IndexError, ValueError):
            return Unknown(UnknownKind.NOT_SUPPORTED, "/proc/self/status does not tell")

    def process_user(self, pid: int) -> Reading[str]:
        """Owner of /proc/PID. The id may belong to another process in a container's own namespace of ids."""
        try:
            uid = Path(f"/proc/{pid}").stat().st_uid
        except OSError:
            return Unknown(UnknownKind.FAILED, "no such process here (another container's, or it ended)")
        import pwd

        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)


def is_root() -> bool:
    """Whether the effective user is root."""
    return os.geteuid() == 0
