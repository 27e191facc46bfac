"""What the profile's pins mean for this environment: planned versions, and what forbids installing. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from remediate.model import Unknown
from remediate.packages.facts import PackagesFacts, TargetFacts
from remediate.packages.fit import installed_cuda, is_without_wheel, unsupported_gpus
from remediate.packages.names import contains, is_same_version, public
from remediate.profile.schema import Pin, Profile

MINIMUM_DRIVER = {13: "580", 12: "525", 11: "450"}
"""Major CUDA version of a build to the oldest driver branch that runs it by minor version compatibility (NVIDIA, CUDA
Compatibility, minor version compatibility table)."""
NUMPY_1 = Pin(
    version="1.26.4",
    accept="<2",
    required=False,
    reason="torch below 2.3 is built against numpy 1: with numpy 2 `pipeline()` and `.numpy()` raise, and "
    "`torch.tensor(np.ones(2))` silently gives float32",
)
"""Added for torch below 2.3 where the profile is silent about numpy. Tested with torch 2.1.2, 2.2.0 and 2.2.2 (broken
with numpy 2, whole with 1.26.4) and 2.3.0 (works with 2)."""


class PlannedPin(msgspec.Struct, frozen=True):
    """A pin held against the environment.

    Attributes:
        name: canonical name.
        installed: version as installed, with a local part; None when absent or unreadable.
        planned: the version that it has when all is done: the installed one where the pin accepts it, without its
            local part, else the pin's.
        is_judged: False for an optional distribution that is absent.
        is_met: the installed version is accepted.
        cuda_differs: the version is right and the build is not.
        is_known: False where a list that somebody handed over does not tell whether it is installed.
    """

    name: str
    pin: Pin
    installed: str | None
    planned: str
    is_judged: bool
    is_met: bool
    cuda_differs: bool = False
    is_known: bool = True

    @property
    def needs_install(self) -> bool:
        """Whether an install has to put it right."""
        return self.is_judged and self.is_known and (not self.is_met or self.cuda_differs)


class Blocker(msgspec.Struct, frozen=True):
    """A reason not to install into this environment.

    Attributes:
        code: of the finding that says it.
        also_requirements: the pins don't fit the target at all, so that a requirements file must not get them either.
    """

    code: str
    because: str
    enable: str
    also_requirements: bool = False


def plan_pins(facts: PackagesFacts, profile: Profile) -> dict[str, PlannedPin]:
    """Every pin of the profile held against what is installed, by canonical name, sorted.

    numpy is pinned below 2 for torch below 2.3, whether the profile says so or not.
    """
    planned = {name: _plan_pin(facts, name, pin) for name, pin in profile.packages.items()}
    torch = planned["torch"].planned if "torch" in planned else facts.version_of("torch")
    if "numpy" not in planned and torch is not None and needs_numpy_1(torch):
        planned["numpy"] = _plan_pin(facts, "numpy", NUMPY_1)
    return dict(sorted(planned.items()))


def accepts(pin: Pin, version: str) -> bool:
    """Whether the pin leaves an installed version alone. Local parts don't count."""
    return is_same_version(version, pin.version) or bool(pin.accept and contains(pin.accept, version))


def needs_numpy_1(torch: str) -> bool:
    """Whether that version of torch is broken with numpy 2."""
    return contains("<2.3.dev0", torch)


