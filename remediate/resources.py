"""Finding the shipped profiles and templates: in an installed wheel, in an editable install and in a checkout."""

from __future__ import annotations

from pathlib import Path

from remediate.errors import InternalError

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Folder `name` (`profiles` or `templates`).

    The build maps the top-level folders into the wheel as `remediate/_data/` (pyproject.toml); in a checkout and in an
    editable install they stand beside the package. A plain path is used in place of `importlib.resources`, whose
    import costs 20 ms of a plan's 100; the wheel is always installed unpacked.

    Raises:
        InternalError: neither place has it; the installation is damaged.
    """
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise InternalError(
        f"the folder `{name}` of the installation is missing",
        cause=f"looked in `{_PACKAGE / '_data'}` and `{_PACKAGE.parent}`",
        hint="install the program again",
    )
