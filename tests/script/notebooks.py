"""Small notebooks for tests, as Jupyter writes them."""

from __future__ import annotations

import json
from typing import Any

LOAD = (
    "tok = AutoTokenizer.from_pretrained('m')\n"
    'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda", torch_dtype=torch.bfloat16)'
)
IMPORTS = "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer"
ASK = "inputs = tok('hi', return_tensors='pt').to('cuda')\nout = model.generate(**inputs)\nprint(tok.decode(out[0]))"
DEAD_COMPILE = "model = torch.compile(model)"


def code(source: str, *, as_list: bool = True) -> dict[str, Any]:
    """A code cell with an output."""
    return {
        "cell_type": "code",
        "execution_count": 3,
        "metadata": {"z": 1, "a": None},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["Grüße \\u00fc\n"]}],
        "source": source.splitlines(keepends=True) if as_list else source,
    }


def markdown(source: str) -> dict[str, Any]:
    """A text cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": [source]}


def notebook(*cells: dict[str, Any], **other: Any) -> bytes:
    """A notebook's bytes, with the indentation and last newline that Jupyter gives them."""
    content = {"cells": list(cells), "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    return (json.dumps({**content, "nbformat_minor": 5, **other}, indent=1, ensure_ascii=False) + "\n").encode()
