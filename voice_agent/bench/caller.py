"""A caller over WebRTC: says what it is told, keeps what it hears and when.

Agent audio is timed and decoded packet by packet as it arrives, so no jitter buffer of this side is charged to the
agent. Times are seconds of `time.monotonic()`.

    async with Caller("http://127.0.0.1:8080") as caller:
        onset, end = caller.say(samples)
        began = await caller.wait_agent_started(end, timeout=10)
        await caller.wait_agent_silent()
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import av
import httpx
import numpy as np
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.rtp import RtpPacket
from numpy.typing import NDArray

from voice_agent.bench.ear import RATE, Ear, Segment
from voice_agent.bench.microphone import Microphone
from voice_agent.engines.ports import Pcm16
from voice_agent.errors import TransportClosed, VoiceAgentError
from voice_agent.settings import WebRtcSettings
from voice_agent.transports.webrtc import ice, seams

# The waiting methods take `timeout` (ASYNC109 off): their TimeoutError says what did not happen.
POLL = 0.01
"""Seconds between looks while waiting; what is measured has its own time stamps."""
LATE = 0.06
"""Seconds of hole in what arrived that a recording shows; below, audio is put end to end."""
LOOPBACK = WebRtcSettings(ice_loopback=True)

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Received:
    """A message of the data channel `events`."""

    at: float
    """When it arrived."""
    message: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.message.get("type", ""))


class _Line:
    """Takes the agent's RTP packets as they arrive; lives on the event loop."""

    def __init__(self, ear: Ear, *, record: bool) -> None:
        self.packets = 0
        self.heard: list[tuple[float, Pcm16]] = []
        self._ear = ear
        self._record = record
        decoder = av.CodecContext.create("libopus", "r")
        assert isinstance(decoder, av.AudioCodecContext)
        decoder.layout, decoder.sample_rate, decoder.format = "mono", RATE, "s16"
        self._decoder = decoder

    def packet(self, packet: RtpPacket) -> None:
        at = time.monotonic()
        self.packets += 1
        if not packet.payload:
            return
        for frame in self._decoder.decode(av.Packet(packet.payload)):
            samples = frame.to_ndarray().reshape(-1).astype(np.int16, copy=False)
            self._ear.hear(at, samples)
            if self._record:
                self.heard.append((at, samples))
            at += len(samples) / RATE


