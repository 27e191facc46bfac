"""Modules without their distribution and distributions without their module, from the names in the folders. Pure.

Only for the few distributions that matter here, whose module's name is known; it costs no reading beyond the listing of
the folders that is made anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from remediate.packages.facts import DistributionFacts, MetadataProblem, ProblemKind, TorchBuild
from remediate.packages.names import is_same_version

MODULES = {
    "accelerate": "accelerate",
    "huggingface-hub": "huggingface_hub",
    "numpy": "numpy",
    "safetensors": "safetensors",
    "sentencepiece": "sentencepiece",
    "tokenizers": "tokenizers",
    "torch": "torch",
    "transformers": "transformers",
}
"""Canonical distribution name to its top-level package. Of each, no other distribution in use writes that package."""
_INSTALL_FOLDERS = ("/site-packages", "/dist-packages")


class Listing(msgspec.Struct, frozen=True):
    """A folder of the search path and the names in it."""

    folder: str
    names: frozenset[str]


def find_torn(listings: Iterable[Listing], found: Mapping[str, DistributionFacts]) -> Iterator[MetadataProblem]:
    """What an uninstall or install that ended half-way leaves.

    Only folders that installers write to are looked at: elsewhere on the search path lie checkouts without metadata.
    """
    for listing in listings:
        if not listing.folder.endswith(_INSTALL_FOLDERS):
            continue
        for name, module in MODULES.items():
            distribution = found.get(name)
            if distribution is None and module in listing.names:
                path = f"{listing.folder}/{module}"
                detail = f"`{module}/` is there, and no distribution `{name}` that it belongs to"
                yield MetadataProblem(ProblemKind.ORPHAN, name, path, detail)
            elif distribution is not None and _is_empty(distribution, module, listing):
                detail = f"the metadata of `{name}` is there, and `{module}/` is not"
                yield MetadataProblem(ProblemKind.EMPTY, name, distribution.metadata_path, detail)


def find_mixed(build: TorchBuild | None, torch: DistributionFacts | None) -> Iterator[MetadataProblem]:
    """Whether `torch/version.py` says another version than the metadata."""
    if build is None or torch is None or not isinstance(build.version, str) or not isinstance(torch.version, str):
        return
    if not torch.is_editable and not is_same_version(build.version, torch.version):
        detail = f"`torch/version.py` says {build.version}, the metadata {torch.version}"
        yield MetadataProblem(ProblemKind.MIXED, "torch", torch.metadata_path, detail)


def _is_empty(distribution: DistributionFacts, module: str, listing: Listing) -> bool:
    """The metadata lies in this folder and lists files, and neither a package nor a single module is beside it."""
    if distribution.is_editable or not distribution.has_record:
        return False
    if distribution.metadata_path.rpartition("/")[0] != listing.folder:
        return False
    return not any(name == module or name.startswith(f"{module}.") for name in listing.names)
