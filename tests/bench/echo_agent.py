"""A tiny agent over real WebRTC: after 300 ms of silence from the caller it answers with a tone and reports the turn.

The silence is counted in audio, not by a clock: a busy machine makes the answer later, never earlier.
"""

from __future__ import annotations

import asyncio
import contextlib
import fractions
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

from tests.bench.sounds import RATE, tone
from voice_agent.audio.levels import level_db
from voice_agent.settings import WebRtcSettings
from voice_agent.transports.webrtc import ice, seams

FRAME = RATE // 50
SILENT_FRAMES = 15
TONE_FRAMES = 40
SESSION = "call-1"
STAGES = {"endpointing": 280.0, "send": 20.0}


class _Voice(MediaStreamTrack):
    kind = "audio"

    def __init__(self, agent: EchoAgent) -> None:
        super().__init__()
        self._agent = agent
        self._began: float | None = None
        self._frames = 0
        self._tone = tone(TONE_FRAMES * FRAME / RATE)
        self._left = 0

    async def recv(self) -> av.AudioFrame:
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if (wait := self._began + self._frames * FRAME / RATE - now) > 0:
            await asyncio.sleep(wait)
        if self.readyState != "live":
            raise MediaStreamError
        if self._agent.due:
            self._agent.answer()
            self._left = TONE_FRAMES
        samples = np.zeros(FRAME, np.int16)
        if self._left:
            begin = (TONE_FRAMES - self._left) * FRAME
            samples = self._tone[begin : begin + FRAME]
            self._left -= 1
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._frames * FRAME, fractions.Fraction(1, RATE)
        self._frames += 1
        return frame


class EchoAgent:
    def __init__(self) -> None:
        self.url = ""
        self.due = False
        """The caller has fallen silent and was not answered yet."""
        self.received: list[str] = []
        """Messages on the data channel."""
        self.reports: list[dict[str, Any]] = []
        self.authorization: list[str] = []
        """That header of each request, empty without."""
        self._peers: list[RTCPeerConnection] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._channel: Any = None

    def answer(self) -> None:
        self.due = False
        turn = len(self.reports) + 1
        report = {"turn": turn, "user_text": "a tone", "voice_to_voice_ms": 300.0, "stages_ms": STAGES}
        self.reports.append(report)
        if self._channel is not None:
            self._channel.send(json.dumps({"type": "turn.report", "report": report}))

    async def offer(self, body: dict[str, Any]) -> dict[str, Any]:
        settings = WebRtcSettings(ice_loopback=True)
        pc = RTCPeerConnection(ice.configuration(settings))
        self._peers.append(pc)

        @pc.on("track")
        def on_track(track: MediaStreamTrack) -> None:
            self._tasks.append(asyncio.create_task(self._listen(track)))

        @pc.on("datachannel")
        def on_channel(channel: Any) -> None:
            self._channel = channel
            channel.on("message", self.received.append)
            channel.send(json.dumps({"type": "session.started", "session_id": SESSION}))
            channel.send("no JSON")

        await pc.setRemoteDescription(RTCSessionDescription(body["sdp"], body["type"]))
        pc.addTrack(_Voice(self))
        for connection in seams.connections(pc):
            ice.prepare(connection, settings)
        await pc.setLocalDescription(await pc.createAnswer())
        return {"sdp": pc.localDescription.sdp, "type": "answer", "session_id": SESSION}

    async def end_call(self) -> None:
        await self._peers[-1].close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(pc.close() for pc in self._peers), *self._tasks, return_exceptions=True)

    async def _listen(self, track: MediaStreamTrack) -> None:
        silent, spoken = 0, False
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                assert isinstance(frame, av.AudioFrame)
                samples = frame.to_ndarray().reshape(-1).astype(np.int16)
                silent = 0 if level_db(samples) > -45 else silent + 1
                spoken = spoken or silent == 0
                if spoken and silent == SILENT_FRAMES:
                    self.due, spoken = True, False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One HTTP request: as much of it as the caller needs."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        fields = {name.lower(): value for name, value in fields.items()}
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        self.authorization.append(fields.get("authorization", ""))
        status = 404
        answer: dict[str, Any] = {"error": {"code": "no", "message": "nothing here"}}
        if (method, path) == ("POST", "/api/offer"):
            status, answer = 200, await self.offer(json.loads(body))
        elif (method, path) == ("GET", f"/api/sessions/{SESSION}/report"):
            status, answer = 200, {"turns": [dict(report, user_text="a final tone") for report in self.reports]}
        content = json.dumps(answer).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(content)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def echo_agent() -> AsyncIterator[EchoAgent]:
    agent = EchoAgent()
    server = await asyncio.start_server(agent.handle, "127.0.0.1", 0)
    agent.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield agent
    finally:
        await agent.close()
        server.close()
        await server.wait_closed()


@contextlib.contextmanager
def echo_agent_in_thread() -> Iterator[EchoAgent]:
    """For callers that run an event loop of their own."""
    started = threading.Event()
    found: list[tuple[EchoAgent, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with echo_agent() as agent:
            stop = asyncio.Event()
            found.append((agent, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    agent, loop, stop = found[0]
    try:
        yield agent
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        assert not thread.is_alive()
