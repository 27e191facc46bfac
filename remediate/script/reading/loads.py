"""The loads of a script with their placement and dtype, the inputs that go into them, and where they are run."""

from __future__ import annotations

import ast
import re

from remediate.script.facts import Device, GenerateSite, InputSite, Load, Note, Placement, Scope
from remediate.script.reading.module import Module, constant, keyword
from remediate.script.reading.reach import Reach, Where
from remediate.script.reading.tracks import Tracks, loader_class, wrapped_model
from remediate.script.reading.values import assigned_values, device_of

_QUANTISED = ("load_in_8bit", "load_in_4bit", "quantization_config", "gguf_file")
_QUANTISED_NAME = re.compile(r"gptq|awq|gguf|bnb|[-_](4|8)bit|int[48]", re.IGNORECASE)
_MAX_CALLERS = 4
"""Calls followed from a load to the loop over the models that it loads."""

_CASTS = {"half": "half()", "bfloat16": "bfloat16()", "float": "float()"}
_CAUSAL = re.compile(r"\w*(ForCausalLM|LMHeadModel)")
_GENERATING = ("generate", "chat", "stream_chat")


class LoadReader:
    """Reads the loads of one module."""

    def __init__(self, module: Module, tracks: Tracks, reach: Reach) -> None:
        self._module = module
        self._tracks = tracks
        self._reach = reach
        self._models = frozenset(tracks.models)
        self._moves: dict[ast.Call, list[Placement]] = {}
        self._casts: dict[ast.Call, str] = {}
        self._input_moves: dict[ast.Call, tuple[Device, str]] = {}
        self.unattributed: list[Note] = []
        for call in module.calls:
            self._read_move(call)

    def _read_move(self, call: ast.Call) -> None:
        """Attribute a `.to(...)`, `.cuda()` or `.half()` to a model, an input, or nothing that is known."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda", "cpu", *_CASTS):
            return
        loads = self._tracks.loads_of(call.func.value)
        if call.func.attr in _CASTS:
            self._casts.update(dict.fromkeys(loads, _CASTS[call.func.attr]))
            return
        device, argument, is_plain = self._move_of(call)
        if call.func.attr == "to" and any("dtype" in part or _is_dtype(part) for part in self._parts(call)):
            self._casts.update(dict.fromkeys(loads, self._module.text(call)))
        if device is Device.NONE:
            return
        for load in loads:
            self._moves.setdefault(load, []).append(self._placement(call, load, device, argument, is_plain=is_plain))
        if loads:
            return
        encoding = self._tracks.encoding_of(call.func.value)
        if encoding is not None:
            self._input_moves.setdefault(encoding, (device, argument))
        elif not self._is_tensor(call.func.value):
            self.unattributed.append(Note(call.lineno, f"`{self._module.text(call)}`"))

    def _move_of(self, call: ast.Call) -> tuple[Device, str, bool]:
        """Device, its text, and whether the call moves and does nothing else."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method == "cpu":
            return Device.CPU, "cpu", False
        values = [*call.args, *(argument.value for argument in call.keywords if argument.arg == "device")]
        devices = [value for value in values if not _is_dtype(self._module.text(value))]
        is_plain = len(values) <= 1 and len(call.args) + len(call.keywords) <= 1
        if method == "cuda":
            return Device.CUDA, self._module.text(values[0]) if values else "cuda", is_plain
        if not devices:
            return Device.NONE, "", False
        return device_of(self._module, devices[0], self._models), self._module.text(devices[0]), is_plain

    def _parts(self, call: ast.Call) -> list[str]:
        return [*map(self._module.text, call.args), *(argument.arg or "" for argument in call.keywords)]

    def _placement(self, call: ast.Call, load: ast.Call, device: Device, text: str, *, is_plain: bool) -> Placement:
        block = self._module.block_of(self._module.statement_of(call))
        is_direct = self._module.statement_of(load) in (*block, *self._block_around_test(block))
        start, end = self._module.span(call)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        line, last = call.lineno, call.end_lineno or call.lineno
        return Placement(
            line=line,
            end_line=last,
            start=start,
            end=end,
            how=method,
            device=device,
            text=text,
            is_direct=is_direct,
            is_plain=is_plain,
        )

    def _block_around_test(self, block: list[ast.stmt]) -> list[ast.stmt]:
        """The block around `if torch.cuda.is_available():`, which decides nothing that a device map does not."""
        parent = self._module.parents.get(block[0])
        is_test = isinstance(parent, ast.If) and block[0] in parent.body and isinstance(parent.test, ast.Call)
        if not (is_test and isinstance(parent, ast.If) and isinstance(parent.test, ast.Call)):
            return []
        is_cuda = self._module.resolve(parent.test.func) == "torch.cuda.is_available"
        return self._module.block_of(parent) if is_cuda else []

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor made by torch itself, which no rule is about."""
        root = self._tracks.root_of(node)
        if isinstance(root, ast.Subscript | ast.Call):
            base = root.func if isinstance(root, ast.Call) else root.value
            return self._module.resolve(base).startswith(("torch.", "numpy."))
        return False

    def read(self) -> tuple[Load, ...]:
        """All loads, in the order of the text."""
        return tuple(self._read_load(call) for call in self._tracks.loads)

    def _read_load(self, call: ast.Call) -> Load:
        name = loader_class(self._module, call)
        where = self._where(call, self._model_argument(call, name))
        start, end = self._module.span(call)
        loader = self._module.resolve(call.func)
        wrapped = None if name or loader == "torch.load" else wrapped_model(self._module, call)
        model = self._model_argument(call, name)
        function = self._module.function_of(call)
        dtype, how = self._dtype(call, model)
        return Load(
            line=call.lineno,
            end_line=call.end_lineno or call.lineno,
            start=start,
            end=end,
            kind="model" if name else "pickle" if loader == "torch.load" else "pipeline",
            loader=loader,
            is_causal_lm=bool(_CAUSAL.fullmatch(name.rsplit(".", 1)[-1])) or _task(call) == "text-generation",
            model=self._module.text(model),
            target=self._tracks.target_of(call),
            scope=where.scope,
            function=self._module.qualified_name(function),
            because=where.because,
            placements=(*self._keyword_placements(call), *self._moves.get(call, ())),
            dtype=dtype,
            dtype_how=how,
            revision=self._module.text(keyword(call, "revision")),
            has_open_keywords=any(argument.arg is None for argument in call.keywords),
            keywords=tuple(argument.arg for argument in call.keywords if argument.arg),
            wraps=self._module.text(wrapped),
            is_conditional=any(isinstance(parent, ast.If | ast.IfExp) for parent in self._above(call)),
        )

    def _where(self, call: ast.Call, model: ast.expr | None) -> Where:
        """How often a load runs; a loop over different models loads each of them once."""
        where = self._reach.where(call)
        loop = self._loop_over_models(call, model) if where.scope is Scope.LOOP and model is not None else None
        return where if loop is None else Where(Scope.ONCE, f"once for each model of the loop at line {loop.lineno}")

    def _loop_over_models(self, call: ast.Call, model: ast.expr) -> ast.For | None:
        """The loop whose variable names the model, around the load or around the calls that lead to it."""
        waiting: list[tuple[ast.AST, set[str], int]] = [(call, self._names_behind(model), 0)]
        while waiting:
            node, names, depth = waiting.pop()
            found = next((loop for loop in self._loops_around(node) if names & _names_in(loop.target)), None)
            if found is not None:
                return found
            function = self._module.function_of(node)
            if depth < _MAX_CALLERS and function and names & {argument.arg for argument in function.args.args}:
                waiting += [(outer, self._names_given(outer), depth + 1) for outer in self._calls_of(function.name)]
        return None

    def _calls_of(self, name: str) -> list[ast.Call]:
        return [call for call in self._module.calls if isinstance(call.func, ast.Name) and call.func.id == name]

    def _names_given(self, call: ast.Call) -> set[str]:
        values = [*call.args, *(argument.value for argument in call.keywords)]
        return set().union(*(self._names_behind(value) for value in values))

    def _names_behind(self, node: ast.expr) -> set[str]:
        """The names in an expression, and in what they were assigned."""
        names = _names_in(node)
        values = [
            v for part in ast.walk(node) if isinstance(part, ast.Name) for v in assigned_values(self._module, part)
        ]
        return names.union(*map(_names_in, values))

    def _loops_around(self, node: ast.AST) -> list[ast.For]:
        function = self._module.function_of(node)
        return [
            parent
            for parent in self._module.ancestors(node)
            if isinstance(parent, ast.For) and self._module.function_of(parent) is function
        ]

    def _above(self, call: ast.Call) -> list[ast.AST]:
        function = self._module.function_of(call)
        above = []
        for parent in self._module.ancestors(call):
            if parent is function:
                break
            if not (isinstance(parent, ast.If) and "__name__" in self._module.text(parent.test)):
                above.append(parent)
        return above

    def _model_argument(self, call: ast.Call, name: str) -> ast.expr | None:
        if name or self._module.resolve(call.func) == "torch.load":
            return call.args[0] if call.args else keyword(call, "pretrained_model_name_or_path")
        return keyword(call, "model") or (call.args[1] if len(call.args) > 1 else None)

    def _dtype(self, call: ast.Call, model: ast.expr | None) -> tuple[str, str]:
        for name in ("dtype", "torch_dtype"):
            value = keyword(call, name)
            if value is not None and constant(value) is None and not isinstance(value, ast.Constant):
                return self._module.text(value), name
            if isinstance(value, ast.Constant) and value.value is not None:
                return self._module.text(value), name
        quantised = next((self._module.text(keyword(call, name)) for name in _QUANTISED if keyword(call, name)), "")
        if quantised or _QUANTISED_NAME.search(self._module.text(model)):
            return quantised or self._module.text(model), "quantised"
        if call in self._casts:
            return self._casts[call], self._casts[call]
        if keyword(call, "model_kwargs") is not None:
            return self._module.text(keyword(call, "model_kwargs")), "keyword arguments"
        return "", ""

    def _keyword_placements(self, call: ast.Call) -> list[Placement]:
        found = []
        for name in ("device_map", "device", *_QUANTISED[:3]):
            value = keyword(call, name)
            if value is None or (isinstance(value, ast.Constant) and (value.value is None or value.value is False)):
                continue
            is_quantised = name in _QUANTISED
            device = Device.CUDA if is_quantised else device_of(self._module, value, self._models)
            start, end = self._module.span(value)
            line, last = value.lineno, value.end_lineno or value.lineno
            how = "quantised" if is_quantised else name
            text = f"{name}={self._module.text(value)}"
            found.append(Placement(line=line, end_line=last, start=start, end=end, how=how, device=device, text=text))
        return found

    def inputs(self) -> tuple[InputSite, ...]:
        """The tokenizer results that go into a `generate`."""
        runs: dict[ast.Call, ast.Call] = {}
        for run in self._module.calls:
            if isinstance(run.func, ast.Attribute) and run.func.attr == "generate":
                for value in (*run.args, *(argument.value for argument in run.keywords)):
                    encoding = self._tracks.encoding_of(value)
                    if encoding is not None:
                        runs.setdefault(encoding, run)
        return tuple(self._input(call, runs[call]) for call in self._module.calls if call in runs)

    def _input(self, call: ast.Call, run: ast.Call) -> InputSite:
        device, text = self._input_moves.get(call, (Device.NONE, ""))
        start, end = self._module.span(call)
        base = run.func.value if isinstance(run.func, ast.Attribute) else run.func
        statement = self._module.parents[call]
        name = self._module.text(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        is_plain_call = self._module.text(call.func) in self._tracks.tokenizer_names
        stores = self._module.stores.get(name, [])
        here = [node for node in stores if self._module.function_of(node) is self._module.function_of(call)]
        return InputSite(
            line=call.lineno,
            end_line=call.end_lineno or call.lineno,
            start=start,
            end=end,
            name=name,
            device=device,
            text=text,
            model=self._module.text(base) if self._tracks.loads_of(base) else "",
            is_movable=(
                name.isidentifier()
                and is_plain_call
                and len(here) == 1
                and constant(keyword(call, "return_tensors")) == "pt"
            ),
        )

    def generates(self) -> tuple[GenerateSite, ...]:
        """Where a model is run: `generate`, also when only handed over to a thread, the forward pass, a pipeline."""
        found = []
        pipelines = {
            name for name, loads in self._tracks.models.items() if any(not loader_class(self._module, x) for x in loads)
        }
        for node in self._module.every(ast.expr):
            if isinstance(node, ast.Attribute) and node.attr in _GENERATING and isinstance(node.ctx, ast.Load):
                if not self._module.resolve(node):
                    found.append(self._run_site(node, self._module.text(node.value), "generate"))
            elif isinstance(node, ast.Call) and self._module.text(node.func) in self._models:
                name = self._module.text(node.func)
                found.append(self._run_site(node, name, "pipeline" if name in pipelines else "call"))
        return tuple(found)

    def _run_site(self, node: ast.expr, model: str, form: str) -> GenerateSite:
        start, end = self._module.span(node)
        last = node.end_lineno or node.lineno
        scope = self._reach.where(node).scope
        return GenerateSite(line=node.lineno, end_line=last, start=start, end=end, model=model, form=form, scope=scope)


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _is_dtype(text: str) -> bool:
    return bool(re.fullmatch(r"(\w+\.)?(float16|bfloat16|float32|half|float|float64|double)|.*dtype", text))


def _task(call: ast.Call) -> object:
    return constant(keyword(call, "task") or (call.args[0] if call.args else None))
