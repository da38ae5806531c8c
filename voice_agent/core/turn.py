"""The caller's turn while it is open: one or more utterances up to an endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from voice_agent.core.endpointing import DelaySettings, Evidence, endpoint_delay, patience_for
from voice_agent.core.latency import LatencyBook
from voice_agent.text.completeness import completeness

PARTIAL_REST = 0.05
"""Seconds between two recognitions while the caller speaks, at least …"""

PARTIAL_SHARE = 0.25
"""… and as a share of the time the last one took: a busy machine is asked less often."""


@dataclass(slots=True)
class Turn:
    """Audio of the turn from `audio_from` on is not yet settled as text; what came before is in `settled`."""

    id: int
    audio_from: float
    """Where recognition starts (pre-roll included), seconds on the session clock."""
    speech_at: float
    """Onset of the latest speech."""
    latency: LatencyBook
    overlap: bool = False
    """It began while a reply was being heard and has not been accepted as a claim to the floor yet."""
    revision: int = 0
    """Counts recognitions; results for an older revision are stale."""
    pending: bool = False
    """A recognition is under way."""
    hurried: bool = False
    """That recognition took the place of one that was under way."""
    asked_at: float = float("-inf")
    asked_until: float = float("-inf")
    """Up to where the latest recognition hears for certain; audio may come late, so this is not when it was asked."""
    log_probability: float = 0.0
    """How sure the latest recognition was of its words, as in `Transcript`."""
    rest_until: float = float("-inf")
    """No recognition while the caller speaks before this moment: the cadence follows the load."""
    partial: str = ""
    """Unsettled words so far, while the caller speaks; they may change."""
    paused_at: float | None = None
    """End of the last sound; None while the caller speaks."""
    settled: str = ""
    heard: str | None = None
    """Text of the latest pause's recognition; None: not known yet."""
    evidence: Evidence = field(default_factory=Evidence)
    words_due: bool = False
    """The language model was asked about the words and has not answered."""
    next_cut: float = 0.0
    """When unbroken sound is recognised in the middle."""
    cutting: bool = False
    """A recognition in the middle is under way."""
    waits: bool = False
    """Its words are known and wait for the end of a reply that nothing interrupts."""

    @property
    def text(self) -> str:
        return joined(self.settled, self.heard or "")

    @property
    def words_so_far(self) -> str:
        return joined(self.settled, self.partial if self.heard is None else self.heard)

    def ask(self, now: float, known_until: float = float("-inf")) -> None:
        """A recognition of everything that has come begins; the audio up to `known_until` has."""
        self.revision += 1
        self.hurried = self.pending
        self.pending, self.asked_at, self.asked_until = True, now, known_until

    def answered(self, text: str, now: float, log_probability: float) -> None:
        """The latest recognition is through."""
        self.pending, self.partial, self.log_probability = False, text, log_probability
        self.rest_until = now + max(PARTIAL_REST, PARTIAL_SHARE * (now - self.asked_at))

    def resume(self, at: float, next_cut: float) -> None:
        self.speech_at, self.paused_at, self.next_cut = at, None, next_cut
        self.heard, self.partial = None, self.heard or self.partial
        self.evidence, self.words_due, self.waits = Evidence(), False, False

    def pause(self, at: float) -> None:
        self.paused_at, self.heard = at, None
        self.evidence = Evidence()

    def may_ask_at_dip(self, dip: float, now: float) -> bool:
        """Whether a dip of the voice is worth a recognition. One that hears less is replaced, but only once: a machine
        that is too slow must get through some time."""
        if self.pending:
            return self.asked_until < dip and not self.hurried
        return now >= self.rest_until

    @property
    def recognised_to_the_end(self) -> bool:
        """The latest recognition, asked at the first sign of this pause, misses nothing."""
        return self.paused_at is not None and self.asked_until >= self.paused_at

    def settle(self, until: float) -> None:
        """The text up to `until` will not be recognised again."""
        self.settled, self.heard, self.partial, self.audio_from = self.text, None, "", until

    def judge_words(self, language: str) -> None:
        rules = completeness(self.text, language)
        patience = patience_for(rules.score, rules.patience, self.log_probability)
        self.evidence = Evidence(self.evidence.audio, rules.score, patience=patience)

    def judged(self, *, audio: float | None = None, words: float | None = None) -> None:
        """Take in what a witness said; None leaves what is known."""
        known = self.evidence
        self.evidence = replace(
            known,
            audio=known.audio if audio is None else audio,
            words=known.words if words is None else words,
        )

    def endpoint_at(self, delays: DelaySettings) -> float | None:
        """When the turn is over if nothing else happens; None while speaking or before the words are known.

        The language model's verdict comes before its first token, so waiting for it delays no reply; a slow model is
        waited for until `max_delay` at most.
        """
        if self.paused_at is None or self.heard is None:
            return None
        delay = delays.max_delay if self.words_due else endpoint_delay(self.evidence, delays)
        return self.paused_at + delay


def joined(left: str, right: str) -> str:
    return f"{left.strip()} {right.strip()}".strip()


def same_words(left: str, right: str) -> bool:
    """True if two texts differ in case, spacing and punctuation at most."""
    return _words(left) == _words(right)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold().replace("'", "")).split()
