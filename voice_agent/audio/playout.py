"""What the listener is going to hear.

A session queues the clauses of one reply; a transport takes frames out at its own pace. In between lies everything
that makes talking to somebody polite: a reply may be prepared before it may be heard (held), stopped within one
frame (pause, clear) and continued where it stopped (resume). The number of samples taken out is the playhead.

Invariants
- `next_frame` always gives exactly `frame` samples and hands out the samples of a reply in order, each once.
- `played` counts the samples handed out at full level. The 5 ms that fade out when a reply is paused or cleared are
  not counted: a pause hands them out again, a clear throws them away.
- No sample of a cleared reply is heard after that fade.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from voice_agent.engines.ports import Pcm16

FADE_SECONDS = 0.005
"""Long enough to hear no click, short enough to hear no word."""

MAX_BUFFERED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PlayoutStarted:
    """The first sample of a reply was handed out."""

    reply: int


@dataclass(frozen=True, slots=True)
class PlayoutDrained:
    """A finished reply was handed out to its last sample."""

    reply: int


@dataclass(frozen=True, slots=True)
class PlayoutStarved:
    """A reply that is not finished ran empty after it had begun: the listener hears a gap. Once per gap."""

    reply: int


PlayoutNotice = PlayoutStarted | PlayoutDrained | PlayoutStarved


class Playout:
    """Mono int16 audio of one call, `rate` Hz, taken in frames of `frame` samples.

    At most one reply is open. It stays open (and `played` readable) after it has drained, until `clear` or the next
    `open_reply`. Not thread-safe; it belongs to the event loop's thread.
    """

    def __init__(self, rate: int = 48_000, frame: int = 960) -> None:
        self.rate = rate
        self.frame = frame
        self.listener: Callable[[PlayoutNotice], None] | None = None
        """Told about the reply from within `next_frame`, after the frame was taken; it may call any method."""
        self._limit = int(rate * MAX_BUFFERED_SECONDS)
        turn = np.arange(max(1, int(rate * FADE_SECONDS)), dtype=np.float32)
        self._fade_down = (0.5 + 0.5 * np.cos(np.pi * (turn + 0.5) / len(turn))).astype(np.float32)
        self._queue: deque[Pcm16] = deque()
        self._buffered = 0
        self._reply: int | None = None
        self._played = 0
        self._clause = -1
        self._held = False
        self._paused = False
        self._finished = False
        self._drained = False
        self._starved = False
        self._sounding = False  # the last sample handed out was one of the reply
        self._fade_in = False  # the next samples continue after a pause
        self._tail: Pcm16 | None = None  # what a cleared reply would have gone on with

    @property
    def reply(self) -> int | None:
        return self._reply

    @property
    def played(self) -> int:
        """Samples of the open reply already handed out."""
        return self._played

    @property
    def buffered(self) -> int:
        """Samples of the open reply queued and not handed out."""
        return self._buffered

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def held(self) -> bool:
        return self._held

    def open_reply(self, reply: int, *, held: bool) -> None:
        """Begin a reply; an older one is cleared, and a pause ends. Nothing is heard while it is held."""
        self.clear()
        self._reply = reply
        self._held = held

    def append(self, reply: int, clause: int, samples: Pcm16) -> bool:
        """Queue more of a reply; False (and nothing queued) if that reply is not open or was finished.

        Raises ValueError if the samples are not one-dimensional int16, if clauses come out of order, or beyond 60 s
        of unheard audio.
        """
        if reply != self._reply or self._finished:
            return False
        if samples.dtype != np.int16 or samples.ndim != 1:
            raise ValueError(f"playout takes one-dimensional int16, not {samples.dtype} of shape {samples.shape}")
        if clause < self._clause:
            raise ValueError(f"clause {clause} of reply {reply} comes after clause {self._clause}")
        if self._buffered + len(samples) > self._limit:
            raise ValueError(f"more than {MAX_BUFFERED_SECONDS:.0f} s of unheard audio in reply {reply}")
        self._clause = clause
        if len(samples):
            self._queue.append(samples.copy())
            self._buffered += len(samples)
        return True

    def finish(self, reply: int) -> None:
        """No more of this reply comes."""
        if reply == self._reply:
            self._finished = True

    def release(self, reply: int) -> None:
        """A held reply may be heard from now on."""
        if reply == self._reply:
            self._held = False

    def pause(self) -> None:
        """Go silent with the next frame, keeping what is unheard."""
        self._paused = True

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        self._paused = False

    def clear(self) -> int:
        """Drop what is unheard, close the reply and end a pause; gives the samples of it that were handed out."""
        played = self._played
        if self._sounding and self._buffered:
            self._tail = self._peek(len(self._fade_down))
        self._queue.clear()
        self._buffered = 0
        self._reply = None
        self._played = 0
        self._clause = -1
        self._held = self._paused = self._finished = self._drained = self._starved = False
        self._sounding = self._fade_in = False
        return played

    def next_frame(self) -> Pcm16:
        """The next `frame` samples the listener hears; silence where there is nothing to say."""
        out: Pcm16 = np.zeros(self.frame, np.int16)
        filled = 0
        if self._tail is not None:
            filled = self._fade_out(out, self._tail)
            self._tail = None
        if self._paused or self._held:
            if self._sounding:
                self._fade_out(out, self._peek(len(self._fade_down)))
                self._fade_in = True
                self._sounding = False
            self._tell(started=False, short=False)
            return out
        taken = self._take(out[filled:])
        self._sounding = taken > 0 and filled + taken == self.frame
        started = taken > 0 and self._played == taken
        self._tell(started=started, short=filled + taken < self.frame)
        return out

    def _tell(self, *, started: bool, short: bool) -> None:
        reply = self._reply
        if reply is None:
            return
        notices: list[PlayoutNotice] = []
        if started:
            notices.append(PlayoutStarted(reply))
        if self._finished and not self._held and not self._buffered and not self._drained:
            self._drained = True
            notices.append(PlayoutDrained(reply))
        if short and not self._finished and self._played and not self._starved:
            self._starved = True
            notices.append(PlayoutStarved(reply))
        for notice in notices:
            if self.listener is not None:
                self.listener(notice)

    def _take(self, out: Pcm16) -> int:
        """Move queued samples into `out`; gives how many."""
        taken = 0
        while self._queue and taken < len(out):
            head = self._queue[0]
            count = min(len(head), len(out) - taken)
            out[taken : taken + count] = head[:count]
            taken += count
            if count == len(head):
                self._queue.popleft()
            else:
                self._queue[0] = head[count:]
        if taken:
            if self._fade_in:
                count = min(taken, len(self._fade_down))
                out[:count] = np.rint(out[:count] * self._fade_down[::-1][:count])
                self._fade_in = False
            self._buffered -= taken
            self._played += taken
            self._starved = False
        return taken

    def _peek(self, count: int) -> Pcm16:
        pieces: list[Pcm16] = []
        for piece in self._queue:
            if count <= 0:
                break
            pieces.append(piece[:count])
            count -= len(pieces[-1])
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def _fade_out(self, out: Pcm16, tail: Pcm16) -> int:
        """Write `tail`, fading, at the beginning of `out`; gives its length. A short tail fades faster."""
        count = min(len(tail), len(self._fade_down), len(out))
        if count:
            curve = self._fade_down[np.arange(count) * len(self._fade_down) // count]
            out[:count] = np.rint(tail[:count] * curve)
        return count
