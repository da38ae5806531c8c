"""The nginx configuration of docs/deploy.md, in a real nginx before the real server."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.server.helpers import OFFER, error_code, make_app, running
from voice_agent.lan import certificate

NAME = "voice.example.com"
KEY = "a-key-in-the-query"
DOCUMENT = Path(__file__).parents[2] / "docs" / "deploy.md"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt-get install nginx-light)")


def documented() -> str:
    (site,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return str(site)


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"docs/deploy.md no longer says {old}"
    return text.replace(old, new)


@dataclass
class Proxy:
    folder: Path
    port: int
    plain: int
    trust: ssl.SSLContext

    def client(self) -> httpx.AsyncClient:
        """Resolves the documented name to this machine."""
        return httpx.AsyncClient(
            verify=self.trust,
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": NAME},
        )

    @property
    def log(self) -> str:
        return (self.folder / "access.log").read_text()


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def site_for(folder: Path, upstream: str, plain: int, secure: int, pem: Path) -> str:
    """The documented site with this test's ports and paths, and nothing else changed."""
    site = documented()
    site = re.sub(r" *listen \[::\]:.*\n", "", site)
    site = replaced(site, "listen 80;", f"listen 127.0.0.1:{plain};")
    site = replaced(site, "listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;")
    site = replaced(site, "http://127.0.0.1:8080", upstream.rstrip("/"))
    for file in ("fullchain.pem", "privkey.pem"):
        site = replaced(site, f"/etc/letsencrypt/live/{NAME}/{file}", str(pem))
    site = replaced(site, "/var/log/nginx/voice-agent.log", str(folder / "access.log"))
    return replaced(site, "/var/log/nginx/voice-agent.error.log", str(folder / "site-error.log"))


@asynccontextmanager
async def nginx(folder: Path, upstream: str) -> AsyncIterator[Proxy]:
    plain, secure = free_ports(2)
    pem = certificate.own_certificate(folder, [NAME], [], certificate.now()).file
    places = "".join(
        f"{kind}_temp_path {folder / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    site = site_for(folder, upstream, plain, secure, pem)
    places += f"access_log {folder / 'default.log'};\n"
    whole = f"daemon off;\nmaster_process off;\npid {folder / 'pid'};\nevents {{}}\nhttp {{\n{places}{site}}}\n"
    file = folder / "nginx.conf"
    file.write_text(whole)
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-c", str(file), "-e", str(folder / "error.log")]
    checked = await asyncio.to_thread(subprocess.run, [*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    process = await asyncio.create_subprocess_exec(*command)
    trust = ssl.create_default_context(cadata=pem.read_text().partition("-----END PRIVATE KEY-----\n")[2])
    trust.check_hostname = False  # reached by address; the certificate itself is checked
    try:
        async with asyncio.timeout(20):
            while not await asyncio.to_thread(answers, secure):
                assert process.returncode is None, (folder / "error.log").read_text()
                await asyncio.sleep(0.02)
        yield Proxy(folder, secure, plain, trust)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


@asynccontextmanager
async def deployed(folder: Path) -> AsyncIterator[tuple[Proxy, asyncio.Event]]:
    """The agent behind nginx, with an echo at /ws and events at /events; the second waits for the event set here."""
    go_on = asyncio.Event()

    async def events(request: Request) -> StreamingResponse:
        async def produce() -> AsyncIterator[bytes]:
            yield b"data: first\n\n"
            await go_on.wait()
            yield b"data: second\n\n"

        return StreamingResponse(produce(), media_type="text/event-stream")

    app = make_app(allowed_hosts=(NAME,), api_keys=(KEY,))
    app.router.routes += [WebSocketRoute("/ws", echo), Route("/events", events)]
    async with running(app) as (upstream, _, _), nginx(folder, upstream) as proxy:
        yield proxy, go_on


def test_page_and_offer_pass_and_foreigners_do_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with deployed(tmp_path) as (proxy, _), proxy.client() as client:
            assert (await client.get("/")).status_code == 200
            assert (await client.post("/api/offer", json=OFFER)).status_code == 401
            right = {"Authorization": f"Bearer {KEY}", "Origin": f"https://{NAME}"}
            assert (await client.post("/api/offer", json=OFFER, headers=right)).status_code == 200
            wrong = {**right, "Origin": "https://evil.example"}
            assert error_code(await client.post("/api/offer", json=OFFER, headers=wrong)) == "foreign_origin"
            other = await client.post("/api/offer", json=OFFER, headers={**right, "Host": "evil.example"})
            assert error_code(other) == "foreign_host"

    asyncio.run(main())


def test_websockets_are_upgraded_and_still_guarded(tmp_path: Path) -> None:
    async def main() -> None:
        async with deployed(tmp_path) as (proxy, _):
            url = f"wss://{NAME}/ws?key={KEY}"
            place = {"host": "127.0.0.1", "port": proxy.port, "ssl": proxy.trust, "proxy": None}
            async with connect(url, origin=f"https://{NAME}", **place) as socket:  # type: ignore[arg-type]
                await socket.send("hello")
                assert await socket.recv() == "hello"
            for address, origin in ((url, "https://evil.example"), (f"wss://{NAME}/ws", f"https://{NAME}")):
                with pytest.raises(InvalidStatus):
                    async with connect(address, origin=origin, **place):  # type: ignore[arg-type]
                        pass

    asyncio.run(main())


def test_events_arrive_before_the_stream_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            deployed(tmp_path) as (proxy, go_on),
            proxy.client() as client,
            asyncio.timeout(20),
            client.stream("GET", "/events", params={"key": KEY}) as answer,
        ):
            pieces = answer.aiter_lines()
            assert await anext(pieces) == "data: first"
            go_on.set()
            assert [line async for line in pieces if line] == ["data: second"]

    asyncio.run(main())


def test_a_key_in_the_query_is_in_no_log(tmp_path: Path) -> None:
    async def main() -> None:
        async with deployed(tmp_path) as (proxy, _), proxy.client() as client:
            assert (await client.get("/readyz", params={"key": KEY})).status_code == 200
        assert '"GET /readyz" 200' in proxy.log
        async with nginx(tmp_path, "http://127.0.0.1:9") as proxy, proxy.client() as client:  # nobody listens there
            assert (await client.get("/readyz", params={"key": KEY})).status_code == 502
            plain = await client.get(f"http://127.0.0.1:{proxy.plain}/", params={"key": KEY})
            assert (plain.status_code, plain.headers["location"]) == (301, f"https://{NAME}/?key={KEY}")

    asyncio.run(main())
    logs = [file.read_text() for file in tmp_path.glob("*.log")]
    assert len(logs) >= 3
    assert not any(KEY in log for log in logs)
