"""What the client's page and the metrics are told about a call (docs/events.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from voice_agent.core.commands import CloseReply
from voice_agent.core.conversation import Conversation
from voice_agent.core.latency import TurnReport
from voice_agent.core.reply import Reply

log = logging.getLogger(__name__)


class CallMetrics(Protocol):
    """What a call counts; the server's metrics implement it."""

    def turn_ended(self) -> None: ...

    def barge_in(self) -> None: ...

    def first_audio(self, voice_to_voice: float, stages: Mapping[str, float]) -> None:
        """Seconds."""

    def call_error(self, code: str) -> None: ...

    def playout_starved(self) -> None: ...

    def audio_dropped(self, frames: int) -> None: ...

    def messages_dropped(self, count: int) -> None: ...


class Publisher:
    """Numbers and stamps every message; sends a state or heard text only when it changed."""

    def __init__(
        self, session_id: str, send: Callable[[dict[str, Any]], None], metrics: CallMetrics, clock: Callable[[], float]
    ) -> None:
        self._id = session_id
        self._send = send
        self._metrics = metrics
        self._clock = clock
        self.listener: Callable[[dict[str, Any]], None] | None = None
        """Gets every message too; it must not raise."""
        self._began = clock()
        self._seq = 0
        self._state = ("", "")
        self._heard = (0, "")
        self._turn_shown = (0, "")
        self._clauses_shown = (0, 0)

    def say(self, kind: str, **fields: Any) -> None:
        self._seq += 1
        at_ms = round((self._clock() - self._began) * 1e3)
        message = {"type": kind, "seq": self._seq, "at_ms": at_ms, **fields}
        self._send(message)
        if self.listener is not None:
            self.listener(message)

    def show(self, conversation: Conversation) -> None:
        """Tell what changed: the floors, words so far, words heard."""
        state = (conversation.user.value, conversation.agent.value)
        if state != self._state:
            self._state = state
            self.say("state", user=state[0], agent=state[1])
        partial = conversation.words_so_far
        if partial is not None and partial != self._turn_shown and partial[1]:
            self._turn_shown = partial
            self.say("transcript.partial", turn=partial[0], text=partial[1])
        live = conversation.speaking
        if live is not None:
            self._show_clauses(live)
        if live is not None and (live.turn, live.heard) != self._heard and live.began:
            self._heard = (live.turn, live.heard)
            self.say("reply.heard", turn=live.turn, text=live.heard)

    def _show_clauses(self, live: Reply) -> None:
        """Clauses are shown once the reply may be heard; a discarded draft is nobody's business."""
        if self._clauses_shown[0] != live.id:
            self._clauses_shown = (live.id, 0)
        start = self._clauses_shown[1]
        for number, text in enumerate(live.clauses[start:], start):
            self.say("reply.text", turn=live.turn, clause=number, text=text)
        self._clauses_shown = (live.id, len(live.clauses))

    def turn_over(self, turn: int, text: str) -> None:
        if text:
            self._metrics.turn_ended()
            self.say("transcript.final", turn=turn, text=text)

    def reply_over(self, reply: CloseReply) -> None:
        if reply.interrupted:
            self._metrics.barge_in()
        self.say("reply.done", turn=reply.turn, interrupted=reply.interrupted, heard_text=reply.heard_text)

    def report(self, report: TurnReport | None, *, final: bool) -> None:
        if report is None:
            return
        self.say("turn.report", report=report.as_dict(), final=final)
        latency = report.stamps.voice_to_voice
        if final and latency is not None:
            stages = {stage: spent / 1e3 for stage, spent in report.stamps.stages_ms().items()}
            self._metrics.first_audio(latency, stages)

    def error(self, code: str, message: str, detail: str = "") -> None:
        self._metrics.call_error(code)
        log.warning("! %s %s: %s", self._id, message, detail)
        self.say("error", code=code, message=message)

    def starved(self) -> None:
        """The listener had to wait in the middle of a reply."""
        self._metrics.playout_starved()

    def dropped(self, statistics: Mapping[str, float]) -> None:
        """What the connection had to throw away, counted at its end."""
        self._metrics.audio_dropped(int(statistics.get("frames_dropped", 0)))
        self._metrics.messages_dropped(int(statistics.get("messages_dropped", 0)))

    def ended(self, reason: str) -> None:
        self.say("session.ended", reason=reason)
