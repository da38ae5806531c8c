"""What every TextToSpeech must do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from voice_agent.engines.ports import Speech, TextToSpeech
from voice_agent.engines.speech import synthesize
from voice_agent.errors import EngineError

Factory = Callable[[], TextToSpeech]

TEXTS = (
    "Hello there, how are you?",
    "It is one of the best — really.",
    "Sure! I'd love to help. What do you need?",
    "  The temperature is 25 degrees\nin the afternoon ",
    "8...",
)
NOTHING = ("", "   ", "...", "—", "*", "😊", ")")


def check_words(text: str, speech: Speech) -> None:
    """One word time per word, in order, not overlapping, inside the samples."""
    assert [text[word.start_char : word.end_char] for word in speech.words] == text.split()
    last_char = last = 0
    for word in speech.words:
        assert last_char <= word.start_char < word.end_char <= len(text)
        assert last <= word.start <= word.end <= speech.samples.size
        last_char, last = word.end_char, word.end


def check_speaks(model: Factory) -> None:
    async def body() -> None:
        engine = model()
        try:
            await engine.warm_up()
            for text in TEXTS:
                speech = await synthesize(engine, text)
                assert speech.samples.dtype == np.int16
                assert speech.samples.ndim == 1
                assert speech.samples.size > speech.rate // 10
                check_words(text, speech)
        finally:
            await engine.close()

    asyncio.run(body())


def check_nothing_to_say(model: Factory) -> None:
    async def body() -> None:
        engine = model()
        try:
            for text in NOTHING:
                speech = await synthesize(engine, text)
                assert speech.samples.size == 0, text
                assert speech.rate > 0
                check_words(text, speech)
        finally:
            await engine.close()

    asyncio.run(body())


def check_speed(model: Factory) -> None:
    async def body() -> None:
        engine = model()
        try:
            text = "This is a sentence of some length, for the sake of counting."
            normal = (await synthesize(engine, text)).samples.size
            fast = await synthesize(engine, text, speed=2.0)
            assert 0.35 < fast.samples.size / normal < 0.7
            check_words(text, fast)
            for speed in (0.0, -1.0, 100.0, float("nan")):
                with pytest.raises(EngineError) as caught:
                    await synthesize(engine, text, speed=speed)
                assert caught.value.code == "speed"
        finally:
            await engine.close()

    asyncio.run(body())


def check_close(model: Factory) -> None:
    async def body() -> None:
        engine = model()
        await engine.close()
        await engine.close()
        with pytest.raises(EngineError) as caught:
            await synthesize(engine, "Hello.")
        assert caught.value.code == "closed"

    asyncio.run(body())
