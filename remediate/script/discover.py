"""Which files in a folder may be inference scripts; decided on bytes, before anything is parsed."""

from __future__ import annotations

from pathlib import Path

MAX_SCRIPT_BYTES = 256 * 1024
"""Larger files are not parsed, and are passed over in a search: an inference script of that size does not exist, a
generated data file does."""

_SKIPPED = frozenset(
    ("venv", "env", "site-packages", "node_modules", "tests", "test", "__pycache__", "build", "dist", "envs", "wheels")
)


def is_candidate(raw: bytes) -> bool:
    """Whether a file's bytes can hold a load: it names transformers (or PEFT) and one of the loading calls.

    Source encodings of Python keep these ASCII words as they are.
    """
    if b"from_pretrained" not in raw and b"pipeline(" not in raw:
        return False
    return b"transformers" in raw or b"AutoPeft" in raw


def is_skipped_folder(folder: Path) -> bool:
    """Hidden folders, environments, installed packages and tests are not searched."""
    if folder.name.startswith(".") or folder.name in _SKIPPED:
        return True
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()
