"""What is known of an inference script's layout after reading it, without running it.

Offsets are positions in the decoded text without a byte order mark, counted in characters; lines count from 1. All
expressions are kept as the text that stands in the file.
"""

from __future__ import annotations

import enum

import msgspec


class Scope(enum.StrEnum):
    """How often the code at a place runs, as far as this one file tells."""

    MODULE = "module level"
    MAIN = "main guard"
    ONCE = "function called at start"
    CONSTRUCTOR = "class constructor"
    HOOK = "start hook"
    """A server's or worker's start event, a lifespan function."""
    LAZY = "lazy or cached"
    """At first use, and then kept."""
    HANDLER = "request handler"
    LOOP = "loop"
    PER_CALL = "function that generates"
    """Nothing in the file calls it, and it runs the model: its callers stand elsewhere and call it for each prompt."""
    UNKNOWN = "function that nothing in this file calls"

    @property
    def is_repeated(self) -> bool:
        """Whether code there runs again for each request, turn or call."""
        return self in (Scope.HANDLER, Scope.LOOP, Scope.PER_CALL)


class Device(enum.StrEnum):
    """Where an expression puts something."""

    CUDA = "cuda"
    """Also where it falls back to the CPU when there is no GPU."""
    CPU = "cpu"
    AUTO = "auto"
    """`device_map` spreads the model: GPUs first."""
    MODEL = "the model's device"
    OTHER = "another device"
    UNKNOWN = "unknown"
    NONE = "not placed"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the file. The span covers one expression or statement."""

    line: int
    end_line: int
    start: int
    end: int


class Placement(Site, frozen=True, kw_only=True):
    """One thing that puts a model on a device."""

    how: str
    """`device_map`, `device`, `to`, `cuda`, `quantised`."""
    device: Device
    text: str
    """The argument or call as written."""
    is_direct: bool = False
    """A `.to` or `.cuda` in the same block as the load, so that both always run."""
    is_plain: bool = False
    """It moves the model and does nothing else, as a cast would be."""


class Load(Site, frozen=True, kw_only=True):
    """A call that loads a model's weights, or a pipeline; the span is that call's."""

    kind: str
    """`model`, `pipeline`, or `pickle` for a whole model that torch.load brings."""
    loader: str
    """Dotted name after resolving imports: `transformers.AutoModelForCausalLM.from_pretrained`."""
    is_causal_lm: bool
    model: str
    """The expression for the model's name or path."""
    target: str
    """What it is bound to: `model`, `self.model`; empty when that can't be told."""
    scope: Scope
    function: str
    """Qualified name of the function around it; empty at module level."""
    because: str
    """Why that scope: `called from handler generate`."""
    placements: tuple[Placement, ...] = ()
    dtype: str = ""
    """The expression for the dtype; empty when none is given."""
    dtype_how: str = ""
    """`dtype`, `torch_dtype`, `half()`, `quantised`, `keyword arguments`; empty when none is given."""
    revision: str = ""
    has_open_keywords: bool = False
    """`**something` is passed, so that keywords can't be told."""
    keywords: tuple[str, ...] = ()
    wraps: str = ""
    """For a pipeline: the model object that it is built around, from this file or elsewhere."""
    is_conditional: bool = False
    """It stands below an `if`, so that another branch may do otherwise."""


class InputSite(Site, frozen=True, kw_only=True):
    """A tokenizer's result that goes into `generate`; the span is the tokenizer call's."""

    name: str
    device: Device
    text: str
    """The device expression as written; empty when it is not placed."""
    model: str
    """Name of the model whose `generate` takes it; empty when that can't be told."""
    is_movable: bool
    """One assignment from one tokenizer call with `return_tensors="pt"`, used by that `generate`."""


class CompileSite(Site, frozen=True, kw_only=True):
    """A use of torch.compile; the span is the call's."""

    form: str
    """`wrapper`, `forward`, `in place`, `generate` or `other`."""
    target: str
    is_dead: bool
    """Nothing ever runs what was compiled: only `generate` of the wrapper is used."""
    text: str


class CallSite(Site, frozen=True, kw_only=True):
    """A call or setting of note, with where it stands."""

    what: str
    """Dotted name or short description."""
    scope: Scope
    text: str = ""
    is_cleanup: bool = False
    """Below `except` or `finally`."""
    function: str = ""
    """Qualified name of the function around it; empty at module level."""


class GuardSite(CallSite, frozen=True, kw_only=True):
    """A use of `no_grad` or `inference_mode`; the span is the name's."""

    form: str = ""
    """`decorator` or `with`; empty for another use."""
    covers_run: bool = False
    """The model is run inside of it, in the same thread."""
    misses: str = ""
    """Why it does nothing for the model's run inside of it; empty when it may work."""
    obstacle: str = ""
    """Why `no_grad` must not become `inference_mode` there; empty when nothing speaks against it."""


