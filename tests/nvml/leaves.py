"""Facts as a flat list of readings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of each reading in facts made of builtins; an `Unknown` is one reading."""
    if isinstance(value, dict) and "unknown" not in value:
        for key, part in value.items():
            yield from leaves(part, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}/{index}")
    else:
        yield path, value
