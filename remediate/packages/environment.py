"""The marker environment of the target, from its facts (dependency specifiers standard, PEP 508)."""

from __future__ import annotations

from remediate.packages.facts import TargetFacts


def marker_environment(target: TargetFacts | None) -> dict[str, str] | None:
    """Values of the environment markers for the target; None when there is no target.

    `platform_release` and `platform_version` are those of the running kernel and left empty: a requirement that
    hangs on them is for one machine only.
    """
    if target is None:
        return None
    implementation = {"cpython": "CPython", "pypy": "PyPy"}.get(target.implementation, target.implementation)
    return {
        "implementation_name": target.implementation,
        "implementation_version": target.version,
        "os_name": "nt" if target.system == "win32" else "posix",
        "platform_machine": target.machine,
        "platform_python_implementation": implementation,
        "platform_release": "",
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(target.system, ""),
        "platform_version": "",
        "python_full_version": target.version,
        "python_version": ".".join(target.version.split(".")[:2]),
        "sys_platform": target.system,
    }