class ThreadRun(msgspec.Struct, frozen=True):
    """A model's run that is handed to another thread."""

    line: int
    end_line: int
    what: str
    """What the thread runs, as written: `model.generate`."""
    is_guarded: bool
    """A guard stands in the function that the thread runs."""


class AllocatorSite(Site, frozen=True, kw_only=True):
    """The script sets the allocator's environment variable; the span is the statement's."""

    variable: str
    value: str
    """The value when it is a plain text; empty otherwise."""
    is_early: bool
    """At module level before the first import that may load torch."""
    function: str = ""
    """Qualified name of the function around it; empty at module level."""


class GenerateSite(Site, frozen=True, kw_only=True):
    """A model is run."""

    model: str
    form: str
    """`generate`, `call` (the forward pass) or `pipeline`."""
    scope: Scope


class Note(msgspec.Struct, frozen=True):
    """A line that decides something for the whole file."""

    line: int
    what: str


class Ignore(msgspec.Struct, frozen=True):
    """`# remediate: ignore[SCR003]`; no codes means all of them."""

    line: int
    codes: tuple[str, ...]
    reason: str = ""
    """What stands behind it."""


class CellLines(msgspec.Struct, frozen=True):
    """A notebook's code cell within the script that the cells make together.

    Attributes:
        number: among all cells of the notebook, from 1.
        first: the script's line that the cell begins with.
        lines: for each of its lines, the line of the file that it stands in; 0 for an empty cell.
    """

    number: int
    first: int
    lines: tuple[int, ...]


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One script."""

    path: str
    """Absolute."""
    sha256: str
    size: int
    """Bytes."""
    content: bytes | None = None
    """What it holds, so that it can be patched from recorded facts elsewhere. None where it seems to hold a secret or
    can't be understood; it is then read again from `path`."""
    encoding: str = ""
    newline: str = ""
    """`LF`, `CRLF`, `CR` or `mixed`."""
    problem: str = ""
    """Why it can't be read or parsed; everything below is empty then."""
    problem_line: int = 0
    torch_name: str = ""
    """Name under which torch is imported unconditionally at module level; empty when it is not."""
    torch_line: int = 0
    is_inference: bool = False
    """A model is loaded and run, or a pipeline is made, and nothing is trained."""
    benchmark: str = ""
    """Why it is taken for a benchmark; empty otherwise."""
    training: tuple[Note, ...] = ()
    multiprocess: tuple[Note, ...] = ()
    """Signs of forked or spawned processes and of servers with workers."""
    placed_elsewhere: tuple[Note, ...] = ()
    """Things that may place a model in ways that are not followed here."""
    environment: tuple[Note, ...] = ()
    """CUDA environment variables or the current device set by the script itself."""
    loads: tuple[Load, ...] = ()
    tokenizers: tuple[CallSite, ...] = ()
    inputs: tuple[InputSite, ...] = ()
    compiles: tuple[CompileSite, ...] = ()
    cuda_inits: tuple[CallSite, ...] = ()
    allocator: tuple[AllocatorSite, ...] = ()
    guards: tuple[GuardSite, ...] = ()
    threads: tuple[ThreadRun, ...] = ()
    generates: tuple[GenerateSite, ...] = ()
    cache_clears: tuple[CallSite, ...] = ()
    cudnn_benchmark: tuple[CallSite, ...] = ()
    handlers: tuple[Note, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    cells: tuple[CellLines, ...] = ()
    """Of a notebook. All lines in these facts count through its code cells; `place` says them as a person counts."""

    def place(self, line: int) -> str:
        """A line of these facts as people name it: `12`; in a notebook `cell 3:2`."""
        cell = self.cell_of(line)
        return f"cell {cell.number}:{line - cell.first + 1}" if cell else str(line)

    def file_line(self, line: int) -> int:
        """The line of the file that a line of these facts stands in; of a notebook, that of its JSON."""
        cell = self.cell_of(line)
        if cell is None:
            return line
        return cell.lines[min(line - cell.first, len(cell.lines) - 1)] or 1

    def cell_of(self, line: int) -> CellLines | None:
        """A notebook's cell that holds a line; None in a plain script."""
        return next((cell for cell in reversed(self.cells) if cell.first <= line), None)

    @property
    def models(self) -> tuple[Load, ...]:
        """The loads that bring weights: not a pipeline around a model that is loaded elsewhere in the file."""
        return tuple(load for load in self.loads if not load.wraps)


class ScriptFacts(msgspec.Struct, frozen=True):
    """All scripts that were looked at, in order of path."""

    files: tuple[FileFacts, ...] = ()
