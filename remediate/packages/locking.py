"""Making a lock: pip-tools or uv resolves a profile's pins, and what they print becomes a lock file."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from remediate.effects import Runner, run_process, write_file
from remediate.errors import ApplyError, RemediateError, UsageError
from remediate.model import Unknown
from remediate.packages.facts import PackagesFacts
from remediate.packages.lockfile import LockEntry, lock_name, read_lock, render_lock
from remediate.packages.metadata import without_credentials
from remediate.packages.observe import read_uv
from remediate.packages.pins import plan_pins
from remediate.packages.pipoutput import meaningful_lines
from remediate.packages.sizes import add_sizes
from remediate.profile.schema import Profile
from remediate.public_index import simple_url

_TIMEOUT_S = 3600.0
_CARRIED = ("index-url", "cert", "client-cert", "proxy", "trusted-host", "timeout", "retries")
"""Settings of pip that say how the index is reached. What else it is configured to use stays out of a lock."""
_UV_PLATFORMS = {
    "linux_x86_64": "x86_64-manylinux_2_28",
    "linux_aarch64": "aarch64-manylinux_2_28",
    "win32_amd64": "x86_64-pc-windows-msvc",
    "darwin_arm64": "aarch64-apple-darwin",
}


class LockRequest(msgspec.Struct, frozen=True):
    """One lock to make.

    Attributes:
        python: version of the target, as `3.11`.
        platform: as `linux_x86_64`.
        uses_uv: resolve with uv, which needs no interpreter of that version and platform.
        folder: where the file goes.
    """

    profile: Profile
    python: str
    platform: str
    folder: Path
    uses_uv: bool = False


class Made(msgspec.Struct, frozen=True):
    """A lock that was written, and whether it differs from the one that was there."""

    path: Path
    entries: tuple[LockEntry, ...]
    is_changed: bool
    tool: str


def own_python() -> str:
    """Version of the interpreter that runs this program, as `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def own_platform() -> str:
    """Platform of this machine, as `linux_x86_64`."""
    return f"{sys.platform}_{os.uname().machine}"


def make_lock(request: LockRequest, runner: Runner = run_process) -> Made:
    """Resolve the profile's pins and write the lock.

    Raises:
        UsageError: pip-tools can't resolve for that Python or platform here.
        ApplyError: no set fits, or the index was not reached.
    """
    pins = plan_pins(PackagesFacts(None), request.profile)
    if not pins:
        raise UsageError(f"profile `{request.profile.name}` pins nothing", hint="lock a profile with `[packages]`")
    settings = pip_settings(runner)
    with tempfile.TemporaryDirectory(prefix="remediate-lock-") as name:
        folder = Path(name)
        (folder / "pins.in").write_text("".join(f"{pin.name}=={pin.pin.version}\n" for pin in pins.values()))
        resolve = _run_uv if request.uses_uv else _run_pip_tools
        tool = resolve(request, folder, settings, runner)
        lock = read_lock((folder / "pins.txt").read_bytes(), "pins.txt")
    reasons = {name: (pin.pin.reason,) for name, pin in pins.items() if pin.pin.reason}
    entries = tuple(_annotate(entry, reasons) for entry in lock.entries.values())
    entries = add_sizes(entries, _indexes(request.profile, settings), request.python, request.platform)
    return _write(request, entries, tool)


def _write(request: LockRequest, entries: tuple[LockEntry, ...], tool: str) -> Made:
    system, _, machine = request.platform.partition("_")
    path = request.folder / lock_name(request.profile.name, request.python, system, machine)
    head = [
        f"Lock of profile {request.profile.name} for Python {request.python} on {request.platform}.",
        "Made by `remediate profiles lock`; made anew with it after each change of the profile's pins.",
        *(f"Index: {without_credentials(url)}" for url in _stated_indexes(request.profile)),
    ]
    content = render_lock(entries, head)
    is_changed = not path.is_file() or path.read_bytes() != content
    if is_changed:
        try:
            request.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ApplyError(
                f"`{request.folder}` can't be made", cause=str(error), hint="name another folder with `--output`"
            ) from error
        write_file(path, content)
    return Made(path, entries, is_changed, tool)


def _annotate(entry: LockEntry, reasons: Mapping[str, tuple[str, ...]]) -> LockEntry:
    """The pin's reason; for the rest what requires it (`# via`, on one line or several)."""
    words = " ".join(entry.notes).removeprefix("via").replace("-r pins.in", "").replace("pins.in", "").split()
    via = [f"via {' '.join(word.strip(',') for word in words)}"] if words else []
    return msgspec.structs.replace(entry, notes=reasons.get(entry.name) or tuple(via))


