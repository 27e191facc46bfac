"""Where a program is entered: request handlers, start hooks, cached functions, commands, and scripts that rerun.

The tables name what web frameworks, model servers, task queues, serverless runtimes, bots and UIs call their entry
points. A name alone does not count: a decorator has to stand on a function, a method in a class of the right kind.
"""

from __future__ import annotations

import ast

from remediate.script.reading.module import Function, Module, constant, last_name

# fmt: off
_HANDLER_DECORATORS = frozenset((
    "get", "post", "put", "delete", "patch", "route", "websocket", "api_route", "task", "shared_task", "actor",
    "message_handler", "on_message", "event", "before_request", "api", "endpoint", "web_endpoint", "fastapi_endpoint",
    "asgi_app", "http", "cloud_event", "callback", "on", "on_chat_start", "message", "callback_query", "slash_command",
    "listener", "tool", "batch", "method", "expose",
))
_BARE_HANDLER_DECORATORS = frozenset((
    "task", "shared_task", "event", "actor", "on_message", "on_chat_start", "http", "cloud_event", "before_request",
))
_HOOK_DECORATORS = frozenset((
    "on_event", "asynccontextmanager", "before_first_request", "connect", "enter", "on_startup", "startup",
    "before_serving", "build", "worker_process_init", "worker_init", "worker_ready", "on_ready",
))
_REGISTERING = frozenset((
    "click", "submit", "change", "then", "add_api_route", "add_url_rule", "add_handler", "route", "Interface",
    "ChatInterface", "MessageHandler", "CommandHandler", "add_event_handler", "register", "subscribe",
    "basic_consume", "add_route", "add_post", "add_get", "enqueue", "Route", "WebSocketRoute", "serve", "do",
    "add_job", "on", "on_message", "callback",
))
_MAPPING = frozenset((
    "map", "imap", "imap_unordered", "starmap", "apply", "applymap", "progress_apply", "parallel_apply", "filter",
))
# fmt: on
_BOT_LIBRARIES = frozenset(("discord", "nextcord", "disnake", "telegram", "telebot", "aiogram", "slack_bolt"))
_CACHE_DECORATORS = frozenset(
    ("lru_cache", "cache", "cache_resource", "cache_data", "cached", "cached_property", "experimental_singleton")
)
_COMMAND_DECORATORS = frozenset(("command", "group", "main"))
_HANDLER_NAMES = frozenset(("lambda_handler", "do_GET", "do_POST"))
_HANDLER_ARGUMENTS = (["event", "context"], ["event", "_context"])
_CONSTRUCTOR_NAMES = frozenset(
    ("__init__", "__new__", "__enter__", "__post_init__", "setup", "initialize", "load_context", "load_model", "load")
)
_STARTING_NAMES = frozenset(("model_fn", "handle_model_load"))
"""`model_fn(model_dir)` is called once for each worker of a SageMaker endpoint."""

_SERVING_METHODS = {
    "TritonPythonModel": ("execute",),
    "BaseHandler": ("handle", "inference", "preprocess"),
    "BasePredictor": ("predict",),
    "PythonModel": ("predict",),
    "LitAPI": ("predict",),
    "Cog": ("on_message",),
    "Client": ("on_message",),
    "BaseHTTPRequestHandler": ("do_GET", "do_POST"),
}
"""Methods that a server calls for each request, by the name of the class or of one that it is derived from."""

_VIEWS = frozenset(("Resource", "MethodView", "View", "APIView", "GenericAPIView", "RequestHandler", "HTTPEndpoint"))
_VERBS = frozenset(("get", "post", "put", "delete", "patch"))


def is_handler(module: Module, function: Function, references: list[ast.Name]) -> bool:
    """Whether a function answers requests, messages, tasks or events.

    Args:
        references: where the function's name is read.
    """
    arguments = [argument.arg for argument in function.args.args]
    if function.name in _HANDLER_NAMES or arguments in _HANDLER_ARGUMENTS:
        return True
    if any(_is_handler_decorator(module, decorator) for decorator in function.decorator_list):
        return True
    if arguments[:1] == ["request"] and "django" in {name.split(".")[0] for name in module.imported}:
        return True
    return _is_serving_method(module, function) or any(is_registered(module, node) for node in references)


