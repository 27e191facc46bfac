"""The pages behind the codes PKG013 to PKG021: what is judged from recorded facts."""

from __future__ import annotations

from remediate.model import Explanation

PAGES = (
    Explanation(
        "PKG013",
        "torch's build has no code for the GPU",
        "The compute capabilities of all boards with the architectures that the wheel of that torch and CUDA version "
        "is built for. Only builds of the PyTorch project for Linux x86_64 are judged. A build without CUDA beside a "
        "GPU is told here too.",
        "The first kernel fails with `no kernel image is available for execution on the device`. CUDA 13 dropped "
        "everything below 7.5 (V100, P100), and torch 2.11 from the package index is built for CUDA 13; wheels for "
        "CUDA 12.1 and 12.4 have nothing for Blackwell.",
        "Pins whose build does not fit are withheld, in the requirements file as well. Use another profile, or name "
        "an index with the right build in `[install]`.",
        (
            "torch._C._cuda_getArchFlags() of 2.1.2, 2.2.0, 2.3.0",
            "pytorch, .ci/manywheel/build_cuda.sh",
            "pytorch#172352",
        ),
    ),
    Explanation(
        "PKG014",
        "A requirement of an installed distribution is not met",
        "`Requires-Dist` of torch, transformers and what goes with them, and of every pinned distribution, with the "
        "installed versions. For a list without metadata the known requirements of the version stand in.",
        "torch requires its `nvidia-*` distributions in one exact version: with an older NCCL `import torch` ends with "
        "`undefined symbol: ncclCommRegister`. transformers checks tokenizers and huggingface-hub when it is imported. "
        "Newer libraries and other requirements are told as advice.",
        "Where a pin governs it, `apply` puts it right; else the command is printed.",
        ("tested: torch 2.2.0 with NCCL 2.18.1", "metadata of the wheels, torch 2.0.0 to 2.14.1"),
    ),
    Explanation(
        "PKG015",
        "transformers does not work with that torch or accelerate",
        "The installed and the planned versions, with what transformers checks when it is imported. Its metadata "
        "states it for extras only, so that no installer enforces it and `pip check` is content.",
        "transformers 4.57 with torch 2.1 ends with `module 'torch.utils._pytree' has no attribute "
        "'register_pytree_node'`; transformers 5 says that PyTorch was not found although it is installed.",
        "Pin versions that go together: torch 2.1 with transformers up to 4.55, 2.2 and 2.3 up to 5.2, 2.6 or newer "
        "with 5.24.",
        (
            "tested: torch 2.1.2, 2.2.0, 2.3.0 with transformers 4.44.2, 4.57.6, 5.0.0 and 5.24.0",
            "transformers, utils/import_utils.py of 5.3.0, 5.8.1, 5.12.1 and 5.17.0",
        ),
    ),
    Explanation(
        "PKG016",
        "Two distributions write the same module",
        "Known groups: pynvml below 12 and nvidia-ml-py3 beside nvidia-ml-py, NCCL and cuDNN for two CUDA versions, "
        "variants of onnxruntime and OpenCV.",
        "What is imported hangs on the order of installation, and uninstalling one breaks the other. The folder "
        "`pynvml/` of pynvml 11 goes before the file `pynvml.py` of nvidia-ml-py.",
        "The commands are printed: uninstall the others, then install the one to keep again; its files may be gone.",
        ("files of the wheels pynvml 11.5.3, 12.0.0 and 13.0.1, nvidia-ml-py 13.615, nvidia-ml-py3 7.352",),
    ),
    Explanation(
        "PKG017",
        "Metadata and module don't belong together",
        "For torch, transformers and what goes with them: whether each module has a distribution, each distribution "
        "its module, and `torch/version.py` the version of its metadata.",
        "An uninstall that was interrupted, or a folder that was deleted by hand, leaves one without the other: the "
        "import finds an empty namespace package (`cannot import name … (unknown location)`), or pip believes that "
        "all is there.",
        "A governed distribution without its module, or with files of another version, is installed anew.",
        ("Recording installed projects (packaging.python.org)",),
    ),
    Explanation(
        "PKG018",
        "Installed files were changed",
        "With `--check-files`: size and hash of the files of torch, transformers and what goes with them, with the "
        "`RECORD` of their installation. Files above 8 MiB are compared by size.",
        "Somebody edited the library in place, or an install was cut short; a reinstall discards the edit.",
        "Advice only: keep the edit as a patch or a fork, then install the distribution again.",
        ("Recording installed projects (packaging.python.org)",),
    ),
    Explanation(
        "PKG019",
        "The distribution that is replaced came from somewhere else",
        "`direct_url.json` (editable, version control, a file), `INSTALLER` (conda) and the folder (system, `--user`) "
        "of each installed distribution that the plan replaces.",
        "An editable install or a commit is somebody's work; conda goes on believing in its own files; a system's "
        "package stays where it is.",
        "Advice only. A rollback brings it back as it was. Keep it with `accept` in the profile, or take the pin out.",
        ("PEP 610", "PEP 376", "PEP 668"),
    ),
    Explanation(
        "PKG020",
        "Something is known of the installed version",
        "The installed versions with the shipped data of regressions and published vulnerabilities, each with range, "
        "fixed version, source and how sure it is; docs/advisories.md.",
        "A version that is known to be good for one thing is often known to be bad for another: torch 2.1.2 runs code "
        "from a checkpoint even with weights_only=True.",
        "Advice only. `remediate advisories` lists them all, `--update` asks OSV. The plan tells what it costs to be "
        "on the profile's pins.",
        ("remediate/packages/data/advisories.json",),
    ),
    Explanation(
        "PKG021",
        "The script's tokenizer needs a distribution that is missing",
        "Tokenizer classes that read `tokenizer.model` by themselves, as `LlamaTokenizer` of transformers 4, with the "
        "installed distributions.",
        "transformers installs neither sentencepiece nor protobuf. A checkpoint with a `tokenizer.json`, loaded by "
        "`AutoTokenizer`, needs none of them.",
        "The command is printed; or pin it in the profile.",
        ("tested with transformers 4.36.2 and 5.24.0, sentencepiece 0.2.3, protobuf 7.36.2",),
    ),
)
