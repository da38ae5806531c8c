"""What every SpeechToText must do. `model` yields an engine that recognises `audio` as `words`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import numpy as np
import pytest

from voice_agent.engines.ports import Pcm16, SpeechToText
from voice_agent.errors import EngineError

Factory = Callable[[], SpeechToText]


def plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9']+", text.lower()))


def check_recognises(model: Factory, audio: Pcm16, words: str) -> None:
    async def body() -> None:
        engine = model()
        try:
            await engine.warm_up()
            found = await engine.transcribe(audio, language="en")
            assert plain(found.text) == words
            assert found.text == found.text.strip()
            assert found.language == "en"
            assert 0.0 <= found.no_speech <= 1.0
            assert found.log_probability <= 0.0
            hinted = await engine.transcribe(audio, language="en", hint="We were talking.")
            assert plain(hinted.text) == words
        finally:
            await engine.close()

    asyncio.run(body())


def check_silence_is_empty(model: Factory) -> None:
    async def body() -> None:
        engine = model()
        try:
            for seconds in (0.0, 0.02, 1.0, 12.0):
                found = await engine.transcribe(np.zeros(int(seconds * 16_000), np.int16), language="en")
                assert found.text == "", seconds
        finally:
            await engine.close()

    asyncio.run(body())


def check_refuses_more_than_30_s(model: Factory) -> None:
    async def body() -> None:
        engine = model()
        try:
            with pytest.raises(EngineError) as caught:
                await engine.transcribe(np.ones(30 * 16_000 + 1, np.int16))
            assert caught.value.code == "too_long"
        finally:
            await engine.close()

    asyncio.run(body())


def check_close(model: Factory, audio: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        await engine.close()
        await engine.close()
        with pytest.raises(EngineError) as caught:
            await engine.transcribe(audio)
        assert caught.value.code == "closed"

    asyncio.run(body())
