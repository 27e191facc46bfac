"""The smoke test: its script on stand-ins that behave, that are broken and that crash; what becomes of an install."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from remediate.effects import Completed, run_process
from remediate.errors import ApplyError
from remediate.model import SCHEMA_VERSION, Facts, Host, Outcome, Request, Unknown, UnknownKind
from remediate.packages.facts import PackagesFacts
from remediate.packages.install import Smoke
from remediate.packages.intent import smoke_of
from remediate.packages.smoke import judge_smoke, require_smoke, run_smoke
from remediate.packages.trial import try_out
from remediate.profile.load import load_profile
from remediate.profile.schema import Profile
from remediate.subject import Context

NUMPY = """
__version__ = "1.26.4"
class ones(list):
    def __init__(self, n): super().__init__([1.0] * n)
    def tolist(self): return list(self)
"""
TORCH = """
import contextlib
__version__, float64 = "2.1.2+cu121", "float64"
class version: cuda = "12.1"
class cuda: is_available = staticmethod(lambda: False)
class Tensor:
    dtype = "float64"
    def __init__(self, rows, device="cpu"): self.rows, self.shape = rows, (1, len(rows[0]) if rows else 0)
    def to(self, device): return self
class from_numpy:
    def __init__(self, array): self.array = array
    def to(self, device): return self
    def cpu(self): return self
    def numpy(self): return self.array
def tensor(rows, device="cpu"): return Tensor(rows if isinstance(rows[0], list) else [rows])
def manual_seed(n): pass
def ones_like(t): return t
no_grad = contextlib.nullcontext
"""
TRANSFORMERS = """
__version__ = "4.36.2"
class LlamaConfig:
    def __init__(self, **kw): pass
class _Row(list):
    def tolist(self): return list(self)
class LlamaForCausalLM:
    def __init__(self, config=None): pass
    def to(self, device): return self
    def eval(self): return self
    def generate(self, input_ids, attention_mask, max_new_tokens, do_sample):
        return [_Row(input_ids.rows[0] + [7] * max_new_tokens)]
    def save_pretrained(self, folder): pass
    @classmethod
    def from_pretrained(cls, folder, device_map): return cls()
"""
WHOLE = {"numpy": NUMPY, "torch": TORCH, "transformers": TRANSFORMERS}


class Modules:
    """Runs the script with modules of a folder in place of the target's."""

    def __init__(self, folder: Path, modules: Mapping[str, str]) -> None:
        self.folder = folder
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))

    def __call__(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Completed:
        assert "PYTHONPATH" not in (env or {})
        env = {**(env or {}), "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        return run_process(argv, timeout_s=timeout_s, env=env, cwd=cwd)


def outcomes(tmp_path: Path, modules: Mapping[str, str], smoke: Smoke | None = None) -> dict[str, str]:
    return {step.name: step.outcome for step in run_smoke(sys.executable, smoke or Smoke(), Modules(tmp_path, modules))}


def test_a_whole_environment_passes(tmp_path: Path) -> None:
    assert outcomes(tmp_path, WHOLE, Smoke(device_map=True)) == {
        "import torch": "passed",
        "numpy round trip": "passed",
        "import transformers": "passed",
        "generate": "passed",
        "device map": "passed",
    }


def test_numpy_2_is_found_by_the_round_trip_alone(tmp_path: Path) -> None:
    broken = TORCH.replace("def cpu(self): return self", "def cpu(self): raise RuntimeError('Numpy is not available')")
    found = outcomes(tmp_path, {**WHOLE, "torch": broken})
    assert [name for name, outcome in found.items() if outcome != "passed"] == ["numpy round trip"]


def test_a_silent_float32_is_found(tmp_path: Path) -> None:
    silent = TORCH.replace('dtype = "float64"', 'dtype = "float32"')
    assert outcomes(tmp_path, {**WHOLE, "torch": silent})["numpy round trip"] == "failed"


def test_what_hangs_on_a_failed_step_is_skipped(tmp_path: Path) -> None:
    broken = TRANSFORMERS.replace("class LlamaConfig", "class OtherConfig")
    found = outcomes(tmp_path, {**WHOLE, "transformers": broken}, Smoke(device_map=True, compile=True))
    assert (found["generate"], found["device map"], found["compile"]) == ("failed", "skipped", "skipped")


def test_too_few_tokens_are_found(tmp_path: Path) -> None:
    broken = TRANSFORMERS.replace("[7] * max_new_tokens", "[7]")
    assert outcomes(tmp_path, {**WHOLE, "transformers": broken})["generate"] == "failed"


def test_a_crash_is_a_failed_step(tmp_path: Path) -> None:
    steps = run_smoke(
        sys.executable, Smoke(), Modules(tmp_path, {**WHOLE, "transformers": "import os\nos.kill(os.getpid(), 11)\n"})
    )
    assert [step.name for step in steps] == ["import torch", "numpy round trip", "process"]
    assert "killed by signal 11" in steps[-1].detail


def test_it_ends_in_time(tmp_path: Path) -> None:
    slow = {**WHOLE, "torch": "import time\ntime.sleep(60)\n"}
    with pytest.raises(ApplyError, match="did not end within"):
        run_smoke(sys.executable, Smoke(), Modules(tmp_path, slow), timeout_s=0.5)


def test_a_failed_step_makes_the_change_fail(tmp_path: Path) -> None:
    context = Context(tmp_path, ".tmp", Request(str(tmp_path)), Modules(tmp_path, {"numpy": NUMPY}))
    with pytest.raises(ApplyError, match="does not pass the smoke test") as caught:
        require_smoke(sys.executable, Smoke(), context)
    assert "No module named 'torch'" in caught.value.cause


def test_findings(tmp_path: Path) -> None:
    steps = run_smoke(sys.executable, Smoke(), Modules(tmp_path, {**WHOLE, "numpy": "raise ImportError('gone')\n"}))
    findings = judge_smoke(steps)
    assert {finding.code for finding in findings} == {"PKG030"}
    assert [finding.outcome for finding in findings if finding.target == "numpy round trip"] == [Outcome.DIFFERS]


def test_nothing_to_try() -> None:
    section = PackagesFacts(None, Unknown(UnknownKind.NOT_READ, "none"))
    host = Host("Linux", "x86_64", "boot", False)
    facts = Facts(SCHEMA_VERSION, "0", "now", Request("/"), host, (), {"packages": section})
    (finding,) = try_out(facts, Profile(schema_version=1, name="p"))
    assert finding.outcome is Outcome.UNKNOWN


def test_what_a_profile_asks_for() -> None:
    assert smoke_of(load_profile("incident-a100").profile) == Smoke(device_map=True, compile=False)
    assert smoke_of(load_profile("current").profile) == Smoke(device_map=True, compile=True)
