"""SCR006: the model is loaded without a stated dtype."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import Device, FileFacts, Load
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Safety, Verdict, Wanted, device_of_load, same
from remediate.script.source import Edit

DTYPE_KEYWORD = (4, 56)
"""transformers from which `dtype=` is accepted; before it is a TypeError (4.36.2), after `torch_dtype=` warns."""

CHECKPOINT_DTYPE = (5,)
"""transformers from which no dtype means the checkpoint's own; before it means float32."""

PIPELINE_CHECKPOINT_DTYPE = (4, 56)
"""The same for `pipeline()` (`dtype="auto"` is its default in 4.56.0; 4.46.3 has None)."""

TEXT_DTYPE = (4, 46, 3)
"""transformers whose `from_pretrained` was read to take the dtype as text; 4.36.2 takes only "auto" that way."""

_OWN_KEYWORDS = ("bf16", "fp16", "fp32")
"""Keywords of models with remote code that choose the dtype by themselves."""

_WHY = "decoding is bound by memory bandwidth, and transformers 4 loads float32 when no dtype is given: twice the bytes"
_CHECK = "no dtype in any form, a causal language model of transformers' own on the GPU"
_CHECK_REMOTE = "the model brings code of its own, which may choose the dtype"
_FLOAT32 = ("torch.float32", "torch.float", "'float32'", '"float32"', "float()")


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge each load's dtype."""
    if wanted.wish.dtype is None:
        return
    for load in file.models:
        if load.kind == "pickle":
            continue  # it has the dtype that it was saved with
        if load.dtype in _FLOAT32:
            summary = f"states float32 ({load.dtype}); left alone, for it may be meant so"
            yield Verdict(load.line, Outcome.DIFFERS, summary, load.dtype, wanted.dtype, (), _WHY, True, load.end_line)
        elif load.dtype_how:
            yield same(load.line, f"states its dtype ({load.dtype_how}: {load.dtype})", load.dtype, wanted.dtype)
        elif _takes_checkpoint_dtype(load, wanted):
            yield same(
                load.line, "loads the checkpoint's own dtype, the default of this transformers", "auto", wanted.dtype
            )
        elif load.has_open_keywords:
            summary = "can't tell the dtype: keyword arguments are not written out"
            yield Verdict(
                load.line, Outcome.UNKNOWN, summary, wanted=wanted.dtype, is_advice=True, end_line=load.end_line
            )
        else:
            yield Verdict(
                load.line,
                Outcome.DIFFERS,
                "loads the model without a dtype, which means float32",
                observed="float32",
                wanted=wanted.dtype,
                reason=wanted.why("dtype", _WHY),
                is_advice=_is_for_the_author(file, load),
                end_line=load.end_line,
            )


def _is_for_the_author(file: FileFacts, load: Load) -> bool:
    """Not on the GPU for certain, or a pipeline for another task."""
    is_elsewhere = device_of_load(file, load) in (Device.CPU, Device.OTHER, Device.UNKNOWN)
    return is_elsewhere or (load.kind == "pipeline" and not load.is_causal_lm)