def planned_torch_cuda(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> str | None:
    """CUDA version of the torch build when all is done; None without CUDA, without torch, or where it is unknown."""
    torch = pins.get("torch")
    if torch is not None and torch.needs_install:
        return torch.pin.cuda or None
    return installed_cuda(facts)


def find_blockers(
    facts: PackagesFacts, profile: Profile, announced: Mapping[str, str] | None = None
) -> tuple[Blocker, ...]:
    """What speaks against installing the pins into the target; the gravest first.

    Args:
        announced: with `gpu:driver_version` (`580.159.03`) and `gpu:compute_capabilities`; what is not there is not
            judged.
    """
    target = facts.target
    if target is None:
        return ()
    announced = announced or {}
    pins = plan_pins(facts, profile)
    blockers = [
        _python_blocker(target, profile, pins),
        _driver_blocker(facts, pins, announced),
        _architecture_blocker(facts, pins, announced),
    ]
    if target.externally_managed:
        because = f"`{target.prefix}` is managed by the operating system (PEP 668)"
        enable = "create an environment with `python3 -m venv .venv` and run `remediate plan --python .venv`"
        blockers.append(Blocker("PKG010", because, enable))
    elif not target.is_writable:
        because = f"this user may not write to `{target.purelib}`"
        blockers.append(Blocker("PKG010", because, "run it as the owner of that environment"))
    elif target.is_guess and not target.is_virtual:
        because = f"nobody named `{target.python}`, and it is no environment of its own: other programs may rely on it"
        enable = f"create one with `python3 -m venv .venv`, or name this one with `--python {target.python}`"
        blockers.append(Blocker("PKG010", because, enable))
    if isinstance(facts.uv, Unknown):
        blockers.append(Blocker("PKG010", facts.uv.reason, "install uv, or leave the installer to pip"))
    elif facts.uv is None and isinstance(facts.pip, Unknown) and isinstance(facts.tool_pip, Unknown):
        because = "neither the environment nor this program has pip"
        blockers.append(Blocker("PKG010", because, f"run `{target.python} -m ensurepip`"))
    return tuple(blocker for blocker in blockers if blocker is not None)


def driver_needed(cuda: str) -> str | None:
    """Oldest driver branch for a build of that CUDA version; None where the table does not say."""
    major = cuda.partition(".")[0]
    return MINIMUM_DRIVER.get(int(major)) if major.isdigit() else None


def _python_blocker(target: TargetFacts, profile: Profile, pins: Mapping[str, PlannedPin]) -> Blocker | None:
    enable = f"create an environment with a Python {profile.python} and name it with `--python`"
    if profile.python and not contains(profile.python, target.version):
        because = f"the target runs Python {target.version} and the pins have wheels for {profile.python}"
        return Blocker("PKG008", because, enable, also_requirements=True)
    torch = pins.get("torch")
    # A profile that names its Pythons knows its wheels, which need not come from the package index.
    is_known = bool(profile.python) or torch is None or not torch.needs_install
    if torch is not None and not is_known and is_without_wheel(torch.planned, target.version):
        because = f"the package index has no wheel of torch {torch.planned} for Python {target.version}"
        enable = "create an environment with another Python and name it with `--python`"
        return Blocker("PKG008", because, enable, also_requirements=True)
    return None


def _driver_blocker(
    facts: PackagesFacts, pins: Mapping[str, PlannedPin], announced: Mapping[str, str]
) -> Blocker | None:
    torch = pins.get("torch")
    cuda = planned_torch_cuda(facts, pins)
    driver = announced.get("gpu:driver_version")
    needed = driver_needed(cuda) if cuda else None
    if torch is None or not torch.needs_install or needed is None or not driver or contains(f">={needed}", driver):
        return None
    because = f"torch {torch.planned} needs driver {needed} or newer (CUDA {cuda}), and it is {driver}"
    enable = "use a profile that fits this driver (`remediate profiles list`), or update the driver first"
    return Blocker("PKG006", because, enable, also_requirements=True)


def _architecture_blocker(
    facts: PackagesFacts, pins: Mapping[str, PlannedPin], announced: Mapping[str, str]
) -> Blocker | None:
    torch = pins.get("torch")
    if torch is None or not torch.needs_install:
        return None
    cuda = planned_torch_cuda(facts, pins)
    missing, _ = unsupported_gpus(facts, torch.planned, cuda, announced)
    if not missing:
        return None
    because = f"torch {torch.planned} (CUDA {cuda}) has no code for compute capability {', '.join(missing)}"
    enable = "use a profile whose torch is built for this GPU (`remediate profiles list`)"
    return Blocker("PKG013", because, enable, also_requirements=True)


def _plan_pin(facts: PackagesFacts, name: str, pin: Pin) -> PlannedPin:
    found = facts.installed(name)
    installed = facts.version_of(name)
    is_whole = not any(problem.name == name and problem.kind.needs_reinstall for problem in facts.problems)
    is_met = installed is not None and accepts(pin, installed) and is_whole
    return PlannedPin(
        name=name,
        pin=pin,
        installed=installed,
        planned=public(installed) if is_met and installed is not None else pin.version,
        is_judged=pin.required or found is not None,
        is_met=is_met,
        cuda_differs=name == "torch" and is_met and _cuda_differs(pin, facts),
        is_known=facts.listing is None or found is not None or facts.tells_absence(name),
    )


def _cuda_differs(pin: Pin, facts: PackagesFacts) -> bool:
    build = facts.torch_build
    return bool(pin.cuda) and build is not None and not isinstance(build.cuda, Unknown) and build.cuda != pin.cuda
