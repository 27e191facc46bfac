"""The fixed file that a boot applies: the profile's wishes for the GPUs, not commands.

Wishes, because what fulfils them may change while the machine is down: a board that was replaced, a driver update that
dropped applications clocks. docs/decisions/0007-boot-file-of-wishes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from remediate.errors import DocumentError
from remediate.profile.schema import Profile

KIND = "remediate-gpu-settings"
VERSION = 1
_KEPT = ("schema_version", "name", "gpu", "gpu_for")


class BootSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file's content.

    Attributes:
        gpus: UUIDs of the GPUs that the plan was for; empty means all.
        profile: a profile of which only the GPU tables are left.
    """

    schema_version: int
    kind: str
    gpus: tuple[str, ...] = ()
    profile: Profile


def encode_settings(profile: Profile, uuids: Sequence[str] = ()) -> str:
    """The file for a profile's GPU wishes; the same wishes give the same text."""
    wishes = {name: value for name, value in msgspec.to_builtins(profile).items() if name in _KEPT}
    wishes["gpu"].pop("survive_reboot", None)
    document = {"schema_version": VERSION, "kind": KIND, "gpus": sorted(uuids), "profile": _given(wishes)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def decode_settings(content: bytes, place: str) -> BootSettings:
    """Read the file strictly.

    Raises:
        DocumentError: it is not such a file, or one of another version.
    """
    hint = "write it again with `remediate apply`, from a profile with `survive_reboot = true`"
    try:
        settings = msgspec.json.decode(content, type=BootSettings)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"`{place}` holds no GPU settings", cause=str(error), hint=hint) from error
    if settings.kind != KIND or settings.schema_version != VERSION:
        raise DocumentError(
            f"`{place}` holds no GPU settings of version {VERSION}",
            cause=f"it says {settings.kind}, version {settings.schema_version}",
            hint=hint,
        )
    return settings


def _given(value: Any) -> Any:
    """Without the keys that say nothing, for a file that people read."""
    if isinstance(value, dict):
        kept = {key: _given(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", {}, [])}
    return [_given(item) for item in value] if isinstance(value, list | tuple) else value
