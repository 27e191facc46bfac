"""Which files in a folder may be inference scripts; decided on bytes, before anything is parsed."""

from __future__ import annotations

from pathlib import Path

MAX_SCRIPT_BYTES = 256 * 1024
"""Larger files are not parsed, and are passed over in a search: an inference script of that size does not exist, a
generated data file does."""

MAX_NOTEBOOK_BYTES = 64 * 1024 * 1024
"""Outputs with pictures make notebooks large; the code in them has the limit of a script."""

NOTEBOOK_SUFFIX = ".ipynb"
SUFFIXES = (".py", NOTEBOOK_SUFFIX)

_SKIPPED = frozenset(
    ("venv", "env", "site-packages", "node_modules", "tests", "test", "__pycache__", "build", "dist", "envs", "wheels")
)


def is_notebook(path: str) -> bool:
    """Whether a file is read as a notebook, by its name."""
    return path.lower().endswith(NOTEBOOK_SUFFIX)


def max_bytes(path: str) -> int:
    """Size above which a file is not read."""
    return MAX_NOTEBOOK_BYTES if is_notebook(path) else MAX_SCRIPT_BYTES


def is_candidate(raw: bytes) -> bool:
    """Whether a file's bytes can hold a load: it names transformers (or PEFT) and one of the loading calls.

    Source encodings of Python keep these ASCII words as they are.
    """
    if not any(word in raw for word in (b"from_pretrained", b"pipeline(", b"Pipeline(", b".load(")):
        return False
    return b"transformers" in raw or b"AutoPeft" in raw


def is_skipped_folder(folder: Path) -> bool:
    """Hidden folders, environments, installed packages and tests are not searched."""
    if folder.name.startswith(".") or folder.name in _SKIPPED:
        return True
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()
