"""SCR003: the model and its inputs are on different devices."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import Device, FileFacts, InputSite
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted, device_of_model, same

_ON_GPU = (Device.CUDA, Device.AUTO)
_WHY = "torch refuses to compute with tensors on two devices"


def is_apart(file: FileFacts, site: InputSite) -> bool:
    """Whether the inputs are known to be elsewhere than the model that takes them."""
    model = device_of_model(file, site.model)
    if model in _ON_GPU:
        return site.device in (Device.CPU, Device.NONE)
    return model in (Device.NONE, Device.CPU) and site.device is Device.CUDA


def leaves_inputs_behind(file: FileFacts) -> bool:
    """Whether any inputs are known to be elsewhere than their model."""
    return any(is_apart(file, site) for site in file.inputs)


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Compare each tokenizer result's device with its model's."""
    if wanted.wish.device is None:
        return
    for site in file.inputs:
        model = device_of_model(file, site.model)
        if is_apart(file, site):
            yield Verdict(
                site.line,
                Outcome.DIFFERS,
                f"inputs on {_place(site.device)}, model on {_place(model)}",
                observed=_place(site.device),
                wanted=_place(model),
                reason=wanted.why("device", _WHY),
                end_line=site.end_line,
            )
        elif Device.UNKNOWN not in (model, site.device):
            yield same(site.line, "inputs and model are on the same device")


def _place(device: Device) -> str:
    return {Device.NONE: "the CPU", Device.CPU: "the CPU", Device.CUDA: "the GPU", Device.AUTO: "the GPU"}.get(
        device, str(device)
    )


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Send unplaced inputs to the model's device. A model on the CPU is SCR004's to move."""
    if wanted.wish.device is None:
        return
    for site in file.inputs:
        if not is_apart(file, site) or device_of_model(file, site.model) not in _ON_GPU:
            continue
        call = module.call_at(site.start, site.end)
        if call is None or not site.is_movable or not site.model or site.device is not Device.NONE:
            yield Held(
                site.line,
                "move the inputs to the model's device",
                "they are not one tokenizer result that goes straight into `generate`",
                f"append `.to({site.model or 'model'}.device)` where the inputs are made",
                site.end_line,
            )
            continue
        yield Fix(
            site.line,
            edits.append_call(module, call, f".to({site.model}.device)"),
            f"`{site.name}` on the CPU",
            f"`{site.name}` on the device of `{site.model}`",
            wanted.why("device", _WHY),
            site.end_line,
        )


RULE = Rule(
    Explanation(
        code="SCR003",
        title="Inputs and model are on different devices",
        what="The device of each tokenizer result that goes into `generate`, and of the model that takes it.",
        why='The first request fails with "Expected all tensors to be on the same device", or, with a model spread by '
        "accelerate, every call copies its inputs and warns.",
        fix="`.to(model.device)` is appended to the tokenizer call where that result goes straight into `generate`. "
        "Where the model is the one that is left on the CPU, SCR004 moves it.",
        sources=("transformers 4.36.2 and 5.24.0, generation warning on input_ids",),
    ),
    check,
    fix,
)
