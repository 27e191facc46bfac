"""What is known of torch, transformers and of distributions that share a module, from the data files beside this.

The files are JSON and not TOML because a plan reads them: strict decoding takes 0.1 ms, and `tomllib` 20 times that.
Every row says where it comes from.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from remediate.packages.names import contains

_DATA = Path(__file__).with_name("data")
T = TypeVar("T", bound=msgspec.Struct)


class TorchRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the package index has of a torch release.

    Attributes:
        torch: PEP 440 specifier of the versions that the row is about.
        cuda: CUDA version of the default build.
        nccl, triton: versions that it requires, exactly.
        python: interpreters that there are wheels for; empty where nobody looked.
    """

    torch: str
    cuda: str
    nccl: str
    triton: str
    python: str = ""


class TorchBuilds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The GPU architectures that a build for Linux x86_64 carries code for.

    Attributes:
        archs: compute capabilities with machine code, as `8.0`; it also runs on a higher minor of the same major.
        ptx: compute capability of the intermediate code that newer GPUs can compile; empty for none.
    """

    torch: str
    cuda: tuple[str, ...]
    archs: tuple[str, ...]
    source: str
    ptx: str = ""


class TransformersFloor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a transformers version needs beside it and states as extras only, so that no installer enforces it.

    Attributes:
        torch: specifier that its own check at import enforces; empty where it has none.
        accelerate: specifier that it checks before it uses accelerate.
        says: what a program prints with an older torch.
        requires: what its metadata requires of tokenizers and huggingface-hub, for lists that come without metadata.
    """

    transformers: str
    torch: str = ""
    accelerate: str = ""
    says: str = ""
    requires: tuple[str, ...] = ()


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution that writes a module, in the versions that do; empty means all."""

    name: str
    versions: str = ""


class Rivals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distributions that write the same files.

    Attributes:
        keep: the one to keep; `torch` means the one that the installed torch requires.
        is_broken: what needs the module surely suffers.
    """

    module: str
    members: tuple[Member, ...]
    keep: str
    is_broken: bool
    effect: str
    source: str


class _Torch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    releases: tuple[TorchRelease, ...]
    builds: tuple[TorchBuilds, ...]


class _Transformers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    floors: tuple[TransformersFloor, ...]


class _Modules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rivals: tuple[Rivals, ...]


def torch_release(version: str) -> TorchRelease | None:
    """The row of a torch version; None for one that is not known."""
    return next((row for row in _torch().releases if contains(row.torch, version)), None)


def torch_builds(version: str, cuda: str) -> TorchBuilds | None:
    """The architectures of a torch version built for a CUDA version (`12.1`); None where they are not known."""
    return next((row for row in _torch().builds if cuda in row.cuda and contains(row.torch, version)), None)


def transformers_floor(version: str) -> TransformersFloor | None:
    """What that transformers version needs beside it."""
    return next((row for row in _transformers().floors if contains(row.transformers, version)), None)


@cache
def rivals() -> tuple[Rivals, ...]:
    """All groups of distributions that write the same files."""
    return _read("modules.json", _Modules).rivals


@cache
def _torch() -> _Torch:
    return _read("torch.json", _Torch)


@cache
def _transformers() -> _Transformers:
    return _read("transformers.json", _Transformers)


def _read(name: str, record: type[T]) -> T:
    return msgspec.json.decode((_DATA / name).read_bytes(), type=record)
