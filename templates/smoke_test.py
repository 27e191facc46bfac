"""Tries an inference environment out with a tiny LLaMA of random weights. Run by the environment's own interpreter.

    python smoke_test.py '{"device_map": true, "compile": false}'

Prints one line for each step, `remediate-smoke:` and a JSON object. Uses a GPU where torch finds one. Nothing is
downloaded: the model is made from a configuration. Runs on Python 3.8 and newer, torch 2.0 and newer, and
transformers 4.30 and newer.
"""

import importlib
import json
import shutil
import sys
import tempfile
import time
import warnings

MARKER = "remediate-smoke:"
TOKENS = 8


class Skipped(Exception):  # noqa: N818  # A step that can't be tried here has not failed.
    """Why a step was not tried."""


class Trial:
    """The steps, which hand the model on to each other."""

    def __init__(self, options):
        self.options = options
        self.has_failed = False
        self.model = None
        self.prompt = None
        self.device = "cpu"

    def run(self, name, step):
        """Run one step and print what became of it."""
        began = time.monotonic()
        try:
            outcome, detail = "passed", step()
        except Skipped as reason:
            outcome, detail = "skipped", str(reason)
        except Exception as error:  # noqa: BLE001  # Whatever it raises is the result.
            outcome, detail = "failed", "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:400])
            self.has_failed = True
        seconds = round(time.monotonic() - began, 2)
        line = json.dumps({"name": name, "outcome": outcome, "detail": detail, "seconds": seconds})
        sys.stdout.write("\n" + MARKER + line + "\n")
        sys.stdout.flush()

    def import_torch(self):
        """Which build it is, and whether it finds a GPU."""
        torch = importlib.import_module("torch")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        return f"torch {torch.__version__}, CUDA {torch.version.cuda}, on {self.device}"

    def numpy_round_trip(self):
        """Torch below 2.3 with numpy 2 imports well, and fails here or silently gives float32."""
        numpy = importlib.import_module("numpy")
        torch = importlib.import_module("torch")
        ones = numpy.ones(3)
        back = torch.from_numpy(ones).to(self.device).cpu().numpy()
        if back.tolist() != ones.tolist():
            raise ValueError(f"the values changed: {back.tolist()}")
        kind = torch.tensor(ones).dtype
        if kind != torch.float64:
            raise TypeError(f"torch.tensor of float64 gives {kind}")
        return f"numpy {numpy.__version__}, there and back"

    def import_transformers(self):
        """Which version it is."""
        return "transformers {}".format(importlib.import_module("transformers").__version__)

    def generate(self):
        """Greedy decoding of a model that is made here."""
        torch = importlib.import_module("torch")
        transformers = importlib.import_module("transformers")
        config = transformers.LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=128,
            bos_token_id=1,
            eos_token_id=None,
            pad_token_id=0,
        )
        torch.manual_seed(0)
        self.model = transformers.LlamaForCausalLM(config).to(self.device).eval()
        self.prompt = torch.tensor([[1, 5, 9]], device=self.device)
        tokens = self._generate(self.model)
        if len(tokens) != self.prompt.shape[1] + TOKENS:
            raise ValueError(f"{len(tokens)} tokens in place of {self.prompt.shape[1] + TOKENS}")
        return f"{TOKENS} tokens on {self.device}"

    def device_map(self):
        """Needs accelerate, which transformers does not install."""
        transformers = importlib.import_module("transformers")
        before = self._generate(self._needed())
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            loaded = transformers.LlamaForCausalLM.from_pretrained(folder, device_map="auto")
            after = self._generate(loaded.eval())
        if before != after:
            raise ValueError("the loaded model gives other tokens")
        return "saved, loaded with device_map=auto, the same tokens"

    def compile_forward(self):
        """A compiled forward pass gives what the eager one gives."""
        torch = importlib.import_module("torch")
        model = self._needed()
        if not any(shutil.which(name) for name in ("cc", "gcc", "g++", "clang")):
            raise Skipped("there is no C compiler on PATH, which torch.compile needs")
        compiled = torch.compile(model.forward)
        with torch.no_grad():
            eager = model(input_ids=self.prompt, use_cache=False).logits
            fast = compiled(input_ids=self.prompt, use_cache=False).logits
        if not torch.allclose(eager, fast, atol=1e-3):
            raise ValueError("compiled and eager results differ")
        return "compiled forward agrees with eager"

    def _needed(self):
        if self.model is None:
            raise Skipped("there is no model, an earlier step failed")
        return self.model

    def _generate(self, model):
        torch = importlib.import_module("torch")
        mask = torch.ones_like(self.prompt)
        given = {"input_ids": self.prompt, "attention_mask": mask, "max_new_tokens": TOKENS, "do_sample": False}
        with torch.no_grad():
            return model.generate(**given)[0].tolist()


def main():
    """Run all steps; each stands for itself."""
    warnings.simplefilter("ignore")
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    trial = Trial(options)
    trial.run("import torch", trial.import_torch)
    trial.run("numpy round trip", trial.numpy_round_trip)
    trial.run("import transformers", trial.import_transformers)
    trial.run("generate", trial.generate)
    if options.get("device_map"):
        trial.run("device map", trial.device_map)
    if options.get("compile"):
        trial.run("compile", trial.compile_forward)


if __name__ == "__main__":
    main()
