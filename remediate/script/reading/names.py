"""Which thing a name stands for. Only imports count: a name that is bound in other ways too is not certain.

`AutoModelForCausalLM` also exists in ipex_llm, ctransformers and optimum, and `pipeline`, `compile` and `eval` are
common names for one's own functions, so nothing is ever recognised by its text alone.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remediate.script.reading.module import Module

_STAR_NAMES = re.compile(r"pipeline|Auto[A-Z]\w*|\w+(ForCausalLM|LMHeadModel|Tokenizer|TokenizerFast)")
"""What `from transformers import *` is believed to bring."""


class Names:
    """The bindings of a module, made at first use."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._imports: dict[str, set[str]] = {}
        self._stars: set[str] = set()
        self._bound: dict[ast.AST, set[str]] = {}
        for node in module.nodes:
            if isinstance(node, ast.Import):
                self._add_import(node)
            elif isinstance(node, ast.ImportFrom):
                self._add_import_from(node)
        self._collect_bindings()

    def _add_import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.split(".")[0]
            self._imports.setdefault(alias.asname or root, set()).add(alias.name if alias.asname else root)

    def _add_import_from(self, node: ast.ImportFrom) -> None:
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._stars.add(origin)
            else:
                self._imports.setdefault(alias.asname or alias.name, set()).add(f"{origin}.{alias.name}")

    def _collect_bindings(self) -> None:
        for node in self._module.nodes:
            name = _bound_name(node)
            if name and not self._is_missing_import(node):
                self._bound.setdefault(self._scope_of(node), set()).add(name)
        for node in self._module.nodes:
            if isinstance(node, ast.Global):
                self._bound.get(self._scope_of(node), set()).difference_update(node.names)
                self._bound.setdefault(self._module.tree, set()).update(node.names)

    def _is_missing_import(self, node: ast.AST) -> bool:
        """`except ImportError: AutoTokenizer = None`: the name is the import's, or there is nothing to call."""
        statement = self._module.parents.get(node)
        is_none = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        if not is_none or not isinstance(node, ast.Name) or node.id not in self._imports:
            return False
        return isinstance(self._module.parents.get(statement), ast.ExceptHandler) if statement else False

    def _scope_of(self, node: ast.AST) -> ast.AST:
        """The function, class or module whose namespace a binding goes into."""
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
        return next((p for p in self._module.ancestors(node) if isinstance(p, kinds)), self._module.tree)

    @property
    def imported(self) -> frozenset[str]:
        """Names that an import binds anywhere in the file."""
        return frozenset(self._imports)

    def bound_in(self, scope: ast.AST) -> set[str]:
        """Names that a function or the module binds, other than by import."""
        return self._bound.get(scope, set())

    def resolve(self, node: ast.AST) -> str:
        """Dotted name behind a name or attribute; empty when it is not certain."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = self._resolve_name(node)
        return ".".join([root, *reversed(attributes)]) if root else ""

    def _resolve_name(self, node: ast.Name) -> str:
        scopes = [scope for scope in self._module.ancestors(node) if not isinstance(scope, ast.ClassDef)]
        if any(node.id in self._bound.get(scope, ()) for scope in scopes):
            return ""
        found = self._imports.get(node.id)
        if found is None and "transformers" in self._stars and _STAR_NAMES.fullmatch(node.id):
            return f"transformers.{node.id}"
        return next(iter(found)) if found and len(found) == 1 else ""


def _bound_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store | ast.Del) else ""
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name or ""
    return ""
