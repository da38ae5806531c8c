"""Builds a call from settings and engines: the one place that knows which setting goes where."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from voice_agent.core.caller_floor import CallerSettings
from voice_agent.core.commands import Message
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.core.endpointing import DelaySettings
from voice_agent.core.latency import Budget
from voice_agent.core.speech_gate import GateSettings
from voice_agent.engines.ports import VoiceActivityModel
from voice_agent.session.listening import Listening
from voice_agent.session.publisher import CallMetrics, Publisher
from voice_agent.session.session import CallEngines, CallSettings, Session
from voice_agent.session.trace import FORMAT, FileTrace, NoTrace, Trace
from voice_agent.settings import Settings
from voice_agent.transports.ports import Transport

log = logging.getLogger(__name__)

Attend = Callable[[Session], Callable[[dict[str, Any]], None]]
"""Told of every new call; what it returns gets a copy of each message to the client (docs/events.md)."""


@dataclass(frozen=True, slots=True)
class SessionFactory:
    settings: Settings
    activity: VoiceActivityModel
    engines: CallEngines
    metrics: CallMetrics
    voice: str = ""
    """Name of the voice, for the page."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; the session clock of every call, and the transports' too."""
    attend: Attend | None = None

    def build(self, session_id: str, transport: Transport, earlier: tuple[Message, ...] = ()) -> Session:
        """`earlier` is what was said before the caller's connection was lost."""
        settings = self.settings
        publisher = Publisher(session_id, transport.send, self.metrics, self.clock)
        conversation = conversation_settings(settings)
        publisher.say(
            "session.started",
            session_id=session_id,
            greeting=conversation.greeting,
            budget_ms=conversation.budget.total,
            settings={
                "voice": self.voice,
                "speed": settings.agent.speed,
                "language": settings.agent.language,
                "prompt": settings.agent.system_prompt,
            },
            continued=bool(earlier),
        )
        trace = self._trace(session_id)
        trace.record(
            "call",
            format=FORMAT,
            session_id=session_id,
            began=time.time(),
            clock=self.clock(),
            conversation=asdict(conversation),
            earlier=[asdict(message) for message in earlier],
        )
        language = None if settings.agent.language == "auto" else settings.agent.language
        session = Session(
            session_id,
            Conversation(conversation, earlier),
            transport,
            Listening(self.activity.open(), gate_settings(settings)),
            self.engines,
            CallSettings(language, settings.agent.speed, settings.agent.max_reply_tokens, settings.agent.temperature),
            publisher,
            trace,
            self.clock,
        )
        if self.attend is not None:
            publisher.listener = self.attend(session)
        return session

    def _trace(self, session_id: str) -> Trace:
        if not self.settings.server.trace_dir:
            return NoTrace()
        path = Path(self.settings.server.trace_dir) / f"{session_id}.jsonl"
        return FileTrace(path, lambda problem: log.warning("! %s %s", session_id, problem))


def conversation_settings(settings: Settings) -> ConversationSettings:
    turns, agent, budget = settings.turns, settings.agent, settings.budget
    return ConversationSettings(
        system_prompt=agent.system_prompt,
        greeting=agent.greeting,
        caller=CallerSettings(
            language=agent.language,
            delays=DelaySettings(turns.min_delay, turns.max_delay),
            pre_roll=turns.pre_roll,
            claim_speech=turns.claim_speech,
            max_sound=turns.max_sound,
        ),
        budget=Budget(
            budget.budget_endpointing_ms,
            budget.budget_recognition_ms,
            budget.budget_first_token_ms,
            budget.budget_first_clause_ms,
            budget.budget_synthesis_ms,
            budget.budget_send_ms,
        ),
    )


def gate_settings(settings: Settings) -> GateSettings:
    turns = settings.turns
    return GateSettings(turns.speech_threshold, turns.silence_threshold, turns.min_speech, turns.min_silence)
