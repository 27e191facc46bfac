"""What surrounds the model in a script: compile, CUDA initialisation, allocator, guards, processes, environment."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import PurePath

from remediate.script.facts import AllocatorSite, CallSite, CompileSite, Device, Load, Note
from remediate.script.reading.module import Module, constant, keyword
from remediate.script.reading.reach import Reach
from remediate.script.reading.tracks import WRAPPERS, Tracks
from remediate.script.reading.values import device_of

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "NVIDIA_VISIBLE_DEVICES")
INITS = ("torch.cuda.init", "torch.cuda._lazy_init")
CLEARS = ("torch.cuda.empty_cache", "torch.mps.empty_cache", "torch.xpu.empty_cache", "gc.collect")
_GENERATING = ("generate", "stream_generate")
"""Methods that find the inner model's own forward pass; `stream_generate` is what mix-ins for streaming are called."""

_HARMLESS = frozenset(("print", "type", "id", "len", "hasattr", "isinstance", "getattr", "repr", "str", "sum", "next"))
# fmt: off
_PROCESS_MODULES = frozenset((
    "multiprocessing", "torch.multiprocessing", "torch.distributed", "multiprocess", "billiard", "loky", "pathos",
    "joblib", "mpi4py", "horovod", "deepspeed", "torchrun", "ray", "dask", "celery", "rq", "dramatiq", "huey",
    "gunicorn", "litserve", "bentoml", "modal", "runpod", "beam", "spaces",
))
# fmt: on
_PLACING_MODULES = frozenset(("deepspeed", "tensor_parallel", "accelerate", "fairscale", "parallelformers", "ipex_llm"))
_PLACING_CALLS = (
    "torch.set_default_device",
    "torch.set_default_tensor_type",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
)
_TRAINERS = ("Trainer", "TrainingArguments", "SFTConfig")


def imported_modules(module: Module) -> list[tuple[str, ast.stmt]]:
    """Every absolutely imported module with its statement; `from a import b` gives `a` and `a.b`."""
    found: list[tuple[str, ast.stmt]] = []
    for node in module.every(ast.stmt):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            found += [(origin, node), *((f"{origin}.{alias.name}", node) for alias in node.names)]
    return found


def torch_import(module: Module) -> tuple[str, int]:
    """Name and last line of the first unconditional `import torch` at module level; empty and 0 without one."""
    for statement in module.tree.body:
        for alias in statement.names if isinstance(statement, ast.Import) else ():
            if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname):
                name = alias.asname or "torch"
                if module.names.bound_in(module.tree).isdisjoint({name}):
                    return name, statement.end_lineno or statement.lineno
    return "", 0


def first_foreign_import(module: Module) -> ast.stmt | None:
    """The first module-level statement with an import that may load torch: any that is not the standard library's."""
    for name, node in imported_modules(module):
        if name.split(".")[0] not in sys.stdlib_module_names:
            return [node, *(parent for parent in module.ancestors(node) if isinstance(parent, ast.stmt))][-1]
    return None


def process_notes(module: Module) -> tuple[Note, ...]:
    """Signs that the file's code runs in forked or spawned processes, or in workers of a server."""
    notes = [
        Note(node.lineno, f"imports {name}")
        for name, node in imported_modules(module)
        if name in _PROCESS_MODULES or name.split(".")[0] in _PROCESS_MODULES
    ]
    for call in module.calls:
        dotted = module.resolve(call.func)
        if dotted in ("os.fork", "concurrent.futures.ProcessPoolExecutor"):
            notes.append(Note(call.lineno, f"calls {dotted}"))
        if dotted == "uvicorn.run" and constant(keyword(call, "workers")) not in (None, 1):
            notes.append(Note(call.lineno, "starts a server with several workers"))
    return tuple(_unique(notes))


def training_notes(module: Module) -> tuple[Note, ...]:
    """Signs that the file trains a model."""
    notes = []
    for call in module.calls:
        dotted = module.resolve(call.func)
        is_trainer = dotted.startswith(("transformers.", "trl.")) and dotted.endswith(_TRAINERS)
        if is_trainer or dotted.startswith("torch.optim."):
            notes.append(Note(call.lineno, dotted))
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            notes.append(Note(call.lineno, "backward()"))
    return tuple(notes)


def benchmark_sign(module: Module, path: str) -> str:
    """What makes a file a benchmark or a test: its name, a function's, or a library for it; empty for other files.

    Timing alone does not: many programs report how long an answer took.
    """
    name = PurePath(path).stem.lower()
    if "bench" in name:
        return f"its name is `{name}`"
    for function in module.functions:
        if "bench" in function.name.lower():
            return f"function `{function.name}`"
    if name.startswith("test_") and any(function.name.startswith("test") for function in module.functions):
        return f"its name is `{name}`"
    libraries = ("timeit", "pyperf", "torch.utils.benchmark", "pytest", "unittest")
    return next((f"imports {found}" for found, _ in imported_modules(module) if found in libraries), "")


