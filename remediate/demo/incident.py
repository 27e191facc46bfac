"""The files of the incident's sandbox, as its report gives them before the repair."""

from __future__ import annotations

SCRIPT_NAME = "inference.py"
SCRIPT = """\
# inference script (simplified)
import torch
from transformers import LlamaForCausalLM, LlamaTokenizer

model = LlamaForCausalLM.from_pretrained("meta-llama/7B")
tokenizer = LlamaTokenizer.from_pretrained("meta-llama/7B")
model = torch.compile(model)  # eager fallback after a few hours

def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    output = model.generate(**inputs, max_new_tokens=50)
    return tokenizer.decode(output[0])
"""

REQUIREMENTS_NAME = "requirements.txt"
REQUIREMENTS = """\
# requirements.txt
torch==2.2.0
transformers==4.38.0
"""

BOARD_NAME = "board.json"
SHIPPED_BOARD = "a100-sxm4-40gb-incident"
ENVIRONMENT_NAME = ".venv"
WHEELHOUSE_NAME = "wheelhouse"

PROFILE_NAME = "profile.toml"
PROFILE = """\
# The incident's profile; the sandbox's stand-in wheels fit every Python, the real ones only 3.10 and 3.11.
schema_version = 1
name = "incident-demo"
title = "incident-a100 on stand-in wheels"
extends = "incident-a100"
python = ">=3.11"

[install]
lock = false  # the lock of incident-a100 has the hashes of the real wheels
"""

CONFIG_NAME = "remediate.toml"
CONFIG = f"""\
# Wheels in a folder stand in for the package index, and a simulated board for the GPU.
profile = "{PROFILE_NAME}"
board = "{BOARD_NAME}"
find_links = "{WHEELHOUSE_NAME}"
no_index = true
"""
