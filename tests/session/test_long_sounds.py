"""Minutes of silence and of music through the real voice activity model, faster than real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from voice_agent.core.events import SpeechPaused, SpeechStarted
from voice_agent.core.speech_gate import GateSettings, SpeechChange
from voice_agent.engines.ports import Pcm16
from voice_agent.engines.silero_vad import SileroVad
from voice_agent.session.listening import KEPT_SECONDS, Listening
from voice_agent.transports.ports import AudioFrame

RATE = 16_000
MINUTES = 5


def silence(seconds: float) -> Pcm16:
    return np.zeros(round(seconds * RATE), np.int16)


def music(seconds: float) -> Pcm16:
    """Three-note chords that change every half second, with a beat."""
    at = np.arange(round(seconds * RATE)) / RATE
    roots = np.array([220.0, 246.9, 196.0, 293.7])[(at * 2).astype(int) % 4]
    tones = sum(np.sin(2 * np.pi * roots * ratio * at) for ratio in (1.0, 1.26, 1.5))
    beat = 0.6 + 0.4 * np.exp(-(at * 4 % 1) * 5)
    return (tones * beat * 4000).astype(np.int16)


async def listen(weights: Path, audio: Pcm16) -> tuple[list[SpeechChange], Listening]:
    model = SileroVad(weights / "silero-vad" / "silero_vad.onnx")
    listening = Listening(model.open(), GateSettings())
    happened: list[SpeechChange] = []
    for start in range(0, len(audio), 320):
        happened += await listening.hear(AudioFrame(audio[start : start + 320], (start + 320) / RATE))
    await model.close()
    return happened, listening


@pytest.mark.parametrize("sound", [silence, music])
def test_minutes_without_speech_do_not_pile_up_and_a_question_after_them_is_heard(
    sound: Callable[[float], Pcm16], weights: Path, spoken_question: Pcm16
) -> None:
    before = sound(MINUTES * 60)
    audio = np.concatenate([before, silence(1.0), spoken_question, silence(1.0)])
    happened, listening = asyncio.run(listen(weights, audio))
    held, _ = listening.audio(0.0, len(audio) / RATE)
    assert len(held) <= KEPT_SECONDS * RATE
    question_at = len(before) / RATE + 1.0
    if sound is silence:
        assert [event for event in happened if event.at < question_at - 0.1] == []
    started = [event.at for event in happened if isinstance(event, SpeechStarted)]
    paused = [event.at for event in happened if isinstance(event, SpeechPaused)]
    assert any(abs(at - question_at) < 0.5 for at in started), started[-3:]  # what the pre-roll makes good
    assert paused[-1] == pytest.approx(question_at + len(spoken_question) / RATE, abs=0.2)
