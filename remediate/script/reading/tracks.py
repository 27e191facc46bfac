"""Which names stand for a loaded model, a tokenizer, or a tokenizer's result.

Names are followed by their text through the whole file (`model` in one function is the `model` of another), which is
how these scripts are written; where that is too simple the rules see several loads under one name and hold back.
"""

from __future__ import annotations

import ast
import re

from remediate.script.reading.module import Function, Module, keyword
from remediate.script.reading.values import assigned_values

_CHAIN = frozenset(
    (
        "to",
        "cuda",
        "cpu",
        "eval",
        "half",
        "bfloat16",
        "float",
        "train",
        "requires_grad_",
        "merge_and_unload",
        "to_bettertransformer",
    )
)
"""Methods of a model that give the same model back."""

WRAPPERS = frozenset(
    ("torch.compile", "peft.PeftModel.from_pretrained", "peft.get_peft_model", "torch.nn.DataParallel")
)
_ENCODING = frozenset(
    ("encode", "encode_plus", "batch_encode_plus", "apply_chat_template", "pad", "prepare_seq2seq_batch")
)
_TRANSPARENT = frozenset(("items", "values", "copy"))
_CONVERTING = frozenset(("str", "dict", "list"))
"""Calls that carry their argument on; `str(ids)` is a fault of its own, and its ids are on a device all the same."""

_OTHER_FRAMEWORK = re.compile(r"(TF|Flax)[A-Z]")
"""transformers' classes for TensorFlow and JAX: `device_map`, torch dtypes and `torch.compile` are nothing to them."""

_OPTIONS = frozenset(("args", "opt", "opts", "options", "config", "cfg", "settings", "flags"))

_NAME_OF_A_MODEL = re.compile(r"(?i:.*(name|path|id|dir|folder|repo|checkpoint|ckpt|hub|str))|[A-Z0-9_]+")
"""Names that hold a model's name or path rather than the model, where nothing else tells."""


def loader_class(module: Module, call: ast.Call) -> str:
    """Dotted name of the class in `X.from_pretrained(...)` when it is transformers' or PEFT's own; else empty."""
    dotted = module.resolve(call.func)
    root = dotted.split(".")[0]
    is_peft = dotted.startswith("peft.AutoPeft")
    if dotted.endswith(".from_pretrained") and (root == "transformers" or is_peft):
        return dotted.removesuffix(".from_pretrained")
    return ""


def is_model_class(name: str) -> bool:
    """Whether a transformers class carries weights: not a tokenizer, processor or configuration."""
    last = name.rsplit(".", 1)[-1]
    if any(word in last for word in ("Tokenizer", "Processor", "Config", "FeatureExtractor")):
        return False
    if _OTHER_FRAMEWORK.match(last):
        return False
    return "Model" in last or "For" in last


def is_pipeline(dotted: str) -> bool:
    """Whether a resolved name makes a pipeline: `pipeline` itself or a class like `TextGenerationPipeline`."""
    root, _, last = dotted.partition(".")
    last = last.rsplit(".", 1)[-1]
    return root == "transformers" and (last == "pipeline" or (last.endswith("Pipeline") and last[:1].isupper()))


def is_tokenizer_class(name: str) -> bool:
    """Whether a transformers class turns text into ids."""
    return any(word in name.rsplit(".", 1)[-1] for word in ("Tokenizer", "Processor"))


