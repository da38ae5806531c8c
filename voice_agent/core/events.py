"""What can happen in a call: a closed union of facts, each stamped with the moment it happened.

`at` is seconds on the session clock. For sound it is the moment in the caller's audio, for results the moment they
were ready; the core relies on the order of arrival, not on `at` growing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallStarted:
    at: float


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The caller's voice began; `at` is its onset."""

    at: float


@dataclass(frozen=True, slots=True)
class SpeechDipped:
    """The caller's voice is quiet for a moment: a gap between words, or the first sign of a pause."""

    at: float
    until: float | None = None
    """Up to where the caller's audio had come by then; None: `at`. Audio that is late is heard later than `now`."""


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The caller fell silent; `at` is the last sound of the voice."""

    at: float


@dataclass(frozen=True, slots=True)
class TranscriptReady:
    """Recognition of one `Recognise` command. Empty text: nobody said anything in that stretch."""

    at: float
    turn: int
    revision: int
    text: str
    until: float
    """Where the recognised stretch ended (seconds on the session clock)."""
    log_probability: float = 0.0
    """Of the words, as in `Transcript`; 0: not known."""


@dataclass(frozen=True, slots=True)
class AudioScored:
    """The end-of-turn model listened to the turn so far."""

    at: float
    turn: int
    revision: int
    score: float
    """0..1, probability that the turn is over."""


@dataclass(frozen=True, slots=True)
class WordsScored:
    """The language model judged whether the words so far are complete."""

    at: float
    reply: int
    probability: float | None
    """0..1; small numbers: complete utterances are around 0.1, cut-off ones around 0.00005. None: cannot tell."""


@dataclass(frozen=True, slots=True)
class ReplyText:
    """The language model wrote more of a reply."""

    at: float
    reply: int
    text: str


@dataclass(frozen=True, slots=True)
class ClauseReady:
    """The first clause of a reply was complete enough to be spoken (stamped for the latency report)."""

    at: float
    reply: int


@dataclass(frozen=True, slots=True)
class WordMark:
    """A word of the reply counts as heard when the playhead reaches `sample`."""

    end_char: int
    """End of the word in the reply's generated text."""
    sample: int
    """Playout samples since the beginning of the reply."""


@dataclass(frozen=True, slots=True)
class ClauseQueued:
    """More of a clause was synthesised and queued for playout; a clause comes in pieces."""

    at: float
    reply: int
    clause: int
    end_char: int
    """End of the clause in the generated text."""
    samples: int
    """Length in playout samples; 0 if there was nothing to say."""
    words: tuple[WordMark, ...]
    """Those that end in this piece."""
    last: bool = True
    """Whether this was the clause's last piece."""


@dataclass(frozen=True, slots=True)
class ReplyComplete:
    """Everything the reply will ever say has been queued."""

    at: float
    reply: int


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    """Generation or synthesis broke; what was queued may still be played."""

    at: float
    reply: int
    message: str


@dataclass(frozen=True, slots=True)
class PlayoutBegan:
    """The first sample of the reply was handed to the listener."""

    at: float
    reply: int


@dataclass(frozen=True, slots=True)
class PlayoutStalled:
    """The reply's audio ran out in the middle: the listener hears a gap. Once per gap."""

    at: float
    reply: int


@dataclass(frozen=True, slots=True)
class PlayheadMoved:
    """The session reports the playhead before every other event of a live reply, so decisions are exact."""

    at: float
    reply: int
    played: int
    """Samples of the reply that the listener has got."""


@dataclass(frozen=True, slots=True)
class PlayoutEnded:
    """Everything queued for a complete reply has been played."""

    at: float
    reply: int


@dataclass(frozen=True, slots=True)
class TextTyped:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class SayAsked:
    """The program wants a text said. It begins when nobody has the floor."""

    at: float
    say: int
    """1, 2, 3 … per call; the reply that says it has the turn `-say`."""
    text: str
    interruptible: bool
    """False: nothing the caller says, types or presses stops it; what they say meanwhile is understood afterwards."""
    at_once: bool
    """Cut off what is being said; a text that is not interruptible does not wait for the caller either."""


@dataclass(frozen=True, slots=True)
class InterruptAsked:
    """A button or key: stop talking."""

    at: float


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The caller wants something else from the next turn on. None: as before."""

    at: float
    language: str | None = None
    """ISO 639-1 code, or `auto`."""
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """The moment asked for by `Conversation.deadline` has passed."""

    at: float


@dataclass(frozen=True, slots=True)
class CallEnded:
    at: float
    reason: str


Event = (
    CallStarted
    | SpeechStarted
    | SpeechDipped
    | SpeechPaused
    | TranscriptReady
    | AudioScored
    | WordsScored
    | ReplyText
    | ClauseReady
    | ClauseQueued
    | ReplyComplete
    | ReplyFailed
    | PlayoutBegan
    | PlayoutStalled
    | PlayheadMoved
    | PlayoutEnded
    | TextTyped
    | SayAsked
    | InterruptAsked
    | SettingsChanged
    | DeadlineReached
    | CallEnded
)
