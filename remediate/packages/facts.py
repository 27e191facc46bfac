"""What was observed of the target environment: plain records, no reading and no judgement."""

from __future__ import annotations

import enum

import msgspec

from remediate.model import Reading, Unknown, UnknownKind


class TargetFacts(msgspec.Struct, frozen=True):
    """The target interpreter and its environment, as it tells of itself.

    Attributes:
        python: absolute path of the interpreter, links not resolved (a virtual environment hangs on that path).
        version: `3.11.7`.
        implementation: `cpython`.
        prefix: `sys.prefix`, the environment.
        base_prefix: `sys.base_prefix`; differs from `prefix` in a virtual environment.
        search_path: existing folders of `sys.path` in order, with the user site where a normal start has it.
        purelib, platlib, scripts: where an installer puts modules and commands (`sysconfig`).
        user_site: the per-user folder for modules, when it is part of `search_path`.
        system: `sys.platform`, as `linux`.
        machine: as `x86_64`.
        cache_tag: `cpython-311`.
        libc: as `glibc 2.36`.
        externally_managed: an installer must keep its hands off (PEP 668), outside of virtual environments.
        is_writable: whether this process may write `purelib`, `platlib` and `scripts`.
        is_guess: nobody named it and no environment pointed to it; it is just the `python3` on PATH.
        free_bytes: what this user may still write on the file system of `purelib`; None where it could not be asked.
    """

    python: str
    version: str
    implementation: str
    prefix: str
    base_prefix: str
    search_path: tuple[str, ...]
    purelib: str
    platlib: str
    scripts: str
    user_site: str | None
    system: str
    machine: str
    cache_tag: str
    libc: Reading[str]
    externally_managed: bool
    is_writable: bool
    is_guess: bool = False
    free_bytes: int | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual environment (PEP 405)."""
        return self.prefix != self.base_prefix


class DistributionFacts(msgspec.Struct, frozen=True):
    """One installed distribution, from its metadata folder.

    Attributes:
        name: canonical (PEP 503).
        written_name: as its metadata writes it.
        version: as its metadata writes it, with a local part.
        metadata_path: the `.dist-info` or `.egg-info` folder or file, or the `.egg-link`.
        installer: content of `INSTALLER` (`pip`, `uv`, `conda`); None where there is none.
        direct_url: URL of a distribution that came from no index (PEP 610), without credentials.
        is_editable: installed in development mode.
        has_record: lists its files; without it an installer can't remove it.
        requires: `Requires-Dist` lines but those of extras.
        requires_python: `Requires-Python`, or empty.
    """

    name: str
    written_name: str
    version: Reading[str]
    metadata_path: str
    installer: str | None = None
    direct_url: str | None = None
    is_editable: bool = False
    has_record: bool = True
    requires: tuple[str, ...] = ()
    requires_python: str = ""


class ProblemKind(enum.StrEnum):
    """What can be wrong with the metadata in an environment."""

    BROKEN = "broken"
    """A metadata folder without name or version."""
    DUPLICATE = "duplicate"
    """A second metadata folder of the same name in one folder."""
    LEFTOVER = "leftover"
    """A `~name` folder: pip's set-aside copy of an installation that was interrupted."""
    ORPHAN = "module without a distribution"
    """A folder that an import would find, and no metadata that it belongs to."""
    EMPTY = "distribution without its module"
    """Metadata whose module is gone."""
    MIXED = "files of another version"
    """The module says another version than the metadata."""
    CHANGED = "changed files"
    """Files that are not as the record of the installation has them; looked for on request only."""

    @property
    def needs_reinstall(self) -> bool:
        """Whether the version in the metadata says nothing about what an import finds."""
        return self in (ProblemKind.DUPLICATE, ProblemKind.EMPTY, ProblemKind.MIXED)


class MetadataProblem(msgspec.Struct, frozen=True):
    """Something in the environment that is not as an installer leaves it.

    Attributes:
        name: canonical name that it belongs to, as far as it can be told.
    """

    kind: ProblemKind
    name: str
    path: str
    detail: str


