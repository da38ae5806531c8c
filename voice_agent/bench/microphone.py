"""The caller's microphone: utterances over silence or noise, in 20 ms frames by the clock."""

from __future__ import annotations

import asyncio
import fractions
import time

import av
import numpy as np
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

from voice_agent.bench.ear import RATE, speech_bounds
from voice_agent.engines.ports import Pcm16

FRAME = RATE // 50
_TIME_BASE = fractions.Fraction(1, RATE)


class Microphone(MediaStreamTrack):
    """Sample i is spoken at `began + i / 48000`, whatever the process is busy with; a frame leaves once it is whole."""

    kind = "audio"

    def __init__(self, noise_db: float | None = None, *, record: bool = True) -> None:
        """`noise_db`: level of white noise below everything, dBFS."""
        super().__init__()
        self.started = asyncio.Event()
        self.began = 0.0
        self.sent: list[Pcm16] = []
        """Frames so far, if `record`."""
        self.worst_delay = 0.0
        """Seconds the latest frame left too late: above 0.02 the caller itself was short of CPU."""
        self._record = record
        self._noise = 0.0 if noise_db is None else 32768.0 * 10 ** (noise_db / 20)
        self._random = np.random.default_rng(1)
        self._frames = 0
        self._queue: list[tuple[int, Pcm16]] = []
        """(number of the first sample, utterance)"""
        self._queued_until = 0

    def say(self, samples: Pcm16) -> tuple[float, float]:
        """Speak with the next frame, or after what is queued: the clock times of the first and the last sound."""
        if not self.started.is_set():
            raise RuntimeError("the microphone has not started")
        first = max(self._frames * FRAME, self._queued_until)
        self._queue.append((first, samples))
        self._queued_until = first + len(samples)
        onset, end = speech_bounds(samples)
        if onset == end:
            end = len(samples)
        return self.began + (first + onset) / RATE, self.began + (first + end) / RATE

    async def recv(self) -> av.AudioFrame:
        if not self.started.is_set():
            self.began = time.monotonic()
            self.started.set()
        due = self.began + (self._frames + 1) * FRAME / RATE
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        if self.readyState != "live":
            raise MediaStreamError
        self.worst_delay = max(self.worst_delay, time.monotonic() - due)
        samples = self._next()
        if self._record:
            self.sent.append(samples)
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, (self._frames - 1) * FRAME, _TIME_BASE
        return frame

    def _next(self) -> Pcm16:
        start = self._frames * FRAME
        mixed = self._random.standard_normal(FRAME) * self._noise if self._noise else np.zeros(FRAME)
        for first, samples in self._queue:
            begin, end = max(start, first), min(start + FRAME, first + len(samples))
            if begin < end:
                mixed[begin - start : end - start] += samples[begin - first : end - first]
        self._queue = [item for item in self._queue if item[0] + len(item[1]) > start + FRAME]
        self._frames += 1
        frame: Pcm16 = np.clip(np.rint(mixed), -32768, 32767).astype(np.int16)
        return frame