def _takes_checkpoint_dtype(load: Load, wanted: Wanted) -> bool:
    version = wanted.version("transformers")
    first = PIPELINE_CHECKPOINT_DTYPE if load.kind == "pipeline" else CHECKPOINT_DTYPE
    return version is not None and version >= first


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Add the keyword in the spelling of the transformers that is planned."""
    if wanted.wish.dtype is None:
        return
    for load in file.models:
        is_open = load.has_open_keywords or load.dtype_how or load.kind == "pickle"
        if is_open or _takes_checkpoint_dtype(load, wanted) or device_of_load(file, load) is Device.CPU:
            continue
        call = module.call_at(load.start, load.end)
        obstacle = _obstacle(file, load) or _obstacle_of_mps(module, wanted)
        value, extra = _value(file, module, load, wanted)
        text = f"{_keyword(wanted)}={value}"
        if obstacle or call is None or not value:
            because = obstacle or "torch is not imported at module level, and this transformers wants a torch dtype"
            by_hand = f"add `{_keyword(wanted)}=torch.{wanted.dtype}` to the load"
            yield Held(load.line, "state the dtype", because, by_hand, load.end_line)
            continue
        made = (*extra, *edits.add_keyword(module, call, text))
        is_remote = "trust_remote_code" in load.keywords
        yield Fix(
            load.line,
            made,
            "float32, by default",
            f"`{text}`",
            wanted.why("dtype", _WHY),
            load.end_line,
            Safety.UNSAFE if is_remote else Safety.CHECKED,
            _CHECK_REMOTE if is_remote else _CHECK,
        )


def _keyword(wanted: Wanted) -> str:
    version = wanted.version("transformers")
    return "dtype" if version is not None and version >= DTYPE_KEYWORD else "torch_dtype"


def _value(file: FileFacts, module: Module, load: Load, wanted: Wanted) -> tuple[str, tuple[Edit, ...]]:
    """The dtype's expression, and the import of torch that it needs; both empty where there is no way to write it."""
    if wanted.dtype == "auto":
        return '"auto"', ()
    if file.torch_name and file.torch_line < load.line:
        return f"{file.torch_name}.{wanted.dtype}", ()
    version = wanted.version("transformers")
    if load.kind == "pipeline" or (version is not None and version >= TEXT_DTYPE):
        return f'"{wanted.dtype}"', ()
    beside = _transformers_import(module)
    is_free = not any(getattr(node, "id", "") == "torch" for node in module.nodes)
    if beside is None or not is_free or beside.lineno >= load.line:
        return "", ()
    return f"torch.{wanted.dtype}", (edits.insert_lines(module.source, beside.lineno, ["import torch"]),)


def _transformers_import(module: Module) -> ast.stmt | None:
    """The first plain import of transformers at module level: torch is loaded there anyway."""
    for statement in module.tree.body:
        is_from = isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("transformers")
        is_plain = isinstance(statement, ast.Import) and any(n.name == "transformers" for n in statement.names)
        if (is_from or is_plain) and edits.stands_alone(module, statement):
            return statement
    return None


def _obstacle(file: FileFacts, load: Load) -> str:
    if not load.is_causal_lm:
        return "it is not a causal language model"
    own = next((name for name in _OWN_KEYWORDS if name in load.keywords), "")
    if own:
        return f"the model's own keyword `{own}` chooses the dtype"
    if device_of_load(file, load) not in (Device.CUDA, Device.AUTO):
        return "it is not certain that the model runs on the GPU"
    return ""


def _obstacle_of_mps(module: Module, wanted: Wanted) -> str:
    """bfloat16 needs macOS 14 on MPS (PyTorch, MPS backend); a script that names it may run there."""
    is_named = any(node.value == "mps" for node in module.every(ast.Constant))
    return "the script also runs on MPS, which may lack bfloat16" if is_named and wanted.dtype == "bfloat16" else ""


RULE = Rule(
    Explanation(
        code="SCR006",
        title="No dtype is stated",
        what="Whether the load states a dtype in any form: `dtype`, `torch_dtype`, `.half()`, quantisation.",
        why="transformers 4 loads float32 without one, also for a bfloat16 checkpoint: twice the memory, and twice the "
        "time per token, for decoding is bound by memory bandwidth (50 tokens of 7 billion bfloat16 weights: 155 ms at "
        "least on an H200). transformers 5 takes the checkpoint's dtype; nothing is changed there.",
        fix="The keyword is added: `dtype=` from transformers 4.56, `torch_dtype=` before. bfloat16 needs compute "
        "capability 8.0; float16 is used below. A float32 that is written out is left alone. With `trust_remote_code` "
        "the keyword is added with `--unsafe-fixes` only.",
        sources=("tested with transformers 4.36.2 and 5.24.0", "transformers#42805", "source of 4.46.3 and 4.56.0"),
    ),
    check,
    fix,
)
