"""The last seconds of a call's caller audio, addressed by time."""

from __future__ import annotations

import numpy as np

from voice_agent.engines.ports import ENGINE_RATE, Pcm16


class AudioRing:
    """Holds the newest `seconds` of 16 kHz audio; older audio is overwritten, so memory is bounded."""

    def __init__(self, seconds: float, rate: int = ENGINE_RATE) -> None:
        self._rate = rate
        self._buffer = np.zeros(int(seconds * rate), np.int16)
        self._total = 0
        self._end_at = 0.0

    @property
    def total(self) -> int:
        """Samples pushed since the beginning."""
        return self._total

    def push(self, samples: Pcm16, end_at: float) -> None:
        """Append audio that ended at `end_at` on the session clock."""
        size = len(self._buffer)
        kept = samples[-size:]
        start = (self._total + len(samples) - len(kept)) % size
        first = min(len(kept), size - start)
        self._buffer[start : start + first] = kept[:first]
        self._buffer[: len(kept) - first] = kept[first:]
        self._total += len(samples)
        self._end_at = end_at

    def between(self, since: float, until: float) -> Pcm16:
        """Audio between two moments, as much of it as is still held; a copy."""
        return self.samples(self._index(since), self._index(until))

    def samples(self, start: int, end: int) -> Pcm16:
        """Audio between two sample counts since the beginning, as much of it as is still held; a copy."""
        size = len(self._buffer)
        end = min(max(end, 0), self._total)
        start = max(min(start, end), self._total - size, 0)
        if start >= end:
            return np.zeros(0, np.int16)
        return self._buffer.take(np.arange(start, end), mode="wrap")

    def time_of(self, index: int) -> float:
        """When sample `index` (counted since the beginning) was captured."""
        return self._end_at - (self._total - index) / self._rate

    def _index(self, at: float) -> int:
        return self._total - round((self._end_at - at) * self._rate)
