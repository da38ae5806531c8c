"""Agent audio: a track that takes one 20 ms frame from the playout every 20 ms and hands out Opus packets.

aiortc sends whatever a track gives, as soon as it gives it, so the pace is made here. Encoded packets spare aiortc's
own encoder: 96 kbit/s stereo in the loop's shared thread pool, where other work can hold up the voice. Measured per
20 ms frame: aiortc's setting 0.23 ms plus the hop to a thread, this one 0.08 ms on the loop, with 2.5 ms of algorithmic
delay in place of 6.5 ms (RFC 6716, section 2: CELT alone).
"""

from __future__ import annotations

import asyncio
import fractions
from collections.abc import Callable
from typing import Any

import av
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

from voice_agent.audio.playout import Playout
from voice_agent.engines.ports import Pcm16

RATE = 48_000
FRAME = 960
FRAME_SECONDS = FRAME / RATE
MAX_BEHIND = 0.1
"""A track that is late by up to this much catches up at once; beyond, the pace starts anew from now."""

_BIT_RATE = 48_000
_COMPLEXITY = "5"
_SILENT_FRAMES = 3  # of zeros, before the encoder's memory is empty
_SILENT_BYTES = 3
_TIME_BASE = fractions.Fraction(1, RATE)
_REMEMBERED_REPLIES = 16


class Pace:
    """When each frame is due. Pure."""

    def __init__(self, period: float, max_behind: float) -> None:
        self.max_behind_seen = 0.0
        self.skips = 0
        """Times the pace started anew."""
        self._period = period
        self._max_behind = max_behind
        self._due: float | None = None

    def wait(self, now: float) -> float:
        """Seconds until the next frame is due; 0 if it is due or late."""
        return 0.0 if self._due is None else max(0.0, self._due - now)

    def take(self, now: float) -> None:
        """A frame was taken at `now`."""
        if self._due is None:
            self._due = now
        behind = now - self._due
        self.max_behind_seen = max(self.max_behind_seen, behind)
        if behind > self._max_behind:
            self._due = now
            self.skips += 1
        self._due += self._period


class OpusEncoder:
    """20 ms frames of 48 kHz mono int16 to one Opus packet each.

    Silence, most of every call, is the dearest thing to encode (0.23 ms). After the encoder has fallen silent, its last
    packet is repeated: it is 3 bytes that say "silence" and leave the decoder where it is.
    """

    def __init__(self) -> None:
        self._codec = av.CodecContext.create("libopus", "w")
        assert isinstance(self._codec, av.AudioCodecContext)
        self._codec.bit_rate = _BIT_RATE
        self._codec.format = "s16"
        self._codec.layout = "mono"
        self._codec.sample_rate = RATE
        self._codec.time_base = _TIME_BASE
        self._codec.options = {"application": "lowdelay", "compression_level": _COMPLEXITY}
        self._silent = 0
        self._last = b""

    def encode(self, samples: Pcm16, pts: int) -> av.Packet[Any]:
        self._silent = 0 if samples.any() else self._silent + 1
        if self._silent <= _SILENT_FRAMES or len(self._last) > _SILENT_BYTES:
            frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = RATE, pts, _TIME_BASE
            (encoded,) = self._codec.encode(frame)
            self._last = bytes(encoded)
        packet = av.Packet(self._last)
        packet.pts, packet.time_base = pts, _TIME_BASE  # the codec's own starts below zero
        return packet


class PlayoutTrack(MediaStreamTrack):
    """What the listener hears, at the pace of the clock. aiortc is the only reader."""

    kind = "audio"

    def __init__(self, playout: Playout, clock: Callable[[], float]) -> None:
        super().__init__()
        if (playout.rate, playout.frame) != (RATE, FRAME):
            raise ValueError(f"WebRTC takes {FRAME} samples at {RATE} Hz, not {playout.frame} at {playout.rate}")
        self.pace = Pace(FRAME_SECONDS, MAX_BEHIND)
        self.frames = 0
        self._playout = playout
        self._clock = clock
        self._encoder: OpusEncoder | None = OpusEncoder()
        self._first_frame: dict[int, float] = {}

    async def recv(self) -> av.Packet[Any]:
        """The next 20 ms, when they are due. Raises MediaStreamError after `stop`."""
        if (wait := self.pace.wait(self._clock())) > 0:
            await asyncio.sleep(wait)
        if self.readyState != "live" or self._encoder is None:
            raise MediaStreamError
        now = self._clock()
        self.pace.take(now)
        before = self._playout.reply if self._playout.played == 0 else None
        samples = self._playout.next_frame()
        if before is not None and before not in self._first_frame and self._playout.reply == before:
            self._note_first_frame(before, now)
        packet = self._encoder.encode(samples, self.frames * FRAME)
        self.frames += 1
        return packet

    def stop(self) -> None:
        super().stop()
        # PyAV's encoder has a filter graph with a thread per core; the connection's reference cycles would keep it
        # until the garbage collector comes round.
        self._encoder = None

    def first_frame_at(self, reply: int) -> float | None:
        """When the first frame of a reply was handed to the network; None if it was not, or long ago."""
        return self._first_frame.get(reply)

    def _note_first_frame(self, reply: int, now: float) -> None:
        if self._playout.played == 0:
            return
        self._first_frame[reply] = now
        while len(self._first_frame) > _REMEMBERED_REPLIES:
            del self._first_frame[next(iter(self._first_frame))]