class TorchBuild(msgspec.Struct, frozen=True):
    """How torch was built, from the text of its `version.py`.

    Attributes:
        version: `torch.__version__`, as `2.1.2+cu121`.
        cuda: `torch.version.cuda`, as `12.1`; None for a build without CUDA.
        hip: `torch.version.hip`; None for a build without ROCm.
    """

    path: str
    version: Reading[str]
    cuda: Reading[str | None]
    hip: str | None = None


class FileKind(enum.StrEnum):
    """In which form a file states dependencies."""

    REQUIREMENTS = "requirements"
    """pip's format; also constraints and the `.in` files of pip-tools."""
    PYPROJECT = "pyproject"
    """`pyproject.toml` with dependencies in `[project]` or `[dependency-groups]`."""
    CONDA = "conda environment"
    """`environment.yml`."""


class RequirementsFileFacts(msgspec.Struct, frozen=True):
    """One file that states requirements: the chosen one first, then what it includes, then the others.

    Attributes:
        path: absolute path.
        content: its bytes, None when it does not exist yet. `NOT_READ` when it holds credentials: then it is read
            again from `path` when it is rendered, so that a saved facts document gives none away. `FAILED` when it
            can't be read or parsed.
        sha256: of its bytes; empty when there are none.
        is_constraints: included with `-c`.
        is_inside: lies below the sandbox folder, so that it may be edited.
        kind: how it is read and edited.
        compile_command: the command that made it from another file of the folder, as its header says; it is made anew
            with that and not edited. Empty for a file that people write.
    """

    path: str
    content: Reading[bytes | None]
    sha256: str
    is_constraints: bool = False
    is_inside: bool = True
    kind: FileKind = FileKind.REQUIREMENTS
    compile_command: str = ""


class ListingFacts(msgspec.Struct, frozen=True):
    """What a list of distributions came from that somebody handed over. Nothing was looked at then.

    Attributes:
        source: kinds of output and their files, as `pip freeze in bug.txt`.
        is_complete: it names all that is installed; else what it does not name is unknown, not absent.
        left_out: names that it never names although they may be installed (`pip freeze` and pip itself).
        python: version of the interpreter.
    """

    source: str
    is_complete: bool
    left_out: tuple[str, ...]
    python: Reading[str]

    def tells_absence(self, name: str) -> bool:
        """Whether a canonical name that is not in the list is not installed."""
        return self.is_complete and name not in self.left_out


class PackagesFacts(msgspec.Struct, frozen=True):
    """Everything that this subject observed.

    Attributes:
        target: None when no interpreter was found or it does not work; `target_unknown` then says why.
        distributions: sorted by name; the one that an import finds where there are several.
        torch_build: None when torch is not installed or has no `version.py`.
        requirements: empty when the folder has no requirements file.
        other_sources: names of other files in the folder that state dependencies (`pyproject.toml`, lock files).
        pip: version of pip in the target.
        tool_pip: version of the pip that came with this program, and `tool_python` the interpreter that has it; used
            for targets without pip.
        uv: path of uv; None where nobody asked for it.
        listing: where `distributions` come from when they were imported; then target and files are not known.
    """

    target: TargetFacts | None
    target_unknown: Unknown | None = None
    distributions: tuple[DistributionFacts, ...] = ()
    problems: tuple[MetadataProblem, ...] = ()
    torch_build: TorchBuild | None = None
    requirements: tuple[RequirementsFileFacts, ...] = ()
    other_sources: tuple[str, ...] = ()
    pip: Reading[str] = Unknown(UnknownKind.NOT_READ, "no target")
    tool_pip: Reading[str] = Unknown(UnknownKind.NOT_READ, "not needed")
    tool_python: str = ""
    uv: Reading[str] | None = None
    listing: ListingFacts | None = None

    @property
    def has_list(self) -> bool:
        """Whether the distributions are known, from an environment or from a list."""
        return self.target is not None or self.listing is not None

    def tells_absence(self, name: str) -> bool:
        """Whether a canonical name that is not among the distributions is not installed."""
        return self.target is not None or (self.listing is not None and self.listing.tells_absence(name))

    def installed(self, name: str) -> DistributionFacts | None:
        """The distribution with that canonical name, or None."""
        return next((found for found in self.distributions if found.name == name), None)

    def version_of(self, name: str) -> str | None:
        """The installed version, with a local part; None when it is absent or can't be told."""
        found = self.installed(name)
        return found.version if found is not None and isinstance(found.version, str) else None
