"""The distributions of an environment, read from its folders; nothing of it is imported or run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from remediate.model import Reading, Unknown, UnknownKind
from remediate.packages.facts import DistributionFacts, MetadataProblem, ProblemKind, TorchBuild
from remediate.packages.metadata import parse_direct_url, read_header, runtime_requirements
from remediate.packages.modules import Listing, find_mixed, find_torn
from remediate.packages.names import canonical

_TORCH_ASSIGNMENT = re.compile(
    r"""^(?P<name>__version__|cuda|hip)\s*(?::[^=\n]*)?=\s*(?:['"](?P<text>[^'"\n]*)['"]|None)""",
    re.MULTILINE,
)
_MAX_SMALL_FILE = 64 * 1024
_MAX_INSTALLER = 200


class Inventory(msgspec.Struct):
    """What the folders of a search path hold.

    Attributes:
        distributions: sorted by name; the first on the search path where there are several.
        problems: sorted by path.
        torch_build: None when torch is not there or has no `version.py`.
    """

    distributions: tuple[DistributionFacts, ...] = ()
    problems: tuple[MetadataProblem, ...] = ()
    torch_build: TorchBuild | None = None


class _Collected(msgspec.Struct):
    found: dict[str, DistributionFacts] = {}
    problems: list[MetadataProblem] = []
    listings: list[Listing] = []


def read_distributions(search_path: Iterable[str]) -> Inventory:
    """All distributions on the search path. Broken, duplicate and left-over metadata are facts, not errors.

    The metadata of all is read, not only of those a profile governs: that costs 0.1 ms each, and a rollback compares
    all of them. Where the metadata has no version, that of the folder's name stands in.
    """
    collected = _Collected()
    folders = tuple(dict.fromkeys(map(os.path.realpath, search_path)))
    for folder in folders:
        _read_folder(folder, collected)
    build = read_torch_build(folders)
    collected.problems += find_torn(collected.listings, collected.found)
    collected.problems += find_mixed(build, collected.found.get("torch"))
    return Inventory(
        tuple(collected.found[name] for name in sorted(collected.found)),
        tuple(sorted(collected.problems, key=lambda problem: problem.path)),
        build,
    )


def read_torch_build(search_path: Iterable[str]) -> TorchBuild | None:
    """How torch was built, from the text of its `version.py`; None when there is no such file.

    The CUDA version is written `cuda = '12.1'` (2.1.2) or `cuda: Optional[str] = None` (2.13).
    """
    for folder in search_path:
        path = Path(folder, "torch", "version.py")
        try:
            text = path.read_bytes()[:_MAX_SMALL_FILE].decode("utf-8", "replace")
        except OSError as error:
            if path.exists():
                unknown = Unknown(UnknownKind.NO_PERMISSION, f"`{path}`: {error.strerror}")
                return TorchBuild(str(path), unknown, unknown)
            continue
        return parse_torch_version(str(path), text)
    return None


def parse_torch_version(path: str, text: str) -> TorchBuild:
    """The build that the text of a `torch/version.py` states; what it does not state is `Unknown`."""
    values = {match["name"]: match["text"] for match in _TORCH_ASSIGNMENT.finditer(text)}
    missing = Unknown(UnknownKind.FAILED, f"`{path}` does not say")
    version = values.get("__version__")
    cuda: Reading[str | None] = values.get("cuda", missing)
    return TorchBuild(path, version or missing, cuda, values.get("hip"))


def _read_folder(folder: str, collected: _Collected) -> None:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return
    collected.listings.append(Listing(folder, frozenset(names)))
    here: set[str] = set()
    for name in names:
        path = f"{folder}/{name}"
        if name.startswith("~"):
            collected.problems.append(_leftover(name, path))
        elif name.endswith((".dist-info", ".egg-info", ".egg-link")):
            _add(_read_distribution(name, path), here, collected)


def _add(found: DistributionFacts | MetadataProblem, here: set[str], collected: _Collected) -> None:
    if isinstance(found, MetadataProblem):
        collected.problems.append(found)
        return
    if found.name in here:
        detail = f"`{found.name}` has a second metadata folder beside it"
        collected.problems.append(MetadataProblem(ProblemKind.DUPLICATE, found.name, found.metadata_path, detail))
    here.add(found.name)
    # An editable install of old setuptools has an `.egg-link` that points to the source: it wins over nothing.
    collected.found.setdefault(found.name, found)


def _leftover(name: str, path: str) -> MetadataProblem:
    # pip renames `torch` to `~orch` (and `~~rch` when that is taken) while it replaces it.
    stem = name.lstrip("~").removesuffix(".dist-info").partition("-")[0]
    detail = "set aside by a pip run that was interrupted; nothing uses it"
    return MetadataProblem(ProblemKind.LEFTOVER, f"?{canonical(stem)}", path, detail)


def _read_distribution(entry: str, path: str) -> DistributionFacts | MetadataProblem:
    if entry.endswith(".egg-link"):
        return _read_egg_link(entry, path)
    stem, _, kind = entry.rpartition(".")
    folder_name, _, folder_version = stem.partition("-")
    is_wheel = kind == "dist-info"
    try:
        present = _entries(path)
        header_path = Path(path, "METADATA" if is_wheel else "PKG-INFO") if present else Path(path)
        header = read_header(header_path)
    except OSError as error:
        return MetadataProblem(
            ProblemKind.BROKEN, canonical(folder_name), path, f"its metadata can't be read: {error.strerror}"
        )
    written_name = _first(header.get("name")) or ""
    if not written_name:
        return MetadataProblem(ProblemKind.BROKEN, canonical(folder_name), path, "its metadata has no name")
    version = _first(header.get("version")) or folder_version.partition("-")[0]
    direct_url, is_editable = _read_direct_url(path, present)
    return DistributionFacts(
        name=canonical(written_name),
        written_name=written_name,
        version=version or Unknown(UnknownKind.FAILED, f"`{header_path}` has no version"),
        metadata_path=path,
        installer=_read_small(path, "INSTALLER", present),
        direct_url=direct_url,
        is_editable=is_editable,
        has_record=bool(present & {"RECORD", "installed-files.txt"}),
        requires=runtime_requirements(header.get("requires-dist", ())),
        requires_python=_first(header.get("requires-python")) or "",
    )


def _entries(path: str) -> frozenset[str]:
    """Names in a metadata folder; empty for a metadata file. Raises `OSError`."""
    try:
        with os.scandir(path) as entries:
            return frozenset(entry.name for entry in entries)
    except NotADirectoryError:
        return frozenset()


def _read_egg_link(entry: str, path: str) -> DistributionFacts | MetadataProblem:
    """An editable install of old setuptools: the first line names the folder with the `.egg-info`."""
    name = entry.removesuffix(".egg-link")
    try:
        source = Path(path).read_text("utf-8", "replace").splitlines()[0].strip()
        header = next(_headers_below(Path(source), name))
    except (OSError, IndexError, StopIteration):
        return MetadataProblem(ProblemKind.BROKEN, canonical(name), path, "it points to no metadata")
    return DistributionFacts(
        name=canonical(name),
        written_name=name,
        version=_first(header.get("version")) or Unknown(UnknownKind.FAILED, f"metadata in `{source}` has no version"),
        metadata_path=path,
        direct_url=f"file://{source}",
        is_editable=True,
        has_record=False,
        requires=runtime_requirements(header.get("requires-dist", ())),
        requires_python=_first(header.get("requires-python")) or "",
    )


def _headers_below(source: Path, name: str) -> Iterator[dict[str, tuple[str, ...]]]:
    for candidate in sorted(source.glob("*.egg-info")):
        if canonical(candidate.name.removesuffix(".egg-info")) == canonical(name):
            yield dict(read_header(candidate / "PKG-INFO"))


def _read_direct_url(path: str, present: frozenset[str]) -> tuple[str | None, bool]:
    if "direct_url.json" not in present:
        return None, False
    try:
        return parse_direct_url(Path(path, "direct_url.json").read_bytes()[:_MAX_SMALL_FILE])
    except OSError:
        return None, False


def _read_small(path: str, name: str, present: frozenset[str]) -> str | None:
    if name not in present:
        return None
    try:
        return Path(path, name).read_bytes()[:_MAX_INSTALLER].decode("utf-8", "replace").strip() or None
    except OSError:
        return None


def _first(values: tuple[str, ...] | None) -> str | None:
    return values[0] if values else None
