"""Lines of callers, spoken by the product's own voice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from voice_agent.audio.resample import resample
from voice_agent.engines.piper import PiperSpeaker
from voice_agent.engines.ports import ENGINE_RATE, Pcm16
from voice_agent.engines.speech import synthesize

Say = Callable[[str], Pcm16]


@pytest.fixture(scope="session")
def say(weights: Path) -> Iterator[Say]:
    """A text as 16 kHz speech."""
    voice = PiperSpeaker(weights / "piper-joe" / "en_US-joe-medium.onnx")

    def speak(text: str) -> Pcm16:
        speech = asyncio.run(synthesize(voice, text))
        return resample(speech.samples, speech.rate, ENGINE_RATE)

    yield speak
    asyncio.run(voice.close())
