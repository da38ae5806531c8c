"""Audio by time: exact samples, bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from voice_agent.audio.ring import AudioRing


def ramp(start: int, count: int) -> np.ndarray:
    return np.arange(start, start + count, dtype=np.int16)


def filled(chunk: int, total: int, seconds: float = 1.0) -> AudioRing:
    """A ring of 1000 Hz that holds a ramp; sample n was captured at 100 + n/1000 s."""
    ring = AudioRing(seconds, rate=1000)
    for start in range(0, total, chunk):
        count = min(chunk, total - start)
        ring.push(ramp(start, count), 100.0 + (start + count) / 1000)
    return ring


@pytest.mark.parametrize("chunk", [1, 7, 20, 999, 1000, 2500])
def test_audio_comes_back_exactly_however_it_was_cut(chunk: int) -> None:
    ring = filled(chunk, 5000)
    assert ring.between(104.5, 104.75).tolist() == list(range(4500, 4750))


def test_a_beginning_at_pre_roll_is_contiguous() -> None:
    """D06: detection at 1.3 s, onset at 1.0 s; what is recognised begins before the onset, without a hole."""
    ring = filled(20, 1300, seconds=2.0)
    assert ring.between(100.5, 101.3).tolist() == list(range(500, 1300))


def test_what_is_no_longer_or_not_yet_there_is_left_out() -> None:
    ring = filled(20, 3000)
    assert ring.between(0.0, 102.1).tolist() == list(range(2000, 2100))
    assert ring.between(102.9, 999.0).tolist() == list(range(2900, 3000))
    assert len(ring.between(50.0, 60.0)) == 0
    assert len(ring.between(102.5, 102.5)) == 0


def test_time_of_a_sample() -> None:
    assert filled(20, 3000).time_of(2500) == pytest.approx(102.5)
