"""Answers of databases, kept in the state folder, so that a later check without a network knows them too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remediate.effects import read_bytes, write_file
from remediate.packages.advisories.check import Answer

SCHEMA_VERSION = 1
NAME = "advisories.json"


class _Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema_version: int
    answers: dict[str, Answer]


def read_answers(root: Path) -> dict[str, Answer]:
    """Earlier answers by `name==version`; none where there is no file, or one that this version can't read."""
    try:
        content = read_bytes(root / NAME)
        saved = msgspec.json.decode(content, type=_Saved) if content is not None else None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return saved.answers if saved is not None and saved.schema_version == SCHEMA_VERSION else {}


def keep_answers(root: Path, answers: Mapping[str, Answer]) -> None:
    """Add answers to the file; those of now replace earlier ones, and what is none is not kept.

    Raises:
        OSError: the folder can't be written.
    """
    good = {key: answer for key, answer in answers.items() if not answer.unchecked}
    if good:
        root.mkdir(parents=True, exist_ok=True)
        saved = _Saved(SCHEMA_VERSION, {**read_answers(root), **good})
        write_file(root / NAME, msgspec.json.encode(saved))
