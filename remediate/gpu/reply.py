"""Reading nvidia-smi's answer: exit code and text together, for it exits with 0 on most refusals.

Texts and codes of nvidia-smi 535.261.03 and 555.58.02, which print everything, errors too, on stdout. Later builds
word some lines differently ("Enabled persistence mode via daemon"), so only the stable part of a line is looked for.
"""

from __future__ import annotations

import enum

import msgspec

from remediate.effects import Completed
from remediate.gpu.commands import Setting


class Answer(enum.Enum):
    """What nvidia-smi says about one setting."""

    DONE = "done"
    REFUSED = "refused"
    """It can't be set here, or not to that value."""
    NO_PERMISSION = "no permission"
    FAILED = "failed"
    UNCLEAR = "unclear"
    """Exit code 0 and a text that neither confirms nor refuses."""


class Reply(msgspec.Struct, frozen=True):
    """The answer and the line that it rests on."""

    answer: Answer
    line: str


_PERMISSION = ("insufficient permissions", "does not have permission")
_REFUSALS = (
    "not supported",
    "treating as warning",
    "is not a valid",
    "are not valid",
    "invalid combination of input arguments",
    "not supported. please use",
)
_CONFIRMATIONS = {
    Setting.PERSISTENCE_MODE: ("abled persistence mode", "legacy persistence mode", "persistence mode is already"),
    Setting.COMPUTE_MODE: ("set compute mode to", "compute mode is already set to"),
    Setting.POWER_LIMIT: ("power limit for gpu",),
    Setting.MODULE_POWER_LIMIT: ("power limit for gpu", "power limit for module"),
    Setting.APPLICATION_CLOCKS: ("applications clocks set to",),
    Setting.LOCKED_GPU_CLOCKS: ("gpu clocks set to",),
    Setting.LOCKED_MEMORY_CLOCKS: ("memory clocks set to",),
}
_PERMISSION_CODE = 4
_RESET_DONE = "all done."


def read_reply(setting: Setting, value: str, done: Completed) -> Reply:
    """What nvidia-smi's output means for `setting`; `value` is empty for a reset, which is answered without a line."""
    lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    denied = _first(lines, _PERMISSION)
    if done.returncode == _PERMISSION_CODE or denied:
        return Reply(Answer.NO_PERMISSION, denied or _last(lines))
    refused = _first(lines, _REFUSALS)
    if refused:
        return Reply(Answer.REFUSED, refused)
    if done.returncode != 0:
        return Reply(Answer.FAILED, _last(lines) or f"exit code {done.returncode} and no text")
    confirmed = _first(lines, _CONFIRMATIONS[setting] if value else (_RESET_DONE,))
    if confirmed:
        return Reply(Answer.DONE, confirmed)
    return Reply(Answer.UNCLEAR, _last(lines) or "no text")


def _first(lines: list[str], marks: tuple[str, ...]) -> str:
    return next((line for line in lines if any(mark in line.lower() for mark in marks)), "")


def _last(lines: list[str]) -> str:
    """The line that says most: the last one that is not a closing formula."""
    closing = ("all done.", "terminating early due to previous errors.")
    telling = [line for line in lines if line.lower() not in closing]
    return (telling or lines or [""])[-1][:300]
