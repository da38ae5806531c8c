"""A whole call on a virtual loop: real session, core and playout; fake engines, and a transport without a network."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.virtual_loop import run_virtual
from voice_agent.audio.playout import Playout
from voice_agent.core.caller_floor import CallerSettings
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.core.endpointing import DelaySettings
from voice_agent.core.speech_gate import GateSettings
from voice_agent.engines.fakes import FakeEndOfTurn, FakeSpeechToText, FakeTextToSpeech, FakeVoiceActivity
from voice_agent.engines.ports import ChatRequest, GenerationEnded, LanguageEvent, TextDelta
from voice_agent.errors import EngineError
from voice_agent.session.listening import Listening
from voice_agent.session.publisher import Publisher
from voice_agent.session.session import CallEngines, CallSettings, Session
from voice_agent.session.trace import NoTrace, Trace
from voice_agent.transports.ports import AudioFrame

FRAME = 320
SPEECH = 3000
"""Amplitude of the caller's voice."""


class ScriptedModel:
    """Answers the nth request with the nth text, word by word; `pace` seconds a word. Keeps what it was asked."""

    def __init__(self, answers: Sequence[str | EngineError], pace: float = 0.01) -> None:
        self._answers = list(answers)
        self._pace = pace
        self.asked: list[ChatRequest] = []
        self.running = 0
        self.forgotten: list[str] = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[LanguageEvent, None]:
        answer = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append(request)
        self.running += 1
        try:
            await asyncio.sleep(self._pace)
            if isinstance(answer, EngineError):
                raise answer
            for number, word in enumerate(answer.split()):
                await asyncio.sleep(self._pace)
                yield TextDelta(word if number == 0 else f" {word}")
            yield GenerationEnded("stop", 1, 0, 1)
        finally:
            self.running -= 1

    async def end_of_turn(self, request: ChatRequest) -> float | None:
        return None

    def forget(self, conversation: str) -> None:
        self.forgotten.append(conversation)

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to free."""


class NoMetrics:
    def __init__(self) -> None:
        self.counted: list[str] = []

    def turn_ended(self) -> None:
        self.counted.append("turn")

    def barge_in(self) -> None:
        self.counted.append("barge-in")

    def first_audio(self, voice_to_voice: float, stages: Any) -> None:
        self.counted.append("first audio")

    def call_error(self, code: str) -> None:
        self.counted.append(code)

    def playout_starved(self) -> None:
        self.counted.append("starved")

    def audio_dropped(self, frames: int) -> None:
        self.counted += ["audio dropped"] * frames

    def messages_dropped(self, count: int) -> None:
        self.counted += ["message dropped"] * count


class FakeTransport:
    """Caller audio from a list of (start, end) of speech; the listener takes a frame every 20 ms."""

    def __init__(self, speech: Sequence[tuple[float, float]], seconds: float) -> None:
        self.playout = Playout()
        self.sent: list[dict[str, Any]] = []
        self.heard: list[tuple[float, int]] = []
        """Per frame taken: when, and its loudest sample."""
        self.inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.closed = ""
        self.reason: str | None = None
        self._speech = speech
        self._seconds = seconds

    async def frames(self) -> AsyncIterator[AudioFrame]:
        loop = asyncio.get_running_loop()
        for number in range(1, round(self._seconds * 50) + 1):
            at = number * 0.02
            await asyncio.sleep(at - loop.time())
            frame = self.playout.next_frame()
            self.heard.append((at, int(np.abs(frame).max())))
            speaking = any(start < at - 0.01 < end for start, end in self._speech)
            yield AudioFrame(np.full(FRAME, SPEECH if speaking else 0, np.int16), at)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self.inbox.get()) is not None:
            yield message

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def statistics(self) -> dict[str, float]:
        return {}

    async def close(self, reason: str) -> None:
        self.closed = reason

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.sent if message["type"] == kind]

    def audible(self) -> list[tuple[float, float]]:
        """Stretches of agent audio, [start, end] in seconds."""
        stretches: list[list[float]] = []
        for at, peak in self.heard:
            if peak == 0:
                continue
            if stretches and at - stretches[-1][1] < 0.03:
                stretches[-1][1] = at
            else:
                stretches.append([at - 0.02, at])
        return [(round(start, 2), round(end, 2)) for start, end in stretches]


@dataclass
class Call:
    """Describe a call, `run` it, look at `transport`, `model`, `history`."""

    speech: Sequence[tuple[float, float]]
    texts: Sequence[Any]
    answers: Sequence[str | EngineError] = ("It is far away from here my friend.",)
    seconds: float = 12.0
    greeting: str = ""
    pace: float = 0.01
    delay: float = 0.5
    partial_every: float = math.inf
    scores: Sequence[float] = (1.0,)
    at: Sequence[tuple[float, dict[str, Any]]] = ()
    """Messages of the client, by time."""
    trace: Trace = field(default_factory=NoTrace)
    during: Callable[[Session], Any] | None = None

    def run(self) -> Call:
        run_virtual(self._run())
        return self

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport = FakeTransport(self.speech, self.seconds)
        for when, message in self.at:
            loop.call_at(when, self.transport.inbox.put_nowait, message)
        self.build(FakeTextToSpeech())
        if self.during is not None:
            self.during(self.session)
        self.reason = await self.session.run()
        self.tasks_left = len(asyncio.all_tasks()) - 1

    def build(self, tts: FakeTextToSpeech, prompt: str = "Be brief.", speed: float = 1.0) -> None:
        """The session on `transport`, ready to run."""
        loop = asyncio.get_running_loop()
        self.model = ScriptedModel(self.answers, self.pace)
        self.metrics = NoMetrics()
        self.stt, self.tts = FakeSpeechToText(self.texts), tts
        caller = CallerSettings(delays=DelaySettings(self.delay, self.delay), partial_every=self.partial_every)
        settings = ConversationSettings(prompt, self.greeting, caller=caller)
        self.session = Session(
            "call-1",
            Conversation(settings),
            self.transport,
            Listening(FakeVoiceActivity(self._probabilities()).open(), GateSettings()),
            CallEngines(FakeEndOfTurn(self.scores), self.stt, self.model, self.tts),
            CallSettings("en", speed, 100, 0.0),
            Publisher("call-1", self.transport.send, self.metrics, loop.time),
            self.trace,
            loop.time,
        )

    def _probabilities(self) -> list[float]:
        windows = round(self.seconds * 16_000 / 512) + 1
        middles = [(index + 0.5) * 0.032 for index in range(windows)]
        return [0.95 if any(start < at < end for start, end in self.speech) else 0.01 for at in middles]

    @property
    def history(self) -> list[tuple[str, str]]:
        messages = self.session.conversation.messages
        return [(message.role, message.content) for message in messages if message.role != "system"]
