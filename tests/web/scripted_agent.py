"""An agent with a real WebRTC peer and no mind: it plays a tone and sends the events it is told to.

Lives on the server's loop; tests read its lists from their own thread.
"""

from __future__ import annotations

import asyncio
import json
import queue
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import aioice.ice
import numpy as np
import pytest
from aiortc import AudioStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from voice_agent.errors import OfferError


class Tone(AudioStreamTrack):
    """440 Hz at half scale; the base class keeps the pace."""

    def __init__(self, agent: ScriptedAgent) -> None:
        super().__init__()
        self._agent = agent

    async def recv(self) -> AudioFrame:
        while self._agent.silent:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        frame = await super().recv()
        assert isinstance(frame, AudioFrame)
        assert frame.pts is not None
        times = (frame.pts + np.arange(frame.samples)) / frame.sample_rate
        samples = (16_000 * np.sin(2 * np.pi * 440 * times)).astype(np.int16)
        made = AudioFrame.from_ndarray(samples[np.newaxis], format="s16", layout="mono")
        made.sample_rate, made.pts, made.time_base = frame.sample_rate, frame.pts, Fraction(1, frame.sample_rate)
        return made


@dataclass
class ScriptedAgent:
    script: list[dict[str, Any]] = field(default_factory=list)
    """Sent when the data channel opens."""
    scripts: list[list[dict[str, Any]]] = field(default_factory=list)
    """Instead of `script`, for one connection each, as long as there are any."""
    replies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Sent when a message of that type arrives."""
    refuse: OfferError | None = None
    ready: bool = True
    loading: list[str] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is served as report and as history of a call."""
    peers: dict[str, RTCPeerConnection] = field(default_factory=dict)
    offers: list[dict[str, Any]] = field(default_factory=list)
    """What each offer held besides the SDP."""
    received: list[dict[str, Any]] = field(default_factory=list)
    silent: bool = False
    """Send no sound, not even silence."""
    loudest: int = 0
    """Largest sample heard from the microphone."""
    hung_up: list[str] = field(default_factory=list)
    hang_ups: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    """The same, to wait on."""
    loop: asyncio.AbstractEventLoop | None = None
    """The server's, once it runs."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def progress(self) -> dict[str, Any]:
        return {"loading": self.loading}

    async def accept(self, sdp: str, type: str, fields: dict[str, Any], /) -> tuple[str, str, str]:
        if self.refuse:
            raise self.refuse
        self.offers.append(fields)
        session_id = f"call-{len(self.peers) + len(self.hung_up) + 1}"
        peer = self.peers[session_id] = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        peer.on("datachannel", self._on_channel)
        peer.on("track", self._on_track)
        await peer.setRemoteDescription(RTCSessionDescription(sdp, type))
        peer.addTrack(Tone(self))
        await peer.setLocalDescription(await peer.createAnswer())
        return peer.localDescription.sdp, peer.localDescription.type, session_id

    def _on_channel(self, channel: Any) -> None:
        def send(events: list[dict[str, Any]]) -> None:
            for event in events:
                channel.send(json.dumps(event))

        @channel.on("message")
        def on_message(text: str) -> None:
            self.received.append(json.loads(text))
            send(self.replies.get(self.received[-1]["type"], []))

        send(self.scripts.pop(0) if self.scripts else self.script)

    def _on_track(self, track: Any) -> None:
        async def listen() -> None:
            try:
                while True:
                    frame = await track.recv()
                    self.loudest = max(self.loudest, int(np.abs(frame.to_ndarray().astype(int)).max()))
            except MediaStreamError:
                return

        self._tasks.add(asyncio.create_task(listen()))

    def report(self, session_id: str, /) -> dict[str, Any] | None:
        return self.records.get(session_id)

    def history(self, session_id: str, /) -> dict[str, Any] | None:
        return self.records.get(session_id)

    async def hang_up(self, session_id: str, /) -> bool:
        peer = self.peers.pop(session_id, None)
        if peer is None:
            return session_id in self.hung_up
        self.hung_up.append(session_id)
        self.hang_ups.put(session_id)
        await peer.close()
        return True

    def listing(self) -> list[dict[str, Any]]:
        return []

    def drop(self) -> None:
        """Lose all connections without a word, as a network does. For the test's own thread."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(self._drop(), self.loop).result(10)

    async def _drop(self) -> None:
        for session_id in list(self.peers):
            peer = self.peers.pop(session_id)
            self.hung_up.append(session_id)
            await peer.close()

    async def close(self) -> None:
        for session_id in list(self.peers):
            await self.hang_up(session_id)


def use_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer 127.0.0.1 only, which works on a machine without any other network."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"])
