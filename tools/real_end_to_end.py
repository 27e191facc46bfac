"""The whole of it on the real thing: torch 2.2.0 and transformers 4.38.0 from the package index, to profile
incident-a100 and back. Downloads about 5 GB where pip's cache is empty, takes about 15 GB of disk; not part of CI.

    ./dev real [--folder DIR] [--record docs/real-end-to-end.md]

Plans, applies, verifies with the smoke test, applies again, rolls back, and compares `pip freeze` before and after.
Then it installs the incident report's own pins into a fresh environment, to see what the smoke test says of that.
Exits 1 where something is not as it should be. Needs a Python 3.11 (`--python`), on Linux; no GPU.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from remediate.effects import run_process
from remediate.packages.locking import clean_environment, pip_settings
from remediate.resources import data_folder

NEEDED_BYTES = 16_000_000_000
BEFORE = ("torch==2.2.0", "transformers==4.38.0")
REPORT = ("torch==2.1.2", "transformers==4.36.2")
PROFILE = ("--profile", "incident-a100")
SHOWN_FOLDER = "/srv/sandbox"
LONGEST = 160


class Walk:
    """Runs commands in the sandbox, and keeps what they printed."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.python = python
        self.record: list[str] = []
        self.failures: list[str] = []
        self.environment = clean_environment(pip_settings(run_process))

    def run(self, title: str, argv: list[str], expected: int = 0, *, is_quiet: bool = False) -> str:
        """Run, record, and note where the exit code is another."""
        print(f"... {title}", flush=True)
        began = time.monotonic()
        done = subprocess.run(argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        output = done.stdout if done.returncode == expected else done.stdout + done.stderr
        if done.returncode != expected:
            self.failures.append(f"{title}: exit code {done.returncode}, expected {expected}\n{output}")
        lines = [] if is_quiet else self.anonymous(output).rstrip().splitlines()
        if len(lines) > LONGEST:
            lines = [*lines[: LONGEST // 2], "[...]", *lines[-LONGEST // 2 :]]
        shown = self.anonymous(shlex.join(argv)).replace("python -m remediate", "remediate")
        self.record += [f"## {title}", "", "```", f"$ {shown}", *lines, "```", ""]
        self.record += [f"Exit code {done.returncode}, {seconds:.0f} s.", ""]
        return done.stdout

    def anonymous(self, text: str) -> str:
        """Without this machine's paths."""
        for real, shown in (
            (str(self.folder), SHOWN_FOLDER),
            (f" --state-dir {self.folder.parent / 'state'}", ""),
            (sys.executable, "python"),
            (self.python, "python3.11"),
            (f"{data_folder('templates')}/", "templates/"),
        ):
            text = text.replace(real, shown)
        return "\n".join(line.rstrip() for line in text.splitlines())

    def remediate(self, title: str, *words: str, expected: int = 0) -> str:
        state = ("--state-dir", str(self.folder.parent / "state"))
        return self.run(title, [sys.executable, "-m", "remediate", *words, *state], expected)

    def freeze(self) -> list[str]:
        python = str(self.folder / ".venv" / "bin" / "python")
        argv = [python, "-m", "pip", "freeze", "--all"]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, check=True)
        return sorted(done.stdout.split())

    def require(self, holds: bool, claim: str) -> None:
        self.record += [f"{'Holds' if holds else 'DOES NOT HOLD'}: {claim}.", ""]
        if not holds:
            self.failures.append(claim)


def walk(sandbox: Walk, python: str) -> None:
    target = str(sandbox.folder / ".venv" / "bin" / "python")
    only = ("--only", "packages")
    sandbox.run("An environment, before", [python, "-m", "venv", ".venv"], is_quiet=True)
    sandbox.run("What the incident began with", [target, "-m", "pip", "install", "--quiet", *BEFORE], is_quiet=True)
    (sandbox.folder / "requirements.txt").write_text("\n".join(BEFORE) + "\n")
    before = sandbox.freeze()
    listed = [line for line in before if line.startswith(("torch=", "transformers=", "numpy=", "tokenizers="))]
    sandbox.record += [f"{len(before)} distributions, among them {', '.join(listed)}.", ""]
    sandbox.run("pip is content with it", [target, "-m", "pip", "check"])
    sandbox.remediate("Plan", "plan", *PROFILE, *only)
    sandbox.remediate("Apply", "apply", "--yes", "--smoke", *PROFILE, *only)
    after = sandbox.freeze()
    sandbox.remediate("Verify, and try it out", "verify", "--smoke", *PROFILE, *only)
    sandbox.remediate("Apply again: nothing to do", "apply", "--yes", *PROFILE, *only)
    sandbox.require(sandbox.freeze() == after, "a second apply changes nothing")
    sandbox.remediate("Roll back", "rollback", "--yes")
    sandbox.require(sandbox.freeze() == before, f"`pip freeze` is exactly the former one ({len(before)} distributions)")
    sandbox.run("pip is content again", [target, "-m", "pip", "check"])


def plain(sandbox: Walk, python: str) -> None:
    """The report's pins, installed as the report says."""
    target = str(sandbox.folder / "plain" / "bin" / "python")
    sandbox.run("The report's own pins, in a fresh environment", [python, "-m", "venv", "plain"], is_quiet=True)
    sandbox.run("installed plainly", [target, "-m", "pip", "install", "--quiet", *REPORT], is_quiet=True)
    sandbox.run("pip is content with that too", [target, "-m", "pip", "check"])
    script = str(data_folder("templates") / "smoke_test.py")
    said = sandbox.run("and the smoke test is not", [target, script, '{"device_map": true}'])
    is_broken = "Numpy is not available" in said and "requires Accelerate" in said
    sandbox.require(is_broken, "a plain install of the report's pins fails the numpy round trip and the device map")


def head() -> list[str]:
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    return [
        "# Real end to end",
        "",
        f"What `./dev real` printed on {now} (Linux {os.uname().machine}, no GPU): real torch 2.2.0 and transformers",
        "4.38.0 from the package index, brought to profile `incident-a100` and back. Run it again with that command:",
        "it downloads about 5 GB. Timings are of a machine with two busy cores and a near package index.",
        "",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="The life cycle on real torch and transformers.")
    parser.add_argument(
        "--folder", type=Path, help="an empty or absent folder; default: a temporary one, deleted after"
    )
    parser.add_argument("--python", default="python3.11", help="a Python 3.11")
    parser.add_argument("--record", type=Path, help="write what was printed to this Markdown file")
    arguments = parser.parse_args()
    base = arguments.folder or Path(tempfile.mkdtemp(prefix="remediate-real-"))
    (base / "sandbox").mkdir(parents=True)
    if shutil.disk_usage(base).free < NEEDED_BYTES:
        print(f"error: `{base}` has less than {NEEDED_BYTES // 10**9} GB free", file=sys.stderr)
        return 1
    sandbox = Walk(base / "sandbox", arguments.python)
    try:
        walk(sandbox, arguments.python)
        plain(sandbox, arguments.python)
    finally:
        if arguments.record:
            arguments.record.write_text("\n".join([*head(), *sandbox.record]).rstrip() + "\n")
        if arguments.folder is None:
            shutil.rmtree(base, ignore_errors=True)
    for failure in sandbox.failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    print("all as it should be" if not sandbox.failures else f"{len(sandbox.failures)} failures")
    return 1 if sandbox.failures else 0


if __name__ == "__main__":
    sys.exit(main())
