"""Spoken words as recognisers write them, and phrases made of known pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence


def fold(text: str) -> str:
    """Lower case, compatibility forms unified, one kind of apostrophe."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def made_of(words: Sequence[str], known: Callable[[str], bool]) -> bool:
    """True if the words can be read as a row of phrases that `known` accepts, each given with spaces."""
    if not words:
        return True
    return any(
        known(" ".join(words[:length])) and made_of(words[length:], known) for length in range(len(words), 0, -1)
    )


def phrase_set(text: str) -> frozenset[str]:
    """The phrases of a list parted by commas; line breaks count as spaces."""
    return frozenset(" ".join(phrase.split()) for phrase in text.split(",") if phrase.strip())
