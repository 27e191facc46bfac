"""A parsed script with what the standard tree lacks: parents, text spans, resolved names."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from remediate.script.reading.names import Names
from remediate.script.source import Source, SourceError

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
N = TypeVar("N", bound=ast.AST)


class Module:
    """A script's tree. Nothing here runs or imports the script."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        self._kinds: dict[type, list[Any]] = {}
        self._resolved: dict[ast.AST, str] = {}
        for node in ast.walk(tree):
            self.nodes.append(node)
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self.names = Names(self)

    def every(self, kind: type[N]) -> list[N]:
        """All nodes of a kind, in the order of the text where they have a place in it."""
        if kind not in self._kinds:
            found = [node for node in self.nodes if isinstance(node, kind)]
            self._kinds[kind] = sorted(found, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
        return self._kinds[kind]

    @cached_property
    def imported(self) -> frozenset[str]:
        """Dotted names of all absolutely imported modules, wherever the import stands."""
        names = {alias.name for node in self.every(ast.Import) for alias in node.names}
        names.update(node.module for node in self.every(ast.ImportFrom) if node.module and not node.level)
        return frozenset(names)

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls, in the order of the text."""
        return self.every(ast.Call)

    @cached_property
    def functions(self) -> list[Function]:
        """All named functions, in the order of the text."""
        return [node for node in self.every(ast.stmt) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Text offsets of a node, without the parentheses that may stand around an expression."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.source.offset(node.lineno, node.col_offset), self.source.offset(end_line, end_column)

    def text(self, node: ast.expr | ast.stmt | None) -> str:
        """A node's text on one line, as it stands in the file; empty for None."""
        if node is None:
            return ""
        start, end = self.span(node)
        text = self.source.text[start:end]
        return text if node.lineno == node.end_lineno else re.sub(r"\s*[\r\n]\s*", " ", text)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Parents, from the nearest to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is in, or is."""
        if isinstance(node, ast.stmt):
            return node
        return next(parent for parent in self.ancestors(node) if isinstance(parent, ast.stmt))

    def function_of(self, node: ast.AST) -> Function | None:
        """The nearest named function around a node; None at module or class level."""
        for parent in self.ancestors(node):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                return parent
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The nearest class around a node."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, ast.ClassDef)), None)

    def qualified_name(self, function: Function | None) -> str:
        """`Class.method`, `function`; empty for None."""
        if function is None:
            return ""
        names = [function.name]
        for parent in self.ancestors(function):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.append(parent.name)
        return ".".join(reversed(names))

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement stands in."""
        parent = self.parents[statement]
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def call_at(self, start: int, end: int) -> ast.Call | None:
        """The call with exactly that span."""
        on_line = self._calls_by_line.get(self.source.line_of(start), ())
        return next((call for call in on_line if self.span(call) == (start, end)), None)

    @cached_property
    def _calls_by_line(self) -> dict[int, list[ast.Call]]:
        found: dict[int, list[ast.Call]] = {}
        for call in self.calls:
            found.setdefault(call.lineno, []).append(call)
        return found

    def resolve(self, node: ast.AST) -> str:
        """Dotted name behind an expression after imports and aliases; empty when it is not certain."""
        if node not in self._resolved:
            self._resolved[node] = self.names.resolve(node)
        return self._resolved[node]

    @cached_property
    def stores(self) -> dict[str, list[ast.expr]]:
        """The places that bind a name or attribute, by its text."""
        return self._named(ast.Store)

    @cached_property
    def uses(self) -> dict[str, list[ast.expr]]:
        """The places that read a name or attribute, by its text."""
        return self._named(ast.Load)

    def _named(self, context: type[ast.expr_context]) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for node in self.every(ast.expr):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, context):
                found.setdefault(node.id if isinstance(node, ast.Name) else self.text(node), []).append(node)
        return found


def parse(source: Source) -> Module:
    """Parse a decoded script.

    Raises:
        SourceError: it is not valid Python for the interpreter that runs this program, or nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
        return Module(source, tree)
    except SyntaxError as error:
        raise SourceError(f"it does not parse: {error.msg}", error.lineno or 0) from error
    except (RecursionError, MemoryError) as error:
        raise SourceError("it is nested too deeply to be parsed") from error
    except ValueError as error:
        raise SourceError(f"it does not parse: {error}") from error


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((argument.value for argument in call.keywords if argument.arg == name), None)


def constant(node: ast.AST | None) -> object:
    """The value of a literal; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def last_name(node: ast.AST) -> str:
    """`get` of `@app.get("/x")`, `lru_cache` of `@functools.lru_cache(maxsize=1)`."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
