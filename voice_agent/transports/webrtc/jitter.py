"""Puts RTP packets in order and decides when a missing one is given up.

What comes after this buffer is not a loudspeaker that runs dry but a recogniser that takes audio whenever it comes.
So nothing is delayed to smooth the network: a packet that is next in order goes on at once, a burst after a stall
goes on at once, and media time (`MediaClock`) tells everybody when it was said. Only a hole costs time: packets
behind it wait, for 20 to 60 ms depending on how late reordered packets have been lately, then the hole is concealed
and the delay is zero again.

Invariants
- The items given by `pop` cover media time without overlap and in order, except that a gap of more than 5 s is cut.
- At most `CAPACITY` packets wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from voice_agent.transports.webrtc.media_clock import MediaClock

CAPACITY = 128
MIN_WAIT = 0.020
"""Seconds a hole is waited for on a network that never reordered anything: one usual packet."""
MAX_WAIT = 0.060
LATENESS_MARGIN = 1.25
LATENESS_HALF_LIFE = 10.0
"""Seconds after which observed lateness counts half."""
MAX_FILL = 5.0
"""Seconds of one gap that are filled; media time jumps over the rest."""
QUIET_AFTER = 1.0
"""Seconds without a packet after which the sender counts as silent (muted, or saving bandwidth): its silence is made
here, or a turn would never end. Longer than a network stalls, because what comes later for that time is dropped …"""
QUIET_LAG = 0.2
"""… and never up to the present moment."""
QUIET_STEP = 0.1
OWN_STALL = 0.05
"""Seconds a deadline may be late; more, and this process itself has stalled: packets may be waiting to be read."""
RESTART_AHEAD = 1.0
"""A packet that comes this many seconds before it can have been captured belongs to another stream."""
_SEQUENCE_JUMP = 3000  # RFC 3550, appendix A.1: MAX_DROPOUT
_SEQUENCE_BACK = 500
_MAX_REMEMBERED = 256
_IGNORED_GAP = 0.0025  # the shortest packet there is: less is rounding of the sender
_MAX_STALE = 25
"""So many packets in a row from the past are no stragglers: the sender has restarted."""


@dataclass(frozen=True, slots=True)
class Decode:
    """A packet whose turn has come."""

    payload: bytes
    timestamp: int
    """Unwrapped RTP timestamp of its first sample."""


@dataclass(frozen=True, slots=True)
class Conceal:
    """A stretch of which nothing will come."""

    samples: int
    """RTP ticks."""
    timestamp: int
    """Unwrapped RTP timestamp of its first sample."""
    lost: int
    """Packets given up; 0 if the sender skipped the time itself (discontinuous transmission)."""


@dataclass(slots=True)
class JitterCounters:
    received: int = 0
    lost: int = 0
    late: int = 0
    """Came after they had been given up."""
    duplicates: int = 0
    reordered: int = 0
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class _Newest:
    """The packet with the highest sequence number so far."""

    sequence: int
    raw_sequence: int
    timestamp: int
    raw_timestamp: int
    end: int
    arrived: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    payload: bytes
    timestamp: int
    arrived: float


def _signed(value: int, bits: int) -> int:
    """The difference of two wrapping counters, as the nearest signed number."""
    half = 1 << (bits - 1)
    return (value + half) % (half * 2) - half


class JitterBuffer:
    """Pure: `now` is seconds of a monotonic clock. `duration` reads a payload's length in RTP ticks.

    After each `push` call `pop`, and again at `deadline`.
    """

    def __init__(self, rate: int, duration: Callable[[bytes], int]) -> None:
        self.clock = MediaClock(rate)
        self.counters = JitterCounters()
        self._rate = rate
        self.duration = duration
        self._waiting: dict[int, _Waiting] = {}  # by unwrapped sequence number
        self._next: int | None = None  # whose turn it is
        self._end = 0  # media time up to which items were given
        self._skipped = 0  # packets given up since the last item
        self._newest = _Newest(-1, 0, 0, 0, 0, 0.0)
        self._flush_before = 0  # holes below are not waited for: their stream is over
        self._given_up: dict[int, float] = {}  # sequence number: when its absence was noticed
        self._lateness = 0.0
        self._lateness_at = 0.0
        self._stale = 0
        self._quiet_at = math.inf  # when silence is made if nothing comes
        self._quiet_end = 0  # media time up to which it was made

    def push(self, sequence: int, timestamp: int, payload: bytes, now: float) -> None:
        """A packet arrived. `sequence` has 16 bits, `timestamp` 32."""
        self.counters.received += 1
        self._lateness *= 0.5 ** ((now - self._lateness_at) / LATENESS_HALF_LIFE)
        self._lateness_at = now
        if self._next is None:
            self._next, self._end = sequence, timestamp
            self._accept(sequence, sequence, timestamp, timestamp, payload, now)
            return
        newest = self._newest
        extended = newest.sequence + _signed(sequence - newest.raw_sequence, 16)
        media = newest.timestamp + _signed(timestamp - newest.raw_timestamp, 32)
        if self._is_restart(extended, media, payload, now):
            self._restart(sequence, timestamp, payload, now)
        elif extended < self._next:
            self._refuse(extended, now)
        elif extended in self._waiting:
            self.counters.duplicates += 1
        else:
            if extended < newest.sequence:
                self.counters.reordered += 1
                self._lateness = max(self._lateness, now - self._noticed())
            self._accept(extended, sequence, media, timestamp, payload, now)

    def pop(self, now: float) -> list[Decode | Conceal]:
        """Everything whose turn has come, and what replaces holes that were waited for long enough."""
        items: list[Decode | Conceal] = []
        while self._waiting:
            assert self._next is not None
            packet = self._waiting.pop(self._next, None)
            if packet is not None:
                items += self._release(packet)
                self._next += 1
            elif self._next < self._flush_before or len(self._waiting) > CAPACITY or now >= self._noticed() + self.wait:
                self._give_up(min(self._waiting))
            else:
                break
        return items or self._quiet(now)

    @property
    def deadline(self) -> float | None:
        """When `pop` must be called even if nothing arrives; None if it need not be."""
        if self._waiting:
            return self._noticed() + self.wait
        return self._quiet_at if self._quiet_at < math.inf else None

    @property
    def wait(self) -> float:
        """Seconds a hole is waited for at present."""
        return min(MAX_WAIT, max(MIN_WAIT, self._lateness * LATENESS_MARGIN))

    @property
    def waiting(self) -> int:
        """Packets held back behind a hole."""
        return len(self._waiting)

    def _accept(self, extended: int, sequence: int, media: int, timestamp: int, payload: bytes, now: float) -> None:
        self._stale = 0
        self._quiet_at = now + QUIET_AFTER
        self._waiting[extended] = _Waiting(payload, media, now)
        end = media + self.duration(payload)
        self.clock.observe(end, now)
        if extended >= self._newest.sequence:
            self._newest = _Newest(extended, sequence, media, timestamp, end, now)

    def _refuse(self, extended: int, now: float) -> None:
        self._stale += 1
        noticed = self._given_up.pop(extended, None)
        if noticed is None:
            self.counters.duplicates += 1
        else:
            self.counters.late += 1
            self._lateness = max(self._lateness, now - noticed)

    def _is_restart(self, extended: int, media: int, payload: bytes, now: float) -> bool:
        step = extended - self._newest.sequence
        return (
            not -_SEQUENCE_BACK <= step <= _SEQUENCE_JUMP
            or (step > 0 and media < self._newest.timestamp)
            or self.clock.ahead(media + self.duration(payload), now) > RESTART_AHEAD
            or self._stale >= _MAX_STALE
        )

    def _restart(self, sequence: int, timestamp: int, payload: bytes, now: float) -> None:
        """The sender began a new stream: it goes on in media time where the clock on the wall is."""
        self.counters.restarts += 1
        newest = self._newest
        media = max(newest.end, newest.timestamp + round((now - newest.arrived) * self._rate))
        self._given_up.clear()
        self._flush_before = newest.sequence + 1
        self._accept(newest.sequence + 1, sequence, media, timestamp, payload, now)

    def _quiet(self, now: float) -> list[Decode | Conceal]:
        """Silence in place of a sender that sends nothing, for `MAX_FILL` seconds at most."""
        if self._waiting or now < self._quiet_at:
            return []
        if now > self._quiet_at + OWN_STALL:
            self._quiet_at = now + QUIET_STEP
            return []
        newest = self._newest
        last = newest.end + round(MAX_FILL * self._rate)
        until = min(newest.end + round((now - newest.arrived - QUIET_LAG) * self._rate), last)
        item = Conceal(until - self._end, self._end, 0)
        self._end = self._quiet_end = until
        self._quiet_at = now + QUIET_STEP if until < last else math.inf
        return [item] if item.samples > 0 else []

    def _noticed(self) -> float:
        """When the hole in front of the waiting packets was noticed."""
        return min(packet.arrived for packet in self._waiting.values())

    def _give_up(self, until: int) -> None:
        assert self._next is not None
        noticed = self._noticed()
        for sequence in range(max(self._next, until - _MAX_REMEMBERED), until):
            self._given_up[sequence] = noticed
        while len(self._given_up) > _MAX_REMEMBERED:
            del self._given_up[next(iter(self._given_up))]
        self.counters.lost += until - self._next
        self._skipped += until - self._next
        self._next = until

    def _release(self, packet: _Waiting) -> list[Decode | Conceal]:
        items: list[Decode | Conceal] = []
        if packet.timestamp < self._quiet_end and packet.payload:
            self.counters.late += 1
            return items
        gap = packet.timestamp - self._end
        if gap > self._rate * _IGNORED_GAP:
            items.append(Conceal(min(gap, round(MAX_FILL * self._rate)), self._end, self._skipped))
        self._skipped = 0
        begin = max(packet.timestamp, self._end)
        if packet.payload:
            items.append(Decode(packet.payload, begin))
        self._end = begin + self.duration(packet.payload)
        return items
