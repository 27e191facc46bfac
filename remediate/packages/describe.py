"""The packages facts as labels and values, for `remediate facts`."""

from __future__ import annotations

from remediate.model import Unknown
from remediate.packages.facts import PackagesFacts

_SHOWN = ("torch", "transformers", "accelerate", "numpy", "tokenizers", "safetensors", "huggingface-hub", "triton")


def describe_packages(facts: PackagesFacts) -> tuple[tuple[str, str], ...]:
    """Label and value in reading order."""
    return (*_describe_target(facts), *_describe_distributions(facts), *_describe_files(facts))


def _describe_target(facts: PackagesFacts) -> tuple[tuple[str, str], ...]:
    target = facts.target
    if facts.listing is not None:
        return (("listed by", facts.listing.source), ("python", str(facts.listing.python)))
    if target is None:
        return (("target", str(facts.target_unknown)),)
    traits = ["virtual environment" if target.is_virtual else "no virtual environment"]
    traits += ["externally managed"] if target.externally_managed else []
    traits += [] if target.is_writable else ["not writable for this user"]
    libc = "" if isinstance(target.libc, Unknown) else f", {target.libc}"
    pip = facts.pip if isinstance(facts.pip, str) else f"none (this program's {facts.tool_pip} is used)"
    return (
        ("target", target.python),
        ("python", f"{target.version} ({target.implementation}, {target.system}-{target.machine}{libc})"),
        ("environment", f"{target.prefix} ({', '.join(traits)})"),
        ("pip", pip),
    )


def _describe_distributions(facts: PackagesFacts) -> list[tuple[str, str]]:
    if not facts.has_list:
        return []
    rows = [("distributions", str(len(facts.distributions)))]
    for name in _SHOWN:
        found = facts.installed(name)
        if found is not None:
            editable = ", editable" if found.is_editable else ""
            by = "" if facts.listing is not None else f" (by {found.installer or 'an unknown installer'}{editable})"
            rows.append((name, f"{found.version}{by}"))
    build = facts.torch_build
    if build is not None:
        rows.append(("torch build", f"{build.version}, CUDA {build.cuda if build.cuda is not None else 'none'}"))
    rows += [("metadata", f"{problem.kind}: {problem.path}") for problem in facts.problems]
    return rows


def _describe_files(facts: PackagesFacts) -> list[tuple[str, str]]:
    if facts.listing is not None:
        return []
    rows = [("requirements", file.path) for file in facts.requirements] or [("requirements", "none")]
    return [*rows, *((("other files", ", ".join(facts.other_sources)),) if facts.other_sources else ())]
