"""Render pins into requirements files of real repositories, and check what comes out. Keeps nothing.

    python tools/requirements_corpus.py FOLDER... [--most 40]

Each FOLDER holds checkouts, or bare git repositories, of any depth. Every requirements file, pyproject.toml and conda
environment that names transformers is read (of a bare repository from its HEAD), rendered with a profile's pins, and
held against three promises:

1. only lines of governed names change;
2. pip's own parser takes the result: `pip._internal.req.parse_requirements` and `install_req_from_parsed_requirement`
   (for pyproject.toml each string by `packaging.requirements`), unless it refuses the file as it was;
3. a second rendering changes nothing.

Exits 1 where one is broken, and prints the file's place, the promise and the lines.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from remediate.packages.facts import FileKind, RequirementsFileFacts
from remediate.packages.names import canonical
from remediate.packages.render import Rendered, Wanted
from remediate.packages.requirements import RequirementsError
from remediate.packages.statements import kind_of, render_file
from remediate.profile.load import load_profile

NAME = re.compile(r"(^|/)([\w.-]*(requirements|constraints)[\w.-]*\.(txt|in)|requirements/[\w.-]+\.(txt|in)|"
                  r"pyproject\.toml|[\w.-]*environment[\w.-]*\.ya?ml)$", re.IGNORECASE)  # fmt: skip
ENVIRONMENT = {
    "python_version": "3.11",
    "python_full_version": "3.11.7",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}


def find_files(folder: Path, most: int) -> Iterator[tuple[str, str, bytes]]:
    """Repository, path and bytes of at most `most` files of each repository."""
    for git in sorted({*folder.glob("**/HEAD")}):
        if (git.parent / "objects").is_dir():
            yield from _from_git(git.parent, most)
    for path in sorted(folder.glob("**/*")):
        if path.is_file() and NAME.search(str(path.relative_to(folder))) and ".git" not in path.parts:
            yield str(folder), str(path.relative_to(folder)), path.read_bytes()


def _from_git(git: Path, most: int) -> Iterator[tuple[str, str, bytes]]:
    def run(*arguments: str) -> bytes:
        return subprocess.run(["git", "--git-dir", git, *arguments], capture_output=True, check=False).stdout

    names = [name for name in run("ls-tree", "-r", "--name-only", "HEAD").decode().splitlines() if NAME.search(name)]
    found = 0
    for name in names:
        content = run("show", f"HEAD:{name}")
        if b"transformers" in content.lower() and found < most:
            found += 1
            yield git.parent.name, name, content


def pip_parses(content: bytes, name: str, neighbours: Path) -> str:
    """Empty where pip takes every line, else what it says. Includes are looked at on their own."""
    from pip._internal.network.session import PipSession
    from pip._internal.req import parse_requirements
    from pip._internal.req.constructors import install_req_from_parsed_requirement

    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    kept = [line for line in lines if not re.match(r"\s*(-r|-c|--requirement|--constraint)", line)]
    path = neighbours / Path(name).name
    path.write_text("".join(kept))
    try:
        for parsed in parse_requirements(str(path), session=PipSession()):
            if not parsed.is_editable and not re.match(r"[./]", parsed.requirement):
                install_req_from_parsed_requirement(parsed)
    except Exception as error:  # noqa: BLE001  # Whatever pip raises is its verdict.
        return f"{type(error).__name__}: {error}"
    return ""


def accepts(kind: FileKind, content: bytes, name: str, folder: Path) -> str:
    """Empty where the standard reader of that form takes it."""
    if kind is FileKind.REQUIREMENTS:
        return pip_parses(content, name, folder)
    if kind is FileKind.CONDA:
        return ""
    try:
        document = tomllib.loads(content.decode())
        project = document.get("project", {})
        groups = [*project.get("optional-dependencies", {}).values(), *document.get("dependency-groups", {}).values()]
        for text in (text for items in (project.get("dependencies", []), *groups) for text in items):
            if isinstance(text, str):
                Requirement(text)
    except (ValueError, InvalidRequirement) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def strange_lines(before: bytes, after: bytes, names: set[str]) -> list[str]:
    """Changed lines that name nothing governed."""
    import difflib

    lines = difflib.ndiff(before.decode("utf-8", "replace").split("\n"), after.decode("utf-8", "replace").split("\n"))
    changed = [line[2:] for line in lines if line[:2] in ("- ", "+ ")]
    words = {canonical(name).replace("-", "[-_.]") for name in names} | {"pytorch"}
    known = re.compile(rf"(?i)(?<![\w.-])({'|'.join(sorted(words))})(?![\w-])")
    return [line for line in changed if not known.search(line)]


def check(name: str, content: bytes, wanted: dict[str, Wanted]) -> tuple[str, list[str]]:
    """The file's kind with what became of it, and the broken promises."""
    kind = kind_of(Path(name))
    facts = RequirementsFileFacts(name, content, "", kind=kind)

    def render(text: bytes) -> Rendered:
        return render_file(facts, text, wanted, environment=ENVIRONMENT, is_chosen=True)

    with tempfile.TemporaryDirectory() as folder:
        refused = accepts(kind, content, name, Path(folder))
        try:
            rendered = render(content)
            again = render(rendered.content)
        except RequirementsError as error:
            broken = [] if refused else [f"refused here and not by pip: {error.what}: {error.cause}"]
            return f"{kind}: refused", broken
        broken = [f"a line of others changed: {line!r}" for line in strange_lines(content, rendered.content, {*wanted})]
        now = accepts(kind, rendered.content, name, Path(folder))
        if now and not refused:
            broken.append(f"pip refuses the result: {now}")
        if again.content != rendered.content or again.edits:
            broken.append("a second rendering changes something")
    return f"{kind}: {'changed' if rendered.edits else 'as it was'}", broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=40, help="files of one repository")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    repositories: set[str] = set()
    failures = 0
    for profile in ("incident-a100", "current"):
        pins = load_profile(profile).profile.packages
        wanted = {name: Wanted(pin.version, pin.reason, pin.required) for name, pin in pins.items()}
        for folder in arguments.folders:
            for place, name, content in find_files(folder, arguments.most):
                repositories.add(place)
                outcome, broken = check(name, content, wanted)
                counts[f"{profile}: {outcome}"] += 1
                failures += bool(broken)
                for line in broken:
                    print(f"{place} {name}: {line}")
    for outcome, count in sorted(counts.items()):
        print(f"{count:5}  {outcome}")
    print(f"{len(repositories)} repositories, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
