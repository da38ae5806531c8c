"""The whole conversation: one door in (`handle`), one number out (`deadline`).

Pure: no clock, no task, no socket. The session tells what happened and performs the commands at once and in order;
when `deadline` passes it says so with DeadlineReached. Any event is accepted in any state.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from voice_agent.core.agent_floor import Agent, AgentFloor
from voice_agent.core.caller_floor import CallerFloor, CallerSettings, User
from voice_agent.core.commands import Command, Message
from voice_agent.core.events import (
    AudioScored,
    CallEnded,
    CallStarted,
    DeadlineReached,
    Event,
    InterruptAsked,
    ReplyFailed,
    SayAsked,
    SettingsChanged,
    SpeechDipped,
    SpeechPaused,
    SpeechStarted,
    TextTyped,
    TranscriptReady,
    WordsScored,
)
from voice_agent.core.history import History
from voice_agent.core.latency import Budget, TurnReport
from voice_agent.core.reply import Reply
from voice_agent.core.saying import Saying


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    system_prompt: str = ""
    greeting: str = ""
    apology: str = "Sorry, something went wrong. Could you say that again?"
    caller: CallerSettings = field(default_factory=CallerSettings)
    budget: Budget = field(default_factory=Budget)


class Conversation:
    def __init__(self, settings: ConversationSettings, earlier: tuple[Message, ...] = ()) -> None:
        """`earlier` is what was said before a lost connection; whoever comes back is not greeted again."""
        self._settings = settings
        self._out: list[Command] = []
        self._history = History(settings.system_prompt, earlier)
        self._agent = AgentFloor(self._history, settings.budget, settings.apology, self._out)
        self._caller = CallerFloor(settings.caller, self._agent, self._history, settings.budget, self._out)
        self._saying = Saying(self._agent, self._caller)
        self._greeting = "" if earlier else settings.greeting.strip()
        self._ended = False

    @property
    def deadline(self) -> float | None:
        """When DeadlineReached is due (seconds on the session clock); None: only events matter now."""
        return None if self._ended else self._caller.deadline

    @property
    def user(self) -> User:
        return self._caller.state

    @property
    def agent(self) -> Agent:
        return self._agent.state

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history as the model sees it."""
        return self._history.messages

    @property
    def reports(self) -> list[TurnReport]:
        """Of every reply that is over."""
        return self._agent.reports

    @property
    def live_report(self) -> TurnReport | None:
        return self._agent.report() if self._agent.has_floor else None

    @property
    def speaking(self) -> Reply | None:
        """The reply that is on its way to the ear."""
        return self._agent.reply if self._agent.has_floor else None

    @property
    def words_so_far(self) -> tuple[int, str] | None:
        """The open turn and its words, as far as they are known."""
        turn = self._caller.turn
        return (turn.id, turn.words_so_far) if turn is not None and not turn.overlap else None

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take one event; `now` is when it is handled (`event.at` is when it happened). Returns what to do."""
        if self._ended:
            return []
        self._dispatch(event, now)
        if not self._ended:
            self._saying.go_on(now)
        commands, self._out[:] = list(self._out), []
        return commands

    def _dispatch(self, event: Event, now: float) -> None:
        match event:
            case SpeechStarted():
                self._caller.speech_started(event)
            case SpeechDipped():
                self._caller.speech_dipped(event, now)
            case SpeechPaused():
                self._caller.speech_paused(event, now)
            case TranscriptReady():
                self._caller.transcript_ready(event)
            case AudioScored():
                self._caller.audio_scored(event)
            case WordsScored():
                self._caller.words_scored(event, now)
            case DeadlineReached(at=at):
                self._caller.deadline_reached(at)
            case TextTyped(at=at, text=text):
                if text.strip():
                    self._caller.typed(text.strip(), at)
            case InterruptAsked():
                self._agent.yield_floor("asked")
            case SayAsked():
                self._saying.ask(event)
            case CallStarted():
                self._greet()
            case SettingsChanged():
                self._change(event)
            case CallEnded():
                self._agent.cancel("ended")
                self._ended = True
            case ReplyFailed(at=at, reply=reply):
                self._caller.words_scored(WordsScored(at, reply, None), now)  # that verdict will not come any more
                self._agent.handle(event)
            case _:
                self._agent.handle(event)

    def _greet(self) -> None:
        if self._greeting and self._agent.reply is None:
            self._agent.speak(0, self._greeting)

    def _change(self, event: SettingsChanged) -> None:
        """A turn that is open goes on as it began; what it asks for next uses the new settings."""
        if event.language is not None:
            self._caller.change_language(event.language)
        if event.system_prompt is not None:
            self._history.instruct(event.system_prompt)
            if self._caller.turn is None and self._agent.reply is None:
                self._caller.read_ahead()  # otherwise the next reply would wait for the new prompt to be read
