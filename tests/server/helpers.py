"""An app on a fake, asked in memory or over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from tests.server.fake_calls import FakeCalls
from voice_agent.server.app import create_app
from voice_agent.server.joining import Entrance
from voice_agent.server.metrics import Metrics
from voice_agent.server.runner import run_server
from voice_agent.settings import ServerSettings, Settings

WEB = Path(__file__).parents[2] / "web"
OFFER = {"sdp": "v=0", "type": "offer"}


def make_app(
    calls: FakeCalls | None = None,
    *,
    metrics: Metrics | None = None,
    body_timeout: float = 10.0,
    entrance: Entrance | None = None,
    **server: Any,
) -> Starlette:
    settings = Settings(server=ServerSettings(**server))
    counters = metrics or Metrics()
    return create_app(calls or FakeCalls(), settings, counters, WEB, body_timeout=body_timeout, entrance=entrance)


def client_for(app: Any, base_url: str = "http://127.0.0.1:8080") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=base_url)


def ask(app: Any, method: str, url: str, **options: Any) -> httpx.Response:
    """One request in memory, on a loop of its own."""

    async def once() -> httpx.Response:
        async with client_for(app) as client:
            return await client.request(method, url, **options)

    return asyncio.run(once())


def error_code(response: httpx.Response) -> str:
    """The code, after checking that the answer has the one shape of errors."""
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["message"]
    return str(body["error"]["code"])


@asynccontextmanager
async def running(app: Any, **server: Any) -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Task[None]]]:
    """(url, stop event, the runner's task) of the app on a free loopback port."""
    stop = asyncio.Event()
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = Settings(server=ServerSettings(**{"port": 0, **server}))
    task = asyncio.create_task(run_server(app, settings, on_started=started.set_result, stop=stop))
    waited: list[asyncio.Future[Any]] = [task, started]
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    try:
        yield await started, stop, task
    finally:
        stop.set()
        await task