class Tracks:
    """The loads of one module and the names that lead to them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.loads: list[ast.Call] = []
        self.tokenizers: list[ast.Call] = []
        for call in module.calls:
            name = loader_class(module, call)
            if is_pipeline(module.resolve(call.func)):
                self.loads.append(call)
            elif name and is_tokenizer_class(name):
                self.tokenizers.append(call)
            elif (name and is_model_class(name)) or self._is_pickled_model(call):
                self.loads.append(call)
        self._loads = frozenset(self.loads)
        self._sources = self._loads.union(self.tokenizers)
        self.models: dict[str, set[ast.Call]] = {}
        self.tokenizer_names = {self.target_of(call) for call in self.tokenizers} - {""}
        self.inputs: dict[tuple[Function | None, str], ast.Call] = {}
        self._follow_models()
        self._follow_inputs()

    def _is_pickled_model(self, call: ast.Call) -> bool:
        """`model = torch.load(path)` of a whole model: the name that it is bound to generates."""
        if self.module.resolve(call.func) != "torch.load":
            return False
        target = self.target_of(call)
        uses = self.module.uses.get(target, ()) if target else ()
        parents = (self.module.parents[use] for use in uses)
        return any(isinstance(parent, ast.Attribute) and parent.attr == "generate" for parent in parents)

    def target_of(self, node: ast.expr) -> str:
        """What an expression's result is bound to, through method chains and wrappers; empty when not plainly."""
        parent = self.module.parents[node]
        if isinstance(parent, ast.Await):
            return self.target_of(parent)
        if isinstance(parent, ast.Attribute) and parent.attr in _CHAIN:
            outer = self.module.parents[parent]
            return self.target_of(outer) if isinstance(outer, ast.Call) and outer.func is parent else ""
        if isinstance(parent, ast.Call) and node in parent.args[:1] and self.module.resolve(parent.func) in WRAPPERS:
            return self.target_of(parent)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            return _plain(self.module, parent.targets[0])
        if isinstance(parent, ast.AnnAssign | ast.NamedExpr) and parent.value is node:
            return _plain(self.module, parent.target)
        return self._target_in_tuple(node, parent)

    def _target_in_tuple(self, node: ast.expr, parent: ast.AST) -> str:
        outer = self.module.parents.get(parent)
        if isinstance(parent, ast.Tuple) and isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Tuple):
            names = outer.targets[0].elts
            if len(names) == len(parent.elts):
                return _plain(self.module, names[parent.elts.index(node)])
        return ""

    def root_of(self, node: ast.expr) -> ast.expr:
        """The innermost expression of a chain: the load in `X.from_pretrained(...).half().to("cuda")`."""
        while True:
            if isinstance(node, ast.Await):
                node = node.value
            elif isinstance(node, ast.Call) and node not in self._sources:
                if self.module.resolve(node.func) in WRAPPERS and node.args:
                    node = node.args[0]
                elif isinstance(node.func, ast.Attribute) and node.func.attr in _CHAIN:
                    node = node.func.value
                else:
                    return node
            else:
                return node

    def loads_of(self, node: ast.expr) -> set[ast.Call]:
        """The loads that an expression may stand for; empty when it is no model."""
        root = self.root_of(node)
        if isinstance(root, ast.Call):
            return {root} if root in self._loads else set()
        return self.models.get(self.module.text(root), set()) if isinstance(root, ast.Name | ast.Attribute) else set()

    def is_encoding(self, node: ast.AST) -> bool:
        """Whether a call turns text into ids by a known tokenizer."""
        if not isinstance(node, ast.Call):
            return False
        if self.module.text(node.func) in self.tokenizer_names:
            return True
        return (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in _ENCODING
            and self.module.text(node.func.value) in self.tokenizer_names
        )

    def encoding_of(self, node: ast.expr) -> ast.Call | None:
        """The tokenizer call whose result, or part of it, an expression stands for."""
        while True:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CONVERTING:
                node = node.args[0] if len(node.args) == 1 else node.func
            elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
                known = self.inputs.get((self.module.function_of(node), self.module.text(node)))
                if known is not None:
                    return known
                node = node.value
            elif isinstance(node, ast.Call):
                if self.is_encoding(node):
                    return node
                if not (isinstance(node.func, ast.Attribute) and node.func.attr in _CHAIN | _TRANSPARENT):
                    return None
                node = node.func.value
            else:
                break
        if isinstance(node, ast.DictComp):
            return self.encoding_of(node.generators[0].iter)
        if not isinstance(node, ast.Name):
            return None
        return self.inputs.get((self.module.function_of(node), node.id)) or self._encoding_of_loop_name(node)

    def _encoding_of_loop_name(self, node: ast.Name) -> ast.Call | None:
        """The encoding behind `v` in `{k: v.to(device) for k, v in inputs.items()}`."""
        for parent in self.module.ancestors(node):
            if isinstance(parent, ast.DictComp | ast.ListComp | ast.GeneratorExp):
                generator = parent.generators[0]
                names = {part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name)}
                return self.encoding_of(generator.iter) if node.id in names else None
        return None

    def _follow_models(self) -> None:
        for load in self.loads:
            target = self.target_of(load)
            if target:
                self.models.setdefault(target, set()).add(load)
        for statement in self.module.every(ast.Assign):
            target = _plain(self.module, statement.targets[0]) if len(statement.targets) == 1 else ""
            found = self.loads_of(statement.value) if target else set()
            if found:
                self.models.setdefault(target, set()).update(found)

    def _follow_inputs(self) -> None:
        for statement in self.module.every(ast.Assign):
            target = _plain(self.module, statement.targets[0]) if len(statement.targets) == 1 else ""
            found = self.encoding_of(statement.value) if target else None
            if found is not None:
                self.inputs[self.module.function_of(statement), target] = found


def _plain(module: Module, node: ast.expr) -> str:
    return module.text(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def wrapped_model(module: Module, call: ast.Call) -> ast.expr | None:
    """The model object that a pipeline is built around; None when it loads one by name."""
    position = 1 if module.resolve(call.func).endswith("pipeline") else 0
    value = keyword(call, "model") or (call.args[position] if len(call.args) > position else None)
    return None if value is None or _is_text(module, value) else value


def _is_text(module: Module, node: ast.expr) -> bool:
    """Whether an expression is a model's name or path: a text, or something that is named like one."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        return True
    if isinstance(node, ast.BoolOp | ast.IfExp):
        choices = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        return any(_is_text(module, value) for value in choices)
    if isinstance(node, ast.Call):
        return module.resolve(node.func) in ("os.getenv", "os.environ.get", "os.path.join")
    if isinstance(node, ast.Subscript):
        return _is_text(module, node.value) or module.text(node.value).lower() in _OPTIONS
    return isinstance(node, ast.Name | ast.Attribute) and _is_text_name(module, node)


def _is_text_name(module: Module, node: ast.Name | ast.Attribute) -> bool:
    """By the annotation of an argument, else by the values that the name is given, else by the name itself."""
    argument = next((a for a in module.every(ast.arg) if isinstance(node, ast.Name) and a.arg == node.id), None)
    if argument is not None and isinstance(argument.annotation, ast.Name):
        return argument.annotation.id == "str"
    values = assigned_values(module, node)
    if values and not any(isinstance(value, ast.Name | ast.Attribute) for value in values):
        return all(_is_text(module, value) for value in values)
    last = node.id if isinstance(node, ast.Name) else node.attr
    return bool(_NAME_OF_A_MODEL.fullmatch(last)) or _is_option(node)


def _is_option(node: ast.expr) -> bool:
    """`args.model`, `settings.model`: options are texts."""
    base = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(base, ast.Name) and base.id.lower() in _OPTIONS
