"""SCR001: the model is loaded again for each request, call or turn of a loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import FileFacts, Load, Scope
from remediate.script.reading.module import Module
from remediate.script.reading.values import is_constant
from remediate.script.rules import loader_call
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted
from remediate.script.source import Edit

_WHY = (
    "a reload costs seconds each time (2.4 to 2.6 s for 7 billion bfloat16 weights on an H200) and doubles the memory"
)
_CHECK = "one process; every argument is constant; nothing else runs before it or is bound by it"
_GENERATING_CLASS = re.compile(r"ConditionalGeneration|Seq2Seq|LMHead|Vision2Seq|ImageTextToText|For\w*LM\b")
_HEAD_LENGTH = 60
_BY_HAND = "load it once at module level or in the server's start hook, and pass it to the function"

_BY_HAND_CACHE = (
    "keep the models in a small cache: a function with `functools.lru_cache(maxsize=2)` and a lock around its call; "
    "a cache without a limit fills the memory"
)
_BY_HAND_STREAMLIT = "put the load into a function with `@st.cache_resource`"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge each load by how often it runs."""
    if wanted.wish.load is None:
        return
    for load in file.models:
        if load.scope.is_repeated:
            yield Verdict(
                load.line,
                Outcome.DIFFERS,
                f"loads the model again and again, {load.because}",
                observed=str(load.scope),
                wanted="once",
                reason=wanted.why("load", _WHY),
                is_advice=not _may_generate(load),
                end_line=load.end_line,
            )
        elif load.scope is Scope.UNKNOWN:
            yield Verdict(
                load.line,
                Outcome.UNKNOWN,
                f"can't tell how often the model is loaded: {load.because}",
                wanted="once",
                is_advice=True,
                end_line=load.end_line,
            )
        else:
            yield Verdict(load.line, Outcome.SAME, f"loads the model once, {load.because}", str(load.scope), "once")


def _may_generate(load: Load) -> bool:
    """Encoders and other parts of pipelines are small, and not what the rule is about."""
    is_general = load.loader.removesuffix(".from_pretrained").endswith((".AutoModel", "AutoPeftModel"))
    return load.is_causal_lm or load.kind != "model" or is_general or bool(_GENERATING_CLASS.search(load.loader))


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Move a load out of a plain function, with the loads beside it, where nothing depends on the call."""
    if wanted.wish.load is None:
        return
    for load in file.models:
        if not load.scope.is_repeated:
            continue
        call = module.call_at(load.start, load.end)
        function = module.function_of(call) if call else None
        outer = loader_call.loader_call(module, function) if isinstance(function, ast.FunctionDef) else None
        if outer is not None and isinstance(function, ast.FunctionDef) and not file.multiprocess:
            yield _move_call(module, function, outer, load)
            continue
        obstacle = _obstacle(file, module, load, function)
        if obstacle or not isinstance(function, ast.FunctionDef):
            yield _held(load, obstacle)
        else:
            yield _hoist(module, function, load)
            return


def _move_call(
    module: Module, loader: ast.FunctionDef, outer: tuple[ast.FunctionDef, ast.Assign], load: Load
) -> Fix | Held:
    """The fix that moves the loading function's call, or why it can't be moved."""
    caller, statement = outer
    obstacle = loader_call.obstacle(module, loader, caller, statement)
    line, last = statement.lineno, statement.end_lineno or statement.lineno
    if obstacle:
        return _held(load, obstacle)
    return Fix(
        line=line,
        edits=loader_call.moved(module, caller, statement),
        before=f"`{loader.name}` called for each call of `{caller.name}`",
        after=f"called once, at module level before `{caller.name}`",
        reason=_WHY,
        end_line=last,
        check=_CHECK,
    )


def _held(load: Load, obstacle: str) -> Held:
    by_hand = _BY_HAND
    if "depends on" in obstacle:
        by_hand = _BY_HAND_CACHE
    elif "Streamlit" in load.because:
        by_hand = _BY_HAND_STREAMLIT
    return Held(load.line, "move the load out of the request path", obstacle, by_hand, load.end_line)


def _obstacle(file: FileFacts, module: Module, load: Load, function: ast.stmt | None) -> str:
    """Why a load can't be moved without judgement; empty when it can."""
    if file.multiprocess:
        return f"the program uses several processes (it {file.multiprocess[0].what})"
    if not isinstance(function, ast.FunctionDef):
        return "only a load in a plain function is moved"
    if function not in module.tree.body:
        return f"`{load.function}` is not a plain function at module level"
    moved = _moved(module, function)
    if not any(module.span(_load_in(module, statement)) == (load.start, load.end) for statement in moved):
        return "the load is not a plain assignment at the top of the function's body"
    if any(isinstance(n, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom) for n in ast.walk(function)):
        return f"`{function.name}` uses global names or is a generator"
    reasons = (_why_not(module, function, statement) for statement in moved)
    return next(filter(None, reasons), "") or _why_not_before(module, function, moved)


