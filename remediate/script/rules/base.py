"""What a rule is, and what several rules ask about a script."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping

import msgspec

from remediate.model import Explanation, Outcome
from remediate.profile.schema import ScriptWish
from remediate.script.facts import Device, FileFacts, Load, Note
from remediate.script.reading.module import Module
from remediate.script.source import Edit

ENABLE_UNSAFE = "look at it with `--unsafe-fixes`, which makes this edit too"

MIN_BFLOAT16_CAPABILITY = (8, 0)
"""Ampere; below it bfloat16 is emulated (CUDA C++ Programming Guide, arithmetic instructions by compute capability)."""


class Wanted(msgspec.Struct, frozen=True):
    """What the script is held against.

    Attributes:
        wish: the profile's wish.
        announced: versions and devices as planned: `distribution:transformers` -> `4.36.2`.
        is_unsafe: fixes that may change what a script means are made too.
    """

    wish: ScriptWish
    announced: Mapping[str, str]
    is_unsafe: bool = False

    def has(self, distribution: str) -> bool:
        """Whether a distribution is installed or planned."""
        return bool(self.announced.get(f"distribution:{distribution}"))

    def version(self, distribution: str) -> tuple[int, ...] | None:
        """Release numbers of a distribution as planned, `(4, 36, 2)`; None when it is not known."""
        text = self.announced.get(f"distribution:{distribution}", "")
        return _release(text) if text else None

    def why(self, key: str, default: str) -> str:
        """The profile's reason for a wish, else the program's own."""
        return self.wish.why.get(key, default)

    @property
    def dtype(self) -> str:
        """`bfloat16`, `float16` or `auto`: the wish, or float16 where a GPU lacks bfloat16."""
        capabilities = [_release(text) for text in self.announced.get("gpu:compute_capability", "").split()]
        lacks = any(capability is not None and capability < MIN_BFLOAT16_CAPABILITY for capability in capabilities)
        return "float16" if lacks and self.wish.dtype == "bfloat16" else self.wish.dtype or ""


def _release(text: str) -> tuple[int, ...] | None:
    """The release numbers of a version; enough to order releases, and free of a heavy import."""
    numbers = []
    for part in text.partition("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers) or None


class Verdict(msgspec.Struct, frozen=True):
    """What a rule says about one place; a finding without the file's name."""

    line: int
    outcome: Outcome
    summary: str
    observed: str = ""
    wanted: str = ""
    evidence: tuple[str, ...] = ()
    reason: str = ""
    is_advice: bool = False
    end_line: int = 0
    """Last line of the place, for an ignoring comment; 0 means `line`."""


class Safety(enum.StrEnum):
    """What has to hold before an edit is made."""

    SAFE = "safe"
    """It can't change what the script means."""
    CHECKED = "needs a check"
    """It could in some scripts; the check was made on this one and holds."""
    UNSAFE = "may change what the script means"
    """The file alone does not show that it is right: made with `--unsafe-fixes` only."""


class Fix(msgspec.Struct, frozen=True):
    """Edits that belong together, with how to show them.

    Attributes:
        check: what was checked on this script, or for an unsafe fix what can't be.
    """

    line: int
    edits: tuple[Edit, ...]
    before: str
    after: str
    reason: str
    end_line: int = 0
    safety: Safety = Safety.CHECKED
    check: str = ""

    def withheld(self) -> Held:
        """What is said of the fix where unsafe ones are not asked for."""
        because = f"it may change what the script means: {self.check}"
        return Held(self.line, f"change {self.before} to {self.after}", because, ENABLE_UNSAFE, self.end_line)


class Held(msgspec.Struct, frozen=True):
    """A fault that is not edited, why, and what a person can do."""

    line: int
    summary: str
    because: str
    by_hand: str
    end_line: int = 0


class Rule(msgspec.Struct, frozen=True):
    """One rule.

    Attributes:
        check: needs the facts alone.
        fix: needs the parsed file that the facts were read from.
        needs_load: False where the rule also speaks of a file that runs a model which is loaded elsewhere; what it
            says there is advice, and nothing is edited.
        is_advice: nothing that it says makes `verify` fail.
    """

    explanation: Explanation
    check: Callable[[FileFacts, Wanted], Iterable[Verdict]]
    fix: Callable[[FileFacts, Module, Wanted], Iterable[Fix | Held]] | None = None
    needs_load: bool = True
    is_advice: bool = False

    @property
    def code(self) -> str:
        """`SCR001`."""
        return self.explanation.code

    @property
    def title(self) -> str:
        """One line."""
        return self.explanation.title


def advice(line: int, summary: str, reason: str, end_line: int = 0) -> Verdict:
    """A verdict that holds nothing up."""
    return Verdict(line, Outcome.DIFFERS, summary, reason=reason, is_advice=True, end_line=end_line)


def same(line: int, summary: str, observed: str = "", wanted: str = "") -> Verdict:
    """A verdict of agreement."""
    return Verdict(line, Outcome.SAME, summary, observed=observed, wanted=wanted)


def device_of_load(file: FileFacts, load: Load) -> Device:
    """Where a model ends up. Without any placement transformers leaves it on the CPU."""
    if load.has_open_keywords or "model_kwargs" in load.keywords or file.placed_elsewhere or load.kind == "pickle":
        return Device.UNKNOWN
    devices = [placement.device for placement in load.placements]
    if not devices:
        return Device.NONE
    if Device.CPU in devices and len(set(devices)) > 1 and not load.placements[-1].is_direct:
        return Device.UNKNOWN  # moved to and fro, as a service does that unloads its model
    return devices[-1] if devices[-1] is not Device.MODEL else Device.UNKNOWN


def device_of_model(file: FileFacts, name: str) -> Device:
    """Where the model with that name ends up; unknown when several loads have the name and differ."""
    found = {device_of_load(file, load) for load in file.models if load.target == name}
    if not found and len(file.models) == 1:
        found = {device_of_load(file, file.models[0])}
    return found.pop() if len(found) == 1 else Device.UNKNOWN


def describe(notes: tuple[Note, ...]) -> str:
    """`line 3: imports celery`, of the first note, with a count of the others."""
    if not notes:
        return ""
    more = f" and {len(notes) - 1} more" if len(notes) > 1 else ""
    return f"line {notes[0].line}: {notes[0].what}{more}"