def _is_handler_decorator(module: Module, decorator: ast.expr) -> bool:
    name = last_name(decorator)
    if name in ("remote", "function"):
        return _is_remote_function(module, decorator)
    if module.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator).startswith(
        ("unittest", "mock")
    ):
        return False
    if name == "command":
        return any(found.split(".")[0] in _BOT_LIBRARIES for found in module.imported)
    has_arguments = isinstance(decorator, ast.Call)
    return (has_arguments and name in _HANDLER_DECORATORS) or name in _BARE_HANDLER_DECORATORS


def _is_remote_function(module: Module, decorator: ast.expr) -> bool:
    """`@ray.remote` and Modal's `@app.function()` on a function: each call is a task of its own."""
    library = "ray" if last_name(decorator) == "remote" else "modal"
    return library in module.imported and isinstance(module.parents[decorator], ast.FunctionDef | ast.AsyncFunctionDef)


def _is_serving_method(module: Module, function: Function) -> bool:
    owner = module.parents[function]
    if not isinstance(owner, ast.ClassDef):
        return False
    kinds = (owner.name, *(last_name(base) for base in owner.bases))
    if any(function.name in _SERVING_METHODS.get(kind, ()) for kind in kinds):
        return True
    if any(kind in _VIEWS for kind in kinds) and function.name in _VERBS:
        return True
    if any(kind.endswith("Servicer") for kind in kinds) and not function.name.startswith("_"):
        return True
    is_deployment = any(last_name(decorator) == "deployment" for decorator in owner.decorator_list)
    return is_deployment and function.name == "__call__"


def is_registered(module: Module, reference: ast.expr) -> bool:
    """Whether a function's name, or a lambda, is given to something that calls it for each request or event."""
    parent = module.parents[reference]
    if isinstance(parent, ast.Call) and last_name(parent) == "partial" and reference in parent.args[:1]:
        reference, parent = parent, module.parents[parent]
    if isinstance(parent, ast.Dict):
        return any(constant(key) == "handler" for key in parent.keys)
    if isinstance(parent, ast.keyword):
        if parent.arg in ("fn", "handler", "callback", "on_message_callback", "view_func"):
            return True
        parent = module.parents[parent]
    return isinstance(parent, ast.Call) and reference is not parent.func and last_name(parent.func) in _REGISTERING


def is_mapped(module: Module, reference: ast.expr) -> bool:
    """Whether a function's name, or a lambda, is given to something that calls it for each item: `pool.map(f, xs)`."""
    parent = module.parents[reference]
    if not (isinstance(parent, ast.Call) and reference in parent.args):
        return False
    return last_name(parent.func) in _MAPPING and not module.resolve(parent.func).startswith("torch")


def is_cached(function: Function) -> bool:
    """Whether a decorator keeps the function's result."""
    return any(last_name(decorator) in _CACHE_DECORATORS for decorator in function.decorator_list)


def is_hook(module: Module, function: Function) -> bool:
    """Whether a server or worker calls the function when it starts."""
    if any(last_name(decorator) in _HOOK_DECORATORS for decorator in function.decorator_list):
        return True
    is_signal = any("worker" in module.text(decorator) and ".connect" in module.text(decorator)
                    for decorator in function.decorator_list)  # fmt: skip
    return is_signal or (function.name in _STARTING_NAMES and function in module.tree.body)


def is_command(function: Function) -> bool:
    """Whether the function is a command of a command line, which runs once in each process."""
    return any(last_name(decorator) in _COMMAND_DECORATORS for decorator in function.decorator_list)


def is_constructor(function: Function) -> bool:
    """Whether a method is called once for each object, or by a server before the first request."""
    return function.name in _CONSTRUCTOR_NAMES


def is_rerun(module: Module) -> bool:
    """Whether the whole script runs again for each interaction, as Streamlit does: it draws widgets with it."""
    return "streamlit" in module.imported and any(
        module.resolve(call.func).startswith("streamlit.") for call in module.calls
    )
