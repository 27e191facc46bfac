"""SCR004: nothing puts the model on the GPU."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import Device, FileFacts, Load, Scope
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted, describe, device_of_load, same

PIPELINE_PICKS_GPU = (4, 56)
"""transformers from which `pipeline()` without a device takes GPU 0; 4.46.3 still takes the CPU (pipelines/base.py)."""

_WHY = "transformers leaves a model on the CPU unless it is told otherwise"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge where each load's model ends up."""
    if wanted.wish.device is None:
        return
    for load in file.models:
        device = device_of_load(file, load)
        if device is Device.NONE and _picks_gpu(load, wanted):
            yield same(load.line, "the pipeline takes the first GPU by itself", "GPU 0", "cuda")
        elif device is Device.NONE:
            yield Verdict(
                load.line,
                Outcome.DIFFERS,
                "loads the model on the CPU: nothing places it",
                observed="CPU",
                wanted="cuda",
                reason=wanted.why("device", _WHY),
                is_advice=_is_one_of_many(file, load),
                end_line=load.end_line,
            )
        elif device in (Device.CUDA, Device.AUTO):
            yield same(load.line, f"places the model on the GPU ({load.placements[-1].text})", str(device), "cuda")
        else:
            yield _unclear(file, load, device)


def _is_one_of_many(file: FileFacts, load: Load) -> bool:
    """A branch among others that load other models, or a pipeline for another task: the author's to decide."""
    return (load.is_conditional and len(file.models) > 1) or (load.kind == "pipeline" and not load.is_causal_lm)


def _unclear(file: FileFacts, load: Load, device: Device) -> Verdict:
    if device in (Device.CPU, Device.OTHER):
        text = load.placements[-1].text
        summary = f"places the model on another device on purpose ({text}); left alone"
        return Verdict(load.line, Outcome.DIFFERS, summary, text, "cuda", is_advice=True, end_line=load.end_line)
    where = describe(file.placed_elsewhere) or "its keyword arguments are not written out"
    summary = f"can't tell where the model is placed ({where})"
    return Verdict(load.line, Outcome.UNKNOWN, summary, wanted="cuda", is_advice=True, end_line=load.end_line)


def _picks_gpu(load: Load, wanted: Wanted) -> bool:
    version = wanted.version("transformers")
    return load.kind == "pipeline" and version is not None and version >= PIPELINE_PICKS_GPU


def needs_device_map(file: FileFacts, wanted: Wanted) -> bool:
    """Whether the script has a device map, or would be given one where accelerate is there."""
    has_one = any(placement.how == "device_map" for load in file.loads for placement in load.placements)
    is_missing = (
        wanted.wish.device is not None
        and file.is_inference
        and any(load.kind == "model" and device_of_load(file, load) is Device.NONE for load in file.models)
    )
    return has_one or (is_missing and not obstacle_to_moving(file))


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Add `device_map="cuda"`, or `.to("cuda")` where accelerate is not there."""
    if wanted.wish.device is None:
        return
    for load in file.models:
        if device_of_load(file, load) is not Device.NONE or _picks_gpu(load, wanted):
            continue
        obstacle = obstacle_to_moving(file)
        call = module.call_at(load.start, load.end)
        text = _addition(load, wanted)
        has_pipeline = any(other.wraps for other in file.loads)
        if not obstacle and has_pipeline and text.startswith("."):
            obstacle = "a pipeline is built around the model and accelerate is not there"
        if obstacle or call is None:
            by_hand = f"add `{text}` to the load and move the inputs to `{load.target or 'model'}.device`"
            yield Held(load.line, "put the model on the GPU", obstacle, by_hand, load.end_line)
            continue
        made = edits.append_call(module, call, text) if text.startswith(".") else edits.add_keyword(module, call, text)
        yield Fix(load.line, made, "on the CPU", f"`{text}`", wanted.why("device", _WHY), load.end_line)


def _addition(load: Load, wanted: Wanted) -> str:
    if load.kind == "pipeline":
        return 'device="cuda"'
    is_plain = "low_cpu_mem_usage" not in load.keywords
    return 'device_map="cuda"' if wanted.has("accelerate") and is_plain else '.to("cuda")'


def obstacle_to_moving(file: FileFacts) -> str:
    """Why the model is not moved; empty when it can be, with everything that goes into it."""
    if len(file.models) != 1:
        return f"the script loads {len(file.models)} models"
    load = file.models[0]
    if not load.is_causal_lm:
        return "it is not a causal language model, and its inputs are not followed"
    if load.is_conditional and load.scope is not Scope.LAZY:
        return "the load stands below a condition"
    return "" if load.kind == "pipeline" else _obstacle_of_inputs(file)


def _obstacle_of_inputs(file: FileFacts) -> str:
    """Why the inputs could not follow the model; empty when they are there, or are moved by SCR003."""
    if any(run.form == "call" for run in file.generates):
        return "the model is also called directly, and those inputs are not followed"
    if sum(run.form == "generate" for run in file.generates) > len(file.inputs):
        return "not all inputs of `generate` can be followed to a tokenizer"
    follows = (Device.CUDA, Device.MODEL, Device.AUTO)
    stuck = [
        site
        for site in file.inputs
        if site.device not in follows and not (site.device is Device.NONE and site.is_movable and site.model)
    ]
    return f"the inputs `{stuck[0].name or 'of generate'}` would stay behind" if stuck else ""


RULE = Rule(
    Explanation(
        code="SCR004",
        title="The model is not placed on the GPU",
        what="Whether anything puts the model on the GPU: `device_map`, `device`, `.to`, `.cuda`, quantisation, a "
        "default device. What can't be followed (keyword dictionaries, launchers, ranks) counts as unknown, not "
        "as missing.",
        why="`from_pretrained` loads to the CPU. Decoding there is slower by orders of magnitude, and inputs that were "
        "moved to the GPU make the first request fail.",
        fix='`device_map="cuda"` is added to the load, or `.to("cuda")` where accelerate is neither installed nor '
        "planned (a device map raises without it). Inputs follow (SCR003); where they can't, nothing is changed.",
        sources=("transformers 4.36.2 and 5.24.0, tested with and without accelerate",),
    ),
    check,
    fix,
)
