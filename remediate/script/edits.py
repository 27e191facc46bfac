"""Small edits of a script that keep its layout: a keyword more, a statement less, lines put in."""

from __future__ import annotations

import ast
import re

from remediate.script.reading.module import Module
from remediate.script.source import Edit, Source

_FILLER = re.compile(r"(?:[\s\\,]|#[^\r\n]*)*")


def add_keyword(module: Module, call: ast.Call, text: str) -> tuple[Edit, ...]:
    """Put a keyword argument at the end of a call, on a line of its own where the last argument has one.

    A trailing comma stays one, and a comment stays with its argument.
    """
    source = module.source
    _, call_end = module.span(call)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not arguments:
        return (Edit(call_end - 1, call_end - 1, text),)
    last_end = _past_parentheses(source.text, max(module.span(argument)[1] for argument in arguments), call_end - 1)
    tail = source.text[last_end : call_end - 1]
    line = source.line_of(last_end)
    first = min(arguments, key=lambda argument: (argument.lineno, argument.col_offset))
    is_hanging = "\n" in tail.replace("\r", "\n") and first.lineno > call.func.end_lineno  # type: ignore[operator]
    if not is_hanging:
        return (Edit(last_end, last_end, f", {text}"),)
    next_line = source.line_start(line + 1)
    has_comma = re.sub(r"#[^\r\n]*", "", source.text[last_end:next_line]).strip() == ","
    if not has_comma and "," in re.sub(r"#[^\r\n]*", "", tail):
        return (Edit(last_end, last_end, f", {text}"),)
    added = Edit(next_line, next_line, f"{indent_of(source, line)}{text}{',' if has_comma else ''}{source.newline}")
    return (added,) if has_comma else (Edit(last_end, last_end, ","), added)


def _past_parentheses(text: str, at: int, limit: int) -> int:
    """The end of an argument including parentheses of its own, which the tree leaves out."""
    end = at
    while True:
        match = _FILLER.match(text, at, limit)
        at = match.end() if match else at
        if at >= limit or text[at] != ")":
            return end
        at += 1
        end = at


def append_call(module: Module, call: ast.Call, text: str) -> tuple[Edit, ...]:
    """Put `.to("cuda")` or the like behind a call."""
    _, end = module.span(call)
    return (Edit(end, end, text),)


def replace_node(module: Module, node: ast.expr | ast.stmt, text: str) -> tuple[Edit, ...]:
    """Put other text in a node's place."""
    start, end = module.span(node)
    return (Edit(start, end, text),)


def remove_statement(module: Module, statement: ast.stmt) -> tuple[Edit, ...]:
    """Take a statement's lines out, with the comment behind it; `pass` where a block would be empty.

    Empty where it shares a line with another statement, which nobody can cut without a guess.
    """
    source = module.source
    if not stands_alone(module, statement):
        return ()
    if len(module.block_of(statement)) == 1:
        return replace_node(module, statement, "pass")
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    is_after_blank = first == 1 or not source.line_text(first - 1).strip()
    is_before_blank = last < len(source.line_starts) and not source.line_text(last + 1).strip()
    if is_after_blank and is_before_blank and last + 1 < len(source.line_starts):
        last += 1  # of the two blank lines that would be left, one goes
    return (Edit(source.line_start(first), source.line_start(last + 1), ""),)


def remove_comment_above(module: Module, statement: ast.stmt, word: str) -> tuple[int, Edit | None]:
    """The edit for a comment that is about this statement alone: directly above it, blank lines around the two.

    Returns:
        The first line of the comment (or of the statement) and the edit, None without such a comment.
    """
    source = module.source
    first = statement.lineno
    while first > 1 and source.line_text(first - 1).strip().startswith("#"):
        first -= 1
    comment = source.text[source.line_start(first) : source.line_start(statement.lineno)]
    is_own = first == 1 or not source.line_text(first - 1).strip()
    after = (statement.end_lineno or statement.lineno) + 1
    is_alone = after > len(source.line_starts) or not source.line_text(after).strip()
    if first == statement.lineno or not (is_own and is_alone) or word not in comment.lower():
        return statement.lineno, None
    return first, Edit(source.line_start(first), source.line_start(statement.lineno), "")


def stands_alone(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement has its lines for itself, but for a comment behind it."""
    source = module.source
    start, end = module.span(statement)
    before = source.text[source.line_start(statement.lineno) : start]
    behind = source.text[end : source.line_start(source.line_of(end) + 1)].strip()
    return not before.strip(" \t\f") and (not behind or behind.startswith("#"))


def insert_lines(source: Source, line: int, lines: list[str]) -> Edit:
    """Put whole lines before line `line`, with the file's own line ending.

    Behind a last line that has no line ending, the new lines start with one and end without.
    """
    at = source.line_start(line)
    text = source.newline.join(lines)
    if at == len(source.text) and source.text and not source.text.endswith(("\n", "\r")):
        return Edit(at, at, source.newline + text)
    return Edit(at, at, text + source.newline)


def indent_of(source: Source, line: int) -> str:
    """The white space that a line begins with."""
    text = source.line_text(line)
    return text[: len(text) - len(text.lstrip(" \t\f"))]


def indent_unit(source: Source) -> str:
    """A tab where the file indents with tabs, else four spaces."""
    lines = [source.line_text(number) for number in range(1, len(source.line_starts) + 1)]
    uses_tabs = any(line.startswith("\t") for line in lines)
    return "\t" if uses_tabs and not any(line.startswith("    ") for line in lines) else "    "
