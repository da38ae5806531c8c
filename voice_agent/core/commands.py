"""What the core asks for: a closed union; the session performs each command at once, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation as the model sees it."""

    role: Role
    content: str
    interrupted: bool = False
    """An assistant message that was cut off; `content` is what was heard."""


@dataclass(frozen=True, slots=True)
class Recognise:
    """Turn the caller's audio between two moments into text; answer with TranscriptReady."""

    turn: int
    revision: int
    since: float
    until: float
    cut: bool = False
    """The caller is still talking: end at the quietest spot near `until`, not in the middle of a word."""


@dataclass(frozen=True, slots=True)
class ScoreAudio:
    """Ask the end-of-turn model about the audio up to now; answer with AudioScored."""

    turn: int
    revision: int
    since: float


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The caller is still speaking: let the model read what is known, so that less is left to read at the end."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class PrepareReply:
    """Start to write and speak a reply, but let nobody hear it before ReleaseReply."""

    reply: int
    turn: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Speak:
    """Speak a fixed text as a reply (greeting, apology, a text of the program's); it still needs ReleaseReply."""

    reply: int
    turn: int
    """0: the greeting; negative: the program's text number `-turn`."""
    text: str


@dataclass(frozen=True, slots=True)
class ReleaseReply:
    """From now on the reply may be heard."""

    reply: int


@dataclass(frozen=True, slots=True)
class CancelReply:
    """Stop model, synthesis and playout of this reply; nothing of it is heard any more."""

    reply: int
    reason: Literal["resumed", "barge-in", "revised", "typed", "asked", "ended"]


@dataclass(frozen=True, slots=True)
class PausePlayout:
    reply: int


@dataclass(frozen=True, slots=True)
class ResumePlayout:
    reply: int


@dataclass(frozen=True, slots=True)
class CommitTurn:
    """The turn is over; `text` is what the model gets. Empty: there was nothing to answer."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class CloseReply:
    """The reply is history now; `heard_text` is what the listener heard of it."""

    reply: int
    turn: int
    heard_text: str
    interrupted: bool


Command = (
    Recognise
    | ScoreAudio
    | ReadAhead
    | PrepareReply
    | Speak
    | ReleaseReply
    | CancelReply
    | PausePlayout
    | ResumePlayout
    | CommitTurn
    | CloseReply
)
