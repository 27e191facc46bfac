"""The pages behind the `PKG…` codes, for `remediate explain` and docs/findings.md."""

from __future__ import annotations

from collections.abc import Mapping

from remediate.model import Explanation
from remediate.packages.install_pages import PAGES as _INSTALLED
from remediate.packages.judge.explanations import PAGES as _JUDGED

_COMPATIBILITY = "NVIDIA, CUDA Compatibility, minor version compatibility (docs.nvidia.com/deploy/cuda-compatibility)"

_PAGES = (
    Explanation(
        "PKG001",
        "A distribution is missing or has another version than the profile wants",
        "The version in the metadata of the installed distribution, without its local part (`+cu121`), with the pin's "
        "`accept` range, else with its `version`.",
        "Each pin carries its own reason. In general: versions that were tested together are known to work together, "
        "and what pip picks by itself changes from week to week.",
        "`apply` installs the pinned versions in one pip run, in which every pin is a constraint, after it has set the "
        "present files aside; `rollback` brings those back to the byte, without a network.",
        ("Version specifiers (packaging.python.org)",),
    ),
    Explanation(
        "PKG002",
        "torch is built for another CUDA version",
        "`cuda` in the text of the installed `torch/version.py` with the pin's `cuda`. torch is never imported.",
        "The metadata can't tell: the wheel of torch 2.1.2 on the package index says `2.1.2` and is built for CUDA "
        "12.1, and a CPU build says `2.1.2+cpu`, which satisfies `torch==2.1.2`.",
        "`apply` uninstalls torch and installs the same version again. Where the package index has another build, name "
        "the right one with `index_url` in `[install]` of the profile or in remediate.toml.",
        ("wheel metadata and torch/version.py of torch 2.1.2, 2.2.0, 2.3.0 and 2.13.0",),
    ),
    Explanation(
        "PKG003",
        "The requirements file does not pin the distribution",
        "The lines of the requirements file, and of what it includes with `-r` and `-c`, with the planned version. "
        "`==2.1.2+cu121` counts as `==2.1.2` only in a file that names a source for such builds.",
        "The next environment that is built from the file gets other versions. `torch==2.1.2+cu121` can't be installed "
        "from the package index at all: its 2.1.2 is that build, without the suffix.",
        "`apply` rewrites the governed lines and adds the missing ones; comments, markers, extras, order, encoding and "
        "line ends stay. Lines with hashes or direct URLs are left alone and said.",
        ("pip, Requirements File Format",),
    ),
    Explanation(
        "PKG004",
        "numpy 2 beside a torch below 2.3",
        "The installed versions of torch and numpy.",
        "torch below 2.3 is built against numpy 1. `import torch` only warns and `generate` works, but `pipeline()`, "
        "`tensor.numpy()` and `torch.from_numpy` raise `Numpy is not available`, and `torch.tensor(np.ones(2))` "
        "silently gives float32 in place of float64. torch states no numpy requirement, so `pip check` is content.",
        "The plan holds numpy below 2 (1.26.4), even where the profile says nothing about numpy.",
        ("tested with torch 2.1.2, 2.2.0, 2.2.2 and 2.3.0 and numpy 1.26.4, 2.0.2 and 2.4.6 on Python 3.11",),
    ),
    Explanation(
        "PKG005",
        "The script uses `device_map` and accelerate is missing",
        "What the script subject found in the script, with the installed distributions.",
        "`from_pretrained(device_map=...)` raises `ImportError` (transformers 4) or `ValueError` (transformers 5) "
        "without accelerate, which transformers does not install.",
        "Add `[packages.accelerate]` to the profile, or install it: 1.15.0 works with transformers 4.36.2 and 5.24.0.",
        ("tested with transformers 4.36.2 and 5.24.0",),
    ),
    Explanation(
        "PKG006",
        "The GPU driver is too old for torch's CUDA build",
        "The driver's version with the oldest branch that runs the CUDA version of the planned torch: CUDA 13 needs "
        "580, CUDA 12 needs 525, CUDA 11 needs 450.",
        "With an older driver torch finds no GPU. torch 2.11 on the package index moved from CUDA 12 to 13, so that a "
        "simple upgrade can lose the GPU.",
        "The install is withheld. Take a profile that fits the driver, or update the driver first.",
        (_COMPATIBILITY, "wheel metadata of torch 2.10.0 and 2.11.0"),
    ),
    Explanation(
        "PKG007",
        "Metadata of a distribution is broken, double or left over",
        "The `.dist-info`, `.egg-info` and `~...` entries in the module folders.",
        "Installers guess which version is there. A `~name` folder is what pip set aside when it was interrupted: it "
        "takes space and makes every pip run warn.",
        "Broken and double metadata of a governed distribution goes with its reinstallation. The rest is named: delete "
        "a `~name` folder once nothing runs pip any more.",
        (
            "Recording installed projects (packaging.python.org)",
            "pip/_internal/utils/temp_dir.py, AdjacentTempDirectory",
        ),
    ),
    Explanation(
        "PKG008",
        "The target's Python version is outside of the profile's range",
        "The version of the target interpreter with `python` of the profile.",
        "The pins have no wheels for it: torch 2.1.2 has them for Python 3.8 to 3.11, 2.11 for 3.10 to 3.14. "
        "pip would fail, or try to build from source.",
        "Nothing is installed. Create an environment with a Python in that range and name it with `--python`.",
        ("wheels of torch 2.0.1 to 2.14.1 on the package index",),
    ),
    Explanation(
        "PKG009",
        "The deprecated distribution pynvml is installed",
        "Whether a distribution named `pynvml` is there.",
        "The module `pynvml` comes from nvidia-ml-py. The distribution `pynvml` is deprecated and warns in every "
        "program that imports the module.",
        "`pip uninstall pynvml`, then `pip install --force-reinstall nvidia-ml-py`, for both hold the same file.",
        ("nvidia-ml-py on the package index",),
    ),
    Explanation(
        "PKG010",
        "Nothing can be installed into this environment",
        "Whether the environment is marked as managed by the operating system, may be written by this user, has a "
        "pip that can install into it, and was meant: a `python3` that was only found on PATH and is no virtual "
        "environment is left alone.",
        "pip refuses an externally managed environment for a reason: the operating system's own programs live in it. "
        "Without write access pip would quietly install somewhere else.",
        "The install is withheld and its exact command is printed. Use a virtual environment.",
        ("PEP 668", "pip, user installs"),
    ),
    Explanation(
        "PKG011",
        "Another distribution does not accept a planned version",
        "`Requires-Dist` of the installed distributions that no pin governs, with the planned versions.",
        "pip installs the pins all the same and reports a conflict afterwards; the other distribution may fail.",
        "Remove it, pin a version of it that fits, or use an environment of its own.",
        ("Core metadata (packaging.python.org)",),
    ),
    Explanation(
        "PKG012",
        "Dependencies are stated in other files too",
        "Names of files in the folder: pyproject.toml, lock files, conda environments.",
        "An environment that is built from them gets what they say, not what the requirements file pins.",
        "pyproject.toml and environment.yml are edited; lock files are not, and the plan gives the command that "
        "carries the pins over with the tool that wrote them.",
        (),
    ),
)

EXPLANATIONS: Mapping[str, Explanation] = {page.code: page for page in (*_PAGES, *_JUDGED, *_INSTALLED)}
"""Every code of this subject with its page."""