def _run_pip_tools(request: LockRequest, folder: Path, settings: Mapping[str, str], runner: Runner) -> str:
    if request.platform != own_platform():
        raise UsageError(
            f"pip-tools can't resolve for {request.platform} on {own_platform()}",
            cause="it asks the running interpreter which markers and wheels fit",
            hint="run it there, or add `--uv`, which resolves for any platform",
        )
    python = _python_with_pip_tools(request.python, folder, settings, runner)
    argv = (
        *(python, "-m", "piptools", "compile", "--quiet", "--generate-hashes", "--allow-unsafe", "--strip-extras"),
        *("--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host", "--no-emit-options"),
        *("--resolver=backtracking", "--no-config", *_source_options(request.profile)),
        *("--output-file", "pins.txt", "pins.in"),
    )
    _run(argv, folder, settings, runner)
    return "pip-tools"


def _run_uv(request: LockRequest, folder: Path, settings: Mapping[str, str], runner: Runner) -> str:
    platform = _UV_PLATFORMS.get(request.platform)
    if platform is None:
        raise UsageError(f"platform `{request.platform}` is not known", hint=f"known are: {', '.join(_UV_PLATFORMS)}")
    index = () if request.profile.install.index_url else _uv_index(settings)
    argv = (
        *(find_uv(), "pip", "compile", "--quiet", "--no-config", "--generate-hashes", "--no-header", "--strip-extras"),
        *("--no-emit-index-url", "--no-emit-find-links", "--python-version", request.python),
        *("--python-platform", platform, "--python", sys.executable, "--index-strategy", "unsafe-best-match"),
        *(*index, *_source_options(request.profile), "--output-file", "pins.txt", "pins.in"),
    )
    _run(argv, folder, settings, runner)
    return "uv"


def find_uv() -> str:
    """Path of uv.

    Raises:
        UsageError: it is not installed.
    """
    found = read_uv()
    if isinstance(found, Unknown):
        raise UsageError("uv is not installed", cause="there is no `uv` on PATH", hint="install it, or go without it")
    return found


def _run(argv: tuple[str, ...], folder: Path, settings: Mapping[str, str], runner: Runner) -> None:
    done = runner(argv, timeout_s=_TIMEOUT_S, env=clean_environment(settings), cwd=str(folder))
    if done.returncode != 0:
        lines = meaningful_lines(without_credentials(f"{done.stdout}\n{done.stderr}"))
        raise ApplyError(
            f"the pins could not be resolved (exit code {done.returncode})",
            cause="\n         ".join(lines) or "it printed nothing",
            hint="check the pins, `[install]` of the profile, and the network",
        )


def _source_options(profile: Profile) -> Iterable[str]:
    install = profile.install
    options = ["--index-url", install.index_url] if install.index_url else []
    options += [word for url in install.extra_index_urls for word in ("--extra-index-url", url)]
    return options + [word for place in install.find_links for word in ("--find-links", place)]


def _stated_indexes(profile: Profile) -> tuple[str, ...]:
    index = (profile.install.index_url,) if profile.install.index_url else ()
    return (*index, *profile.install.extra_index_urls)


def _indexes(profile: Profile, settings: Mapping[str, str]) -> tuple[str, ...]:
    index = profile.install.index_url or settings.get("index-url") or simple_url()
    return (index, *profile.install.extra_index_urls)


def _uv_index(settings: Mapping[str, str]) -> tuple[str, ...]:
    return ("--index-url", settings["index-url"]) if "index-url" in settings else ()


def pip_settings(runner: Runner) -> dict[str, str]:
    """How pip reaches its index on this host, of all that it is configured with."""
    done = runner((sys.executable, "-m", "pip", "config", "list"), timeout_s=60.0)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        key, _, value = line.partition("=")
        option = key.rpartition(".")[2]
        if option in _CARRIED:
            found[option] = value.strip().strip("'\"")
    return found


def clean_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Without find-links, extra indexes and constraints, which would leak into the lock what only this host has."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_", "PYTHON"))}
    carried = {f"PIP_{key.upper().replace('-', '_')}": value for key, value in settings.items()}
    certificates = {"SSL_CERT_FILE": settings["cert"]} if "cert" in settings else {}
    cache = {key: os.environ[key] for key in ("UV_CACHE_DIR", "PIP_CACHE_DIR") if key in os.environ}
    return {**kept, **carried, **certificates, **cache, "PIP_CONFIG_FILE": os.devnull}


def _python_with_pip_tools(version: str, folder: Path, settings: Mapping[str, str], runner: Runner) -> str:
    """This program's interpreter, or a temporary environment of the other version with pip-tools in it."""
    if version == own_python():
        return sys.executable
    python = find_python(version, runner)
    if python is None:
        raise UsageError(
            f"no Python {version} was found",
            cause=f"pip-tools resolves for the interpreter that runs it, and `python{version}` is not on PATH",
            hint="install it, or add `--uv`, which resolves for any version",
        )
    venv = folder / "venv"
    _run((python, "-m", "venv", str(venv)), folder, settings, runner)
    inside = str(venv / "bin" / "python")
    _run((inside, "-m", "pip", "install", "--quiet", "pip-tools"), folder, settings, runner)
    return inside


def find_python(version: str, runner: Runner) -> str | None:
    """`pythonX.Y` of PATH, where it really is one and works."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = runner((found, "-I", "-c", script), timeout_s=20.0)
    except RemediateError:
        return None
    return found if done.returncode == 0 and done.stdout.strip() == version else None
