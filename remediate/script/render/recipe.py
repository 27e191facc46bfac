"""What a script does with its model, as far as a new script should do the same."""

from __future__ import annotations

import ast

import msgspec

from remediate.script.facts import FileFacts, Load
from remediate.script.reading.module import Module, constant, keyword
from remediate.script.render.literals import Literal, NoLiteralError, literal, text
from remediate.script.render.prompts import find_prompts

ARGUMENTS = frozenset(
    """
    max_new_tokens min_new_tokens max_length min_length max_time do_sample temperature top_k top_p min_p typical_p
    epsilon_cutoff eta_cutoff num_beams early_stopping length_penalty repetition_penalty encoder_repetition_penalty
    no_repeat_ngram_size bad_words_ids suppress_tokens begin_suppress_tokens renormalize_logits
    """.split()  # noqa: SIM905 (a list of words reads better)
)
"""Arguments of `generate` that mean the same in every script (transformers documentation, GenerationConfig, 4.36 to 5).
What is missing is about inputs and outputs, several answers at once, or other models."""

_OWN = frozenset(
    ("input_ids", "inputs", "attention_mask", "pad_token_id", "eos_token_id", "bos_token_id", "use_cache", "streamer")
)
"""Given by the new script itself."""

_QUANTISING = frozenset(("quantization_config", "load_in_8bit", "load_in_4bit"))


class Recipe(msgspec.Struct, frozen=True):
    """Model, prompts and arguments.

    Attributes:
        model: name on the hub, or path.
        revision: branch, tag or commit; None for the newest.
        tokenizer: name or path where it is not the model's.
        trusts_remote_code: the model's repository may bring code of its own.
        is_chat: prompts go through the tokenizer's chat template.
        system: what the chat begins with; may be empty.
        prompts: texts.
        arguments: of `generate`.
        left_out: what the script does and the new one does not, one line each.
    """

    model: str
    revision: str | None = None
    tokenizer: str | None = None
    trusts_remote_code: bool = False
    is_chat: bool = False
    system: str = ""
    prompts: tuple[str, ...] = ()
    arguments: dict[str, Literal] = {}
    left_out: tuple[str, ...] = ()


class RecipeError(ValueError):
    """The script has no model that a new script could be about; the text says why."""


def read_recipe(file: FileFacts, module: Module, model: str | None = None) -> Recipe:
    """Read a recipe.

    Args:
        file: facts about the script.
        module: its tree, from the same reading.
        model: name or path in place of the script's.

    Raises:
        RecipeError: no causal language model is loaded, or its name can't be told.
    """
    load = _load_of(file)
    call = module.call_at(load.start, load.end)
    if call is None:
        raise RecipeError("the load can't be found again")
    left_out: list[str] = []
    name = model or text(module, _model_argument(load, call))
    if name is None:
        raise RecipeError(f"line {load.line}: the file does not tell what {load.model or 'the model'} is")
    if _QUANTISING & set(load.keywords):
        left_out.append(f"line {load.line}: quantisation")
    if any("peft" in item.loader or "Peft" in item.loader for item in file.loads):
        left_out.append("the adapter")
    others = len([item for item in file.models if item is not load])
    if others:
        left_out.append(f"{others} more load{'s' if others > 1 else ''} of a model")
    prompts = find_prompts(file, module)
    left_out += prompts.left_out
    tokenizer = _tokenizer(file, module)
    return Recipe(
        model=name,
        revision=text(module, keyword(call, "revision")) if model is None else None,
        tokenizer=tokenizer if tokenizer != name and model is None else None,
        trusts_remote_code=constant(keyword(call, "trust_remote_code")) is True,
        is_chat=prompts.is_chat,
        system=prompts.system,
        prompts=prompts.texts,
        arguments=_arguments(file, module, left_out),
        left_out=tuple(left_out),
    )


