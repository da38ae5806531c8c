"""The composition root: puts engines, calls, server and transport together (engines are made in `engine_makers.py`).

`serve` is the whole life of the process: answer HTTP at once, load and warm the models, take calls, stop cleanly.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp
from threadpoolctl import threadpool_limits

from voice_agent.config import Source
from voice_agent.engine_room import EngineRoom
from voice_agent.errors import ConfigError, VoiceAgentError
from voice_agent.lan.access import LanAccess
from voice_agent.lan.addresses import machine_addresses
from voice_agent.modelstore import ModelPaths, ModelStore, load_manifest, model_root
from voice_agent.reload import Reloader, reload_on_hangup
from voice_agent.server.app import create_app
from voice_agent.server.metrics import Metrics
from voice_agent.server.runner import run_server
from voice_agent.session.calls import CallBook, Connect
from voice_agent.session.factory import Attend, SessionFactory
from voice_agent.settings import Settings
from voice_agent.transports.ports import Transport
from voice_agent.transports.webrtc.peer import accept_offer

log = logging.getLogger(__name__)

IMPATIENCE = 2.0
"""Seconds after which a second Ctrl-C means "now". Until then it is the same one: a terminal and a wrapper script both
pass it on."""


@dataclass(frozen=True, slots=True)
class Own:
    """What a program that embeds the agent brings along (voice_agent/api)."""

    engines: Mapping[str, Any] = field(default_factory=dict)
    """By setting: `llm`, `stt`, `tts`; each fits its port."""
    attend: Attend | None = None
    finish: Callable[[], Awaitable[None]] | None = None
    """Awaited after the last call, before the program ends."""


NOTHING_OWN = Own()


def serve(settings: Settings, source: Source, own: Own = NOTHING_OWN) -> int:
    """Run the agent until Ctrl-C or SIGTERM; returns the exit code. Raises VoiceAgentError with a text for the user.

    `source` is read again on SIGHUP and when its file changes.
    """

    async def until_signal() -> None:
        stop, reload = asyncio.Event(), asyncio.Event()
        _stop_on_signals(stop)
        reload_on_hangup(reload, stop)
        await serve_until(stop, reload, settings, source, own)

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    for chatty in ("aiortc", "aioice", "faster_whisper", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    asyncio.run(until_signal())
    return 0


async def serve_until(
    stop: asyncio.Event, reload: asyncio.Event, settings: Settings, source: Source, own: Own = NOTHING_OWN
) -> None:
    """Serve until `stop` is set, or the task is cancelled; `source` is read again when `reload` is set.

    Raises VoiceAgentError with a text for the user.
    """
    paths = _prepare(settings, own)
    try:
        await _serve(stop, reload, settings, source, paths, own)
    except BaseExceptionGroup as group:
        # Not `except*`: what is raised in it comes out in a group again on some Pythons (3.11.2).
        ours = group.subgroup(VoiceAgentError)
        if ours is None:
            raise
        raise _first(ours) from None
    finally:
        if own.finish is not None:
            await own.finish()


@contextlib.asynccontextmanager
async def open_calls(settings: Settings, own: Own = NOTHING_OWN) -> AsyncGenerator[SessionFactory, None]:
    """Calls without a server: engines loaded and warm, closed at the end. Raises VoiceAgentError."""
    engines = EngineRoom(settings, _prepare(settings, own), own.engines)
    try:
        await engines.load(lambda waiting: None)
        voice = engines.voice_name
        yield SessionFactory(settings, engines.activity, engines.for_calls(), Metrics(), voice, attend=own.attend)
    finally:
        await engines.close()


def _prepare(settings: Settings, own: Own) -> ModelPaths:
    """What the whole process needs before engines load. Raises ModelError, ConfigError."""
    _allow_many_files()
    _check_traces(settings.server.trace_dir)
    # numpy's matrix products (the recogniser's features) wake a thread per core that then spins for 100 ms. Beside it
    # the encoder took 160 ms where it takes 102 ms without, on two cores.
    threadpool_limits(limits=1, user_api="blas")
    return ModelStore(model_root(settings.models), load_manifest()).resolve(settings.models, without=own.engines)


def _allow_many_files() -> None:
    """A call takes some files, and the usual soft limit of 1024 is the first thing to break."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _check_traces(folder: str) -> None:
    """Raises ConfigError now rather than losing the trace of every call."""
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(
            f"trace_dir: no traces can be written to {folder} ({error.strerror or error}); "
            "name another folder, or leave it empty for no traces"
        ) from error


