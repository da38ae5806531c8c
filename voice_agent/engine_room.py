"""Loads, warms and closes the engines of the process, and changes the voice while calls go on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from voice_agent.engine_makers import EngineMakers
from voice_agent.engines.ports import Engine, TextToSpeech, VoiceActivityModel
from voice_agent.modelstore import ModelPaths
from voice_agent.session.session import CallEngines
from voice_agent.settings import Settings

log = logging.getLogger(__name__)

NOTHING: Mapping[str, Any] = MappingProxyType({})


class EngineRoom:
    """Loads, warms and closes the engines; loading happens in threads while HTTP already answers."""

    def __init__(self, settings: Settings, paths: ModelPaths, own: Mapping[str, Any] = NOTHING) -> None:
        """`own`: engines that the embedding program brings, by setting (`llm`, `stt`, `tts`)."""
        self._makers = EngineMakers(settings, paths, own)
        self._loaded: dict[str, Any] = {}
        self._old_voices: list[TextToSpeech] = []
        """Of calls that began before the voice was changed."""

    @property
    def activity(self) -> VoiceActivityModel:
        vad: VoiceActivityModel = self._loaded["voice activity"]
        return vad

    @property
    def voice_name(self) -> str:
        return str(getattr(self._loaded["voice"], "name", ""))

    def for_calls(self) -> CallEngines:
        loaded = self._loaded
        return CallEngines(loaded["end of turn"], loaded["recognition"], loaded["language model"], loaded["voice"])

    async def load(self, progress: Callable[[list[str]], None]) -> None:
        makers: dict[str, Callable[[], Engine]] = {
            "voice activity": self._makers.voice_activity,
            "end of turn": self._makers.end_of_turn,
            "recognition": self._makers.recogniser,
            "voice": lambda: self._make_voice(None),
            "language model": self._makers.language_model,
        }
        waiting = list(makers)
        progress(waiting)
        for name, make in makers.items():
            engine = await asyncio.to_thread(make)
            self._loaded[name] = engine
            await engine.warm_up()
            waiting.remove(name)
            progress(list(waiting))
            log.info("= %s is ready", name)

    async def load_voice(self, settings: Settings) -> TextToSpeech:
        """Another voice, warm, beside the one in use. Raises ModelError, EngineError."""

        def make() -> TextToSpeech:
            return self._make_voice(settings)

        making = asyncio.ensure_future(asyncio.to_thread(make))
        try:
            voice = await asyncio.shield(making)
        except asyncio.CancelledError:  # the thread goes on; what it makes must not stay open
            with contextlib.suppress(Exception):  # it may as well fail, and then there is nothing to close
                await (await making).close()
            raise
        try:
            await voice.warm_up()
        except BaseException:
            await voice.close()
            raise
        return voice

    def use_voice(self, voice: TextToSpeech) -> TextToSpeech:
        old: TextToSpeech = self._loaded["voice"]
        self._old_voices.append(old)
        self._loaded["voice"] = voice
        return old

    async def drop_voice(self, voice: TextToSpeech) -> None:
        await voice.close()
        self._old_voices.remove(voice)

    def _make_voice(self, settings: Settings | None) -> TextToSpeech:
        return self._makers.voice(settings)

    async def close(self) -> None:
        engines: list[Engine] = [*self._loaded.values(), *self._old_voices]
        closing: list[Awaitable[None]] = [engine.close() for engine in engines]
        self._loaded, self._old_voices = {}, []
        await asyncio.gather(*closing)
