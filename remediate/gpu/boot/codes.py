"""The page behind the finding about surviving a reboot."""

from __future__ import annotations

from remediate.model import Explanation

BOOT = "GPU020"
PAGE = Explanation(
    BOOT,
    "the GPU settings survive a reboot",
    "whether the systemd unit `remediate-gpu.service` is installed, enabled and current, and whether its file "
    "`/etc/remediate/gpu.json` holds the profile's wishes; only where the profile gives `survive_reboot`",
    "power limit, clocks, locks, compute mode and persistence mode belong to the loaded driver; a reboot or a reload "
    "of the driver puts the defaults back, and nothing says so",
    "the plan writes the file and the unit and enables it; the unit waits for the driver, plans afresh from the "
    "wishes and reads each value back. With `survive_reboot = false` all of it is removed. A unit of somebody else, a "
    "masked one, and a program that others than root can change are left to a person. docs/reboot.md",
    (
        "docs.nvidia.com/deploy/driver-persistence, data persistence and persistence daemon",
        "systemd.service(5), systemd.unit(5), sd_booted(3)",
    ),
)
