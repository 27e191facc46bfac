"""The files that installed distributions record outside of their own folder: commands, data, manual pages.

Format: `RECORD` (recording installed projects standard).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def recorded_files(search_path: Iterable[str]) -> Iterator[str]:
    """Absolute path of every recorded file that lies elsewhere than below its module folder.

    Unreadable records are passed over.
    """
    for folder in dict.fromkeys(map(os.path.realpath, search_path)):
        for record in sorted(Path(folder).glob("*.dist-info/RECORD")):
            yield from _read_record(folder, record)


def _read_record(folder: str, path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
            for row in csv.reader(stream):
                if row and row[0].startswith(("..", "/")):
                    yield os.path.normpath(Path(folder, row[0]))
    except (OSError, csv.Error):
        return
