"""A script's bytes to its patched bytes: one fix at a time, each behind the same gates.

After each fix the result is read again from scratch, so that no fix works on positions or conclusions that another
one made stale, and the work ends only when the rules propose nothing more: patching twice equals patching once.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from remediate.script.facts import FileFacts
from remediate.script.reading.layout import read_layout
from remediate.script.reading.module import Module
from remediate.script.rules import RULES
from remediate.script.rules.base import Fix, Held, Wanted
from remediate.script.source import Edit, Source, SourceError, decode

P = TypeVar("P", Fix, Held)

MAX_FIXES = 40
"""More than any real script needs; a set of rules that undo each other ends here and changes nothing."""


@dataclass(frozen=True)
class Patch:
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


def patch(path: str, raw: bytes, wanted: Wanted, skip: Set[str] = frozenset()) -> Patch:
    """Make every fix that the rules propose and the gates let through.

    Args:
        path: for the facts only; nothing is read or written there.
        raw: the file's bytes.
        wanted: what the script is held against.
        skip: codes that are not fixed.
    """
    current = raw
    fixes: list[tuple[str, Fix]] = []
    history: list[tuple[Source, tuple[Edit, ...]]] = []
    refused: dict[tuple[str, str], Held] = {}
    while len(fixes) < MAX_FIXES:
        file, module = read_layout(path, current)
        if module is None or not file.is_inference:
            return Patch(current, tuple(fixes))
        made, held = _next_fix(file, module, wanted, skip, refused)
        if made is None:
            held += [(code, item) for (code, _), item in refused.items()]
            return Patch(
                current, tuple(fixes), tuple((code, _moved_back(item, module.source, history)) for code, item in held)
            )
        code, fix, content = made
        fixes.append((code, _moved_back(fix, module.source, history)))
        history.append((module.source, fix.edits))
        current = content
    held_all = Held(
        1, "patch the script", f"the rules did not come to rest after {MAX_FIXES} fixes", "report this script"
    )
    return Patch(raw, (), (("SCR000", held_all),))


def _moved_back(item: P, source: Source, history: Sequence[tuple[Source, tuple[Edit, ...]]]) -> P:
    """The same with the lines of the original file."""
    line = _origin(source, item.line, history)
    return replace(item, line=line, end_line=max(line, _origin(source, item.end_line or item.line, history)))


def _origin(source: Source, line: int, history: Sequence[tuple[Source, tuple[Edit, ...]]]) -> int:
    """The line in the original file of a line of `source`, which the edits in `history` led to."""
    offset = source.line_start(line)
    for before, edits in reversed(history):
        offset = _undone(offset, edits)
        source = before
    return source.line_of(offset)


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


def _next_fix(
    file: FileFacts, module: Module, wanted: Wanted, skip: Set[str], refused: dict[tuple[str, str], Held]
) -> tuple[tuple[str, Fix, bytes] | None, list[tuple[str, Held]]]:
    """The first fix that passes the gates with the bytes it leads to; and, when there is none, all that is held."""
    held: list[tuple[str, Held]] = []
    for code, proposal in _proposals(file, module, wanted, skip):
        if isinstance(proposal, Held):
            held.append((code, proposal))
        elif (code, proposal.before) not in refused:
            try:
                return (code, proposal, apply_edits(module.source, proposal.edits)), held
            except _GateError as error:
                by_hand = f"change it by hand: {proposal.before} to {proposal.after}"
                refused[code, proposal.before] = Held(
                    proposal.line, "edit the script", str(error), by_hand, proposal.end_line
                )
    return None, held


def _proposals(file: FileFacts, module: Module, wanted: Wanted, skip: Set[str]) -> Iterator[tuple[str, Fix | Held]]:
    for rule in RULES:
        if rule.fix is None or rule.code in skip:
            continue
        for proposal in rule.fix(file, module, wanted):
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
        after = decode(content)
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
            compile(source.text, "<script>", "exec", dont_inherit=True)
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
