"""English words that end a sentence as adverbs and hold it open as prepositions: "have we met before?", but "could you
wake me up before, noon on Saturday?"."""

from __future__ import annotations

from collections.abc import Sequence

from voice_agent.text.chars import word_set

_HALF = word_set("before after since near past")
_LOOKS_BACK = word_set(
    """have has had haven't hasn't hadn't i've you've we've they've he's she's it's never ever been did didn't was were
    wasn't weren't saw went came met heard tried told said"""
)
"""Whoever tells of the past can mean it as an adverb; a request or a plan hardly can."""
_ADVERBIAL = word_set("as than like day night week month year time evening morning soon shortly long ever never not go")
"""Right in front of it, these make it an adverb: "the day after", "not long before", "go past"."""


def holds_open(words: Sequence[str]) -> bool:
    """Whether the last of these words (lower case) is such a word and waits for what it belongs to."""
    if len(words) < 2 or words[-1] not in _HALF:
        return False
    return words[-2] not in _ADVERBIAL and not any(word in _LOOKS_BACK for word in words[:-1])