def _with_own_addresses(settings: Settings) -> Settings:
    """Who listens on all interfaces is meant to be reached by their addresses. An address in Host is safe: rebinding a
    foreign name to this machine leaves that name in it."""
    server = settings.server
    if server.host not in ("0.0.0.0", "::"):
        return settings
    own = tuple(str(address) for address in machine_addresses())
    return replace(settings, server=replace(server, allowed_hosts=(*server.allowed_hosts, *own)))


def _first(group: BaseExceptionGroup[VoiceAgentError]) -> VoiceAgentError:
    """The first plain error of a task group: the one a user can act on."""
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    return VoiceAgentError("unknown error")


async def _serve(
    stop: asyncio.Event, reload: asyncio.Event, settings: Settings, source: Source, paths: ModelPaths, own: Own
) -> None:
    metrics = Metrics()
    calls = CallBook(_connect(settings), settings.server.max_sessions, settings.server.keep_sessions, metrics)
    lan = LanAccess(settings.server) if settings.server.lan else None
    app = create_app(calls, _with_own_addresses(settings), metrics, web_root(), entrance=lan.entrance if lan else None)
    engines = EngineRoom(settings, paths, own.engines)

    def take_over(current: Settings) -> None:
        voice = engines.voice_name
        calls.open(SessionFactory(current, engines.activity, engines.for_calls(), metrics, voice, attend=own.attend))

    reloader = Reloader(source, settings, engines, calls, take_over)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(engines.close)
        closing.push_async_callback(calls.close)
        async with asyncio.TaskGroup() as tasks:
            server = tasks.create_task(_run_server(app, settings, lan, stop))
            working = tasks.create_task(_work(engines, calls, settings, take_over, reloader, reload))
            await stop.wait()
            with contextlib.suppress(OSError):  # the terminal may be gone
                print("stopping …", flush=True)
            working.cancel()
            await calls.close()
            await server


async def _work(
    engines: EngineRoom,
    calls: CallBook,
    settings: Settings,
    take_over: Callable[[Settings], None],
    reloader: Reloader,
    reload: asyncio.Event,
) -> None:
    """Load the models, take calls, and follow the settings from then on."""
    began = time.monotonic()
    await engines.load(calls.loading)
    take_over(settings)
    print(f"ready after {time.monotonic() - began:.1f} s: {settings.server.max_sessions} calls at a time", flush=True)
    await reloader.follow(reload)


async def _run_server(app: ASGIApp, settings: Settings, lan: LanAccess | None, stop: asyncio.Event) -> None:
    def announce(url: str) -> None:
        print(f"voice agent on {url}  (loading models; Ctrl-C stops)", flush=True)
        if lan is not None:
            lan.opened(urlsplit(url).port or settings.server.port)
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lan.devices.invite)

    if lan is None:
        await run_server(app, settings, on_started=announce, stop=stop)
    else:
        server = replace(settings, server=lan.settings)
        await run_server(app, server, on_started=announce, stop=stop, tls=lan.context())


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    first: list[float] = []

    def asked() -> None:
        if first and loop.time() - first[0] > IMPATIENCE:
            os._exit(130)  # asked again: whatever still holds us up is not worth waiting for
        first.append(loop.time())
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)


def _connect(settings: Settings) -> Connect:
    async def connect(sdp: str, kind: str) -> tuple[Transport, str]:
        return await accept_offer(sdp, kind, settings.webrtc, time.monotonic)

    return connect


def web_root() -> Path:
    """The page: beside the package in an installed wheel, in the checkout otherwise."""
    package = Path(__file__).parent
    shipped = package / "_web"
    return shipped if shipped.is_dir() else package.parent / "web"
