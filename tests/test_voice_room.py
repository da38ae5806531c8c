"""Voices come and go while others speak: nothing stays open, whatever happens in between."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from voice_agent.engine_room import EngineRoom
from voice_agent.engines.fakes import FakeTextToSpeech
from voice_agent.errors import EngineError
from voice_agent.modelstore import ModelPaths
from voice_agent.settings import ModelSettings, Settings

NOWHERE = Path("/nonexistent")


class Voice(FakeTextToSpeech):
    cold = False

    async def warm_up(self) -> None:
        if self.cold:
            raise EngineError("fake-tts", "load", "too cold")

    @property
    def closed(self) -> bool:
        return self._closed


class Room(EngineRoom):
    """Makes fake voices, in a thread like real ones."""

    def __init__(self) -> None:
        super().__init__(Settings(), ModelPaths(NOWHERE, NOWHERE, NOWHERE, None, NOWHERE))
        self.made: list[Voice] = []
        self.making, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.cold = self.broken = False
        self._loaded["voice"] = self._make_voice(None)

    def _make_voice(self, settings: Settings | None) -> Voice:
        self.making.set()
        assert self.go_on.wait(30)
        if self.broken:
            raise EngineError("fake-tts", "load", "broken")
        voice = Voice()
        voice.cold = self.cold
        self.made.append(voice)
        return voice


@pytest.fixture
def settings(weights: Path) -> Settings:
    """With a voice that is really there; the other models are not asked for."""
    voice = weights / "piper-joe" / "en_US-joe-medium.onnx"
    return Settings(models=ModelSettings(tts=str(voice), llm="scripted"))


def test_the_old_voice_stays_open_until_it_is_dropped(settings: Settings) -> None:
    async def main() -> None:
        room = Room()
        old = room.use_voice(await room.load_voice(settings))
        first, second = room.made
        assert old is first
        assert not first.closed
        await room.drop_voice(old)
        assert (first.closed, second.closed) == (True, False)
        await room.close()
        assert second.closed

    asyncio.run(main())


def test_the_end_closes_voices_that_are_still_spoken_with(settings: Settings) -> None:
    async def main() -> None:
        room = Room()
        room.use_voice(await room.load_voice(settings))
        await room.close()
        assert [voice.closed for voice in room.made] == [True, True]

    asyncio.run(main())


def test_a_voice_that_fails_to_warm_up_is_closed(settings: Settings) -> None:
    async def main() -> None:
        room = Room()
        room.cold = True
        with pytest.raises(EngineError, match="too cold"):
            await room.load_voice(settings)
        assert [voice.closed for voice in room.made] == [False, True]

    asyncio.run(main())


@pytest.mark.parametrize("broken", [False, True])
def test_a_voice_nobody_waits_for_any_more_is_closed(settings: Settings, broken: bool) -> None:
    async def main() -> None:
        room = Room()
        room.broken = broken
        room.making.clear()
        room.go_on.clear()
        loading = asyncio.create_task(room.load_voice(settings))
        assert await asyncio.to_thread(room.making.wait, 30)
        loading.cancel()
        await asyncio.sleep(0)
        room.go_on.set()
        await asyncio.wait([loading])
        assert loading.cancelled()
        assert [voice.closed for voice in room.made[1:]] == ([] if broken else [True])

    asyncio.run(main())
