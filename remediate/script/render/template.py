"""A recipe and a profile's wishes to a complete script."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from remediate.rendering import render_template
from remediate.script.render.literals import Literal
from remediate.script.render.recipe import Recipe
from remediate.script.rules.base import Wanted

DTYPE_KEYWORD_SINCE = (4, 56)
"""First version of transformers whose `from_pretrained` has `dtype`; `torch_dtype` works in 4 and in 5."""

DEFAULT_PROMPT = "Write one sentence about the sea."
DEFAULT_ARGUMENTS: Mapping[str, Literal] = {"max_new_tokens": 256}
"""Where a script names no length: `generate` would stop after 20 tokens."""

_ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
"""Read by every version of torch so far; newer ones have a shorter name beside it."""


def render_inference(recipe: Recipe, wanted: Wanted, profile: str) -> bytes:
    """A script that loads the recipe's model as the profile wants it, and answers the recipe's prompts."""
    content = render_template(
        "inference.py.j2",
        profile=profile,
        versions=_versions(wanted),
        left_out=recipe.left_out,
        allocator=wanted.wish.allocator,
        allocator_variable=_ALLOCATOR,
        model=recipe.model,
        revision=recipe.revision,
        tokenizer=recipe.tokenizer,
        trusts_remote_code=recipe.trusts_remote_code,
        is_chat=recipe.is_chat,
        system=recipe.system,
        prompts=list(recipe.prompts) or [DEFAULT_PROMPT],
        arguments=_with_a_length(recipe.arguments),
        dtype=wanted.dtype or "auto",
        dtype_keyword=_dtype_keyword(wanted),
    )
    ast.parse(content)
    return content


def _with_a_length(arguments: Mapping[str, Literal]) -> dict[str, Literal]:
    has_length = "max_new_tokens" in arguments or "max_length" in arguments
    return {**({} if has_length else DEFAULT_ARGUMENTS), **arguments}


def _dtype_keyword(wanted: Wanted) -> str:
    version = wanted.version("transformers")
    return "dtype" if version is not None and version >= DTYPE_KEYWORD_SINCE else "torch_dtype"


def _versions(wanted: Wanted) -> str:
    named = ((name, wanted.announced.get(f"distribution:{name}")) for name in ("torch", "transformers"))
    return ", ".join(f"{name} {version}" for name, version in named if version)
