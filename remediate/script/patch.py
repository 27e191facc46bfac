"""A script's bytes to its patched bytes: one fix at a time, each behind the same gates.

After each fix the result is read again from scratch, so that no fix works on positions or conclusions that another
one made stale, and the work ends only when the rules propose nothing more: patching twice equals patching once.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Set
from typing import TypeVar

import msgspec

from remediate.script.facts import FileFacts
from remediate.script.reading.layout import read_layout
from remediate.script.reading.module import Module
from remediate.script.rules import RULES, scr004_no_placement
from remediate.script.rules.base import Fix, Held, Safety, Wanted
from remediate.script.rules.scr003_device_mismatch import leaves_inputs_behind
from remediate.script.source import Edit, Source, SourceError

P = TypeVar("P", bound=Fix | Held)

MAX_SITES = 100
"""Loads, compiles, initialisations and inputs in one file; a file with more was generated."""

MAX_FIXES = 40
"""More than any real script needs; a set of rules that undo each other ends here and changes nothing."""


_MOVES_MODEL = scr004_no_placement.RULE.code
_LEFT_BEHIND = Held(
    1, "put the model on the GPU", "its inputs stay behind: moving them is ignored", "do both, or ignore both"
)


class Patch(msgspec.Struct, frozen=True):
    """What patching came to.

    Attributes:
        content: the new bytes; the old ones where nothing was fixed.
        fixes: code and fix, in the order in which they were made. Lines are those of the original file; the edits'
            offsets are those of the file as it was when they were made.
        held: code and fault that was left, with the reason; lines as above.
    """

    content: bytes
    fixes: tuple[tuple[str, Fix], ...] = ()
    held: tuple[tuple[str, Held], ...] = ()


class _GateError(ValueError):
    """An edit that must not be made."""


class _Work(msgspec.Struct):
    """A script on its way: what was done so far, and what the gates refused."""

    wanted: Wanted
    skip: Set[str]
    history: list[tuple[Source, tuple[Edit, ...]]] = []
    fixes: list[tuple[str, Fix]] = []
    refused: dict[tuple[str, int, str], Held] = {}

    def moved_back(self, item: P, source: Source) -> P:
        """The same with the lines of the original file."""
        line = self._origin(source, item.line)
        return msgspec.structs.replace(
            item, line=line, end_line=max(line, self._origin(source, item.end_line or item.line))
        )

    def _origin(self, source: Source, line: int) -> int:
        offset = source.line_start(line)
        for before, edits in reversed(self.history):
            offset = _undone(offset, edits)
            source = before
        return source.line_of(offset)


def patch(path: str, raw: bytes, wanted: Wanted, skip: Set[str] = frozenset()) -> Patch:
    """Make every fix that the rules propose and the gates let through.

    Args:
        path: for the facts only; nothing is read or written there.
        raw: the file's bytes.
        wanted: what the script is held against.
        skip: codes that are not fixed.
    """
    work = _Work(wanted, skip)
    current = raw
    while len(work.fixes) < MAX_FIXES:
        file, module = read_layout(path, current)
        if module is None or not file.is_inference:
            return Patch(current, tuple(work.fixes))
        reason = _reason_to_leave(file)
        if reason:
            return _left(raw, reason)
        content, held = _next_fix(file, module, work)
        if content is None and any(code == _MOVES_MODEL and leaves_inputs_behind(file) for code, _ in work.fixes):
            without = patch(path, raw, wanted, skip | {_MOVES_MODEL})
            return msgspec.structs.replace(without, held=(*without.held, (_MOVES_MODEL, _LEFT_BEHIND)))
        if content is None:
            return Patch(current, tuple(work.fixes), (*held, *((key[0], item) for key, item in work.refused.items())))
        current = content
    return _left(raw, f"the rules did not come to rest after {MAX_FIXES} fixes")


def _reason_to_leave(file: FileFacts) -> str:
    """Why a script is not edited at all; empty when it may be."""
    if file.benchmark:
        return f"it is a benchmark ({file.benchmark}): a better layout would change what it measures"
    sites = len(file.loads) + len(file.compiles) + len(file.cuda_inits) + len(file.inputs)
    return f"{sites} places in one file are more than anybody would read through" if sites > MAX_SITES else ""


def _left(raw: bytes, reason: str) -> Patch:
    return Patch(raw, (), (("SCR000", Held(1, "patch the script", reason, "edit it by hand")),))


def _undone(offset: int, edits: tuple[Edit, ...]) -> int:
    """Where the character at `offset` stood before the edits; new text counts as the place where it was put."""
    shift = 0
    for edit in sorted(edits):
        start = edit.start + shift
        if offset < start:
            break
        if offset < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return offset - shift


def _next_fix(file: FileFacts, module: Module, work: _Work) -> tuple[bytes | None, list[tuple[str, Held]]]:
    """The bytes after the first fix that passes the gates; when there is none, None and all that is held."""
    source = module.source
    held: list[tuple[str, Held]] = []
    for code, proposal in _proposals(file, module, work):
        item = work.moved_back(proposal, source)
        if isinstance(item, Fix) and item.safety is Safety.UNSAFE and not work.wanted.is_unsafe:
            item = item.withheld()
        if isinstance(item, Held):
            held.append((code, item))
            continue
        key = (code, item.line, item.before)
        if key in work.refused:
            continue
        try:
            content = apply_edits(source, item.edits)
        except _GateError as error:
            by_hand = f"change it by hand: {item.before} to {item.after}"
            work.refused[key] = Held(item.line, "edit the script", str(error), by_hand)
        else:
            work.fixes.append((code, item))
            work.history.append((source, item.edits))
            return content, held
    return None, held


def _proposals(file: FileFacts, module: Module, work: _Work) -> Iterator[tuple[str, Fix | Held]]:
    for rule in RULES:
        if rule.fix is None or rule.code in work.skip or rule.code in work.wanted.wish.ignore:
            continue
        for proposal in rule.fix(file, module, work.wanted):
            if not is_ignored(file, rule.code, proposal.line, proposal.end_line):
                yield rule.code, proposal


def is_ignored(file: FileFacts, code: str, line: int, end_line: int = 0) -> bool:
    """Whether a `# remediate: ignore[CODE]` stands on one of the place's lines."""
    lines = range(line, max(line, end_line) + 1)
    return any(item.line in lines and (not item.codes or code in item.codes) for item in file.ignores)


