"""Distribution names and versions, as the packaging standards compare them."""

from __future__ import annotations

import re
from functools import cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_SEPARATORS = re.compile(r"[-_.]+")


def canonical(name: str) -> str:
    """The name in the one form that PEP 503 compares. `packaging.utils` does the same and costs 10 ms to import."""
    return _SEPARATORS.sub("-", name).lower()


def public(version: str) -> str:
    """The version without its local part: `2.1.2+cu121` becomes `2.1.2`, normalised; other text stays as it is.

    torch's metadata says `2.1.2` for the wheel of the package index and `2.1.2+cu121` for that of PyTorch's own index,
    and they are the same build. The CUDA version is compared apart, from torch/version.py.
    """
    try:
        return Version(version).public
    except InvalidVersion:
        return version


def is_same_version(one: str, other: str) -> bool:
    """Whether two versions are equal without their local parts; `2.1` equals `2.1.0`."""
    try:
        return Version(Version(one).public) == Version(Version(other).public)
    except InvalidVersion:
        return one == other


def contains(specifier: str, version: str) -> bool:
    """Whether the version, without its local part, satisfies a PEP 440 specifier. Nonsense satisfies nothing.

    Prereleases count: whether `>=2.1` contains `2.2.0a0+git123` (NVIDIA's container builds) changed between
    packaging 25.0 and 26.4, so it is always stated here.
    """
    try:
        return _specifier(specifier).contains(_public(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


@cache
def _specifier(text: str) -> SpecifierSet:
    """A plan asks the same few specifiers of the same few versions some hundred times."""
    return SpecifierSet(text)


@cache
def _public(text: str) -> Version:
    return Version(Version(text).public)