def _load_of(file: FileFacts) -> Load:
    causal = [load for load in file.models if load.is_causal_lm]
    if causal:
        return causal[0]
    if file.models:
        kind = file.models[0].loader.removesuffix(".from_pretrained").rpartition(".")[2]
        raise RecipeError(f"line {file.models[0].line}: {kind} is not known to be a causal language model")
    raise RecipeError("it loads no model")


def _model_argument(load: Load, call: ast.Call) -> ast.expr | None:
    if load.kind == "pipeline":
        return keyword(call, "model") or (call.args[1] if len(call.args) > 1 else None)
    return keyword(call, "pretrained_model_name_or_path") or (call.args[0] if call.args else None)


def _tokenizer(file: FileFacts, module: Module) -> str | None:
    calls = (module.call_at(site.start, site.end) for site in file.tokenizers)
    found = [text(module, call.args[0]) for call in calls if call is not None and call.args]
    return found[0] if found else None


def _arguments(file: FileFacts, module: Module, left_out: list[str]) -> dict[str, Literal]:
    """The arguments of the first place that runs the model and has some."""
    for site in file.generates:
        if site.form == "call":
            continue
        given, unknown = _given(module, _keywords_of(module, (site.start, site.end)))
        if given or unknown:
            left_out += [f"line {site.line}: {name}" for name in unknown]
            if "max_new_tokens" in given:
                given.pop("max_length", None)
            return given
    return {}


def _keywords_of(module: Module, span: tuple[int, int]) -> list[ast.keyword]:
    """The keywords that a run gets: in its own call, or in that of a thread that is given `model.generate`."""
    for call in module.calls:
        if span in (module.span(call), module.span(call.func)):
            return call.keywords
        target = keyword(call, "target")
        if target is not None and module.span(target) == span:
            given = keyword(call, "kwargs")
            return [] if given is None else [ast.keyword(arg=None, value=given)]
    return []


def _given(module: Module, keywords: list[ast.keyword]) -> tuple[dict[str, Literal], list[str]]:
    """Arguments with their values, and those that are left out."""
    found: dict[str, Literal] = {}
    unknown: list[str] = []
    for argument in keywords:
        name = argument.arg
        if name in _OWN:
            continue
        if name == "generation_config" or name is None:
            _spread(module, argument, found, unknown)
        elif name in ARGUMENTS:
            try:
                found[name] = literal(module, argument.value)
            except NoLiteralError:
                unknown.append(f"{name}={module.text(argument.value)}")
        else:
            unknown.append(f"{name}={module.text(argument.value)}")
    return found, unknown


def _spread(module: Module, argument: ast.keyword, found: dict[str, Literal], unknown: list[str]) -> None:
    """`generation_config=GenerationConfig(...)` and `**arguments`."""
    value: ast.AST = argument.value
    if isinstance(value, ast.Name | ast.Attribute):
        stores = module.stores.get(module.text(value), [])
        parent = module.parents[stores[0]] if len(stores) == 1 else None
        value = parent.value if isinstance(parent, ast.Assign) else value
    is_config = isinstance(value, ast.Call) and module.resolve(value.func) == "transformers.GenerationConfig"
    if isinstance(value, ast.Call) and is_config:
        more, missing = _given(module, value.keywords)
        found |= more
        unknown += missing
    elif argument.arg is None:
        more, missing = _given(module, _items(value))
        found |= more
        unknown += missing
    else:
        unknown.append(f"generation_config={module.text(argument.value)}")


def _items(node: ast.AST) -> list[ast.keyword]:
    """The items of a table in the file, as keywords; none where it is something else, as the tokenizer's result."""
    if isinstance(node, ast.Dict):
        pairs = ((constant(key), value) for key, value in zip(node.keys, node.values, strict=True))
        return [ast.keyword(arg=key, value=value) for key, value in pairs if isinstance(key, str)]
    is_table = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict"
    return [item for item in node.keywords if item.arg] if isinstance(node, ast.Call) and is_table else []
