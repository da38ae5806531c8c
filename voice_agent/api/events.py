"""What a hook may be told of a call: frozen facts in the order they happened.

They say the same as the messages of the data channel (docs/events.md), typed. `turn` counts the caller's turns from 1;
a reply has the number of the turn it answers. 0 is the greeting, negative numbers are texts of `Call.say`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CallEvent:
    """Any of them: `agent.on(CallEvent)` hears everything."""


@dataclass(frozen=True, slots=True)
class CallBegan(CallEvent):
    """The first event of a call; a greeting is being prepared already."""


@dataclass(frozen=True, slots=True)
class PartialTranscript(CallEvent):
    """Words of an open turn so far; they may change."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded(CallEvent):
    """The caller has finished: this is what the language model gets."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class ReplyEnded(CallEvent):
    """A reply, a greeting or a text of `Call.say` is over."""

    turn: int
    heard: str
    """What the caller heard of it, to the playhead; this is what the history keeps."""
    interrupted: bool


@dataclass(frozen=True, slots=True)
class TurnReported(CallEvent):
    """Where the time of an answered turn went; once per turn, when its reply is over."""

    turn: int
    user_text: str
    heard: str
    interrupted: bool
    voice_to_voice_ms: float | None
    """From the caller's last sound to the first sample of the reply; None: nobody heard any of it."""
    stages_ms: Mapping[str, float]
    """endpointing, recognition, first_token, first_clause, synthesis, hold, send; they sum to `voice_to_voice_ms`."""


@dataclass(frozen=True, slots=True)
class Problem(CallEvent):
    """Something failed; the call goes on unless CallEnded follows."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class CallEnded(CallEvent):
    """The last event of a call."""

    reason: str


def event_of(message: Mapping[str, Any]) -> CallEvent | None:
    """The event that a message to the client stands for; None where there is none."""
    match message:
        case {"type": "transcript.partial", "turn": turn, "text": text}:
            return PartialTranscript(turn, text)
        case {"type": "transcript.final", "turn": turn, "text": text}:
            return TurnEnded(turn, text)
        case {"type": "reply.done", "turn": turn, "heard_text": heard, "interrupted": interrupted}:
            return ReplyEnded(turn, heard, interrupted)
        case {"type": "turn.report", "final": True, "report": report}:
            return reported(report)
        case {"type": "error", "code": code, "message": text}:
            return Problem(code, text)
        case {"type": "session.ended", "reason": reason}:
            return CallEnded(reason)
    return None


def reported(report: Mapping[str, Any]) -> TurnReported:
    """From the report as the trace and the HTTP interface have it."""
    return TurnReported(
        turn=report["turn"],
        user_text=report["user_text"],
        heard=report["heard_text"],
        interrupted=report["interrupted"],
        voice_to_voice_ms=report["voice_to_voice_ms"],
        stages_ms=dict(report["stages_ms"]),
    )
