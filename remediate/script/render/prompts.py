"""The prompts that a script holds: texts that reach the tokenizer, a pipeline or a chat template."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from remediate.script.facts import FileFacts
from remediate.script.reading.module import Module, keyword
from remediate.script.reading.tracks import Tracks
from remediate.script.render.literals import Literal, NoLiteralError, arguments_for, literal, parameters

MAX_PROMPTS = 50
_CHAT = "apply_chat_template"


class Prompts(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        texts: in the order of the file, each once.
        is_chat: the tokenizer's chat template is used.
        system: the chat's first message, where it has one.
        left_out: what could not be told.
    """

    texts: tuple[str, ...] = ()
    is_chat: bool = False
    system: str = ""
    left_out: tuple[str, ...] = ()


class _Found(msgspec.Struct):
    texts: list[str] = []
    system: str = ""
    unclear: list[str] = []


def find_prompts(file: FileFacts, module: Module) -> Prompts:
    """Follow what is tokenized back to texts in the file."""
    found = _Found()
    is_chat = False
    for call in _takers(file, module):
        is_template = isinstance(call.func, ast.Attribute) and call.func.attr == _CHAT
        is_chat = is_chat or is_template
        argument = call.args[0] if call.args else keyword(call, "conversation" if is_template else "text")
        if argument is not None:
            _follow(module, argument, found)
    is_chat = is_chat or bool(found.system)
    texts = tuple(dict.fromkeys(text for text in found.texts if text))
    unclear = () if texts else tuple(found.unclear[:1])
    return Prompts(texts[:MAX_PROMPTS], is_chat, found.system, unclear)


def _takers(file: FileFacts, module: Module) -> Iterator[ast.Call]:
    """The calls whose first argument is a prompt, in the order of the text.

    Where no tokenizer's result is seen to go into a run of the model (through a thread's arguments, or functions), all
    uses of a tokenizer.
    """
    tracks = None if file.inputs else Tracks(module)
    spans = {(site.start, site.end) for site in (*file.inputs, *(s for s in file.generates if s.form == "pipeline"))}
    for call in module.calls:
        is_template = isinstance(call.func, ast.Attribute) and call.func.attr == _CHAT
        if is_template or module.span(call) in spans or (tracks is not None and tracks.is_encoding(call)):
            yield call


def _follow(module: Module, node: ast.expr, found: _Found) -> None:
    try:
        _take(literal(module, node), found)
    except NoLiteralError:
        sources = _sources(module, node)
        if not sources:
            found.unclear.append(f"line {node.lineno}: the prompt, `{module.text(node)}`")
        for source in sources:
            try:
                _take(literal(module, source), found)
            except NoLiteralError:
                found.unclear.append(f"line {source.lineno}: the prompt, `{module.text(source)}`")


def _sources(module: Module, node: ast.expr) -> list[ast.expr]:
    """What a name may stand for: what callers pass for a parameter, or the list that a loop goes through."""
    if not isinstance(node, ast.Name):
        return []
    function = module.function_of(node)
    if function is not None and node.id in parameters(function):
        passed = arguments_for(module, function, node.id)
        return [source for given in passed for source in (_sources(module, given) or [given])]
    loops: list[ast.For | ast.comprehension] = [*module.every(ast.For), *module.every(ast.comprehension)]
    for loop in loops:
        if isinstance(loop.target, ast.Name) and loop.target.id == node.id:
            return [loop.iter]
    return []


def _take(value: Literal, found: _Found) -> None:
    """A text, a list of texts, or the messages of a chat."""
    if isinstance(value, str):
        found.texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _take(item, found)
    elif isinstance(value, dict) and isinstance(value.get("content"), str):
        content = str(value["content"])
        if value.get("role") == "system":
            found.system = found.system or content
        elif value.get("role") == "user":
            found.texts.append(content)
