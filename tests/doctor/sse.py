"""A server that streams text as OpenAI's chat completions do, and a proxy in front of it that may collect."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

PIECES = 20
EVERY = 0.02
"""Seconds between two pieces: well above what counts as arriving at once."""

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def _answer(status: str, document: dict[str, Any]) -> bytes:
    body = json.dumps(document).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


@contextlib.asynccontextmanager
async def streaming_server(
    *, events: list[bytes] | None = None, status: str = "", code: str = "", asked: list[Any] | None = None
) -> AsyncIterator[str]:
    """Gives its address. `status` answers that, with an error of `code`, instead of a stream; `events` replaces the
    usual pieces; `asked` collects the bodies that came."""

    async def answer(reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /v1/models "):
            writer.write(_answer("200 OK", {"data": [{"id": "small-talker"}]}))
            writer.close()
            return
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-l"))
        body = json.loads(await reader.readexactly(length))
        if asked is not None:
            asked.append(body)
        if status:
            writer.write(_answer(status, {"error": {"message": "no reason", "code": code}}))
        else:
            writer.write(HEAD)
            for data in events or [event(f" word{number}") for number in range(PIECES)]:
                await asyncio.sleep(EVERY)
                writer.write(chunk(data))
                await writer.drain()
            writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        writer.close()

    async with _listen(answer) as url:
        yield url


@contextlib.asynccontextmanager
async def collecting_proxy(url: str, size: int) -> AsyncIterator[str]:
    """Passes the answer on in portions of `size` bytes, as a buffering proxy does; 0 passes on the whole at its end."""
    host, port = url.removeprefix("http://").split(":")

    async def answer(reader: Reader, writer: Writer) -> None:
        upstream, request = await asyncio.open_connection(host, int(port))

        async def forward() -> None:
            while data := await reader.read(4096):
                request.write(data)

        forwarding = asyncio.create_task(forward())
        held = b""
        while data := await upstream.read(4096):
            held += data
            while size and len(held) >= size:
                writer.write(held[:size])
                held = held[size:]
        writer.write(held)
        forwarding.cancel()
        await asyncio.gather(forwarding, return_exceptions=True)
        request.close()
        writer.close()

    async with _listen(answer) as address:
        yield address


@contextlib.asynccontextmanager
async def _listen(answer) -> AsyncIterator[str]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()
