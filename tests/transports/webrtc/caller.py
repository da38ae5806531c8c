"""A WebRTC client in this process: plays a tone, hears the agent, and can lose, delay or withhold packets."""

from __future__ import annotations

import asyncio
import fractions
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from voice_agent.settings import WebRtcSettings
from voice_agent.transports.webrtc import WebRtcTransport, accept_offer
from voice_agent.transports.webrtc.seams import connections, end_consent_with_close

Send = Callable[[bytes], Awaitable[None]]


class Tone(MediaStreamTrack):
    """A microphone: 20 ms frames of a tone on the clock on the wall."""

    kind = "audio"

    def __init__(self, hertz: float) -> None:
        super().__init__()
        self.hertz = hertz
        self.frames = 0
        self.began: float | None = None

    async def recv(self) -> av.AudioFrame:
        now = time.monotonic()
        self.began = self.began or now
        await asyncio.sleep(max(0.0, self.began + self.frames * 0.02 - now))
        times = (np.arange(960) + self.frames * 960) / 48_000
        samples = (9000 * np.sin(2 * np.pi * self.hertz * times)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, self.frames * 960, fractions.Fraction(1, 48_000)
        self.frames += 1
        return frame


class Caller:
    """Offers audio and, unless `label` is empty, a data channel of that label."""

    def __init__(self, hertz: float = 440, label: str = "events") -> None:
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.microphone = Tone(hertz)
        self.pc.addTrack(self.microphone)
        self.heard: asyncio.Queue[np.ndarray] = asyncio.Queue()
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.opened = asyncio.Event()
        self.channel = self.pc.createDataChannel(label) if label else None
        if self.channel is not None:
            self.channel.on("open", self.opened.set)
            self.channel.on("message", self.messages.put_nowait)
        self._listening: asyncio.Task[None] | None = None
        self.pc.on("track", self._on_track)

    def _on_track(self, track: MediaStreamTrack) -> None:
        self._listening = asyncio.create_task(self._listen(track))

    async def _listen(self, track: MediaStreamTrack) -> None:
        while True:
            frame = await track.recv()
            assert isinstance(frame, av.AudioFrame)
            self.heard.put_nowait(frame.to_ndarray().reshape(-1)[::2].copy())  # the left of two equal channels

    async def call(self, settings: WebRtcSettings) -> WebRtcTransport:
        await self.pc.setLocalDescription(await self.pc.createOffer())
        for connection in connections(self.pc):
            end_consent_with_close(connection)  # the client has aioice's leak too
        transport, answer = await accept_offer(self.pc.localDescription.sdp, "offer", settings)
        await self.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        return transport

    async def hear(self, seconds: float) -> np.ndarray:
        """The next so many seconds of agent audio, 48 kHz mono."""
        pieces = [await self.heard.get() for _ in range(round(seconds / 0.02))]
        return np.concatenate(pieces)

    def send_through(self, wrap: Callable[[Send], Send]) -> None:
        """Put something between this client and the network; SRTP packets begin with 128 to 191."""
        ice = self.pc.getTransceivers()[0].receiver.transport.transport
        vars(ice)["_send"] = wrap(ice._send)

    def vanish(self) -> None:
        """Lose the network: nothing is sent any more, without a goodbye."""
        for connection in connections(self.pc):
            for protocol in connection._protocols:
                vars(protocol.transport)["sendto"] = lambda *_: None

    async def hang_up(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        await self.pc.close()


@asynccontextmanager
async def calling(caller: Caller, **settings: Any) -> AsyncIterator[WebRtcTransport]:
    """A connected call over 127.0.0.1; both ends are closed afterwards. Nothing in it may take longer than 20 s."""
    transport = await caller.call(WebRtcSettings(ice_loopback=True, **settings))
    try:
        async with asyncio.timeout(20):
            assert await transport.wait_connected()
            yield transport
    finally:
        await caller.hang_up()
        await transport.close("test is over")


def is_rtp(data: bytes) -> bool:
    """SRTP rather than SRTCP, DTLS or STUN (RFC 5761, section 4)."""
    return 128 <= data[0] <= 191 and not 192 <= data[1] <= 223
