"""Runs scripts with the CPU in the place of every GPU that they name. Started by another interpreter, with torch.

    python on_cpu.py make FOLDER            a tiny LLaMA and its tokenizer, random weights, bfloat16
    python on_cpu.py run SCRIPT...          one JSON line for each: what it printed, or its error

Only the names of devices are replaced (`cuda`, `cuda:0`, `auto` and `device_map`): where tensors end up is therefore
not tested here; that the patched script runs, and what it answers, is.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

WORDS = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(61))]


def make(folder: str) -> None:
    """Save a model and a tokenizer that `from_pretrained` reads."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    fast.pad_token = fast.eos_token
    fast.save_pretrained(folder)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def on_cpu(value: Any) -> Any:
    """A device argument with the CPU in it, where it names a GPU."""
    if isinstance(value, dict):
        return {key: on_cpu(item) for key, item in value.items()}
    is_gpu = str(value).split(":")[0] in ("cuda", "auto") or (isinstance(value, int) and not isinstance(value, bool))
    return "cpu" if is_gpu else value


def replace_devices() -> None:
    """Let every way of naming a GPU lead to the CPU."""
    import torch
    import transformers
    from transformers.tokenization_utils_base import BatchEncoding

    for owner in (torch.Tensor, torch.nn.Module, BatchEncoding):
        _wrap(owner, "to")
        if hasattr(owner, "cuda"):
            owner.cuda = lambda self, *args, **kwargs: self
    for loader in (transformers.AutoModelForCausalLM, transformers.LlamaForCausalLM):
        _wrap(loader, "from_pretrained")
    _wrap(transformers, "pipeline")


def _wrap(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    def replaced(*args: Any, **kwargs: Any) -> Any:
        given = {key: on_cpu(value) if key in ("device", "device_map") else value for key, value in kwargs.items()}
        moved = [on_cpu(value) if isinstance(value, str) and name == "to" else value for value in args]
        return original(*moved, **given)

    setattr(owner, name, replaced)


def run(paths: list[str]) -> None:
    """Run each script as `__main__` and print its standard output as one JSON line."""
    replace_devices()
    kept = dict(os.environ)
    for path in paths:
        out = io.StringIO()
        error = ""
        try:
            with contextlib.redirect_stdout(out):
                runpy.run_path(path, run_name="__main__")
        except Exception:  # noqa: BLE001 - it is told, whatever it is
            error = traceback.format_exc()
        os.environ.clear()
        os.environ.update(kept)
        print(json.dumps({"path": Path(path).name, "out": out.getvalue(), "error": error}))


if __name__ == "__main__":
    make(sys.argv[2]) if sys.argv[1] == "make" else run(sys.argv[2:])
