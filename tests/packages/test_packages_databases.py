"""Asking advisory databases, against a local server that answers, refuses, lies and dies, and the command."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from packages.packages_records import dist, document, facts_of
from typer.testing import CliRunner

from remediate.cli import app
from remediate.documents import encode
from remediate.errors import ExitCode
from remediate.packages.advisories import index, osv
from remediate.packages.advisories.check import Answer, Candidate, Checked, check, exit_code
from remediate.packages.advisories.records import Severity
from remediate.packages.advisories.saved import keep_answers, read_answers
from remediate.packages.facts import DistributionFacts

TORCH = Candidate("torch", "2.5.1")
IDNA = Candidate("idna", "3.6")
RCE: dict[str, Any] = {
    "id": "GHSA-53q9-r3pm-6pq6",
    "aliases": ["CVE-2025-32434", "PYSEC-2025-41"],
    "summary": "torch.load runs code",
    "database_specific": {"severity": "CRITICAL"},
    "affected": [
        {"package": {"ecosystem": "npm", "name": "torch"}, "ranges": [{"type": "SEMVER", "events": [{"fixed": "9"}]}]},
        {
            "package": {"ecosystem": "PyPI", "name": "Torch"},
            "ranges": [
                {"type": "GIT", "events": [{"introduced": "0"}, {"fixed": "c0ffee"}]},
                {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.6.0"}, {"fixed": "1.9"}]},
            ],
        },
    ],
}
IDNA_DOS: dict[str, Any] = {
    "id": "PYSEC-2024-60",
    "aliases": ["CVE-2024-3651"],
    "details": "A long input.\nIt takes long.",
}
Reply = tuple[int, Any]
Replies = dict[str, Reply | Callable[[Any], Reply]]


class Server:
    """Answers by path; what it was asked stands in `asked`."""

    def __init__(self) -> None:
        self.replies: Replies = {}
        self.asked: list[tuple[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(None)

            def do_POST(self) -> None:
                self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _reply(self, body: Any) -> None:
                outer.asked.append((self.path, body))
                reply = outer.replies.get(self.path, (404, {"code": 5}))
                status, content = reply(body) if callable(reply) else reply
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                # 299 stands for a connection that dies in the middle of its answer.
                self.send_header("Content-Length", str(len(data) + (10 if status == 299 else 0)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def batch(**numbers: list[str]) -> Callable[[Any], Reply]:
    def reply(body: Any) -> Reply:
        names = [query["package"]["name"] for query in body["queries"]]
        return 200, {"results": [{"vulns": [{"id": number} for number in numbers.get(name, [])]} for name in names]}

    return reply


def vulns(*records: dict[str, Any]) -> Replies:
    return {f"/v1/vulns/{record['id']}": (200, record) for record in records}


def test_osv_is_asked_once_for_all_and_once_for_each_advisory(server: Server) -> None:
    two = Candidate("torch", "2.4.0")
    server.replies = {"/v1/querybatch": batch(torch=[RCE["id"]], idna=[IDNA_DOS["id"]]), **vulns(RCE, IDNA_DOS)}
    answers = osv.ask([TORCH, two, IDNA], "2026-12-01", server.url)
    assert [path for path, _ in server.asked] == [
        "/v1/querybatch",
        "/v1/vulns/GHSA-53q9-r3pm-6pq6",
        "/v1/vulns/PYSEC-2024-60",
    ]
    (torch,), (idna,) = answers["torch==2.5.1"].advisories, answers["idna==3.6"].advisories
    assert (torch.id, torch.fixed, torch.severity) == ("CVE-2025-32434", "2.6.0", Severity.CRITICAL)
    assert torch.aliases == ("GHSA-53q9-r3pm-6pq6", "PYSEC-2025-41")
    assert (idna.id, idna.effect, idna.fixed) == ("CVE-2024-3651", "A long input.", "")
    assert answers["torch==2.5.1"].source == "OSV, 2026-12-01"


def test_pages_are_followed(server: Server) -> None:
    def reply(body: Any) -> Reply:
        pages = [query.get("page_token") for query in body["queries"]]
        if pages == [None, None]:
            return 200, {"results": [{"vulns": [{"id": RCE["id"]}], "next_page_token": "more"}, {}]}
        assert pages == ["more"]
        return 200, {"results": [{"vulns": [{"id": "PYSEC-1"}]}]}

    server.replies = {"/v1/querybatch": reply, **vulns(RCE, {"id": "PYSEC-1", "summary": "second page"})}
    answers = osv.ask([TORCH, IDNA], "today", server.url)
    assert [found.id for found in answers[TORCH.key].advisories] == ["CVE-2025-32434", "PYSEC-1"]
    assert answers[IDNA.key] == Answer("OSV, today")


def test_withdrawn_advisories_are_none_and_lost_texts_are_advisories(server: Server) -> None:
    withdrawn = {**IDNA_DOS, "withdrawn": "2026-01-01T00:00:00Z"}
    server.replies = {"/v1/querybatch": batch(torch=["GONE-1"], idna=[IDNA_DOS["id"]]), **vulns(withdrawn)}
    answers = osv.ask([TORCH, IDNA], "today", server.url)
    (lost,) = answers[TORCH.key].advisories
    assert (lost.id, "404" in lost.note) == ("GONE-1", True)
    assert answers[IDNA.key].advisories == ()


@pytest.mark.parametrize(
    "reply",
    [
        (500, {}),
        (403, b"<html>proxy</html>"),
        (200, b"<html>login</html>"),
        (200, {}),
        (200, {"results": []}),
        (200, {"results": [{}]}),
        (200, {"results": [{"vulns": [{}]}, {}]}),
        (200, {"results": ["x", "y"]}),
        (200, []),
        (200, {"results": [{"next_page_token": "a"}, {"next_page_token": "b"}]}),
        (299, {"results": [{}, {}]}),
    ],
    ids=["500", "403", "html", "nothing", "none", "one of two", "no id", "text", "list", "endless", "dies"],
)
def test_a_bad_answer_is_no_answer(server: Server, reply: Reply) -> None:
    server.replies = {"/v1/querybatch": reply}
    answers = osv.ask([TORCH, IDNA], "today", server.url)
    assert all(answer.unchecked.startswith("OSV: ") for answer in answers.values())
    report = check([TORCH, IDNA], answers, "x", asked=True)
    assert (report.complete, report.unchecked, exit_code(report, asked=True)) == (False, 2, ExitCode.UNKNOWN)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "file:///etc/passwd", "nonsense", "http://[::1"])
def test_an_unreachable_database_is_no_answer(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    assert osv.ask([TORCH], "today", url)[TORCH.key].unchecked
    assert index.ask([TORCH], "today", url)[TORCH.key].unchecked


def test_the_index_tells_what_it_does_not_know(server: Server) -> None:
    record = {"id": "PYSEC-2024-60", "aliases": ["CVE-2024-3651"], "summary": "slow", "fixed_in": ["3.7", "2.0"]}
    gone = {"id": "PYSEC-2", "withdrawn": "2026-01-01"}
    server.replies = {
        "/pypi/idna/3.6/json": (200, {"info": {}, "vulnerabilities": [record, gone]}),
        "/pypi/old/1/json": (200, {"info": {}}),
    }
    private, old = Candidate("private", "1"), Candidate("old", "1")
    answers = index.ask([IDNA, private, old], "today", server.url)
    (idna,) = answers[IDNA.key].advisories
    assert (idna.id, idna.fixed, idna.aliases) == ("CVE-2024-3651", "3.7", ("PYSEC-2024-60",))
    assert answers[private.key].unchecked == "the package index does not know this version"
    assert "JSON API" in answers[old.key].unchecked


def test_a_dead_index_is_not_asked_a_hundred_times(server: Server) -> None:
    many = [Candidate(f"a{number}", "1") for number in range(20)]
    server.replies = {f"/pypi/a{number}/1/json": (503, {}) for number in range(20)}
    answers = index.ask(many, "today", server.url)
    assert len(server.asked) == 3
    assert all("503" in answer.unchecked for answer in answers.values())
    assert len(answers) == 20


def test_what_no_database_can_tell_is_not_asked(server: Server) -> None:
    server.replies = {"/v1/querybatch": batch()}
    fork = Candidate("transformers", "5.0.0", "it came from git+https://github.com/a/b@c0ffee, and …")
    assert osv.ask([fork], "today", server.url) == {}
    assert index.ask([fork], "today", server.url) == {}
    assert server.asked == []
    row = check([fork], {}, "x", asked=True).distributions[0]
    assert row.unchecked == fork.obstacle
    assert row.advisories  # What is known of the release is told all the same.


def rows(candidates: list[Candidate], answers: dict[str, Answer], *, asked: bool) -> dict[str, Checked]:
    return {row.name: row for row in check(candidates, answers, "x", asked=asked).distributions}


def test_one_advisory_with_two_numbers_is_one() -> None:
    known = rows([TORCH], {}, asked=False)["torch"].advisories
    extra = osv.to_advisory(msgspec.convert(RCE, osv._Record), TORCH)
    assert rows([TORCH], {TORCH.key: Answer("OSV", (extra,))}, asked=True)["torch"].advisories == known
    renamed = msgspec.structs.replace(extra, id="PYSEC-2025-41", aliases=())
    assert rows([TORCH], {TORCH.key: Answer("OSV", (renamed,))}, asked=True)["torch"].advisories == known


@pytest.mark.parametrize(
    ("candidates", "answers", "asked", "code"),
    [
        ([TORCH], {}, False, ExitCode.DIFFERS),
        ([Candidate("torch", "2.14.1")], {}, False, ExitCode.OK),
        ([IDNA], {}, False, ExitCode.UNKNOWN),
        ([TORCH, IDNA], {}, False, ExitCode.DIFFERS),
        ([IDNA], {IDNA.key: Answer("OSV")}, True, ExitCode.OK),
        ([IDNA], {IDNA.key: Answer("OSV", unchecked="dead")}, True, ExitCode.UNKNOWN),
        ([TORCH], {TORCH.key: Answer("OSV", unchecked="dead")}, True, ExitCode.UNKNOWN),
        ([TORCH], {}, True, ExitCode.UNKNOWN),
        ([], {}, False, ExitCode.OK),
    ],
)
def test_exit_codes(candidates: list[Candidate], answers: dict[str, Answer], asked: bool, code: ExitCode) -> None:
    assert exit_code(check(candidates, answers, "x", asked=asked), asked=asked) is code


def test_answers_are_kept_and_misses_are_not(tmp_path: Path) -> None:
    assert read_answers(tmp_path) == {}
    keep_answers(tmp_path / "state", {"a==1": Answer("OSV"), "b==1": Answer("OSV", unchecked="dead")})
    keep_answers(tmp_path / "state", {"b==1": Answer("OSV, later"), "a==1": Answer("", unchecked="dead")})
    assert read_answers(tmp_path / "state") == {"a==1": Answer("OSV"), "b==1": Answer("OSV, later")}
    (tmp_path / "state" / "advisories.json").write_bytes(b'{"schema_version": 9}')
    assert read_answers(tmp_path / "state") == {}


class Run:
    """The command on a facts document."""

    def __init__(self, folder: Path, *found: DistributionFacts) -> None:
        self.facts = folder / "facts.json"
        self.state = folder / "state"
        self.facts.write_bytes(encode(document(facts_of(*found))))

    def __call__(self, *arguments: str) -> tuple[int, str]:
        state = ("--state-dir", str(self.state))
        done = CliRunner().invoke(app, ["advisories", "--facts", str(self.facts), *state, *arguments])
        return done.exit_code, done.output


def test_the_command_on_recorded_facts(tmp_path: Path, server: Server) -> None:
    run = Run(tmp_path, dist("torch", "2.13.0"), dist("idna", "3.6"))
    code, text = run()
    assert (code, "Not checked (1)" in text, "idna 3.6" in text) == (4, True, True)
    server.replies = {"/v1/querybatch": (500, {})}
    assert run("--update", "--url", server.url)[0] == 4
    server.replies = {"/v1/querybatch": batch(idna=[IDNA_DOS["id"]]), **vulns(IDNA_DOS)}
    code, text = run("--update", "--url", server.url)
    assert (code, "CVE-2024-3651" in text, "Not checked" in text) == (3, True, False)
    code, text = run("--json")  # From what the update kept.
    report = json.loads(text)
    assert (code, report["kind"], report["found"], report["complete"]) == (3, "remediate-advisories", 1, True)
    server.replies = {"/v1/querybatch": batch()}
    assert run("--update", "--url", server.url)[0] == 0


def test_the_command_on_a_profile(tmp_path: Path) -> None:
    state = ["--state-dir", str(tmp_path)]
    done = CliRunner().invoke(app, ["advisories", "--profile", "incident-a100", *state])
    assert done.exit_code == 3
    assert "CVE-2025-32434 (critical): torch.load runs code" in done.output
    assert "numpy 1.26.4" in done.output[done.output.index("Not checked") :]
    done = CliRunner().invoke(app, ["advisories", "--profile", "current", "--facts", "x.json"])
    assert done.exit_code != 0
    assert CliRunner().invoke(app, ["advisories", "--from", "nvd", "--profile", "current"]).exit_code != 0


def test_the_command_on_facts_without_an_environment(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.facts.write_bytes(encode(document(facts_of(target=None))))
    assert run()[0] != 0
