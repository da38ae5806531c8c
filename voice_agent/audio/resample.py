"""Changing the sample rate: as a stream with little delay, and of whole pieces.

The stream is a polyphase windowed-sinc filter of our own. Measured for 48 kHz to 16 kHz in 20 ms chunks, audio held
back between input and output: soxr's stream 10.6 ms (LQ) and 21.8 ms (HQ), libswresample and this one 1.0 ms.
"""

from __future__ import annotations

import math

import numpy as np
import soxr
from numpy.typing import NDArray

from voice_agent.engines.ports import Pcm16

_ZERO_CROSSINGS = 16
"""Half the filter's length, in samples of the slower rate: 1 ms at 16 kHz."""

_ROLL_OFF = 0.92
"""Where the filter is 6 dB down, as a share of half the slower rate; beyond half of it everything is 55 dB down."""

_KAISER_BETA = 5.65
"""60 dB stop band."""


class Resampler:
    """Streaming: the concatenated output does not depend on how the input was cut (but for rounding in the last bit).

    Output sample n is the signal at the time of input sample n * source / target; the last `delay` seconds are held
    back until the input that follows them is known (or `flush`).
    """

    def __init__(self, source_rate: int, target_rate: int) -> None:
        if source_rate <= 0 or target_rate <= 0:
            raise ValueError(f"cannot resample {source_rate} Hz to {target_rate} Hz")
        shared = math.gcd(source_rate, target_rate)
        self._up, self._down = target_rate // shared, source_rate // shared
        self._identity = self._up == self._down
        slower = min(source_rate, target_rate)
        self._half = 0 if self._identity else math.ceil(_ZERO_CROSSINGS * source_rate / slower)
        self.delay = self._half / source_rate
        """Seconds of input held back."""
        if not self._identity:
            self._filters = self._design(_ROLL_OFF * slower / source_rate)
        self._buffer: NDArray[np.float32] = np.zeros(self._half, np.float32)
        self._origin = -self._half  # input position of the buffer's first sample
        self._next = 0  # number of the next output sample

    def _design(self, cutoff: float) -> NDArray[np.float32]:
        """(phases, taps); `cutoff` as a share of half the source rate. Every phase passes a constant unchanged."""
        taps = np.arange(-self._half + 1, self._half + 1, dtype=np.float64)
        times = taps[None, :] - np.arange(self._up)[:, None] / self._up
        window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (times / self._half) ** 2, 0, None)))
        filters = np.sinc(cutoff * times) * window
        normal: NDArray[np.float32] = (filters / filters.sum(axis=1, keepdims=True)).astype(np.float32)
        return normal

    def push(self, samples: Pcm16) -> Pcm16:
        """More input of any length; gives the output it completes, possibly none."""
        if self._identity:
            return samples
        self._buffer = np.concatenate([self._buffer, samples.astype(np.float32)])
        known = self._origin + len(self._buffer)  # input positions below are known
        # output n needs input up to floor(n * down / up) + half
        end = max(self._next, ((known - self._half) * self._up - 1) // self._down + 1)
        if end == self._next:
            return np.zeros(0, np.int16)
        out = self._filter(self._next, end)
        self._next = end
        keep = max(0, end * self._down // self._up - self._half + 1 - self._origin)
        self._buffer = self._buffer[keep:].copy()
        self._origin += keep
        rounded: Pcm16 = np.clip(np.rint(out), -32768, 32767).astype(np.int16)
        return rounded

    def _filter(self, begin: int, end: int) -> NDArray[np.float32]:
        """Output samples begin … end - 1, all of whose input is in the buffer."""
        taps = 2 * self._half
        offset = -self._half + 1 - self._origin
        if self._up == 1:  # one phase: filtering everything and keeping every n-th is quicker than gathering
            first = begin * self._down + offset
            last = (end - 1) * self._down + offset
            every: NDArray[np.float32] = np.correlate(self._buffer[first : last + taps], self._filters[0], "valid")
            return every[:: self._down]
        positions = np.arange(begin, end, dtype=np.int64) * self._down
        windows = np.lib.stride_tricks.sliding_window_view(self._buffer, taps)[positions // self._up + offset]
        gathered: NDArray[np.float32] = np.einsum("nt,nt->n", windows, self._filters[positions % self._up])
        return gathered

    def flush(self) -> Pcm16:
        """The rest of the output, as if silence followed. The stream is over after it."""
        return self.push(np.zeros(self._half, np.int16))


class PieceResampler:
    """A whole piece that comes in parts; held back between them: 20 ms. For what is made faster than it is heard."""

    def __init__(self, source: int, target: int) -> None:
        self._stream = None if source == target else soxr.ResampleStream(source, target, 1, "int16", quality="HQ")

    def push(self, samples: Pcm16) -> Pcm16:
        if self._stream is None:
            return samples
        out: Pcm16 = self._stream.resample_chunk(samples)
        return out

    def flush(self) -> Pcm16:
        """The rest; all together is as long as `resample` would have made it."""
        if self._stream is None:
            return np.zeros(0, np.int16)
        out: Pcm16 = self._stream.resample_chunk(np.zeros(0, np.int16), last=True)
        return out


def resample(samples: Pcm16, source: int, target: int) -> Pcm16:
    """A whole piece at once, for instance a synthesised clause; length scales exactly (rounded)."""
    if source == target or not len(samples):
        return samples
    out: Pcm16 = soxr.resample(samples, source, target, quality="HQ")
    return out
