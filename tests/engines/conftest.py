"""Real engines, loaded once, and speech for them to hear, made by the product's own voice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soxr

from voice_agent.engines.piper import PiperSpeaker
from voice_agent.engines.ports import ENGINE_RATE, Pcm16
from voice_agent.engines.speech import synthesize

Say = Callable[[str], Pcm16]


@pytest.fixture(scope="session")
def voice_path(weights: Path) -> Path:
    return weights / "piper-joe" / "en_US-joe-medium.onnx"


@pytest.fixture(scope="session")
def say(voice_path: Path) -> Say:
    """Text to 16 kHz speech, without silence around it."""
    made: dict[str, Pcm16] = {}

    def speak(text: str) -> Pcm16:
        if text not in made:
            speaker = PiperSpeaker(voice_path, threads=1)

            async def body() -> Pcm16:
                speech = await synthesize(speaker, text)
                await speaker.close()
                return soxr.resample(speech.samples, speech.rate, ENGINE_RATE)

            made[text] = asyncio.run(body())
        return made[text]

    return speak


@pytest.fixture(scope="session")
def question(say: Say) -> Pcm16:
    """ "What is the capital of France?" after half a second of silence, as a call hands it over."""
    return np.concatenate((np.zeros(8000, np.int16), say("What is the capital of France?"), np.zeros(2000, np.int16)))


@pytest.fixture(scope="session")
def noises() -> dict[str, Pcm16]:
    """Sounds without speech, from a fixed seed."""
    random = np.random.default_rng(4)

    def pcm(audio: np.ndarray) -> Pcm16:
        return np.clip(audio * 32767, -32768, 32767).astype(np.int16)

    def pink(seconds: float, level: float) -> np.ndarray:
        spectrum = np.fft.rfft(random.standard_normal(int(seconds * ENGINE_RATE)))
        bins = np.maximum(np.arange(spectrum.size), 1)
        audio = np.fft.irfft(spectrum / np.sqrt(bins), int(seconds * ENGINE_RATE))
        return audio / np.sqrt(np.mean(audio**2)) * 10 ** (level / 20)

    def clicks(seconds: float) -> np.ndarray:
        audio = np.zeros(int(seconds * ENGINE_RATE))
        for at in np.arange(0.1, seconds - 0.1, 0.18):
            start = int((at + random.uniform(0, 0.05)) * ENGINE_RATE)
            audio[start : start + 192] += random.standard_normal(192) * np.exp(-np.arange(192) / 40) * 0.4
        return audio

    tone = 0.3 * np.sin(2 * np.pi * 440 * np.arange(25 * ENGINE_RATE) / ENGINE_RATE)
    return {
        "digital silence": np.zeros(12 * ENGINE_RATE, np.int16),
        "pink noise -40": pcm(pink(3, -40)),
        "pink noise -25, short": pcm(pink(0.5, -25)),
        "keyboard": pcm(clicks(2)),
        "tone, short": pcm(tone[: 2 * ENGINE_RATE]),
        "tone, 25 s": pcm(tone),
    }