def placing_notes(module: Module) -> tuple[Note, ...]:
    """Things that may place a model without its name: default devices, launchers, ranks."""
    notes = [
        Note(node.lineno, f"imports {name}")
        for name, node in imported_modules(module)
        if name.split(".")[0] in _PLACING_MODULES and not name.startswith("accelerate.utils")
    ]
    notes += [Note(call.lineno, name) for call in module.calls if (name := module.resolve(call.func)) in _PLACING_CALLS]
    for node in module.every(ast.With):
        if any(
            isinstance(item.context_expr, ast.Call) and module.resolve(item.context_expr.func) == "torch.device"
            for item in node.items
        ):
            notes.append(Note(node.lineno, "with torch.device"))
    notes += [Note(node.lineno, "LOCAL_RANK") for node in module.every(ast.Constant) if node.value == "LOCAL_RANK"]
    return tuple(_unique(notes))


def environment_notes(module: Module) -> tuple[Note, ...]:
    """Where the script itself chooses GPUs, so that CUDA must not start earlier."""
    notes = [Note(node.lineno, str(node.value)) for node in module.every(ast.Constant) if node.value in _ENVIRONMENT]
    notes += [
        Note(call.lineno, "torch.cuda.set_device")
        for call in module.calls
        if module.resolve(call.func) == "torch.cuda.set_device"
    ]
    return tuple(_unique(notes))


def calls_of(module: Module, reach: Reach, names: Collection[str]) -> tuple[CallSite, ...]:
    """The calls of functions by their dotted names."""
    found = ((call, module.resolve(call.func)) for call in module.calls)
    return tuple(_call_site(module, reach, call, dotted) for call, dotted in found if dotted in names)


def cache_clears(module: Module, reach: Reach) -> tuple[CallSite, ...]:
    """Calls that empty a cache or collect garbage; not those of a handler that runs no model: a Clear button."""
    found = []
    for site in calls_of(module, reach, CLEARS):
        call = module.call_at(site.start, site.end)
        function = module.function_of(call) if call is not None else None
        if function is None or not reach.is_handler(function) or reach.runs_model(function):
            found.append(site)
    return tuple(found)


def benchmark_sites(module: Module, reach: Reach) -> tuple[CallSite, ...]:
    """Assignments of True to `torch.backends.cudnn.benchmark`."""
    return tuple(
        _call_site(module, reach, statement, "torch.backends.cudnn.benchmark")
        for statement in module.every(ast.Assign)
        if module.resolve(statement.targets[0]) == "torch.backends.cudnn.benchmark"
        and constant(statement.value) is True
    )


def tokenizer_sites(module: Module, tracks: Tracks, reach: Reach) -> tuple[CallSite, ...]:
    """The tokenizers that are loaded."""
    return tuple(_call_site(module, reach, call, module.resolve(call.func)) for call in tracks.tokenizers)


def _call_site(module: Module, reach: Reach, node: ast.expr | ast.stmt, what: str) -> CallSite:
    start, end = module.span(node)
    is_cleanup = any(
        isinstance(parent, ast.ExceptHandler)
        or (isinstance(parent, ast.Try) and _is_below(module, node, parent.finalbody))
        for parent in module.ancestors(node)
    )
    return CallSite(
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        start=start,
        end=end,
        what=what,
        scope=reach.where(node).scope,
        text=module.text(node),
        is_cleanup=is_cleanup,
        function=module.qualified_name(module.function_of(node)),
    )


def _is_below(module: Module, node: ast.AST, block: list[ast.stmt]) -> bool:
    return any(parent in block for parent in (node, *module.ancestors(node)))


def allocator_sites(module: Module) -> tuple[AllocatorSite, ...]:
    """Where the script sets the allocator's environment variable."""
    foreign = first_foreign_import(module)
    found = []
    for node in module.every(ast.Constant):
        if node.value not in ALLOCATOR_VARIABLES:
            continue
        statement = module.statement_of(node)
        value = _set_value(module, statement, node)
        if value is None:
            continue
        is_early = statement in module.tree.body and (foreign is None or statement.lineno < foreign.lineno)
        start, end = module.span(statement)
        found.append(
            AllocatorSite(
                line=statement.lineno,
                end_line=statement.end_lineno or statement.lineno,
                start=start,
                end=end,
                variable=str(node.value),
                value=str(constant(value) or ""),
                is_early=is_early,
                function=module.qualified_name(module.function_of(statement)),
            )
        )
    return tuple(found)


def _set_value(module: Module, statement: ast.stmt, name: ast.Constant) -> ast.expr | None:
    """The value in `os.environ[name] = value` or `os.environ.setdefault(name, value)`."""
    parent = module.parents[name]
    if isinstance(statement, ast.Assign) and isinstance(parent, ast.Subscript) and parent in statement.targets:
        return statement.value if module.resolve(parent.value) == "os.environ" else None
    is_call = isinstance(parent, ast.Call) and module.resolve(parent.func) in ("os.environ.setdefault", "os.putenv")
    if is_call and isinstance(parent, ast.Call) and len(parent.args) > 1:
        return parent.args[1]
    return None


