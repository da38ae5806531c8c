"""Resampling in pieces against resampling at once, and against the true signal."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import soxr

from voice_agent.audio.resample import Resampler, resample


def tone(hertz: float, rate: int, seconds: float = 1.0, level: float = 10_000) -> np.ndarray:
    return np.rint(level * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype(np.int16)


def streamed(samples: np.ndarray, source: int, target: int, cuts: list[int]) -> np.ndarray:
    resampler = Resampler(source, target)
    edges = itertools.pairwise([0, *cuts, len(samples)])
    return np.concatenate([*(resampler.push(samples[begin:end]) for begin, end in edges), resampler.flush()])


def every(step: int, length: int) -> list[int]:
    return list(range(step, length, step))


def snr(signal: np.ndarray, reference: np.ndarray) -> float:
    """Decibels, the first and last 40 ms left out."""
    count = min(len(signal), len(reference))
    inner = slice(count // 25, -count // 25)
    wanted, got = reference[:count].astype(float)[inner], signal[:count].astype(float)[inner]
    return float(10 * np.log10(np.mean(wanted**2) / (np.mean((got - wanted) ** 2) + 1e-9)))


def level_db(samples: np.ndarray) -> float:
    inner = samples[len(samples) // 10 : -len(samples) // 10].astype(float)
    return float(20 * np.log10(np.sqrt(2 * np.mean(inner**2)) / 10_000 + 1e-9))


@pytest.mark.parametrize(("source", "milliseconds"), [(24_000, 10), (24_000, 20), (48_000, 10), (48_000, 20)])
def test_pieces_sound_like_the_whole(source, milliseconds):
    """E19: at least 50 dB away from a one-shot resampling, and no buzz at multiples of the piece rate."""
    samples = tone(1000, source)
    result = streamed(samples, source, 16_000, every(source * milliseconds // 1000, len(samples)))
    assert snr(result, resample(samples, source, 16_000)) > 50
    inner = result[1600:-1600].astype(float)
    spectrum = np.abs(np.fft.rfft(inner * np.hanning(len(inner))))
    bins = np.fft.rfftfreq(len(inner), 1 / 16_000)
    buzz = [f for f in range(50, 8000, 50) if abs(f - 1000) > 100]
    worst = max(spectrum[np.argmin(np.abs(bins - f))] for f in buzz)
    assert 20 * np.log10(worst / spectrum.max()) < -70


@pytest.mark.parametrize(("source", "target"), [(48_000, 16_000), (22_050, 48_000), (44_100, 16_000), (8_000, 16_000)])
def test_the_result_does_not_depend_on_the_cuts(source, target):
    samples = np.random.default_rng(3).integers(-9000, 9000, source // 2).astype(np.int16)
    whole = streamed(samples, source, target, [])
    dice = random.Random(4)
    for size in (60, 300, 2500):
        cuts = sorted(dice.sample(range(len(samples)), k=len(samples) // size))
        difference = streamed(samples, source, target, cuts).astype(int) - whole
        assert np.abs(difference).max() <= 1  # rounding of sums taken in another order
    assert abs(len(whole) - len(samples) * target / source) <= 1


@pytest.mark.parametrize(("source", "target"), [(48_000, 16_000), (24_000, 16_000), (8_000, 16_000), (22_050, 8_000)])
def test_a_tone_keeps_its_pitch_level_and_place_in_time(source, target):
    result = streamed(tone(1000, source), source, target, every(source // 50, source))
    assert snr(result, tone(1000, target)) > 60


def test_the_delay_is_a_millisecond():
    resampler = Resampler(48_000, 16_000)
    given = taken = 0
    for piece in np.split(tone(300, 48_000), 50):
        taken += len(piece)
        given += len(resampler.push(piece))
        assert taken / 48_000 - given / 16_000 <= resampler.delay + 1 / 16_000
    assert resampler.delay <= 0.001


def test_soxr_as_a_stream_would_wait_much_longer():
    """Why the filter is our own: if this fails, soxr has become fast enough to replace it."""
    stream = soxr.ResampleStream(48_000, 16_000, 1, dtype="int16", quality="LQ")
    given = sum(len(stream.resample_chunk(piece)) for piece in np.split(tone(300, 48_000), 50))
    assert 1.0 - given / 16_000 > 0.004


def test_high_tones_are_removed_before_they_can_alias():
    """I07: 22.05 kHz to 8 kHz in 20 ms pieces: 1 and 3 kHz within 1 dB, 5 and 6 kHz more than 30 dB down."""
    for hertz, low, high in ((1000, -1, 1), (3000, -1, 1), (5000, -200, -30), (6000, -200, -30)):
        samples = tone(hertz, 22_050)
        streamed_db = level_db(streamed(samples, 22_050, 8_000, every(441, len(samples))))
        assert low < streamed_db < high, hertz
        assert low < level_db(resample(samples, 22_050, 8_000)) < high, hertz


@pytest.mark.parametrize("hertz", [9_000, 12_000, 15_000, 20_000])
def test_nothing_above_the_new_band_comes_through(hertz):
    assert level_db(streamed(tone(hertz, 48_000), 48_000, 16_000, [])) < -55


def test_the_same_rate_is_passed_on():
    samples = tone(1000, 16_000)
    assert np.array_equal(streamed(samples, 16_000, 16_000, [100, 5000]), samples)
    assert resample(samples, 16_000, 16_000) is samples


def test_full_scale_does_not_wrap_around():
    square = np.where(np.arange(48_000) // 100 % 2, 32_767, -32_768).astype(np.int16)
    result = streamed(square, 48_000, 16_000, [])
    middle = result[np.arange(len(result)) * 3 % 100 // 10 == 5]  # far from the edges
    assert np.abs(middle.astype(int)).min() > 30_000


@pytest.mark.parametrize("rates", [(0, 16_000), (16_000, -1)])
def test_impossible_rates_are_refused(rates):
    with pytest.raises(ValueError, match="Hz"):
        Resampler(*rates)


def test_a_clause_keeps_its_length_and_pitch():
    clause = tone(440, 22_050, 1.3)
    result = resample(clause, 22_050, 48_000)
    assert abs(len(result) - 1.3 * 48_000) <= 1
    assert snr(result, tone(440, 48_000, 1.3)) > 60
    assert len(resample(clause[:0], 22_050, 48_000)) == 0
