"""A server on 127.0.0.1 that misbehaves on request, wheels made on the spot, and manifests that name them."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from voice_agent.modelstore.manifest import Wheel
from voice_agent.modelstore.progress import SourceFailed


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def noise(size: int, seed: str = "") -> bytes:
    """Bytes that do not compress, the same every time."""
    return hashlib.shake_128(f"noise {seed}".encode()).digest(size)


def wheel_bytes(package: str, version: str, members: dict[str, bytes]) -> bytes:
    """An archive that pip takes for a wheel."""
    name = package.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in members.items():
            archive.writestr(path, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


def wheel_file(package: str, version: str) -> str:
    return f"{package.replace('-', '_')}-{version}-py3-none-any.whl"


def wheel_entry(package: str, data: bytes, version: str = "1.0") -> dict[str, Any]:
    return {"package": package, "version": version, "size": len(data), "sha256": sha(data)}


def model_entry(name: str, role: str, *files: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "licence": "MIT",
        "origin": "nowhere",
        "summary": "a test",
        "file": list(files),
    }


def file_entry(name: str, data: bytes, *sources: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "size": len(data), "sha256": sha(data), "sources": list(sources)}


def from_wheels(*parts: tuple[str, str, int]) -> dict[str, Any]:
    return {"wheels": [{"package": package, "path": path, "size": size} for package, path, size in parts]}


def from_hub(path: str) -> dict[str, Any]:
    return {"hub": {"repo": "them/model", "revision": "r1", "path": path}}


def hub_path(path: str) -> str:
    return f"/them/model/resolve/r1/{path}"


class FakeIndex:
    """Delivers archives from memory and keeps the list of what was asked for."""

    def __init__(self, *archives: bytes) -> None:
        self.archives = {sha(data): data for data in archives}
        self.asked: list[str] = []
        self.before: Callable[[Wheel], None] = lambda _: None

    def fetch(self, wheel: Wheel, target: Path, work: Path, report: Callable[[int], None]) -> None:
        assert work.is_dir()
        self.asked.append(wheel.package)
        self.before(wheel)
        if wheel.sha256 not in self.archives:
            raise SourceFailed("the package index does not have it")
        report(wheel.size // 2)
        target.write_bytes(self.archives[wheel.sha256])
        report(wheel.size)


class NoWeb:
    """Fails the test when something is fetched over the web."""

    def fetch(self, url: str, size: int, partial: Path, report: Callable[[int], None]) -> None:
        raise AssertionError(f"nothing was to be fetched from {url}")


@dataclass
class Page:
    body: bytes
    ranges: bool = True
    drops: list[int] = field(default_factory=list)
    """Connections to break, each after so many bytes of its body."""
    statuses: list[int] = field(default_factory=list)
    """Answers to give first, with an empty body."""
    content_range: str = ""
    """What to say instead of the true Content-Range."""


class Server:
    """`pages` maps a path to what it answers; `requests` holds (path, Range header) in order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, str]] = []

    def ranges_of(self, path: str) -> list[str]:
        return [asked for requested, asked in self.requests if requested == path]

    def add_package(self, package: str, data: bytes, version: str = "1.0") -> Page:
        """A project page of a package index, and the archive it links to."""
        path = f"/files/{wheel_file(package, version)}"
        link = f'<a href="{path}">{wheel_file(package, version)}</a>'
        self.pages[f"/simple/{package}/"] = Page(f"<!DOCTYPE html><html><body>{link}</body></html>".encode())
        self.pages[path] = Page(data)
        return self.pages[path]


@contextmanager
def serve() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, server)

        def log_message(self, *_: object) -> None:
            """Silence: the tests look at `requests`."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _answer(handler: BaseHTTPRequestHandler, server: Server) -> None:
    asked = handler.headers.get("Range", "")
    server.requests.append((handler.path, asked))
    page = server.pages.get(handler.path)
    if page is None or page.statuses:
        handler.send_response(page.statuses.pop(0) if page else 404)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    start = int(asked.removeprefix("bytes=").split("-")[0]) if asked and page.ranges else 0
    if start > len(page.body):
        handler.send_response(416)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    body = page.body[start:]
    handler.send_response(206 if asked and page.ranges else 200)
    if asked and page.ranges:
        true = f"bytes {start}-{len(page.body) - 1}/{len(page.body)}"
        handler.send_header("Content-Range", page.content_range or true)
    handler.send_header("Content-Type", "text/html" if handler.path.endswith("/") else "application/octet-stream")
    handler.send_header("ETag", '"one"')
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    sent: Sequence[int] = body[: page.drops.pop(0)] if page.drops else body
    handler.wfile.write(bytes(sent))
    handler.close_connection = True
