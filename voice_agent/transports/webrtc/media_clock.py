"""When was this audio captured? RTP timestamps, anchored to the earliest arrivals.

A packet's arrival says when its audio was captured plus however long it travelled, and only the second part varies.
The smallest difference between arrival and media time over the last seconds is therefore the best guess at the
offset between both clocks: a stall, a burst or a retransmission is late and does not move it. The window is short
enough to follow the drift between two sound cards (at most some 0.2 ms per second).
"""

from __future__ import annotations

from collections import deque

_WINDOW = 10.0
"""Seconds of arrivals the anchor is taken from."""

_BUCKET = 0.5
"""Seconds that share one stored minimum."""


class MediaClock:
    """Pure; `now` is any monotonic clock in seconds, `timestamp` an unwrapped RTP timestamp in ticks of `rate`."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._minima: deque[tuple[float, float]] = deque()  # (bucket begin, smallest offset in it)
        self._offset: float | None = None

    def observe(self, timestamp: int, now: float) -> None:
        """Audio up to `timestamp` arrived at `now`."""
        offset = now - timestamp / self.rate
        if self._minima and now - self._minima[-1][0] < _BUCKET:
            begin, smallest = self._minima[-1]
            self._minima[-1] = (begin, min(smallest, offset))
        else:
            self._minima.append((now, offset))
        while now - self._minima[0][0] > _WINDOW:
            self._minima.popleft()
        self._offset = min(smallest for _, smallest in self._minima)

    def at(self, timestamp: int) -> float:
        """The time at which the audio up to `timestamp` was captured; ValueError before the first arrival."""
        if self._offset is None:
            raise ValueError("no packet has arrived yet")
        return self._offset + timestamp / self.rate

    def ahead(self, timestamp: int, now: float) -> float:
        """Seconds by which a packet ending at `timestamp` comes before it can have been captured; 0 at first."""
        return 0.0 if self._offset is None else self.at(timestamp) - now
