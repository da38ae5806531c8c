"""Runs the app on uvicorn inside our own event loop.

uvicorn would like to own the process: signals, logging, exit codes, the listening socket. Here it gets a socket that
already listens and a stop event, and it prints nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from functools import partial

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from voice_agent.errors import ConfigError, VoiceAgentError
from voice_agent.server.security import exposure
from voice_agent.settings import ServerSettings, Settings

_GRACE = 2.0
"""Seconds that answers under way get after stop; then their connections are cut. Leaves a second of the three that a
stop may take for everything else."""


MAX_CONNECTIONS = 512
"""Open at a time; one more is closed at once. Idle ones must not use up the files that running calls need."""
_HEAD_TIMEOUT = 10.0
"""Seconds from a connection's beginning until its first request must be whole; with TLS, the same for the handshake."""


class _GuardedProtocol(H11Protocol):
    """HTTP connections that cannot be held open for nothing. uvicorn has no limit for either."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._head_due: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_TIMEOUT, self._check_begun)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_due is None:  # a further request of this connection has begun, and not its whole head is here
            self._head_due = self.loop.call_later(_HEAD_TIMEOUT, self._check_begun)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        due, self._head_due = getattr(self, "_head_due", None), None
        if due is not None:
            due.cancel()

    def _check_begun(self) -> None:
        self._head_due = None
        # A connection that has become a WebSocket has another protocol by now.
        if not self.transport.is_closing() and self.transport.get_protocol() is self:
            self.transport.abort()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, tls: ssl.SSLContext | None, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tls = tls
        self._on_started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the application's."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's own gives a client a minute for the TLS handshake, and meanwhile counts it nowhere."""
        make = partial(
            _GuardedProtocol,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        patience = _HEAD_TIMEOUT if self._tls else None
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(make, sock=one, ssl=self._tls, ssl_handshake_timeout=patience)
            for one in sockets or []
        ]
        self.started = True
        self._on_started()


async def run_server(
    app: ASGIApp,
    settings: Settings,
    *,
    on_started: Callable[[str], None],
    stop: asyncio.Event,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve until `stop` is set; then return within three seconds whatever clients do.

    With `tls` it speaks HTTPS and nothing else. `on_started` is called once with the address to open, when requests are
    answered. Raises VoiceAgentError with a text for the user if the address cannot be used, ConfigError if it would be
    open to everybody by accident. Cancelling is safe: the server stops the same way.
    """
    listener = await open_listener(settings.server)
    config = uvicorn.Config(
        app,
        http=_GuardedProtocol,
        lifespan="off",
        log_config=None,
        log_level=logging.ERROR,  # a stranger's malformed request is no news
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here depends on the client's address, so nobody need be trusted about it
    )
    server = _Server(config, tls, lambda: on_started(url_of(listener, "https" if tls else "http")))
    with listener:
        serving = asyncio.create_task(server.serve([listener]), name="http server")
        stopping = asyncio.create_task(stop.wait(), name="http stop")
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await _wind_down(server, serving)
    serving.result()


async def _wind_down(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    server.should_exit = True
    _, unfinished = await asyncio.wait({serving}, timeout=_GRACE)
    if unfinished:
        for task in list(server.server_state.tasks):
            task.cancel()
        for connection in list(server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        server.force_exit = True
        await asyncio.wait({serving})


async def open_listener(settings: ServerSettings) -> socket.socket:
    """A listening TCP socket on the first usable address of `host`; port 0 takes any free one."""
    where = f"{settings.host}:{settings.port}"
    if not 0 <= settings.port <= 65535:  # the resolver would take it modulo 65536
        raise ConfigError(f"port {settings.port} does not exist: ports are 0 (any free one) to 65535")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise VoiceAgentError(f"cannot listen on {where}: host {settings.host!r} is no address here") from error
    # IPv4 first: `localhost` often means both, and clients that know one loopback address know 127.0.0.1.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    if careless := exposure(settings, [str(address[0])]):
        raise ConfigError(careless)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        # Two sockets may be bound to one port; only one may listen. Listening now makes the answer certain.
        listener.listen()
    except OSError as error:
        listener.close()
        raise VoiceAgentError(_bind_problem(where, settings.port, error)) from error
    listener.setblocking(False)
    return listener


def _bind_problem(where: str, port: int, error: OSError) -> str:
    code = error.errno
    if code == errno.EADDRINUSE:
        return f"port {port} is in use: {where} is taken by another program; see --port (VOICE_AGENT_PORT)"
    if code in (errno.EACCES, errno.EPERM):
        return f"not allowed to listen on {where}: ports below 1024 need privileges; see --port (VOICE_AGENT_PORT)"
    if code == errno.EADDRNOTAVAIL:
        return f"cannot listen on {where}: this machine does not have that address"
    return f"cannot listen on {where}: {error}"


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """The address to open in a browser; a wildcard becomes loopback, which it includes."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"{scheme}://[{host}]:{port}/" if address.version == 6 else f"{scheme}://{host}:{port}/"
