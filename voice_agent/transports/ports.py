"""What the session needs from a way of carrying a call (WebRTC, a telephone bridge, a file)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from voice_agent.audio.playout import Playout
from voice_agent.engines.ports import Pcm16


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """A stretch of caller audio: 16 kHz mono int16, usually 20 ms."""

    samples: Pcm16
    at: float
    """Session clock (seconds, `time.monotonic`) at which the *end* of the frame was captured, as well as the
    transport can tell: media time anchored to the earliest arrivals, so that network jitter does not move it."""
    concealed: bool = False
    """True if the audio was lost and this is a stand-in."""


class Transport(Protocol):
    """One call's connection. All methods belong to the event loop's thread."""

    playout: Playout
    """What the caller is going to hear; the transport pulls frames from it on its own pace."""

    reason: str | None
    """Why the call ended, from a closed set of phrases; None while it goes on."""

    def frames(self) -> AsyncIterator[AudioFrame]:
        """Caller audio in order, gaps filled, until the call ends (then the iterator stops).

        The queue behind it is bounded: if the reader is slower than real time the oldest audio is dropped and counted.
        """

    def messages(self) -> AsyncIterator[dict[str, Any]]:
        """JSON objects from the client's side channel, junk filtered out; ends with the call."""

    def send(self, message: dict[str, Any]) -> None:
        """Queue a JSON object for the client. Never blocks; bounded, the oldest is dropped if nobody reads."""

    def statistics(self) -> dict[str, float]:
        """Counters of the connection (packets, lost, concealed, late, buffer_ms, …) for trace and metrics."""

    async def close(self, reason: str) -> None:
        """Hang up and free everything. Safe to call twice and while others wait on the iterators."""
