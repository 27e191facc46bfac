"""How often the code at a place runs: once at start, at first use, or again for each request.

"Load inside of a function" is no evidence of a fault: half of the scripts read for this load in a function that is
called once. What counts is whether that function is reached from a handler or a loop.
"""

from __future__ import annotations

import ast
from functools import cached_property

import msgspec

from remediate.script.facts import Note, Scope
from remediate.script.reading import entries, keeping
from remediate.script.reading.module import LOOPS, Function, Module, last_name

_STARTING = frozenset(("Fire", "run", "Thread", "Process", "spawn", "run_until_complete", "gather"))


class Where(msgspec.Struct, frozen=True):
    """A scope, and what it was concluded from."""

    scope: Scope
    because: str


class Reach:
    """Answers for one module; functions are looked at once each."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[Function, Where] = {}
        self._by_name: dict[str, list[Function]] = {}
        self._uses: dict[str, list[ast.Name]] = {}
        for name in module.every(ast.Name):
            if isinstance(name.ctx, ast.Load):
                self._uses.setdefault(name.id, []).append(name)
        self._calls_by_name: dict[str, list[ast.Call]] = {}
        for call in module.calls:
            self._calls_by_name.setdefault(last_name(call), []).append(call)
        for function in module.functions:
            self._by_name.setdefault(function.name, []).append(function)
            parent = module.parents[function]
            if isinstance(parent, ast.ClassDef) and function.name == "__init__":
                self._by_name.setdefault(parent.name, []).append(function)

    def where(self, node: ast.AST) -> Where:
        """How often the code at `node` runs."""
        function = self._module.function_of(node)
        loop = self._loop_around(node, function)
        if loop is not None:
            return Where(Scope.LOOP, f"in the loop at line {loop.lineno}")  # type: ignore[attr-defined]
        if function is None:
            return self._where_in_lambda(node) or self._where_in_module(node)
        return self._where_in_lambda(node) or self._where_in_function(node, function)

    def _where_in_function(self, node: ast.AST, function: Function) -> Where:
        if keeping.is_lazy(self._module, node, function):
            return Where(Scope.LAZY, f"kept after the first call of `{function.name}`")
        if self.is_handler(function) and not self.runs_model(function) and keeping.keeps(self._module, node, function):
            return Where(Scope.LAZY, f"kept by `{function.name}`, which loads on demand and answers nothing")
        return self._where_called(function)

    def _where_in_lambda(self, node: ast.AST) -> Where | None:
        """`button.click(lambda text: answer(text))`: the lambda is what is called."""
        for parent in self._module.ancestors(node):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                return None
            if isinstance(parent, ast.Lambda):
                if entries.is_registered(self._module, parent):
                    return Where(Scope.HANDLER, f"in the request handler at line {parent.lineno}")
                if entries.is_mapped(self._module, parent):
                    return Where(Scope.LOOP, f"for each item at line {parent.lineno}")
        return None

    def runs_model(self, function: Function) -> bool:
        """Whether a function, or one of this file that it calls, runs a model."""
        seen: set[str] = set()
        waiting = [function]
        while waiting:
            current = waiting.pop()
            seen.add(current.name)
            if self._generates(current):
                return True
            for call in (node for node in ast.walk(current) if isinstance(node, ast.Call)):
                waiting += [found for found in self._by_name.get(last_name(call), ()) if found.name not in seen]
        return False

    def _where_in_module(self, node: ast.AST) -> Where:
        is_guarded = any(_is_main_guard(parent) for parent in self._module.ancestors(node))
        scope = Scope.MAIN if is_guarded else Scope.MODULE
        if not entries.is_rerun(self._module):
            return Where(scope, f"at {scope}")
        for parent in self._module.ancestors(node):
            if isinstance(parent, ast.If) and "session_state" in self._module.text(parent.test):
                return Where(Scope.LAZY, "kept in the session's state")
        return Where(Scope.HANDLER, f"at {scope}, which Streamlit runs again for each interaction")

    @property
    def handlers(self) -> tuple[Note, ...]:
        """Functions that answer requests, and loops that ask for input."""
        found = [
            Note(function.lineno, self._module.qualified_name(function))
            for function in self._module.functions
            if self.is_handler(function)
        ]
        for call in self._module.calls:
            if isinstance(call.func, ast.Name) and call.func.id == "input":
                loop = self._loop_around(call, self._module.function_of(call))
                if loop is not None:
                    found.append(Note(loop.lineno, "input loop"))  # type: ignore[attr-defined]
        return tuple(sorted(set(found), key=lambda note: (note.line, note.what)))

    def _where_called(self, function: Function) -> Where:
        if function not in self._known:
            self._known[function] = Where(Scope.UNKNOWN, f"`{function.name}` calls itself")  # until it is known
            self._known[function] = self._conclude(function)
        return self._known[function]

    def _conclude(self, function: Function) -> Where:
        name = self._module.qualified_name(function)
        if entries.is_cached(function):
            return Where(Scope.LAZY, f"`{name}` is cached")
        if self.is_handler(function):
            return Where(Scope.HANDLER, f"in request handler `{name}`")
        if entries.is_hook(self._module, function):
            return Where(Scope.HOOK, f"in start hook `{name}`")
        if entries.is_command(function):
            return Where(Scope.ONCE, f"in command `{name}`")
        return self._conclude_from_callers(function, name)

    def _conclude_from_callers(self, function: Function, name: str) -> Where:
        owner = self._module.class_of(function) if function.name == "__init__" else None
        calls = self._calls_by_name.get(owner.name if owner else function.name, ())
        called = [self.where(call) for call in calls if self._calls(call, function)]
        repeated = next((where for where in called if where.scope.is_repeated), None)
        if repeated is not None:
            return Where(repeated.scope, f"`{name}` is called {repeated.because}")
        starters = (Scope.MODULE, Scope.MAIN, Scope.ONCE, Scope.HOOK, Scope.CONSTRUCTOR)
        if isinstance(self._module.parents[function], ast.ClassDef) and entries.is_constructor(function):
            return Where(Scope.CONSTRUCTOR, f"in `{name}`")
        if called and all(where.scope in (*starters, Scope.LAZY) for where in called):
            lazy = next((where for where in called if where.scope is Scope.LAZY), None)
            return lazy or Where(Scope.ONCE, f"in `{name}`, called {called[0].because}")
        special = self._started_or_forward(function, name)
        if special is not None:
            return special
        is_entry = function.name in ("main", "run", "cli") or function.name.startswith("test") or self._is_dispatched
        if not called and self._generates(function) and not is_entry:
            return Where(Scope.PER_CALL, f"in `{name}`, which also generates")
        return Where(Scope.UNKNOWN, f"in `{name}`, which this file does not call at start")

    @cached_property
    def _is_dispatched(self) -> bool:
        """The program calls its functions by names that it is given: `globals()[task](...)`."""
        return bool(self._calls_by_name.get("globals"))

    def _started_or_forward(self, function: Function, name: str) -> Where | None:
        mapped = next((node for node in self._references(function) if entries.is_mapped(self._module, node)), None)
        if mapped is not None:
            return Where(Scope.LOOP, f"in `{name}`, called for each item at line {mapped.lineno}")
        if self._is_started(function):
            loop = self._restarting_loop(function)
            if loop is not None:
                return Where(Scope.LOOP, f"in `{name}`, started anew in the loop at line {loop.lineno}")  # type: ignore[attr-defined]
            return Where(Scope.ONCE, f"in `{name}`, started once")
        if function.name == "forward" and isinstance(self._module.parents[function], ast.ClassDef):
            return Where(Scope.PER_CALL, f"in `{name}`, which runs for each token")
        return None

    def _calls(self, call: ast.Call, function: Function) -> bool:
        if isinstance(call.func, ast.Name):
            return function in self._by_name.get(call.func.id, ())
        if isinstance(call.func, ast.Attribute) and isinstance(self._module.parents[function], ast.ClassDef):
            return call.func.attr == function.name and not self._module.resolve(call.func)
        return False

    def is_handler(self, function: Function) -> bool:
        """Whether a function answers requests."""
        return entries.is_handler(self._module, function, self._references(function))

    def _is_started(self, function: Function) -> bool:
        for reference in self._references(function):
            parent = self._module.parents[reference]
            if isinstance(parent, ast.keyword):
                parent = self._module.parents[parent]
            if isinstance(parent, ast.Call) and last_name(parent.func) in _STARTING:
                return True
        return False

    def _restarting_loop(self, function: Function) -> ast.AST | None:
        """The outer loop around a loop that starts processes.

        One process for each GPU is one load each; one for each GPU and data set is not.
        """
        for reference in self._references(function):
            loops = [parent for parent in self._module.ancestors(reference) if isinstance(parent, ast.For | ast.While)]
            if len(loops) > 1:
                return loops[-1]
        return None

    def _references(self, function: Function) -> list[ast.Name]:
        return self._uses.get(function.name, [])

    def _generates(self, function: Function) -> bool:
        attributes = (node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute))
        return any(attribute in ("generate", "chat", "stream_chat") for attribute in attributes)

    def _loop_around(self, node: ast.AST, function: Function | None) -> ast.AST | None:
        """The nearest loop that runs `node` again; a retry loop that ends after success does not."""
        child = node
        for parent in self._module.ancestors(node):
            if parent is function:
                return None
            is_body = not (isinstance(parent, ast.For | ast.AsyncFor) and child in (parent.iter, parent.target))
            if isinstance(parent, LOOPS) and is_body and not _ends_after(self._module, node, parent):
                return parent
            child = parent
        return None


def _ends_after(module: Module, node: ast.AST, loop: ast.AST) -> bool:
    """Whether the loop is left in the same block after `node`, as a retry loop is after success."""
    if not isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return False
    statement = module.statement_of(node)
    while statement is not loop:
        block = module.block_of(statement)
        rest = block[block.index(statement) :]
        if any(isinstance(part, ast.Break | ast.Return) for part in rest):
            return True
        parent = module.parents[statement]
        statement = parent if isinstance(parent, ast.stmt) else module.statement_of(parent)
    return False


def _is_main_guard(node: ast.AST) -> bool:
    if not (isinstance(node, ast.If) and isinstance(node.test, ast.Compare)):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
