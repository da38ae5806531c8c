"""What every VoiceActivityModel must do. `model` is a factory; each check gets a fresh engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np

from voice_agent.engines.ports import Pcm16, VoiceActivity, VoiceActivityModel

Factory = Callable[[], VoiceActivityModel]


async def _feed(state: VoiceActivity, audio: Pcm16, sizes: list[int]) -> list[float]:
    """Feed `audio` in pieces of the given sizes, over and over."""
    found: list[float] = []
    position = turn = 0
    while position < audio.size:
        size = sizes[turn % len(sizes)]
        found += await state.feed(audio[position : position + size])
        position += size
        turn += 1
    return found


def check_any_chunking_gives_the_same(model: Factory, audio: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        try:
            whole = await engine.open().feed(audio)
            assert len(whole) == audio.size // 512
            odd = np.random.default_rng(7).integers(1, 1200, 40).tolist()
            for sizes in ([160], [320], [480], [511], [512], [720], odd):
                assert await _feed(engine.open(), audio, sizes) == whole, sizes
        finally:
            await engine.close()

    asyncio.run(body())


def check_states_are_independent(model: Factory, audio: Pcm16, other: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        try:
            alone = await engine.open().feed(audio)
            other_alone = await engine.open().feed(other)
            first, second = engine.open(), engine.open()
            mixed: list[float] = []
            other_mixed: list[float] = []
            for start in range(0, audio.size, 320):
                mixed += await first.feed(audio[start : start + 320])
                other_mixed += await second.feed(other[start : start + 320])
            assert mixed == alone
            assert other_mixed == other_alone[: len(other_mixed)]
        finally:
            await engine.close()

    asyncio.run(body())


def check_reset_forgets(model: Factory, audio: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        try:
            state = engine.open()
            fresh = await state.feed(audio)
            await state.feed(audio[:700])
            state.reset()
            assert await state.feed(audio) == fresh
        finally:
            await engine.close()

    asyncio.run(body())


def check_values(model: Factory, audio: Pcm16) -> None:
    async def body() -> None:
        engine = model()
        try:
            await engine.warm_up()
            state = engine.open()
            assert await state.feed(audio[:0]) == []
            assert await state.feed(audio[:511]) == []
            assert len(await state.feed(audio[511:512])) == 1
            assert all(0.0 <= probability <= 1.0 for probability in await state.feed(audio[512:]))
        finally:
            await engine.close()
            await engine.close()

    asyncio.run(body())
