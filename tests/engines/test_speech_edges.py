from __future__ import annotations

import numpy as np
import pytest

from voice_agent.engines.speech_edges import FADE, LEAD, TAIL, SpeechEdges

RATE = 22_050


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * RATE), np.float32)


def sound(seconds: float, level: float = 0.5) -> np.ndarray:
    return np.full(int(seconds * RATE), level, np.float32)


def fed(audio: np.ndarray, size: int) -> tuple[SpeechEdges, np.ndarray]:
    edges = SpeechEdges(RATE)
    pieces = [
        edges.push(audio[begin : begin + size], last=begin + size >= len(audio)) for begin in range(0, len(audio), size)
    ]
    return edges, np.concatenate(pieces)


@pytest.mark.parametrize("size", [700, 4410, 8820, 100_000])
def test_the_silence_around_goes_and_the_silence_within_stays(size):
    edges, kept = fed(np.concatenate([silence(0.2), sound(0.3), silence(0.25), sound(0.1), silence(0.4)]), size)
    assert edges.start == pytest.approx((0.2 - LEAD) * RATE, abs=RATE / 400)
    assert kept.size == pytest.approx((LEAD + 0.65 + TAIL) * RATE, abs=RATE / 200)
    quiet = np.flatnonzero(np.abs(kept) < 100)
    within = quiet[(quiet > 0.2 * RATE) & (quiet < 0.6 * RATE)]
    assert within.size == pytest.approx(0.25 * RATE, abs=RATE / 400)


@pytest.mark.parametrize("size", [700, 100_000])
def test_only_the_outer_ends_are_ramps(size):
    _, kept = fed(sound(0.3), size)
    ramp = int(FADE * RATE)
    assert abs(kept[0]) <= 1
    assert abs(kept[-1]) <= 1
    assert np.all(kept[ramp:-ramp] == round(0.5 * 32767))


@pytest.mark.parametrize("size", [1, 44, 100_000])
def test_nothing_but_silence_gives_nothing(size):
    edges, kept = fed(silence(0.01), size)
    assert kept.size == 0
    assert edges.start is None
    assert SpeechEdges(RATE).push(silence(0), last=True).size == 0


def test_sound_to_the_end_of_a_piece_keeps_its_tail():
    edges = SpeechEdges(RATE)
    first = edges.push(sound(0.3))
    second = edges.push(silence(0.3), last=True)
    assert first.size + second.size == pytest.approx((0.3 + TAIL) * RATE, abs=RATE / 400)
