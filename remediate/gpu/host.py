"""What the operating system says about the GPUs' surroundings: rights, nvidia-persistenced, nvidia-smi, processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

from remediate.model import Reading, Unknown, UnknownKind

_CAP_SYS_ADMIN = 1 << 21
"""capability.h, CAP_SYS_ADMIN."""
CONTAINER = "container"
WSL2 = "wsl2"
JETSON = "jetson"
BARE_HOST = "host"
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
"""Left by Docker and Podman."""
_CONTAINER_VARIABLES = ("KUBERNETES_SERVICE_HOST", "container")
"""Set by Kubernetes, and by systemd-nspawn, LXC and Podman."""
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
        """Whether this process has CAP_SYS_ADMIN, or for one that is not root: whether root could have it here."""
        ...

    def process_user(self, pid: int) -> Reading[str]:
        """Who runs a process."""
        ...

    def platform(self) -> Reading[str]:
        """What kind of place this is: `container`, `wsl2`, `jetson`, or `host` for none of these."""
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
        """Bit 21 of CapEff in /proc/self/status, of the bounding set CapBnd for a user (proc_pid_status(5))."""
        name = "CapEff:" if is_root() else "CapBnd:"
        try:
            status = Path("/proc/self/status").read_text("utf-8")
            mask = next(line for line in status.splitlines() if line.startswith(name))
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

    def platform(self) -> Reading[str]:
        """From the kernel's name, L4T's release file, and the marks that container engines leave."""
        try:
            kernel = Path("/proc/sys/kernel/osrelease").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return Unknown(UnknownKind.NOT_SUPPORTED, "/proc/sys/kernel/osrelease does not tell")
        if "microsoft" in kernel.lower():
            return WSL2
        if Path("/etc/nv_tegra_release").exists() or "tegra" in kernel.lower():
            return JETSON
        marks = any(Path(mark).exists() for mark in _CONTAINER_MARKS)
        return CONTAINER if marks or any(name in os.environ for name in _CONTAINER_VARIABLES) else BARE_HOST


def is_root() -> bool:
    """Whether the effective user is root."""
    return os.geteuid() == 0
