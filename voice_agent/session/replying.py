"""One reply, from the model's first token to the last queued sample: text, clauses and speech stream into each other.

A reply is a task. Cancelling it cancels the model and synthesis; the playout is cleared by the session. Before the
turn is over (`released`) only the first clause is synthesised: enough to answer at once, little to throw away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import numpy as np

from voice_agent.audio.playout import Playout
from voice_agent.audio.resample import PieceResampler
from voice_agent.core.events import (
    ClauseQueued,
    ClauseReady,
    Event,
    ReplyComplete,
    ReplyFailed,
    ReplyText,
    WordMark,
    WordsScored,
)
from voice_agent.engines.ports import ChatRequest, LanguageModel, Pcm16, Speech, TextDelta, TextToSpeech, TurnScored
from voice_agent.errors import EngineError
from voice_agent.text.clauses import Clause, ClauseSplitter
from voice_agent.text.speakable import SpeakableFilter, SpokenText

CLAUSES_AHEAD = 4
"""Clauses written but not yet spoken; the model waits when there are more."""

AUDIO_AHEAD = 10.0
"""Seconds synthesised but not yet heard; synthesis waits when there is more."""

FIRST_WORDS = 3
"""Words after which a first clause without punctuation is spoken: about a second of speech, in which the next clause is
made even where a token takes 50 ms."""

Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Speaking:
    """What every reply of a call shares."""

    llm: LanguageModel
    tts: TextToSpeech
    playout: Playout
    emit: Emit
    clock: Callable[[], float]
    speed: float


class ReplyTask:
    def __init__(self, reply: int, shared: Speaking) -> None:
        self.reply = reply
        self.released = asyncio.Event()
        self._shared = shared
        self._clauses: asyncio.Queue[Clause | None] = asyncio.Queue(CLAUSES_AHEAD)
        self._queued = 0
        """Playout samples queued so far."""

    async def answer(self, request: ChatRequest) -> None:
        """Ask the model and speak what it says."""
        await self._run(self._write(request))

    async def say(self, text: str) -> None:
        """Speak a fixed text."""
        await self._run(self._dictate(text))

    async def _run(self, writing: Coroutine[Any, Any, None]) -> None:
        emit, clock = self._shared.emit, self._shared.clock
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(writing)
                tasks.create_task(self._speak())
        except* EngineError as errors:
            emit(ReplyFailed(clock(), self.reply, "; ".join(str(error) for error in errors.exceptions)))
        else:
            self._shared.playout.finish(self.reply)
            emit(ReplyComplete(clock(), self.reply))

    async def _write(self, request: ChatRequest) -> None:
        emit, clock = self._shared.emit, self._shared.clock
        splitter = ClauseSplitter(FIRST_WORDS)
        judged = False
        async with aclosing(self._shared.llm.stream(request)) as stream:  # type: ignore[type-var]
            async for event in stream:
                if not judged:
                    judged = True
                    verdict = event.probability if isinstance(event, TurnScored) else None
                    emit(WordsScored(clock(), self.reply, verdict))
                if isinstance(event, TextDelta):
                    emit(ReplyText(clock(), self.reply, event.text))
                    await self._hand_over(splitter.push(event.text))
        await self._hand_over(splitter.finish())
        await self._clauses.put(None)

    async def _dictate(self, text: str) -> None:
        self._shared.emit(ReplyText(self._shared.clock(), self.reply, text))
        splitter = ClauseSplitter(FIRST_WORDS)
        await self._hand_over([*splitter.push(text), *splitter.finish()])
        await self._clauses.put(None)

    async def _hand_over(self, clauses: list[Clause]) -> None:
        for clause in clauses:
            if clause.index == 0:
                self._shared.emit(ClauseReady(self._shared.clock(), self.reply))
            await self._clauses.put(clause)

    async def _speak(self) -> None:
        speakable = SpeakableFilter()
        while (clause := await self._clauses.get()) is not None:
            if clause.index > 0:
                await self.released.wait()
                await self._wait_for_room()
            await self._say(clause, speakable.speak(clause))

    async def _say(self, clause: Clause, spoken: SpokenText) -> None:
        """Queue the clause piece by piece; every piece comes with the marks of the words that end in it."""
        base = self._queued
        resampler: PieceResampler | None = None
        if spoken.text:
            stream = self._shared.tts.stream(spoken.text, speed=self._shared.speed)
            async with aclosing(stream) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    resampler = resampler or PieceResampler(piece.rate, self._shared.playout.rate)
                    marks = _word_marks(clause, spoken, piece, base, self._shared.playout.rate)
                    self._append(clause, resampler.push(piece.samples), marks, last=False)
        rest = resampler.flush() if resampler else np.zeros(0, np.int16)
        self._append(clause, rest, (), last=True)

    def _append(self, clause: Clause, samples: Pcm16, marks: tuple[WordMark, ...], *, last: bool) -> None:
        self._shared.playout.append(self.reply, clause.index, samples)
        self._queued += len(samples)
        now = self._shared.clock()
        self._shared.emit(ClauseQueued(now, self.reply, clause.index, clause.end, len(samples), marks, last))

    async def _wait_for_room(self) -> None:
        playout = self._shared.playout
        while (surplus := playout.buffered / playout.rate - AUDIO_AHEAD) > 0:  # noqa: ASYNC110
            await asyncio.sleep(surplus)  # exactly as long as the surplus takes to play


def _word_marks(clause: Clause, spoken: SpokenText, piece: Speech, base: int, rate: int) -> tuple[WordMark, ...]:
    """Where each word of the piece ends, in the generated text and in the reply's playout samples.

    `base` is where the clause begins in them.
    """
    scale = rate / piece.rate
    return tuple(
        WordMark(clause.start + spoken.original_end(word.end_char), base + int(word.end * scale))
        for word in piece.words
    )
