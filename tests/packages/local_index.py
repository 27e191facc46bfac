"""A package index on this machine, with what real ones do at times: yanked files, wrong files, broken transfers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from remediate.demo.wheels import Standin, build_wheel, wheel_name
from remediate.packages.names import canonical


@dataclass
class Index:
    """Files by distribution. `broken` names end half-way; `lying` ones are served with other bytes than stated."""

    url: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    yanked: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    lying: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def add(self, standins: Iterable[Standin]) -> None:
        for standin in standins:
            self.files.setdefault(canonical(standin.name), {})[wheel_name(standin)] = build_wheel(standin)

    def page(self, name: str) -> str:
        links = []
        for file, content in self.files[name].items():
            yanked = ' data-yanked="broken build"' if file in self.yanked else ""
            digest = hashlib.sha256(content).hexdigest()
            links.append(f'<a href="/files/{name}/{file}#sha256={digest}"{yanked}>{file}</a>')
        return "<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>"

    def document(self, name: str) -> str:
        files = [
            {
                "filename": file,
                "url": f"/files/{name}/{file}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "size": len(content),
                "yanked": file in self.yanked,
            }
            for file, content in self.files[name].items()
        ]
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files, "versions": []})


@contextlib.contextmanager
def serve(index: Index) -> Iterator[Index]:
    """Serve it on the loopback address until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            """uv asks before it reads metadata out of a wheel; without ranges it downloads the whole."""
            self.do_GET()

        def do_GET(self) -> None:
            index.asked.append(self.path)
            parts = [part for part in self.path.split("/") if part]
            if len(parts) == 2 and parts[0] == "simple" and parts[1] in index.files:
                is_json = "simple.v1+json" in self.headers.get("Accept", "").split(",")[0]
                text = index.document(parts[1]) if is_json else index.page(parts[1])
                kind = "application/vnd.pypi.simple.v1+json" if is_json else "text/html"
                self.answer(text.encode(), kind)
            elif len(parts) == 3 and parts[0] == "files" and parts[2] in index.files.get(parts[1], {}):
                self.answer_file(parts[2], index.files[parts[1]][parts[2]])
            else:
                self.send_error(404)

        def answer_file(self, name: str, content: bytes) -> None:
            if name in index.lying:
                content = content.replace(b"RECORD", b"RECORE", 1) + b"\0"
            if name not in index.broken:
                self.answer(content, "application/octet-stream")
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.connection.close()

        def answer(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_wheels(index: Index, folder: Path) -> Path:
    """The same files as a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for files in index.files.values():
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return folder