def compile_sites(module: Module, tracks: Tracks) -> tuple[CompileSite, ...]:
    """Every use of torch.compile on a model of this file, and whether anything runs what it made."""
    found = []
    dead: dict[str, bool] = {}
    for call in module.calls:
        form, target = _compile_form(module, tracks, call)
        if not form:
            continue
        if target not in dead:
            dead[target] = _is_only_generated(module, target, call)
        start, end = module.span(call)
        found.append(
            CompileSite(
                line=call.lineno,
                end_line=call.end_lineno or call.lineno,
                start=start,
                end=end,
                form=form,
                target=target,
                is_dead=form == "wrapper" and (dead[target] or _is_generated_at_once(module, call)),
                text=module.text(call),
            )
        )
    return tuple(found)


def _compile_form(module: Module, tracks: Tracks, call: ast.Call) -> tuple[str, str]:
    if module.resolve(call.func) == "torch.compile" and call.args:
        subject = call.args[0]
        if tracks.loads_of(subject):
            return "wrapper", tracks.target_of(call)
        base = subject.value if isinstance(subject, ast.Attribute) else subject
        if isinstance(subject, ast.Attribute) and _is_in_generating_pipeline(module, tracks, subject):
            return "wrapper", module.text(subject)
        if isinstance(subject, ast.Attribute) and tracks.loads_of(base):
            return {"forward": "forward", "generate": "generate"}.get(subject.attr, "other"), module.text(subject)
        return "other", module.text(subject)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and tracks.loads_of(call.func.value):
        return "in place", module.text(call.func.value)
    return "", ""


def _is_generated_at_once(module: Module, call: ast.Call) -> bool:
    """`torch.compile(model).generate(...)`."""
    parent = module.parents[call]
    return isinstance(parent, ast.Attribute) and parent.attr in _GENERATING


def _is_in_generating_pipeline(module: Module, tracks: Tracks, subject: ast.Attribute) -> bool:
    """`pipe.model` of a text-generation pipeline, which calls `generate` on it and never the forward pass."""
    loads = tracks.loads_of(subject.value)
    tasks = {constant(keyword(load, "task") or (load.args[0] if load.args else None)) for load in loads}
    is_pipeline = all(module.resolve(load.func).endswith(".pipeline") for load in loads)
    return subject.attr == "model" and is_pipeline and tasks == {"text-generation"}


def _is_only_generated(module: Module, name: str, made: ast.Call) -> bool:
    """Whether a compiled wrapper is used for `generate` and nothing that would run the compiled forward pass."""
    if not name:
        return False
    for node in _uses_after(module, name, made):
        parent = module.parents[node]
        if isinstance(parent, ast.Attribute):
            if parent.attr in ("forward", "__call__", "compile"):
                return False
        elif _runs_it(module, node, parent):
            return False
    pipe = name.removesuffix(".model")
    if pipe != name and any(module.text(call.func) == pipe for call in module.calls):
        return True
    parents = (module.parents[node] for node in module.uses.get(name, ()))
    return any(isinstance(parent, ast.Attribute) and parent.attr in _GENERATING for parent in parents)


def _uses_after(module: Module, name: str, made: ast.Call) -> Iterator[ast.expr]:
    """Uses of a name that can see what `made` bound to it: not those above it in the same function, without a loop."""
    function = module.function_of(made)
    in_loop = any(isinstance(parent, ast.For | ast.While) for parent in module.ancestors(made))
    for node in module.uses.get(name, ()):
        is_above = module.function_of(node) is function and node.lineno < made.lineno
        if in_loop or not is_above:
            yield node


def _runs_it(module: Module, node: ast.expr, parent: ast.AST) -> bool:
    """A call of the name itself, or of something unknown that it is handed to."""
    if isinstance(parent, ast.keyword):
        parent = module.parents[parent]
    if not isinstance(parent, ast.Call):
        return False
    if parent.func is node:
        return True
    if isinstance(parent.func, ast.Name) and parent.func.id in _HARMLESS:
        return False
    return module.resolve(parent.func) not in WRAPPERS and not _is_own_function(module, parent)


def _is_own_function(module: Module, call: ast.Call) -> bool:
    """A function of this file: what it does with the model under that name is in the file too."""
    return isinstance(call.func, ast.Name) and any(function.name == call.func.id for function in module.functions)


def pipeline_placements(module: Module, tracks: Tracks, loads: tuple[Load, ...]) -> tuple[Note, ...]:
    """Pipelines around a model that say or guess a device: the model moves with them."""
    notes = []
    for load in loads:
        call = module.call_at(load.start, load.end) if load.wraps else None
        if call is None:
            continue
        value = keyword(call, "device")
        if value is not None and device_of(module, value, frozenset(tracks.models)) is not Device.NONE:
            notes.append(Note(load.line, f"pipeline with device={module.text(value)}"))
    return tuple(notes)


def _unique(notes: list[Note]) -> list[Note]:
    return sorted(set(notes), key=lambda note: (note.line, note.what))
