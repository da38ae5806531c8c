from __future__ import annotations

import numpy as np
import pytest

from tests.bench.sounds import silence, tone
from voice_agent.bench.ear import RATE, Ear, Segment, speech_bounds
from voice_agent.engines.ports import Pcm16


def heard(samples: Pcm16, at: float = 100.0, step: int = 960) -> Ear:
    ear = Ear()
    for begin in range(0, len(samples), step):
        ear.hear(at + begin / RATE, samples[begin : begin + step])
    return ear


def assert_segments(ear: Ear, *expected: tuple[float, float]) -> None:
    assert [(round(s.start, 3), round(s.end, 3)) for s in ear.segments] == list(expected)


@pytest.mark.parametrize("step", [120, 480, 700, 960, 2880])
def test_a_sound_is_a_segment_however_it_arrives(step: int) -> None:
    ear = heard(np.concatenate([silence(0.5), tone(0.4), silence(0.5)]), step=step)
    assert_segments(ear, (100.5, 100.9))


def test_pauses_between_words_do_not_split_but_longer_ones_do() -> None:
    ear = heard(np.concatenate([tone(0.2), silence(0.24), tone(0.2), silence(0.27), tone(0.2)]))
    assert_segments(ear, (100.0, 100.64), (100.91, 101.11))


def test_a_click_is_no_speech() -> None:
    ear = heard(np.concatenate([silence(0.1), tone(0.03), silence(0.3), tone(0.04), silence(0.1)]))
    assert_segments(ear, (100.43, 100.47))


def test_what_is_quieter_than_the_threshold_is_silence() -> None:
    assert heard(tone(0.5, level=0.007)).segments == []  # -46.1 dBFS
    assert len(heard(tone(0.5, level=0.009)).segments) == 1  # -43.9 dBFS


def test_a_hole_in_the_arrival_ends_a_run() -> None:
    ear = Ear()
    ear.hear(1.0, tone(0.02))
    ear.hear(1.5, tone(0.02))
    assert ear.segments == []
    ear.hear(1.52, tone(0.02))
    assert_segments(ear, (1.5, 1.54))


def test_looking_for_a_start_ignores_speech_that_was_going_on() -> None:
    ear = Ear()
    ear.segments += [Segment(1.0, 2.0), Segment(3.0, 4.0)]
    assert ear.started_since(1.0) == 1.0
    assert ear.started_since(1.5) == 3.0
    assert ear.started_since(3.5) is None
    assert ear.last_voice == 4.0


def test_bounds_are_where_sound_begins_and_ends() -> None:
    assert speech_bounds(np.concatenate([silence(0.1), tone(0.2), silence(0.3)])) == (4800, 14400)
    assert speech_bounds(silence(1)) == (0, 0)
    assert speech_bounds(silence(0)) == (0, 0)
