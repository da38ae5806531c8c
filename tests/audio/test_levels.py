"""Loudness and the end of a sound."""

from __future__ import annotations

import numpy as np
import pytest

from voice_agent.audio.levels import SILENCE_DB, last_sound, level_db, quietest


def sine(count: int, amplitude: float) -> np.ndarray:
    return (np.sin(np.arange(count) * 0.3) * amplitude).astype(np.int16)


def test_levels_are_dbfs() -> None:
    assert level_db(np.full(100, 32767, np.int16)) == pytest.approx(0.0, abs=0.01)
    assert level_db(sine(16_000, 3276.8)) == pytest.approx(-23.0, abs=0.1)
    assert level_db(np.zeros(0, np.int16)) == SILENCE_DB
    assert level_db(np.zeros(160, np.int16)) == SILENCE_DB


def test_the_end_of_a_sound_is_found_to_the_block() -> None:
    audio = np.concatenate([sine(1600, 8000), np.zeros(800, np.int16)])
    assert last_sound(audio, 160) == 1600


def test_a_quiet_voice_is_measured_against_itself() -> None:
    audio = np.concatenate([sine(1600, 60), np.zeros(800, np.int16)])
    assert last_sound(audio, 160) == 1600


def test_silence_has_no_end_of_sound() -> None:
    assert last_sound(np.zeros(1600, np.int16), 160) == 0
    assert last_sound(np.zeros(10, np.int16), 160) == 0


def test_the_quietest_spot() -> None:
    audio = np.concatenate([sine(1600, 8000), np.zeros(320, np.int16), sine(1600, 8000)])
    assert 1600 <= quietest(audio, 160) <= 1920
