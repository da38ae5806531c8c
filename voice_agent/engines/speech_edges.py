"""Speech as it is synthesised, without the silence before and after it. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voice_agent.engines.ports import Pcm16

Floats = NDArray[np.float32]

LEAD = 0.005
"""Seconds of silence kept before the first sound; Piper puts about 40 ms there."""
TAIL = 0.030
FADE = 0.003
AUDIBLE_BELOW_PEAK = 50.0
"""Decibels under the loudest sample so far where sound begins. Piper's silence lies 90 dB under it, an "f" at 50."""
SILENT_PEAK = 1e-3
"""A voice is louder than this, so a piece that stays below it holds none."""


class SpeechEdges:
    """Feed pieces in order. Silence within the speech is kept: it comes out with the sound that follows it."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._step = rate // 500
        self._peak = 0.0
        self._held: Floats = np.zeros(0, np.float32)
        """What may be silence before, or after, everything."""
        self.start: int | None = None
        """Which sample of all that was fed is the first one kept."""

    def push(self, piece: Floats, *, last: bool = False) -> Pcm16:
        """What may be heard now, with short ramps at the two ends of the whole: clauses are joined without a click."""
        audio = np.concatenate([self._held, piece]).astype(np.float32)
        begin, end = self._sounding(audio)
        first = self.start is None
        if end == 0:
            self._held = audio
            tail = audio[: int(TAIL * self._rate)] if last and not first else audio[:0]
            return self._shaped(tail, fade_in=False, fade_out=True)
        if first:
            self.start = begin
        else:
            begin = 0
        if last:
            end = min(end + int(TAIL * self._rate), audio.size)
        self._held = audio[end:]
        return self._shaped(audio[begin:end], fade_in=first, fade_out=last)

    def _sounding(self, audio: Floats) -> tuple[int, int]:
        """Half-open range of samples from just before the first to the last sound; (0, 0) if there is none."""
        frames = audio.size // self._step
        self._peak = max(self._peak, float(np.max(np.abs(audio), initial=0.0)))
        if not frames or self._peak < SILENT_PEAK:
            return 0, 0
        power = np.sqrt(np.mean(audio[: frames * self._step].reshape(frames, self._step) ** 2, axis=1))
        loud = np.flatnonzero(power > self._peak * 10 ** (-AUDIBLE_BELOW_PEAK / 20))
        if not loud.size:
            return 0, 0
        start = int(loud[0]) * self._step - int(LEAD * self._rate)
        return max(start, 0), (int(loud[-1]) + 1) * self._step

    def _shaped(self, audio: Floats, *, fade_in: bool, fade_out: bool) -> Pcm16:
        shaped = audio.copy()
        ramp = np.linspace(0.0, 1.0, min(int(FADE * self._rate), audio.size // 2), dtype=np.float32)
        if fade_in:
            shaped[: ramp.size] *= ramp
        if fade_out:
            shaped[shaped.size - ramp.size :] *= ramp[::-1]
        rounded: Pcm16 = np.clip(np.round(shaped * 32767.0), -32768, 32767).astype(np.int16)
        return rounded
