"""What the caller hears: when the agent speaks, from audio and the moments it arrived. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voice_agent.audio.levels import block_levels
from voice_agent.engines.ports import Pcm16

RATE = 48_000
BLOCK = RATE // 100
"""10 ms, the step in which loudness is judged."""
THRESHOLD_DB = -45.0
"""RMS level above which a block is sound: 15 dB over the noise of a quiet room, 20 dB under speech."""
SUSTAIN = 4
"""Blocks in a row that are speech; fewer are a click."""
MERGE = 0.25
"""Seconds of silence that do not end a stretch of speech: pauses between words."""
BREAK = 0.1
"""Seconds without any audio after which nothing continues across the hole."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech, in seconds on the caller's clock."""

    start: float
    end: float


def speech_bounds(samples: Pcm16) -> tuple[int, int]:
    """Half-open range from the first to the last loud block of 48 kHz audio; (0, 0) if none is loud."""
    loud = [i for i, level in enumerate(block_levels(samples, BLOCK)) if level > THRESHOLD_DB]
    return (loud[0] * BLOCK, (loud[-1] + 1) * BLOCK) if loud else (0, 0)


class Ear:
    """Cuts arriving audio into segments of speech."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        """In order, apart by more than `MERGE`; the last one may still grow."""
        self._rest: Pcm16 = np.zeros(0, np.int16)
        self._run = 0
        """Loud blocks in a row."""
        self._run_start = 0.0
        self._heard_until: float | None = None

    def hear(self, at: float, samples: Pcm16) -> None:
        """48 kHz audio of any length whose first sample counts as heard at `at`."""
        if self._heard_until is not None and at - self._heard_until > BREAK:
            self._rest, self._run = samples[:0], 0
        begin = at - len(self._rest) / RATE
        pending = np.concatenate([self._rest, samples])
        levels = block_levels(pending, BLOCK)
        for number, level in enumerate(levels):
            self._block(begin + number * BLOCK / RATE, level > THRESHOLD_DB)
        self._rest = pending[len(levels) * BLOCK :]
        self._heard_until = at + len(samples) / RATE

    def started_since(self, at: float) -> float | None:
        """Start of the first segment that began at or after `at`."""
        return next((segment.start for segment in self.segments if segment.start >= at), None)

    @property
    def last_voice(self) -> float | None:
        return self.segments[-1].end if self.segments else None

    def _block(self, start: float, loud: bool) -> None:
        if not loud:
            self._run = 0
            return
        if self._run == 0:
            self._run_start = start
        self._run += 1
        if self._run < SUSTAIN:
            return
        end = start + BLOCK / RATE
        if self.segments and self._run_start - self.segments[-1].end <= MERGE:
            last = self.segments[-1]
            self.segments[-1] = Segment(last.start, max(last.end, end))
        else:
            self.segments.append(Segment(self._run_start, end))
