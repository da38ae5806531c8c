"""Speech for the session's tests, made with the product's own voice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from voice_agent.audio.resample import resample
from voice_agent.engines.piper import PiperSpeaker
from voice_agent.engines.ports import ENGINE_RATE, Pcm16, Speech
from voice_agent.engines.speech import synthesize


@pytest.fixture(scope="session")
def spoken_question(weights: Path) -> Pcm16:
    async def speak() -> Speech:
        voice = PiperSpeaker(weights / "piper-joe" / "en_US-joe-medium.onnx")
        try:
            return await synthesize(voice, "How far is the moon from the earth?")
        finally:
            await voice.close()

    speech = asyncio.run(speak())
    return resample(speech.samples, speech.rate, ENGINE_RATE)
