"""What the session needs from a model, and nothing more.

Every port is asynchronous: an engine decides for itself whether it runs in a thread, a process or behind a socket,
but it never computes on the event loop. Cancelling the awaiting task (or closing a stream) stops the engine within
one inference step; the result of a cancelled call is dropped.

Inside the program audio is mono int16 (`Pcm16`); each signature names its rate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Pcm16 = NDArray[np.int16]

ENGINE_RATE = 16_000
"""Hertz of everything that listens: voice activity, end of turn, recognition."""


class Engine(Protocol):
    """The life of a loaded model; `app.py` owns it."""

    async def warm_up(self) -> None:
        """Run once on made-up input, so that the first call pays no first-call cost."""

    async def close(self) -> None:
        """Free threads and memory. Safe to call twice."""


class VoiceActivity(Protocol):
    """Voice activity of one call; holds that call's recurrent state."""

    async def feed(self, samples: Pcm16) -> list[float]:
        """Take any number of 16 kHz samples, return one speech probability (0..1) per completed 512-sample window.

        A remainder is kept for the next call, so the result does not depend on how the audio was cut.
        """

    def reset(self) -> None:
        """Forget all state, as if the call began now."""


class VoiceActivityModel(Engine, Protocol):
    def open(self) -> VoiceActivity:
        """A fresh, independent state for one call."""


class EndOfTurn(Engine, Protocol):
    async def score(self, samples: Pcm16) -> float:
        """Probability (0..1) that the speaker has finished, from at most the last 8 s of 16 kHz audio."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was recognised in one stretch of audio. Empty `text` means: nobody said anything."""

    text: str
    language: str | None = None
    """ISO 639-1 code, where the engine knows it."""
    no_speech: float = 0.0
    """0..1, the engine's own belief that there was no speech."""
    log_probability: float = 0.0
    """Mean natural-log probability per token; 0 where unknown."""


class SpeechToText(Engine, Protocol):
    async def transcribe(self, samples: Pcm16, *, language: str | None = None, hint: str = "") -> Transcript:
        """Recognise at most 30 s of 16 kHz audio. Silence and noise give empty text, never a phantom phrase.

        `language` fixes the language (None: detect it); `hint` is text that came before (spelling, names).
        Raises EngineError.
        """


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    conversation: str
    """Whose cache to use: requests of one conversation share their common prefix of messages."""
    messages: tuple[ChatMessage, ...]
    max_tokens: int = 160
    temperature: float = 0.3
    top_p: float = 0.95
    seed: int | None = None
    stop: tuple[str, ...] = ()
    score_turn: bool = False
    """Ask for a TurnScored besides the reply: whether the last user message looks complete."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text; whole characters only, never part of a stop string, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnScored:
    """Comes before the first text where the request asked for it and the engine can tell; costs no extra pass."""

    probability: float
    """As `LanguageModel.end_of_turn` gives it."""


@dataclass(frozen=True, slots=True)
class GenerationEnded:
    """Always the last event of a stream that was not closed early."""

    reason: Literal["stop", "length"]
    prompt_tokens: int
    cached_tokens: int
    """How many of the prompt's tokens were in the cache already."""
    completion_tokens: int


LanguageEvent = TurnScored | TextDelta | GenerationEnded


class LanguageModel(Engine, Protocol):
    def stream(self, request: ChatRequest) -> AsyncIterator[LanguageEvent]:
        """Generate a reply. Closing the iterator (or cancelling its task) frees the model within one decode step.

        Raises EngineError.
        """

    async def end_of_turn(self, request: ChatRequest) -> float | None:
        """Probability that the last user message is complete, from the model's next-token distribution after it.

        None where the engine cannot tell. Leaves the prompt in the cache, so a following `stream` is cheaper.
        """

    def forget(self, conversation: str) -> None:
        """Drop the conversation's cache. Unknown conversations are fine."""


@dataclass(frozen=True, slots=True)
class WordTime:
    """When one word of the synthesised text sounds."""

    start_char: int
    end_char: int
    """Half-open range in the text handed to `stream`, without surrounding spaces."""
    start: int
    end: int
    """Half-open range in samples of the speech, counted from its beginning."""


@dataclass(frozen=True, slots=True)
class Speech:
    """A clause as sound, or a piece of one."""

    samples: Pcm16
    rate: int
    """Hertz; the voice's own."""
    words: tuple[WordTime, ...]
    """In order, one per whitespace-separated word of the text; of a piece, those that end in it."""
    exact: bool
    """True if the times come from the voice itself, False if they are estimated from the text."""


class TextToSpeech(Engine, Protocol):
    def stream(self, text: str, *, speed: float = 1.0) -> AsyncIterator[Speech]:
        """Speak one clause, piece by piece, each as soon as it is computed; at least one piece.

        Put together they are the clause, with leading and trailing silence trimmed to a few milliseconds. Text without
        anything to say gives no samples. `speed` 2.0 is twice as fast. Closing the iterator (or cancelling its task)
        ends the work after the piece in progress. Raises EngineError.
        """
