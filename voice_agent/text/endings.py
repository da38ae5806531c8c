"""What a judgement about the end of an utterance is made of, for every language."""

from __future__ import annotations

import re
from dataclasses import dataclass

from voice_agent.text.phrases import fold


@dataclass(frozen=True, slots=True)
class Completeness:
    score: float
    """0 (surely goes on) to 1 (surely finished); 0.5: the words do not tell."""
    reason: str
    """The rule that decided, in a few words; for traces."""
    patience: float = 0.0
    """Seconds of silence such words deserve beyond the shortest wait although they are whole: more often follows."""


_OPEN_MARK = re.compile(r"(?:[,:;\u2026\u2013\u2014\uff0c\u3001\uff1a-]|\.\.+|\u3002\u3002+)[\"'\u201d)]*\Z")
_END_MARK = re.compile(r"[.?!\u3002\uff01\uff1f][\"'\u201d)]*\Z")
_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def ends_open(text: str) -> bool:
    """True if the last mark says that more is to come: comma, colon, dash, ellipsis."""
    return _OPEN_MARK.search(text) is not None


def ends_closed(text: str) -> bool:
    """True if the text ends in a full stop, question mark or exclamation mark."""
    return _END_MARK.search(text) is not None


def words_in(text: str) -> tuple[str, ...]:
    """The words of `text` in lower case; apostrophes and hyphens inside a word belong to it."""
    return tuple(_TOKEN.findall(fold(text)))
