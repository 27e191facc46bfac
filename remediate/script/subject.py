"""The script subject, as the core knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from remediate import files
from remediate.model import Explanation, Facts, Finding, Performed, Request, State
from remediate.profile.schema import Profile
from remediate.script.facts import ScriptFacts
from remediate.subject import Begun, Context, Ledger, Observed, Proposal, Settings, Situation

_SLOW_TOKENIZERS = frozenset(
    ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "T5Tokenizer", "MT5Tokenizer", "XLNetTokenizer")
)
"""Classes of transformers 4 that read a `tokenizer.model` through sentencepiece (models/*/tokenization_*.py)."""


def _is_slow(loader: str) -> bool:
    """Whether a dotted name is `from_pretrained` of one of them."""
    return loader.removesuffix(".from_pretrained").rpartition(".")[2] in _SLOW_TOKENIZERS


class ScriptSubject:
    """How inference scripts are laid out. Holds no state; the rules are loaded when a script is there to judge."""

    name = "script"
    title = "Script"
    facts_type: type[msgspec.Struct] = ScriptFacts
    operation_type = files.FileEdit

    def begin(self, request: Request) -> None:
        """Nothing takes long enough."""

    def observe(self, request: Request, settings: Settings, ledger: Ledger, begun: Begun | None = None) -> Observed:
        """Read the named scripts, or those of the folder that load a model.

        Raises:
            ScriptError: a named script does not exist, can't be read, or is not Python text.
        """
        del settings, ledger, begun
        from remediate.script.observe import observe

        return observe(request)

    def explanations(self) -> Mapping[str, Explanation]:
        """The pages of the `SCR…` codes."""
        from remediate.script.rules import RULES, UNREADABLE

        return {rule.code: rule.explanation for rule in (UNREADABLE, *RULES)}

    def describe(self, facts: Facts) -> Sequence[tuple[str, str]]:
        """One line for each script and for what was found in it, for a person."""
        from remediate.script.describe import describe_scripts

        return describe_scripts(facts.sections[self.name], facts.request.folder)

    def announce(self, facts: Facts, profile: Profile) -> Mapping[str, str]:
        """`script:needs_accelerate`: the first script that has a device map, or gets one where accelerate is pinned;
        `script:needs_sentencepiece`: the first that loads a tokenizer which reads `tokenizer.model` by itself.
        """
        section: ScriptFacts = facts.sections[self.name]
        if not section.files:
            return {}
        from remediate.script.rules.base import Wanted
        from remediate.script.rules.scr004_no_placement import needs_device_map

        wish = profile.script if "accelerate" in profile.packages else type(profile.script)()
        needing = [file.path for file in section.files if needs_device_map(file, Wanted(wish, {}))]
        slow = [file.path for file in section.files if any(_is_slow(site.what) for site in file.tokenizers)]
        announced = {"script:needs_accelerate": needing[:1], "script:needs_sentencepiece": slow[:1]}
        return {key: paths[0] for key, paths in announced.items() if paths}

    def compare(self, situation: Situation) -> Sequence[Finding]:
        """The findings of every rule, by file and line."""
        if not situation.facts.sections[self.name].files:
            return ()
        from remediate.script.compare import compare

        return compare(situation)

    def propose(self, situation: Situation, findings: Sequence[Finding]) -> Proposal:
        """One file change for each script that can be put right."""
        if not situation.facts.sections[self.name].files:
            return Proposal()
        from remediate.script.propose import propose

        return propose(situation, findings)

    def read(self, facts: Facts, key: str) -> str:
        """`PATH/sha256` of a script; empty when it is not among the scripts any more."""
        section: ScriptFacts = facts.sections[self.name]
        path = key.removesuffix("/sha256")
        return next((file.sha256 for file in section.files if file.path == path), "")

    def state(self, operation: files.FileEdit, context: Context) -> State:
        """By the file's hash."""
        return files.state(operation, context)

    def prepare(self, operation: files.FileEdit, context: Context) -> Any:
        """Keep the file's bytes below the run's folder.

        Raises:
            ApplyError: the file can't be read or the backup can't be written.
        """
        return files.prepare(operation, context)

    def perform(self, operation: files.FileEdit, prepared: Any, context: Context) -> Performed:
        """Write the patched script atomically; mode and owner stay.

        Raises:
            ApplyError: it could not be written, or somebody edited the file since the plan.
        """
        return files.perform(operation, prepared, context)

    def undo(self, operation: files.FileEdit, prepared: Any, context: Context) -> Performed:
        """Bring the former bytes back.

        Raises:
            ApplyError: the file was edited after the run, or the backup is gone.
        """
        return files.undo(operation, prepared, context)

    def affected(self, operation: files.FileEdit, facts: Facts) -> Sequence[str]:
        """Nobody: what runs has read its files already."""
        del operation, facts
        return ()

    def remember(self, operation: files.FileEdit, done: bool) -> Mapping[str, str | None]:
        """Nothing: a file can always be read again."""
        del operation, done
        return {}
