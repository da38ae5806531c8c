"""Engines without models: what they hear and say is written down beforehand. For tests and load runs.

They never sleep and read no clock. Where a test needs a slow engine it passes a `hold`: an `asyncio.Event` that every
call waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

import numpy as np

from voice_agent.engines.ports import Pcm16, Speech, Transcript, VoiceActivity, WordTime
from voice_agent.errors import EngineError

WINDOW = 512
WORD_SECONDS = 0.4


class _Fake:
    """Warm from the start; refuses work once it is closed."""

    name = "fake"

    def __init__(self, hold: asyncio.Event | None = None) -> None:
        self._hold = hold
        self._closed = False

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        self._closed = True

    async def _enter(self) -> None:
        if self._hold is not None:
            await self._hold.wait()
        if self._closed:
            raise EngineError(self.name, "closed", "the engine has been closed")


class FakeVoiceActivity(_Fake):
    """Every call hears the same script, one probability per 512-sample window, then silence."""

    name = "fake-vad"

    def __init__(self, probabilities: Iterable[float] = (), hold: asyncio.Event | None = None) -> None:
        super().__init__(hold)
        self._probabilities = tuple(probabilities)

    def open(self) -> VoiceActivity:
        return _FakeState(self)

    async def probabilities(self, first: int, count: int) -> list[float]:
        await self._enter()
        script = self._probabilities[first : first + count]
        return [*script, *([0.0] * (count - len(script)))]


class _FakeState:
    def __init__(self, model: FakeVoiceActivity) -> None:
        self._model = model
        self._samples = 0

    async def feed(self, samples: Pcm16) -> list[float]:
        first = self._samples // WINDOW
        self._samples += samples.size
        return await self._model.probabilities(first, self._samples // WINDOW - first)

    def reset(self) -> None:
        self._samples = 0


class FakeEndOfTurn(_Fake):
    """Gives the scripted scores in order, the last one for ever. `asked` holds the length of each audio it got."""

    name = "fake-end-of-turn"

    def __init__(self, scores: Sequence[float] = (1.0,), hold: asyncio.Event | None = None) -> None:
        super().__init__(hold)
        self._scores = tuple(scores)
        self.asked: list[int] = []

    async def score(self, samples: Pcm16) -> float:
        await self._enter()
        self.asked.append(samples.size)
        return self._scores[min(len(self.asked), len(self._scores)) - 1]


class FakeSpeechToText(_Fake):
    """Gives the scripted texts in order, the last one for ever; '' for digital silence, which takes none of them.

    A script entry may be an EngineError, which is raised. `asked` holds (samples, language, hint) of each call.
    """

    name = "fake-stt"

    def __init__(
        self, script: Sequence[str | Transcript | EngineError] = ("",), hold: asyncio.Event | None = None
    ) -> None:
        super().__init__(hold)
        self._script = tuple(script)
        self._given = 0
        self.asked: list[tuple[int, str | None, str]] = []

    async def transcribe(self, samples: Pcm16, *, language: str | None = None, hint: str = "") -> Transcript:
        self.asked.append((samples.size, language, hint))
        await self._enter()
        if samples.size > 30 * 16_000:
            raise EngineError(self.name, "too_long", "at most 30 s of audio")
        if not samples.any():
            return Transcript("", language, no_speech=1.0)
        entry = self._script[min(self._given, len(self._script) - 1)]
        self._given += 1
        if isinstance(entry, EngineError):
            raise entry
        return entry if isinstance(entry, Transcript) else Transcript(entry, language)


class FakeTextToSpeech(_Fake):
    """Every word is 400 ms (at speed 1) of one value, or of 1, 2, 3 … where `value` is None.

    The first word comes as a piece of its own.
    `asked` holds the texts, `cancelled` how many calls were cancelled while they waited for `hold`.
    """

    name = "fake-tts"

    def __init__(self, value: int | None = 1000, rate: int = 16_000, hold: asyncio.Event | None = None) -> None:
        super().__init__(hold)
        self._value = value
        self._rate = rate
        self.asked: list[str] = []
        self.cancelled = 0

    async def stream(self, text: str, *, speed: float = 1.0) -> AsyncGenerator[Speech, None]:
        self.asked.append(text)
        if not 0.25 <= speed <= 4.0:
            raise EngineError(self.name, "speed", f"speed {speed} is outside 0.25 to 4.0")
        try:
            await self._enter()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        step = round(WORD_SECONDS * self._rate / speed)
        words: list[WordTime] = []
        position = place = 0
        for word in text.split():
            start = text.index(word, place)
            place = start + len(word)
            length = step if any(character.isalnum() for character in word) else 0
            words.append(WordTime(start, place, position, position + length))
            position += length
        sound, begin = self._sound(position), 0
        if len(words) > 1:
            begin = words[0].end
            yield Speech(sound[:begin], self._rate, (words.pop(0),), exact=True)
        yield Speech(sound[begin:], self._rate, tuple(words), exact=True)

    def _sound(self, length: int) -> Pcm16:
        if self._value is not None:
            return np.full(length, self._value, np.int16)
        return ((np.arange(length) % 32767) + 1).astype(np.int16)
