"""What every EndOfTurn must do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from voice_agent.engines.ports import EndOfTurn, Pcm16
from voice_agent.errors import EngineError

Factory = Callable[[], EndOfTurn]


def check_scores_any_length(model: Factory, audio: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        try:
            await engine.warm_up()
            for samples in (audio[:0], audio[:1], audio[:8000], np.tile(audio, 12)[: 20 * 16_000]):
                assert 0.0 <= await engine.score(samples) <= 1.0
        finally:
            await engine.close()

    asyncio.run(body())


def check_close(model: Factory, audio: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        await engine.close()
        await engine.close()
        with pytest.raises(EngineError) as caught:
            await engine.score(audio)
        assert caught.value.code == "closed"

    asyncio.run(body())
