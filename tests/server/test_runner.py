"""The real server on a real loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from tests.server.fake_calls import FakeCalls
from tests.server.helpers import OFFER, error_code, make_app, running
from voice_agent.errors import ConfigError, VoiceAgentError
from voice_agent.server import runner
from voice_agent.server.runner import open_listener, run_server, url_of
from voice_agent.settings import ServerSettings, Settings


def port_of(url: str) -> int:
    return httpx.URL(url).port or 0


async def open_raw(url: str, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
    writer.write(head.replace("\n", "\r\n").encode("latin-1"))
    await writer.drain()
    return reader, writer


async def ask_raw(url: str, head: str) -> bytes:
    reader, writer = await open_raw(url, head)
    answer = await reader.readline()
    writer.close()
    return answer


def test_it_serves_until_told_to_stop_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        async with running(make_app()) as (url, _, task), httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/")).status_code == 200
            assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
            assert not task.done()
        assert task.done()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port_of(url))

    for _ in range(3):  # several loops in one process
        asyncio.run(main())
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_named_and_can_be_taken_once_it_is_free() -> None:
    async def main() -> None:
        async with running(make_app()) as (url, _, _):
            async with httpx.AsyncClient() as client:
                await client.get(url)
            port = port_of(url)
            with pytest.raises(VoiceAgentError, match=f"port {port} is in use.*--port .VOICE_AGENT_PORT"):
                async with running(make_app(), port=port):
                    pass
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"{url}healthz")).status_code == 200
        async with running(make_app(), port=port) as (again, _, _):
            assert again == url

    asyncio.run(main())


@pytest.mark.parametrize(
    ("server", "kind", "text"),
    [
        ({"host": "no such host"}, VoiceAgentError, "no such host"),
        ({"host": "192.0.2.1", "allow_open": True}, VoiceAgentError, "does not have that address"),
        ({"host": "0.0.0.0"}, ConfigError, "allow_open"),
        ({"port": 70000}, VoiceAgentError, "70000"),
    ],
    ids=str,
)
def test_addresses_that_cannot_be_used(server: dict[str, object], kind: type[Exception], text: str) -> None:
    settings = Settings(server=ServerSettings(**{"port": 0, **server}))  # type: ignore[arg-type]

    async def main() -> None:
        await run_server(make_app(), settings, on_started=pytest.fail, stop=asyncio.Event())

    with pytest.raises(kind, match=text):
        asyncio.run(main())


def test_the_address_told_is_one_that_can_be_opened() -> None:
    async def told(host: str) -> str:
        with await open_listener(ServerSettings(host=host, port=0, allow_open=True)) as listener:
            return url_of(listener).replace(str(listener.getsockname()[1]), "PORT")

    assert asyncio.run(told("127.0.0.1")) == "http://127.0.0.1:PORT/"
    assert asyncio.run(told("0.0.0.0")) == "http://127.0.0.1:PORT/"
    assert asyncio.run(told("localhost")) == "http://127.0.0.1:PORT/"
    if Path("/proc/net/if_inet6").is_file():  # IPv6 is not switched off here
        assert asyncio.run(told("::1")) == "http://[::1]:PORT/"
        assert asyncio.run(told("[::1]")) == "http://[::1]:PORT/"


async def stubborn_clients(url: str, calls: FakeCalls) -> list[asyncio.StreamWriter]:
    """Connections in every unfinished state a client can leave them in."""
    body = json.dumps(OFFER)
    heads = [
        "",
        "GET /healthz HT",
        "GET /healthz HTTP/1.1\nHost: localhost\n\n",
        "POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: 100\n\n",
        'POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: 100\n\n{"sdp":',
        "POST /api/offer HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n5\nab",
        f"POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: {len(body)}\n\n{body}",
    ]
    connections = [await open_raw(url, head) for head in heads]
    assert (await connections[2][0].readline()).startswith(b"HTTP/1.1 200")
    await calls.until(lambda seen: seen.entered == 1)
    return [writer for _, writer in connections]


@pytest.mark.parametrize("how", ["stop", "cancel"])
def test_open_connections_do_not_hold_up_the_end(
    how: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert runner._GRACE <= 2.5  # of the three seconds promised
    monkeypatch.setattr(runner, "_GRACE", 0.2)

    async def main() -> None:
        calls, stop = FakeCalls(gate=asyncio.Event()), asyncio.Event()
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        settings = Settings(server=ServerSettings(port=0))
        task = asyncio.create_task(run_server(make_app(calls), settings, on_started=started.set_result, stop=stop))
        writers = await stubborn_clients(await started, calls)
        if how == "stop":
            stop.set()
        else:
            task.cancel()
        await asyncio.wait({task}, timeout=3)
        assert task.done()
        assert task.cancelled() == (how == "cancel")
        for writer in writers:
            writer.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert capfd.readouterr().out == ""


def test_answers_under_way_are_finished_before_the_stop() -> None:
    async def main() -> None:
        calls = FakeCalls(gate=asyncio.Event())
        async with running(make_app(calls)) as (url, stop, _), httpx.AsyncClient(base_url=url) as client:
            asking = asyncio.create_task(client.post("/api/offer", json=OFFER))
            await calls.until(lambda seen: seen.entered == 1)
            stop.set()
            assert calls.gate is not None
            calls.gate.set()
            assert (await asking).status_code == 200

    asyncio.run(main())


def attack(check: Callable[[str, FakeCalls], Awaitable[None]]) -> None:
    """Run an attack; afterwards the server still answers and takes calls."""

    async def main() -> None:
        calls = FakeCalls()
        async with running(make_app(calls, body_timeout=0.1)) as (url, _, _):
            await check(url, calls)
            async with httpx.AsyncClient(base_url=url) as client:
                assert (await client.get("/healthz")).status_code == 200
                assert (await client.post("/api/offer", json=OFFER)).status_code == 200

    asyncio.run(main())


def test_clients_that_send_no_body_hold_nobody_up_and_are_let_go() -> None:
    async def check(url: str, calls: FakeCalls) -> None:
        head = "POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: 100\n\n"
        silent = [await open_raw(url, head) for _ in range(50)]
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/healthz")).status_code == 200
        for reader, writer in silent:
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            writer.close()
        assert calls.entered == 0

    attack(check)


def test_a_huge_body_is_refused_before_it_is_sent() -> None:
    async def check(url: str, calls: FakeCalls) -> None:
        head = "POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: 10000000000\n\n"
        assert (await ask_raw(url, head)).startswith(b"HTTP/1.1 413")
        chunk = "10000\n" + "x" * 65536 + "\n"
        head = "POST /api/offer HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n"
        assert (await ask_raw(url, head + chunk * 2)).startswith(b"HTTP/1.1 413")
        assert calls.entered == 0

    attack(check)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /../../etc/passwd HTTP/1.1\nHost: localhost\n\n", 404),
        ("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\nHost: localhost\n\n", 404),
        ("GET //etc/passwd HTTP/1.1\nHost: localhost\n\n", 404),
        ("GET /%ff%fe HTTP/1.1\nHost: localhost\n\n", 404),
        ("GET http://evil.example/ HTTP/1.1\nHost: localhost\n\n", 404),
        ("GET / HTTP/1.1\nHost: evil.example\n\n", 403),
        ("GET / HTTP/1.1\nHost: localhost\nHost: evil.example\n\n", 400),
        ("GET / HTTP/1.1\n\n", 400),
        ("GET / HTTP/1.0\n\n", 403),
        ("GET / HTTP/1.1\nHost: localhost\nOrigin: http://evil.example\n\n", 403),
        ("POST /api/offer HTTP/1.1\nHost: localhost\nOrigin: null\nContent-Length: 2\n\n{}", 403),
        ("POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: -1\n\n", 400),
        ("POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: x\n\n", 400),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_hostile_requests_get_a_plain_no(head: str, status: int, capfd: pytest.CaptureFixture[str]) -> None:
    async def check(url: str, calls: FakeCalls) -> None:
        assert (await ask_raw(url, head)).startswith(f"HTTP/1.1 {status}".encode())

    attack(check)
    assert capfd.readouterr() == ("", "")


def test_a_hundred_offers_at_once_over_real_sockets() -> None:
    async def main() -> None:
        calls = FakeCalls(limit=3, gate=asyncio.Event())
        limits = httpx.Limits(max_connections=None)
        async with (
            running(make_app(calls)) as (url, _, _),
            httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as client,
        ):
            offers = [asyncio.create_task(client.post("/api/offer", json=OFFER)) for _ in range(100)]
            await calls.until(lambda seen: seen.entered == 100)
            assert calls.gate is not None
            calls.gate.set()
            answers = [await one for one in offers]
            accepted = [one.json()["session_id"] for one in answers if one.status_code == 200]
            refused = [one for one in answers if one.status_code == 503]
            assert (len(accepted), len(refused)) == (3, 97)
            assert {error_code(one) for one in refused} == {"busy"}
            assert all(int(one.headers["retry-after"]) > 0 for one in refused)
            for session_id in accepted:
                await client.delete(f"/api/sessions/{session_id}")
            assert (await client.post("/api/offer", json=OFFER)).status_code == 200

    asyncio.run(main())


def test_a_client_that_hangs_up_on_its_offer_keeps_no_slot() -> None:
    async def main() -> None:
        calls = FakeCalls(limit=1, gate=asyncio.Event())
        async with running(make_app(calls)) as (url, _, _), httpx.AsyncClient(base_url=url) as client:
            body = json.dumps(OFFER)
            head = f"POST /api/offer HTTP/1.1\nHost: localhost\nContent-Length: {len(body)}\n\n{body}"
            _, writer = await open_raw(url, head)
            await calls.until(lambda seen: seen.entered == 1)
            writer.transport.abort()
            assert (await client.get("/healthz")).status_code == 200  # the loop has seen the abort by now
            assert calls.gate is not None
            calls.gate.set()
            await calls.until(lambda seen: bool(seen.ended))
            assert (await client.post("/api/offer", json=OFFER)).status_code == 200

    asyncio.run(main())


def test_websockets_over_a_real_socket() -> None:
    async def endpoint(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close()

    handshake = (
        "GET /ws HTTP/1.1\nHost: {host}\nUpgrade: websocket\nConnection: Upgrade\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13\n{more}\n"
    )

    async def main() -> None:
        app = make_app()
        app.router.routes.append(WebSocketRoute("/ws", endpoint))
        async with running(app) as (url, _, _):
            own = f"127.0.0.1:{port_of(url)}"
            for host, more, status in [
                (own, "", 101),
                (own, f"Origin: http://{own}\n", 101),
                (own, "Origin: http://evil.example\n", 403),
                (own, "Origin: null\n", 403),
                ("evil.example", "", 403),
                ("evil.example", "Origin: http://evil.example\n", 403),
            ]:
                answer = await ask_raw(url, handshake.format(host=host, more=more))
                assert answer.startswith(f"HTTP/1.1 {status}".encode()), (host, more, answer)

    asyncio.run(main())


def test_connections_that_never_finish_a_request_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a head holds a file open for nothing; a request under way is left alone."""
    monkeypatch.setattr(runner, "_HEAD_TIMEOUT", 0.2)

    async def check(url: str, _calls: FakeCalls) -> None:
        reader, writer = await open_raw(url, "GET / HTTP/1.1\r\nHost: 127")
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()

    attack(check)


def test_a_further_request_of_a_connection_must_come_whole_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_HEAD_TIMEOUT", 0.2)

    async def check(url: str, _calls: FakeCalls) -> None:
        reader, writer = await open_raw(url, f"GET /healthz HTTP/1.1\nHost: 127.0.0.1:{port_of(url)}\n\n")
        assert (await reader.readline()).split()[1] == b"200"
        writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
        async with asyncio.timeout(4):  # less than the time a connection may be idle
            await reader.read()
        writer.close()

    attack(check)


def test_one_connection_too_many_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_CONNECTIONS", 2)

    async def check(url: str, _calls: FakeCalls) -> None:
        held = [await open_raw(url, "GET / HT") for _ in range(2)]
        reader, writer = await open_raw(url, "GET / HT")
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionResetError):  # aborted, or closed in order: either will do
                while await reader.read(100):
                    pass
        for _, one in [*held, (reader, writer)]:
            one.close()
        await asyncio.sleep(0)

    attack(check)
