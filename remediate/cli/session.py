"""From options to facts, profile and plan; the part that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from remediate import api
from remediate.cli.options import Target
from remediate.errors import ExitCode, UsageError
from remediate.model import Facts, Plan


def get_facts(target: Target, document: Path | None = None) -> Facts:
    """Facts from a document, or from this host.

    Raises:
        DocumentError, ObserveError, ConfigError: as `documents.decode_facts` and `api.observe`.
    """
    if document is None:
        return api.observe(
            target.folder,
            python=target.python,
            scripts=target.scripts,
            requirements=target.requirements,
            gpus=target.gpus,
            board=target.board,
            only=target.only,
            state_dir=target.state_dir,
            sample_s=target.sample_s,
            install=target.install,
            check_files=target.check_files,
        )
    if target.sample_s:
        raise UsageError(
            "`--sample` can't be used with `--facts`",
            cause="recorded facts stand still; a sample is taken where they are recorded",
            hint="take it there with `remediate facts --sample SECONDS -o FILE`",
        )
    if target.check_files:
        raise UsageError(
            "`--check-files` can't be used with `--facts`",
            cause="the files are on the host that the facts were recorded on",
            hint="check them there with `remediate facts --check-files -o FILE`",
        )
    from remediate.documents import decode_facts, read_document

    facts = decode_facts(read_document(document), str(document))
    if not target.only:
        return facts
    unknown = set(target.only) - set(facts.sections)
    if unknown:
        raise UsageError(
            f"facts `{document}` do not speak of {', '.join(sorted(unknown))}",
            cause=f"they hold {', '.join(facts.sections)}",
        )
    return msgspec.structs.replace(
        facts, sections={name: section for name, section in facts.sections.items() if name in target.only}
    )


def get_plan(target: Target, profile: str | None, document: Path | None = None, *, unsafe_fixes: bool = False) -> Plan:
    """A plan from options. Raises what `get_facts` and `api.plan` raise."""
    return api.plan(get_facts(target, document), profile, unsafe_fixes=unsafe_fixes)


def check_code(plan: Plan) -> ExitCode:
    """3 where differences remain, 4 where something could not be told or done, else 0."""
    if plan.differences:
        return ExitCode.DIFFERS
    return ExitCode.UNKNOWN if plan.unknowns else ExitCode.OK


def print_document(content: bytes) -> None:
    """JSON on standard output, nothing beside it."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
