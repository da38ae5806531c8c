"""Beginnings and pauses of speech, counted in windows of audio."""

from __future__ import annotations

import pytest

from voice_agent.core.events import SpeechDipped, SpeechPaused, SpeechStarted
from voice_agent.core.speech_gate import GateSettings, SpeechGate

WINDOW = 0.032


def run(probabilities: list[float], levels: list[float] | None = None) -> list[tuple[str, float]]:
    gate = SpeechGate(GateSettings(), WINDOW)
    happened = []
    for index, probability in enumerate(probabilities):
        level = levels[index] if levels else -20.0
        event = gate.push(probability, level, (index + 1) * WINDOW)
        if event is not None and not isinstance(event, SpeechDipped):
            happened.append((type(event).__name__, round(event.at, 3)))
    return happened


def windows(seconds: float) -> int:
    return round(seconds / WINDOW)


@pytest.mark.parametrize("seconds", [0.16, 0.2, 0.26])
def test_a_short_word_is_an_utterance(seconds: float) -> None:
    """A06: 'stop' of 200 ms begins and ends."""
    assert run([0.0] * 10 + [0.9] * windows(seconds) + [0.0] * 30) == [
        (SpeechStarted.__name__, 0.32),
        (SpeechPaused.__name__, round(0.32 + windows(seconds) * WINDOW, 3)),
    ]


def test_a_click_is_no_utterance() -> None:
    assert run([0.0] * 10 + [0.95] + [0.0] * 30) == []


def test_hysteresis_keeps_a_wavering_voice_together() -> None:
    assert [name for name, _ in run([0.6, 0.6, 0.4, 0.45, 0.36, 0.6, 0.4])] == ["SpeechStarted"]


def test_one_silent_window_is_no_pause() -> None:
    assert [name for name, _ in run([0.9] * 5 + [0.1] + [0.9] * 5)] == ["SpeechStarted"]


def test_the_pause_begins_with_the_first_silent_window() -> None:
    assert run([0.9] * 5 + [0.1] * 3)[1] == ("SpeechPaused", round(5 * WINDOW, 3))


def test_sudden_quiet_is_a_pause_while_the_model_still_hears_a_voice() -> None:
    """The model lags the sound: three windows far below the voice are enough."""
    assert run([0.9] * 10, [-20.0] * 5 + [-70.0] * 5)[1] == ("SpeechPaused", round(5 * WINDOW, 3))


def test_a_quiet_voice_is_not_taken_for_silence() -> None:
    assert [name for name, _ in run([0.9] * 20, [-55.0] * 20)] == ["SpeechStarted"]


def test_speech_begins_again_after_a_pause() -> None:
    names = [name for name, _ in run([0.9] * 4 + [0.0] * 4 + [0.9] * 4 + [0.0] * 4)]
    assert names == ["SpeechStarted", "SpeechPaused"] * 2


def test_the_first_quiet_window_is_a_dip_and_comes_once_per_gap() -> None:
    gate = SpeechGate(GateSettings(), WINDOW)
    levels = [-20.0] * 5 + [-70.0] + [-20.0] * 3 + [-70.0] * 3
    events = [gate.push(0.9, level, (index + 1) * WINDOW) for index, level in enumerate(levels)]
    assert [type(event).__name__ for event in events if event] == [
        "SpeechStarted",
        "SpeechDipped",
        "SpeechDipped",
        "SpeechPaused",
    ]