def apply_edits(source: Source, edits: tuple[Edit, ...]) -> bytes:
    """The new bytes, if they pass every gate.

    The gates: the edits fit into the encoding; the decoded result is exactly the old text with those ranges replaced;
    it compiles; no name that was bound at module level, and no function or class, is gone.
    """
    try:
        content = source.splice(edits)
        after = source.reread(content)
    except SourceError as error:
        raise _GateError(f"the edit does not fit into the file: {error}") from error
    if after.text != _spliced_text(source.text, edits) or after.encoding != source.encoding:
        raise _GateError("the edit would change more than its own place")
    lost = _defined(_compiled(source)) - _defined(_compiled(after))
    if lost:
        raise _GateError(f"the edit would remove {', '.join(sorted(lost))}")
    return content


def _spliced_text(text: str, edits: tuple[Edit, ...]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _compiled(source: Source) -> ast.Module:
    """The tree of a source that also compiles, which is stricter than parsing: `return` outside of a function."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.text, "<script>", "exec", source.compile_flags, dont_inherit=True)
            return ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _GateError(f"the script does not compile: {error}") from error


def _defined(tree: ast.Module) -> set[str]:
    """Names bound at module level, and every function and class."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    for statement in tree.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.alias):
                names.add(node.asname or node.name)
    return names