class Caller:
    """One call, from `async with` to hang-up. Not to be used twice."""

    def __init__(
        self,
        url: str,
        *,
        webrtc: WebRtcSettings = LOOPBACK,
        noise_db: float | None = None,
        api_key: str = "",
        record: bool = True,
        timeout: float = 20.0,
    ) -> None:
        """`url` of the agent, without /api/offer; `timeout` seconds until media must flow."""
        self.events: list[Received] = []
        self.session_id = ""
        self.connect_seconds = 0.0
        """From the offer until media could flow."""
        self.mic = Microphone(noise_db, record=record)
        self._url = url.rstrip("/")
        self._webrtc = webrtc
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout = timeout
        self._ear = Ear()
        self._line = _Line(self._ear, record=record)
        self._pc = RTCPeerConnection(ice.configuration(webrtc))
        self._channel = self._pc.createDataChannel("events")
        self._channel.on("message", self._on_message)
        self._state_changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        try:
            await self._connect()
        except BaseException:
            await self.hang_up()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.hang_up()

    @property
    def segments(self) -> list[Segment]:
        """The agent's speech so far."""
        return list(self._ear.segments)

    @property
    def ended(self) -> bool:
        return self._pc.connectionState in ("closed", "failed")

    def say(self, samples48k: Pcm16) -> tuple[float, float]:
        """Speak now, or after what is still queued: when the first sound begins and when the last one ends."""
        if self.ended:
            raise TransportClosed("the call is over")
        return self.mic.say(samples48k)

    def send(self, message: dict[str, Any]) -> None:
        """A message to the agent; the channel must be open (it is after the first event)."""
        self._channel.send(json.dumps(message))

    async def wait_until(self, at: float) -> None:
        """Let the call go on until that moment, for instance the end that `say` gave."""
        while (wait := at - time.monotonic()) > 0:
            if self.ended:
                raise TransportClosed("the call ended")
            await asyncio.sleep(min(wait, 0.1))

    async def wait_agent_started(self, after: float, timeout: float = 10.0) -> float:  # noqa: ASYNC109
        """When the first speech began that did not begin before `after`. Raises TimeoutError, TransportClosed."""
        return await self._wait(lambda: self._ear.started_since(after), timeout, "the agent did not speak")

    async def wait_agent_silent(self, silence: float = 0.9, timeout: float = 40.0) -> float:  # noqa: ASYNC109
        """Wait until the agent has been silent for `silence` seconds, from now or earlier: the end of its last speech.

        Raises TimeoutError, TransportClosed.
        """
        began = time.monotonic()

        def silent() -> float | None:
            last = self._ear.last_voice
            since = began if last is None else last
            return since if time.monotonic() - since >= silence else None

        return await self._wait(silent, timeout, "the agent did not stop")

    async def wait_event(self, type: str, timeout: float = 10.0, after: float = 0.0) -> Received:  # noqa: ASYNC109
        """The first event of a type that arrived at `after` or later. Raises TimeoutError, TransportClosed."""

        def look() -> Received | None:
            return next((event for event in self.events if event.type == type and event.at >= after), None)

        return await self._wait(look, timeout, f"no event {type}")

    async def hang_up(self) -> None:
        self.mic.stop()
        await self._pc.close()

    def recording(self) -> NDArray[np.int16]:
        """(2, samples) at 48 kHz: the caller as sent; the agent as it arrived, end to end but for holes over 60 ms."""
        sent = np.concatenate([np.zeros(0, np.int16), *self.mic.sent])
        agent = np.zeros(len(sent), np.int16)
        cursor = 0
        for at, samples in self._line.heard:
            arrived = round((at - self.mic.began) * RATE)
            if arrived - cursor > LATE * RATE:
                cursor = arrived
            room = agent[cursor : cursor + len(samples)]
            room[:] = samples[: len(room)]
            cursor += len(samples)
        return np.stack([sent, agent])

    async def _connect(self) -> None:
        pc, began = self._pc, time.monotonic()
        pc.on("track", self._on_track)
        pc.on("connectionstatechange", self._state_changed.set)
        pc.addTrack(self.mic)
        offer = await pc.createOffer()
        for connection in seams.connections(pc):
            ice.prepare(connection, self._webrtc)
        await pc.setLocalDescription(offer)
        answer = await self._exchange()
        self.session_id = str(answer.get("session_id", ""))
        await pc.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))
        try:
            async with asyncio.timeout(self._timeout):
                while pc.connectionState != "connected":
                    if self.ended:
                        raise VoiceAgentError(f"no media path to the agent at {self._url}: ICE or DTLS failed")
                    self._state_changed.clear()
                    await self._state_changed.wait()
                self.connect_seconds = time.monotonic() - began
                await self.mic.started.wait()
        except TimeoutError:
            raise VoiceAgentError(f"no media path to the agent at {self._url} in {self._timeout:g} seconds") from None

    async def _exchange(self) -> dict[str, Any]:
        description = self._pc.localDescription
        body = {"sdp": description.sdp, "type": description.type}
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=self._timeout) as client:
                response = await client.post(f"{self._url}/api/offer", json=body, headers=self._headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise VoiceAgentError(f"no agent answers at {self._url}: {error or type(error).__name__}") from error
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.status_code != 200 or not isinstance(answer, dict) or not {"sdp", "type"} <= answer.keys():
            detail = " ".join(response.text[:200].split())
            raise VoiceAgentError(f"{self._url} did not take the call: HTTP {response.status_code} {detail}")
        return answer

    def _on_track(self, track: MediaStreamTrack) -> None:
        for transceiver in self._pc.getTransceivers():
            if transceiver.receiver.track is track and track.kind == "audio":
                seams.tap_packets(transceiver.receiver, self._line)

    def _on_message(self, message: object) -> None:
        try:
            parsed = json.loads(message) if isinstance(message, str) else None
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            parsed = {"type": "", "unreadable": repr(message)[:200]}
        self.events.append(Received(time.monotonic(), parsed))

    async def _wait(self, look: Callable[[], Found | None], timeout: float, failure: str) -> Found:  # noqa: ASYNC109
        deadline = time.monotonic() + timeout
        while (found := look()) is None:
            if self.ended:
                raise TransportClosed(f"{failure}: the call ended")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{failure} within {timeout:.1f} seconds")
            await asyncio.sleep(POLL)
        return found
