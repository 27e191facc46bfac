"""A new inference script for a sandbox: its profile's wishes, and the model and prompts of the script that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from remediate import api
from remediate.errors import UsageError
from remediate.planner import announce, pinned_versions

if TYPE_CHECKING:
    from remediate.script.facts import FileFacts
    from remediate.script.render.recipe import Recipe

SUBJECT = "script"


def make_inference_script(
    folder: str | Path = ".",
    *,
    profile: str | None = None,
    script: str | None = None,
    model: str | None = None,
    python: str | None = None,
    board: str | None = None,
) -> bytes:
    """The text of a complete script, as UTF-8.

    Args:
        folder: the sandbox.
        profile: name or path; None takes what `plan` would take.
        script: the script to take model, prompts and arguments from; None takes the folder's only one.
        model: name or path of a model, in place of the script's.
        python: target interpreter, as for `plan`.
        board: simulated board, as for `plan`.

    Raises:
        UsageError: no script was found and no model named, there are several, or the script's model can't be told.
        ObserveError, ProfileError: as `api.observe` and `api.plan`.
    """
    from remediate.script.render.recipe import Recipe
    from remediate.script.render.template import render_inference
    from remediate.script.rules.base import Wanted

    facts = api.observe(folder, python=python, scripts=(script,) if script else (), board=board)
    resolved, _ = api.choose_profile(facts, profile, api.config_of(facts.request))
    versions = {**pinned_versions(resolved.profile), **announce(facts, resolved.profile)}
    wanted = Wanted(resolved.profile.script, versions)
    found = [file for file in facts.sections[SUBJECT].files if script or file.is_inference]
    is_from_nothing = not found and model is not None
    recipe = Recipe(model or "") if is_from_nothing else _recipe(_only(found, facts.request.folder), model)
    return render_inference(recipe, wanted, resolved.profile.name)


def _only(found: list[FileFacts], folder: str) -> FileFacts:
    if not found:
        raise UsageError(
            f"there is no inference script in `{folder}`",
            hint="name one with `--script FILE`, or a model with `--model NAME`",
        )
    if len(found) > 1:
        raise UsageError(
            f"there are {len(found)} inference scripts in `{folder}`",
            cause=", ".join(Path(file.path).name for file in found),
            hint="say with `--script FILE` which one's model and prompts to take",
        )
    return found[0]


def _recipe(file: FileFacts, model: str | None) -> Recipe:
    from remediate.script.observe import read_bytes
    from remediate.script.reading.layout import read_layout
    from remediate.script.render.recipe import RecipeError, read_recipe

    raw = file.content if file.content is not None else read_bytes(file.path)
    facts, module = read_layout(file.path, raw or b"")
    try:
        if module is None:
            raise RecipeError(facts.problem)
        return read_recipe(facts, module, model)
    except RecipeError as error:
        raise UsageError(
            f"no new script can be made from `{file.path}`",
            cause=str(error),
            hint="name the model with `--model NAME`" if model is None else "name another script with `--script FILE`",
        ) from error
