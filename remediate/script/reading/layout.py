"""Bytes of a script to facts about its layout. Pure; the script is parsed, never run or imported."""

from __future__ import annotations

import ast
import hashlib
import io
import re

from remediate.script.discover import MAX_SCRIPT_BYTES, is_notebook, max_bytes
from remediate.script.facts import FileFacts, Ignore
from remediate.script.reading import guards, surroundings
from remediate.script.reading.loads import LoadReader
from remediate.script.reading.module import Module, parse
from remediate.script.reading.reach import Reach
from remediate.script.reading.tracks import Tracks
from remediate.script.source import Source, SourceError, decode

MAX_PLACES = 400
"""Loads, runs, guards and clearings in one file; the real script with most of them has some dozens."""

_IGNORE = re.compile(r"#\s*remediate:\s*ignore(?:\[([^\]]*)\])?([^#\r\n]*)")


def read_layout(path: str, raw: bytes) -> tuple[FileFacts, Module | None]:
    """Facts about a script, and its tree for a rule that has to edit it.

    What can't be decoded or parsed becomes `FileFacts.problem`, with None for the tree; it is never an exception.
    """
    digest = hashlib.sha256(raw).hexdigest()
    limit = max_bytes(path)
    if len(raw) > limit:
        problem = f"it is larger than {limit // 1024} KiB"
        return FileFacts(path=path, sha256=digest, size=len(raw), problem=problem), None
    try:
        module = parse(_decode(path, raw))
        return _describe(path, digest, module), module
    except SourceError as error:
        found = FileFacts(path=path, sha256=digest, size=len(raw), problem=error.problem, problem_line=error.line)
        return found, None
    except RecursionError:
        return FileFacts(path=path, sha256=digest, size=len(raw), problem="it is nested too deeply to be read"), None


def _decode(path: str, raw: bytes) -> Source:
    if not is_notebook(path):
        return decode(raw)
    from remediate.script.notebook.source import decode_notebook

    source = decode_notebook(raw)
    if len(source.text) > MAX_SCRIPT_BYTES:
        raise SourceError(f"its code is larger than {MAX_SCRIPT_BYTES // 1024} KiB")
    return source


def _places(module: Module) -> int:
    """How many expressions there are that each cost a look at the rest of the file."""
    names = ("no_grad", "inference_mode", "empty_cache", "collect", "generate", "Thread", "pipeline")
    attributes = sum(node.attr in names for node in module.every(ast.Attribute))
    variables = sum(node.value in surroundings.ALLOCATOR_VARIABLES for node in module.every(ast.Constant))
    return attributes + variables + sum(node.id in names for node in module.every(ast.Name))


def _describe(path: str, digest: str, module: Module) -> FileFacts:
    tracks = Tracks(module)
    if len(tracks.loads) + _places(module) > MAX_PLACES:
        problem = f"it has more than {MAX_PLACES} places that matter, which nobody wrote by hand"
        return FileFacts(path=path, sha256=digest, size=len(module.source.raw), problem=problem)
    reach = Reach(module)
    reader = LoadReader(module, tracks, reach)
    loads = reader.read()
    generates = reader.generates()
    training = surroundings.training_notes(module)
    torch_name, torch_line = surroundings.torch_import(module)
    elsewhere = (
        *surroundings.placing_notes(module),
        *surroundings.pipeline_placements(module, tracks, loads),
        *reader.unattributed,
    )
    source = module.source
    return FileFacts(
        path=path,
        sha256=digest,
        size=len(source.raw),
        encoding=f"{source.encoding} with byte order mark" if source.bom else source.encoding,
        newline=source.newline_style,
        torch_name=torch_name,
        torch_line=torch_line,
        is_inference=bool(loads and not training and (generates or any(load.kind == "pipeline" for load in loads))),
        benchmark=surroundings.benchmark_sign(module, path),
        training=training,
        multiprocess=surroundings.process_notes(module),
        placed_elsewhere=tuple(sorted(elsewhere, key=lambda note: note.line)),
        environment=surroundings.environment_notes(module),
        loads=loads,
        tokenizers=surroundings.tokenizer_sites(module, tracks, reach),
        inputs=reader.inputs(),
        compiles=surroundings.compile_sites(module, tracks),
        allocator=surroundings.allocator_sites(module),
        generates=generates,
        cudnn_benchmark=surroundings.benchmark_sites(module, reach),
        handlers=reach.handlers,
        ignores=_ignores(source.text),
        cells=source.cells,
        cuda_inits=surroundings.calls_of(module, reach, surroundings.INITS),
        cache_clears=surroundings.cache_clears(module, reach),
        guards=guards.guard_sites(module, tracks, reach),
        threads=guards.thread_runs(module, tracks),
    )


def _ignores(text: str) -> tuple[Ignore, ...]:
    """The `# remediate: ignore[CODE, ...]` comments; the same words inside of a string are none."""
    if not _IGNORE.search(text):
        return ()
    import tokenize

    found = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
        if match:
            codes = tuple(code.strip() for code in (match[1] or "").split(",") if code.strip())
            found.append(Ignore(token.start[0], codes, match[2].strip()))
    return tuple(found)
