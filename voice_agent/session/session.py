"""One call: takes what happens, asks the core, performs what it answers. The only place where all parts meet.

Everything runs on the event loop's thread. `happened` is synchronous: an event is decided and its commands are
performed before anything else can happen, so the playhead the core saw is the playhead that was cut.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, replace
from typing import Any

from voice_agent.audio.playout import PlayoutDrained, PlayoutNotice, PlayoutStarted, PlayoutStarved
from voice_agent.core.commands import (
    CancelReply,
    CloseReply,
    Command,
    CommitTurn,
    Message,
    PausePlayout,
    PrepareReply,
    ReadAhead,
    Recognise,
    ReleaseReply,
    ResumePlayout,
    ScoreAudio,
    Speak,
)
from voice_agent.core.conversation import Conversation
from voice_agent.core.events import (
    AudioScored,
    CallEnded,
    CallStarted,
    DeadlineReached,
    Event,
    PlayheadMoved,
    PlayoutBegan,
    PlayoutEnded,
    PlayoutStalled,
    ReplyFailed,
    SettingsChanged,
    TranscriptReady,
)
from voice_agent.engines.ports import (
    ChatMessage,
    ChatRequest,
    EndOfTurn,
    LanguageModel,
    SpeechToText,
    TextToSpeech,
    Transcript,
)
from voice_agent.errors import EngineError
from voice_agent.session.choices import Choices
from voice_agent.session.listening import Listening
from voice_agent.session.messages import handle_message
from voice_agent.session.publisher import Publisher
from voice_agent.session.replying import ReplyTask, Speaking
from voice_agent.session.sayings import Said, Sayings
from voice_agent.session.trace import Trace
from voice_agent.transports.ports import Transport

log = logging.getLogger(__name__)

PLAYHEAD_PERIOD = 0.2
"""Seconds between two playhead reports of a reply that is being heard."""


@dataclass(frozen=True, slots=True)
class CallEngines:
    """The engines a call uses; shared with other calls."""

    end_of_turn: EndOfTurn
    stt: SpeechToText
    llm: LanguageModel
    tts: TextToSpeech


@dataclass(frozen=True, slots=True)
class CallSettings:
    language: str | None
    """ISO 639-1 code; None: detect."""
    speed: float
    max_reply_tokens: int
    temperature: float


class Session:
    def __init__(
        self,
        session_id: str,
        conversation: Conversation,
        transport: Transport,
        listening: Listening,
        engines: CallEngines,
        settings: CallSettings,
        publisher: Publisher,
        trace: Trace,
        clock: Callable[[], float],
    ) -> None:
        self.id = session_id
        self.conversation = conversation
        self._transport = transport
        self._listening = listening
        self._engines = engines
        self._settings = settings
        self._publisher = publisher
        self._trace = trace
        self._clock = clock
        self._playout = transport.playout
        self._speaking = Speaking(engines.llm, engines.tts, self._playout, self.happened, clock, settings.speed)
        self._own_prompt = False
        """Whether the caller has chosen the system prompt."""
        self._pending: deque[Event] = deque()
        self._deciding = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._recognition: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._reply: ReplyTask | None = None
        self._reply_task: asyncio.Task[None] | None = None
        self._playhead = (0, 0)
        self._sayings = Sayings()
        self._over = asyncio.Event()
        self._why = "hang-up"

    async def run(self) -> str:
        """Serve the call until it ends; returns why it ended. Everything it opened is closed afterwards."""
        reason = "error"
        self._playout.listener = self._on_playout
        running = [
            asyncio.create_task(part) for part in (self._listen(), self._read_messages(), self._tick(), self._hung_up())
        ]
        try:
            self.happened(CallStarted(self._clock()))
            # What every request of this call begins with is read before the first one comes.
            self._reading = self._start(self._read_ahead((*self.conversation.messages, Message("user", "Hello"))))
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            reason = next(part for part in running if part.done()).result()
        finally:
            await self._end(reason, running)
        return reason

    def hang_up(self, reason: str = "hang-up") -> None:
        """End the call from our side."""
        self._why = reason
        self._over.set()

    def change_prompt(self, prompt: str) -> None:
        """Another system prompt from the next reply on, unless the caller has chosen one."""
        if not self._own_prompt:
            self.happened(SettingsChanged(self._clock(), None, prompt))

    def uses(self, voice: TextToSpeech) -> bool:
        return self._engines.tts is voice

    def choose(self, choices: Choices) -> None:
        """Take the caller's wishes for the turns to come; a reply that is being spoken stays as it is."""
        if choices.speed is not None:
            self._speaking = replace(self._speaking, speed=choices.speed)
        if choices.language is not None:
            language = None if choices.language == "auto" else choices.language
            self._settings = replace(self._settings, language=language)
        self._own_prompt = self._own_prompt or choices.prompt is not None
        if choices.language is not None or choices.prompt is not None:
            self.happened(SettingsChanged(self._clock(), choices.language, choices.prompt))
        self._trace.record("note", choices=asdict(choices))
        self._publisher.say("settings", **asdict(choices))

    def say(self, text: str, *, interruptible: bool, at_once: bool) -> asyncio.Future[Said]:
        """Have a text of the program's said; see `Sayings.ask` for the errors, `SayAsked` for what the words mean."""
        event, said = self._sayings.ask(self._clock(), text, interruptible=interruptible, at_once=at_once)
        self.happened(event)
        return said

    def happened(self, event: Event) -> None:
        """Decide on one event and perform the answer now. Events caused by performing are decided in order after."""
        self._pending.append(event)
        if self._deciding:
            return
        self._deciding = True
        try:
            while self._pending:
                self._decide(self._pending.popleft())
        finally:
            self._deciding = False
        self._set_timer()
        self._publisher.show(self.conversation)

    def _decide(self, event: Event) -> None:
        now = self._clock()
        self._sync_playhead(now)
        self._handle(event, now)

    def _sync_playhead(self, now: float) -> None:
        reply = self._playout.reply
        if reply is not None and self._playhead != (reply, self._playout.played):
            self._playhead = (reply, self._playout.played)
            self._handle(PlayheadMoved(now, reply, self._playout.played), now)

    def _handle(self, event: Event, now: float) -> None:
        self._trace.event(event, now)
        for command in self.conversation.handle(event, now):
            self._trace.command(command)
            self._perform(command)
        if isinstance(event, ReplyFailed):
            self._publisher.error("reply_failed", "the answer broke off", event.message)
        if isinstance(event, PlayoutBegan):
            self._publisher.report(self.conversation.live_report, final=False)

    def _perform(self, command: Command) -> None:
        match command:
            case Recognise():
                if self._recognition is not None:
                    self._recognition.cancel()
                self._recognition = self._start(self._recognise(command))
            case ReadAhead(messages=messages):
                if self._reading is not None:
                    self._reading.cancel()
                self._reading = self._start(self._read_ahead(messages))
            case ScoreAudio():
                self._start(self._score(command))
            case PrepareReply(reply=reply, messages=messages):
                self._begin_reply(reply, lambda task: task.answer(self._request(messages)))
            case Speak(reply=reply, text=text):
                self._begin_reply(reply, lambda task: task.say(text))
            case ReleaseReply(reply=reply):
                self._playout.release(reply)
                if self._reply is not None:
                    self._reply.released.set()
            case CancelReply():
                self._stop_reply()
            case PausePlayout():
                self._playout.pause()
            case ResumePlayout():
                self._playout.resume()
            case CommitTurn(turn=turn, text=text):
                self._publisher.turn_over(turn, text)
            case CloseReply():
                self._close_reply(command)

    def _close_reply(self, command: CloseReply) -> None:
        self._publisher.reply_over(command)
        self._sayings.closed(command)
        reports = self.conversation.reports
        if reports and reports[-1].turn == command.turn:
            self._publisher.report(reports[-1], final=True)
            self._trace.record("report", report=reports[-1].as_dict())

    def _begin_reply(self, reply: int, work: Callable[[ReplyTask], Coroutine[Any, Any, None]]) -> None:
        self._stop_reply()
        self._playout.open_reply(reply, held=True)
        self._reply = ReplyTask(reply, self._speaking)
        self._reply_task = self._start(work(self._reply))

    def _stop_reply(self) -> None:
        if self._reply_task is not None:
            self._reply_task.cancel()
        self._reply = self._reply_task = None
        self._playout.clear()

    def _request(self, messages: tuple[Message, ...]) -> ChatRequest:
        return ChatRequest(
            conversation=self.id,
            messages=tuple(ChatMessage(message.role, message.content) for message in messages),
            max_tokens=self._settings.max_reply_tokens,
            temperature=self._settings.temperature,
            score_turn=True,
        )

    async def _read_ahead(self, messages: tuple[Message, ...]) -> None:
        try:
            await self._engines.llm.end_of_turn(self._request(messages))
        except EngineError as error:
            # The reply's own request will say it aloud if it matters.
            log.warning("! %s nothing read ahead: %s", self.id, error)

    async def _recognise(self, command: Recognise) -> None:
        samples, until = self._listening.audio(command.since, command.until, cut=command.cut)
        try:
            transcript = await self._engines.stt.transcribe(samples, language=self._settings.language)
        except EngineError as error:
            self._publisher.error("recognition_failed", "what you said was not understood", str(error))
            transcript = Transcript("")
        text, sure = (transcript.text or "").strip(), transcript.log_probability
        self.happened(TranscriptReady(self._clock(), command.turn, command.revision, text, until, sure))

    async def _score(self, command: ScoreAudio) -> None:
        samples, _ = self._listening.audio(command.since, self._clock())
        try:
            score = await self._engines.end_of_turn.score(samples)
        except EngineError as error:
            # The other witnesses decide without it.
            log.warning("! %s end of turn not scored: %s", self.id, error)
            return
        self.happened(AudioScored(self._clock(), command.turn, command.revision, score))

    async def _listen(self) -> str:
        async for frame in self._transport.frames():
            for event in await self._listening.hear(frame):
                self.happened(event)
        return self._transport.reason or "caller hung up"

    async def _read_messages(self) -> str:
        async for message in self._transport.messages():
            handle_message(message, self, self._publisher, self._clock)
        return self._transport.reason or "caller hung up"

    async def _hung_up(self) -> str:
        await self._over.wait()
        return self._why

    async def _tick(self) -> str:
        while True:
            await asyncio.sleep(PLAYHEAD_PERIOD)
            self._sync_playhead(self._clock())
            self._publisher.show(self.conversation)

    def _on_playout(self, notice: PlayoutNotice) -> None:
        match notice:
            case PlayoutStarted(reply=reply):
                self.happened(PlayoutBegan(self._clock(), reply))
            case PlayoutDrained(reply=reply):
                self.happened(PlayoutEnded(self._clock(), reply))
            case PlayoutStarved(reply=reply):
                self._publisher.starved()
                self.happened(PlayoutStalled(self._clock(), reply))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.conversation.deadline
        if deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, deadline - self._clock()), self._on_deadline, deadline)

    def _on_deadline(self, deadline: float) -> None:
        # A loop may fire a hair early; the core must never see a moment before the one it asked for.
        self.happened(DeadlineReached(max(deadline, self._clock())))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("x %s ends after an unexpected error", self.id, exc_info=error)
            self._publisher.error("internal", "the call ends after an internal error", repr(error))
            self._over.set()

    async def _end(self, reason: str, running: list[asyncio.Task[Any]]) -> None:
        self.happened(CallEnded(self._clock(), reason))
        self._sayings.call_over()
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*running, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._engines.llm.forget(self.id)
        self._publisher.ended(reason)
        statistics = self._transport.statistics()
        self._publisher.dropped(statistics)
        self._trace.record("end", reason=reason, transport=statistics)
        self._trace.close()
        await self._transport.close(reason)
        self._playout.listener = None
