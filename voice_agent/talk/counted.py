"""Engines that say when they work, for a loop that waits for nothing else.

A stream counts as work from its first step to its end, also while its reader waits: too much real time rather than too
little. What an engine still finishes after its caller was cancelled (one step at most) is not counted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from voice_agent.engines.ports import (
    ChatRequest,
    EndOfTurn,
    LanguageEvent,
    LanguageModel,
    Pcm16,
    Speech,
    SpeechToText,
    TextToSpeech,
    Transcript,
    VoiceActivity,
    VoiceActivityModel,
)
from voice_agent.session.session import CallEngines
from voice_agent.talk.fast_loop import Busy


def counted_engines(engines: CallEngines, busy: Busy, *, scripted: bool) -> CallEngines:
    """The same engines, counted. A scripted language model only waits, so it is left as it is."""
    return CallEngines(
        _EndOfTurn(engines.end_of_turn, busy),
        _SpeechToText(engines.stt, busy),
        engines.llm if scripted else _LanguageModel(engines.llm, busy),
        _TextToSpeech(engines.tts, busy),
    )


class _Engine:
    def __init__(self, engine: VoiceActivityModel | EndOfTurn | SpeechToText | LanguageModel | TextToSpeech) -> None:
        self._life = engine

    async def warm_up(self) -> None:
        await self._life.warm_up()

    async def close(self) -> None:
        await self._life.close()


class CountedVoiceActivity(_Engine):
    def __init__(self, engine: VoiceActivityModel, busy: Busy) -> None:
        super().__init__(engine)
        self._engine = engine
        self._busy = busy

    def open(self) -> VoiceActivity:
        return _VoiceActivity(self._engine.open(), self._busy)


class _VoiceActivity:
    def __init__(self, activity: VoiceActivity, busy: Busy) -> None:
        self._activity = activity
        self._busy = busy

    async def feed(self, samples: Pcm16) -> list[float]:
        with self._busy:
            return await self._activity.feed(samples)

    def reset(self) -> None:
        self._activity.reset()


class _EndOfTurn(_Engine):
    def __init__(self, engine: EndOfTurn, busy: Busy) -> None:
        super().__init__(engine)
        self._engine = engine
        self._busy = busy

    async def score(self, samples: Pcm16) -> float:
        with self._busy:
            return await self._engine.score(samples)


class _SpeechToText(_Engine):
    def __init__(self, engine: SpeechToText, busy: Busy) -> None:
        super().__init__(engine)
        self._engine = engine
        self._busy = busy

    async def transcribe(self, samples: Pcm16, *, language: str | None = None, hint: str = "") -> Transcript:
        with self._busy:
            return await self._engine.transcribe(samples, language=language, hint=hint)


class _LanguageModel(_Engine):
    def __init__(self, engine: LanguageModel, busy: Busy) -> None:
        super().__init__(engine)
        self._engine = engine
        self._busy = busy

    async def stream(self, request: ChatRequest) -> AsyncGenerator[LanguageEvent, None]:
        with self._busy:
            async with aclosing(self._engine.stream(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event

    async def end_of_turn(self, request: ChatRequest) -> float | None:
        with self._busy:
            return await self._engine.end_of_turn(request)

    def forget(self, conversation: str) -> None:
        self._engine.forget(conversation)


class _TextToSpeech(_Engine):
    def __init__(self, engine: TextToSpeech, busy: Busy) -> None:
        super().__init__(engine)
        self._engine = engine
        self._busy = busy

    async def stream(self, text: str, *, speed: float = 1.0) -> AsyncGenerator[Speech, None]:
        with self._busy:
            async with aclosing(self._engine.stream(text, speed=speed)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece
