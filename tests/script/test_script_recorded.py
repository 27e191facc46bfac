"""Recorded facts are enough to patch a script that is elsewhere; secrets stay where they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remediate import api
from remediate.documents import decode_facts, encode
from remediate.model import Facts

SCRIPT = (Path(__file__).parent.parent / "cases/incident/before.py").read_bytes()


def recorded(folder: Path, content: bytes) -> Facts:
    (folder / "inference.py").write_bytes(content)
    return decode_facts(encode(api.observe(folder, only=["script"])), "f.json")


def test_the_patch_is_made_where_the_script_is_not(tmp_path: Path) -> None:
    facts = recorded(tmp_path, SCRIPT)
    here = api.plan(facts, "incident-a100")
    (tmp_path / "inference.py").unlink()
    assert api.plan(facts, "incident-a100") == here
    assert here.changes


@pytest.mark.parametrize(
    "secret",
    [
        b'login("hf_abcdefghijklmnopqrstuvwx")\n',
        b"HF_TOKEN = 'abcdefgh-1234'\n",
        b'api_key="0123456789abcdef"\n',
        b'connect(password="correct-horse")\n',
        b'headers = {"Authorization": "x"}; key = "sk-abcdefghijklmnopqrstuvwx"\n',
    ],
)
def test_a_secret_is_not_recorded(tmp_path: Path, secret: bytes) -> None:
    facts = recorded(tmp_path, SCRIPT + secret)
    assert facts.sections["script"].files[0].content is None
    assert secret.strip() not in msgspec.json.encode(facts)
    assert api.plan(facts, "incident-a100").changes
    (tmp_path / "inference.py").unlink()
    (withheld,) = api.plan(facts, "incident-a100").withheld
    assert "can't be read on this machine" in withheld.because


def test_words_that_only_look_like_one_are_recorded(tmp_path: Path) -> None:
    facts = recorded(tmp_path, SCRIPT + b'max_new_tokens = "50"\npad_token = "<pad>"\ntokenizer_name = "x"\n')
    assert facts.sections["script"].files[0].content is not None
