"""Whether installed files are as the record of their installation has them. Reads them all: on request only.

Format: `RECORD` (recording installed projects standard): path, `sha256=` in URL-safe base64 without padding, size.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from remediate.packages.facts import DistributionFacts, MetadataProblem, ProblemKind
from remediate.packages.modules import MODULES

_JUDGED = frozenset((*MODULES, "triton", "nvidia-ml-py"))
_MOST_HASHED = 8 * 1024 * 1024
"""Bytes. Above it only the size is compared: the libraries of torch have gigabytes, and nobody edits them in place."""
_EXAMPLES = 3


def find_changed(distributions: Iterable[DistributionFacts]) -> Iterator[MetadataProblem]:
    """One problem for each distribution with files that are gone or have another size or content.

    Only torch, transformers and what goes with them: 12 000 files for torch 2.1.2. An editable install has no record
    of its source, so that nothing is said of it; nor of one whose record can't be read.
    """
    for found in distributions:
        if found.name not in _JUDGED or found.is_editable or not found.metadata_path.endswith(".dist-info"):
            continue
        gone, changed = _compare(Path(found.metadata_path))
        if gone or changed:
            yield MetadataProblem(ProblemKind.CHANGED, found.name, found.metadata_path, _describe(found, gone, changed))


def _describe(found: DistributionFacts, gone: list[str], changed: list[str]) -> str:
    parts = [f"{len(changed)} of its files changed"] if changed else []
    parts += [f"{len(gone)} are gone"] if gone else []
    named = [*changed, *gone]
    more = ", …" if len(named) > _EXAMPLES else ""
    return f"`{found.name}`: {' and '.join(parts)} ({', '.join(named[:_EXAMPLES])}{more})"


def _compare(metadata: Path) -> tuple[list[str], list[str]]:
    """Recorded paths that are gone, and those that differ."""
    gone, changed = [], []
    for path, digest, size in _recorded(metadata):
        same = _is_same(metadata.parent / path, digest, size)
        if same is None:
            gone.append(path)
        elif not same:
            changed.append(path)
    return gone, changed


def _recorded(metadata: Path) -> Iterator[tuple[str, str, int]]:
    """Path, SHA-256 and size of each file that has both; RECORD itself has none.

    Compiled modules are passed over: numpy 1.26.4 ships one, and the installer writes it anew.
    """
    try:
        with (metadata / "RECORD").open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
            for row in csv.reader(stream):
                path, digest, size = (*row, "", "", "")[:3]
                if digest.startswith("sha256=") and size.isdigit() and not path.endswith(".pyc"):
                    yield path, digest.removeprefix("sha256="), int(size)
    except (OSError, csv.Error):
        return


def _is_same(path: Path, digest: str, size: int) -> bool | None:
    """None where the file is gone. One that can't be read counts as the same: nothing is known against it."""
    try:
        if path.stat().st_size != size:
            return False
        if size > _MOST_HASHED:
            return True
        present = hashlib.sha256(path.read_bytes()).digest()
    except FileNotFoundError:
        return None
    except OSError:
        return True
    return base64.urlsafe_b64encode(present).rstrip(b"=").decode() == digest
