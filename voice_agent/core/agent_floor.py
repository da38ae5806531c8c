"""The agent's side of the floor: at most one live reply, from preparation to its place in the history.

A reply is *prepared* (written and synthesised, nobody hears it), *released* (may be heard), perhaps *paused* while an
overlap is being understood, and ends once: drained or cancelled. Only then does it enter the history, with what was
heard. A cancelled reply is never mentioned again: events that name it are dropped in `_live`.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Literal

from voice_agent.core.commands import (
    CancelReply,
    CloseReply,
    Command,
    Message,
    PausePlayout,
    PrepareReply,
    ReleaseReply,
    ResumePlayout,
    Speak,
)
from voice_agent.core.events import (
    ClauseQueued,
    ClauseReady,
    PlayheadMoved,
    PlayoutBegan,
    PlayoutEnded,
    PlayoutStalled,
    ReplyComplete,
    ReplyFailed,
    ReplyText,
)
from voice_agent.core.history import History
from voice_agent.core.latency import Budget, LatencyBook, TurnReport
from voice_agent.core.reply import Reply


class Agent(Enum):
    IDLE = "idle"
    THINKING = "thinking"
    SPEAKING = "speaking"
    YIELDING = "yielding"


ReplyEvent = (
    ReplyText
    | ClauseReady
    | ClauseQueued
    | ReplyComplete
    | ReplyFailed
    | PlayoutBegan
    | PlayoutStalled
    | PlayheadMoved
    | PlayoutEnded
)

CancelReason = Literal["resumed", "barge-in", "revised", "typed", "asked", "ended"]

KEPT_REPORTS = 1000
RECENT_TEXT = 600
"""Characters of what was last said aloud, kept to recognise our own echo."""


class AgentFloor:
    def __init__(self, history: History, budget: Budget, apology: str, out: list[Command]) -> None:
        """`out` is where commands go; the façade hands it to the session."""
        self._history = history
        self._budget = budget
        self._apology = apology
        self._out = out
        self._last_id = 0
        self.reply: Reply | None = None
        self.reports: list[TurnReport] = []
        self.recently_spoken = ""
        self.last_spoke_at = float("-inf")

    @property
    def state(self) -> Agent:
        if self.reply is None or not self.reply.released:
            return Agent.IDLE
        if self.reply.paused:
            return Agent.YIELDING
        return Agent.SPEAKING if self.reply.began else Agent.THINKING

    @property
    def has_floor(self) -> bool:
        """A released reply is on its way to the ear."""
        return self.reply is not None and self.reply.released

    @property
    def protected(self) -> bool:
        """What is being said is heard to its end, whatever the caller does."""
        return self.reply is not None and self.reply.released and not self.reply.interruptible

    def prepare(self, turn: int, basis: str, messages: tuple[Message, ...], latency: LatencyBook) -> None:
        self.reply = Reply(self._next_id(), turn, latency, basis=basis)
        self._out.append(PrepareReply(self.reply.id, turn, messages))

    def speak(self, turn: int, text: str, *, interruptible: bool = True) -> None:
        """Say a fixed text now."""
        latency = LatencyBook(self._budget)
        self.reply = Reply(self._next_id(), turn, latency, fixed=True, released=True, interruptible=interruptible)
        self._out += [Speak(self.reply.id, turn, text), ReleaseReply(self.reply.id)]

    def release(self, user_text: str, at: float) -> None:
        """The turn is over: let the prepared reply be heard."""
        reply = self.reply
        if reply is None:
            return
        reply.basis = user_text
        reply.released = True
        reply.latency.endpoint(at)
        if reply.failed:
            self._apologise(reply)
            return
        self._out.append(ReleaseReply(reply.id))
        self._close_if_nothing_to_say(reply)

    def pause(self) -> None:
        if self.reply and self.reply.released and self.reply.interruptible and not self.reply.paused:
            self.reply.paused = True
            self._out.append(PausePlayout(self.reply.id))

    def resume(self) -> None:
        """The overlap was no claim to the floor: go on where the reply stopped."""
        if self.reply and self.reply.released:
            self.reply.false_alarms += 1
            if self.reply.paused:
                self.reply.paused = False
                self._out.append(ResumePlayout(self.reply.id))

    def yield_floor(self, reason: CancelReason) -> None:
        """The caller wants the floor: what is being said ends, unless it must be heard."""
        if self.has_floor and not self.protected:
            self.cancel(reason)

    def cancel(self, reason: CancelReason) -> None:
        reply = self.reply
        if reply is None:
            return
        self._out.append(CancelReply(reply.id, reason))
        if reply.released:
            self._close(reply, interrupted=True)
        self.reply = None

    def handle(self, event: ReplyEvent) -> None:
        reply = self._live(event.reply)
        if reply is None:
            return
        match event:
            case ReplyText(at=at, text=text):
                reply.latency.first_token(at)
                reply.generated += text
            case ClauseReady(at=at):
                reply.latency.first_clause(at)
            case ClauseQueued(at=at):
                if event.samples:
                    reply.latency.first_audio(at)
                reply.queue(event)
            case PlayheadMoved(at=at, played=played):
                reply.move_playhead(played)
                self.last_spoke_at = at
            case PlayoutBegan(at=at):
                reply.began = True
                reply.latency.sent(at)
            case PlayoutStalled():
                reply.starving = True
            case ReplyComplete():
                reply.complete = True
                self._close_if_nothing_to_say(reply)
            case PlayoutEnded():
                if reply.complete:
                    reply.move_playhead(reply.queued_samples)
                    self._close(reply, interrupted=reply.failed)
                    self.reply = None
            case ReplyFailed():
                self._fail(reply)

    def report(self) -> TurnReport | None:
        """The live reply's report so far."""
        return self._report(self.reply, interrupted=False) if self.reply and not self.reply.fixed else None

    def _live(self, reply: int) -> Reply | None:
        return self.reply if self.reply is not None and self.reply.id == reply else None

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _close_if_nothing_to_say(self, reply: Reply) -> None:
        if reply.released and reply.complete and reply.queued_samples == 0:
            self._close(reply, interrupted=False)
            self.reply = None

    def _close(self, reply: Reply, *, interrupted: bool) -> None:
        heard = reply.heard
        self._history.add_assistant(heard, interrupted=interrupted)
        self.recently_spoken = f"{self.recently_spoken} {heard}"[-RECENT_TEXT:]
        if not reply.fixed:
            self.reports = [*self.reports[-KEPT_REPORTS + 1 :], self._report(reply, interrupted=interrupted)]
        self._out.append(CloseReply(reply.id, reply.turn, heard, interrupted))

    def _report(self, reply: Reply, *, interrupted: bool) -> TurnReport:
        generated = reply.generated.strip()
        report = reply.latency.report(reply.turn, reply.basis, generated, reply.heard, interrupted=interrupted)
        return replace(report, gaps=reply.gaps)

    def _fail(self, reply: Reply) -> None:
        reply.failed = True
        if reply.queued_samples:
            reply.complete = True  # what was queued may still be heard; PlayoutEnded closes it as cut short
        elif reply.released:
            self._apologise(reply)

    def _apologise(self, reply: Reply) -> None:
        """Silence would leave the caller waiting; a failed apology is not apologised for."""
        self._out.append(CancelReply(reply.id, "revised"))
        self._close(reply, interrupted=True)
        self.reply = None
        if not reply.fixed:
            self.speak(reply.turn, self._apology)