def _moved(module: Module, function: ast.FunctionDef) -> list[ast.Assign]:
    """The assignments of models, pipelines and tokenizers in the function's own block."""
    found = []
    for statement in function.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            dotted = module.resolve(_load_in(module, statement).func)
            if dotted.startswith("transformers.") and dotted.endswith((".from_pretrained", ".pipeline")):
                found.append(statement)
    return found


def _load_in(module: Module, statement: ast.Assign) -> ast.Call:
    """The call that a chain like `X.from_pretrained("m").to("cuda").eval()` begins with."""
    call = statement.value
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not module.resolve(call.func):
        if not isinstance(call.func.value, ast.Call):
            break
        call = call.func.value
    return call if isinstance(call, ast.Call) else ast.Call(ast.Name(""), [], [])


def _why_not(module: Module, function: ast.FunctionDef, statement: ast.Assign) -> str:
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return f"`{_head(module, statement)}` does not bind one plain name"
    calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    values = [value for call in calls for value in (*call.args, *(argument.value for argument in call.keywords))]
    if not all(is_constant(module, value) for value in values):
        return f"`{_head(module, statement)}` depends on something that is not constant"
    if not edits.stands_alone(module, statement):
        return f"`{_head(module, statement)}` shares its line with other statements"
    if sum(_binds(node, target.id) for node in module.nodes) != 1:
        return f"`{target.id}` is bound in more than one place"
    missing = sorted(_names_in(statement.value) - _bound_before(module, function))
    return f"`{missing[0]}` is not known before `{function.name}`" if missing else ""


def _head(module: Module, statement: ast.stmt) -> str:
    """The beginning of a statement: its line number is no use to a reader once other edits moved it."""
    text = module.text(statement)
    return text if len(text) <= _HEAD_LENGTH else f"{text[:_HEAD_LENGTH].rstrip()}…"


def _names_in(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _bound_before(module: Module, function: ast.FunctionDef) -> set[str]:
    """Names that a statement of the module itself binds before the function, without a condition."""
    names: set[str] = set()
    for statement in module.tree.body[: module.tree.body.index(function)]:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).split(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.Assign):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
    return names


def _why_not_before(module: Module, function: ast.FunctionDef, moved: list[ast.Assign]) -> str:
    """What runs before the loads might be meant for them: a login, a seed, a default."""
    for statement in function.body[: function.body.index(moved[-1])]:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        calls = any(isinstance(node, ast.Call | ast.Await | ast.With) for node in ast.walk(statement))
        if statement not in moved and not is_text and (calls or not isinstance(statement, ast.Assign)):
            return f"`{_head(module, statement)}` runs before the load"
    return ""


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.arg):
        return node.arg == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == name
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name


def _hoist(module: Module, function: ast.FunctionDef, load: Load) -> Fix:
    source = module.source
    moved = _moved(module, function)
    lines = [_dedented(module, statement) for statement in moved]
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    while first > 1 and source.line_text(first - 1).startswith("#"):
        first -= 1
    cut = [Edit(source.line_start(s.lineno), source.line_start((s.end_lineno or s.lineno) + 1), "") for s in moved]
    return Fix(
        line=load.line,
        edits=(edits.insert_lines(source, first, [*lines, "", ""]), *cut),
        before=f"loaded {load.because}",
        after=f"loaded once, at module level before `{function.name}`",
        reason=_WHY,
        end_line=load.end_line,
        check=_CHECK,
    )


def _dedented(module: Module, statement: ast.stmt) -> str:
    """The statement's lines with its comment, without the function's indentation; multi-line text stays as it is."""
    source = module.source
    start, end = module.span(statement)
    last = source.line_of(end)
    text = source.text[start : source.line_start(last + 1)].rstrip("\r\n")
    indent = edits.indent_of(source, statement.lineno)
    has_text = any(isinstance(n, ast.Constant) and n.lineno != n.end_lineno for n in ast.walk(statement))
    return text if has_text or not indent else text.replace(f"\n{indent}", "\n").replace(f"\r{indent}", "\r")


RULE = Rule(
    Explanation(
        code="SCR001",
        title="The model is loaded more than once",
        what="Where the model is loaded, and whether that place is reached from a request handler (of web frameworks, "
        "model servers, task queues, serverless functions, bots, UIs), from a loop, by each call of a function that "
        "also generates, or by Streamlit, which runs the whole script again for each interaction.",
        why="A reload of 7 billion bfloat16 weights takes 2.4 to 2.6 s on an H200. While the old model is still bound, "
        "reserved memory doubles (12.9 to 25.8 GiB) and stays so. In 8 reloads generation itself did not slow down: "
        "the cost is the reload and the risk to run out of memory.",
        fix="A load with constant arguments in a plain function of a single-process script is moved to module level, "
        "together with the tokenizer beside it; so is the call of a function that does nothing but load. Everything "
        "else is reported with the reason and left to a person: a load that depends on the request needs a small cache "
        "with a lock.",
        sources=("measured on an H200, torch 2.11, transformers 5.17",),
    ),
    check,
    fix,
)
