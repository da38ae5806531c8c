"""One reply: what was generated, what was queued for the ear, and how far the playhead is.

The playhead only moves forward and never beyond what was queued, so `heard` is always a prefix of the generated text
that the listener can have heard: a word counts when its last sample was played, a word cut in the middle does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from voice_agent.core.events import ClauseQueued, WordMark
from voice_agent.core.latency import LatencyBook


@dataclass(slots=True)
class Reply:
    id: int
    turn: int
    latency: LatencyBook
    fixed: bool = False
    """A greeting, an apology or a text of the program's rather than the model's answer."""
    interruptible: bool = True
    """False: it is heard to its end whatever the caller does."""
    basis: str = ""
    """The user's words it answers (to tell whether a later transcript changes anything)."""
    generated: str = ""
    released: bool = False
    began: bool = False
    complete: bool = False
    failed: bool = False
    paused: bool = False
    false_alarms: int = 0
    """Overlaps that turned out to be no claim to the floor."""
    gaps: int = 0
    """Times the audio ran out in the middle of it, and came again."""
    starving: bool = False
    """Its audio has run out."""
    queued_samples: int = 0
    played: int = 0
    clauses: list[str] = field(default_factory=list)
    """Text of each queued clause, from its first piece on."""
    _marks: list[WordMark] = field(default_factory=list)
    _begun_to: int = 0
    """How far the text goes of which some sound was queued …"""
    _end_char: int = 0
    """… and that of which all was."""

    def queue(self, clause: ClauseQueued) -> None:
        """A piece of a clause was appended; its word marks are relative to the reply's beginning."""
        self._marks.extend(clause.words)
        if text := self.generated[self._begun_to : clause.end_char].strip():
            self.clauses.append(text)
        self.queued_samples += clause.samples
        if self.starving and clause.samples:
            self.starving = False
            self.gaps += 1
        self._begun_to = max(self._begun_to, clause.end_char)
        if clause.last:
            self._end_char = max(self._end_char, clause.end_char)

    def move_playhead(self, played: int) -> None:
        """Clamped: a report can be late, repeated or beyond what there is to play."""
        self.played = max(self.played, min(played, self.queued_samples))

    @property
    def drained(self) -> bool:
        return self.complete and self.played >= self.queued_samples

    @property
    def heard(self) -> str:
        end = 0
        for mark in self._marks:
            if mark.sample > self.played:
                break
            end = mark.end_char
        if self.drained and self.queued_samples:
            # Everything that could be said was; marks for the eye alone (a closing quote, an emoji) belong to it.
            end = max(end, self._end_char)
        return self.generated[:end].strip()

    @property
    def heard_and_next(self) -> str:
        """What was heard and the word being spoken: an echo of our voice can hold no more than that."""
        heard = self.heard
        for mark in self._marks:
            if mark.sample > self.played:
                return self.generated[: mark.end_char].strip()
        return heard
