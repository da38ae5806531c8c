"""Character classes that the text modules share. Scripts are told apart only as far as word boundaries need it."""

from __future__ import annotations

import re

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
"""Body of a `re` character class: scripts written without spaces between words (kana and Han)."""

HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
"""Body of a `re` character class: Korean, which has spaces, but which recognisers space at will."""

UNSPACED_CHAR = re.compile(f"[{UNSPACED}]")
UNSPACED_OR_HANGUL = re.compile(f"[{UNSPACED}{HANGUL}]")

NO_BREAK_SPACES = "\u00a0\u2007\u202f"
"""Spaces that by definition join what is left and right of them ("10 000", the French " ?")."""


def is_break(char: str) -> bool:
    """True for white space at which a text may be cut."""
    return char.isspace() and char not in NO_BREAK_SPACES


def has_letters(text: str) -> bool:
    """True if there is a letter or digit of any script: something a voice can say."""
    return any(char.isalnum() for char in text)


def count_words(text: str) -> int:
    """Words in `text`. Two characters of an unspaced script count as one word, pieces of symbols as none."""
    unspaced = len(UNSPACED_CHAR.findall(text))
    spaced = UNSPACED_CHAR.sub(" ", text) if unspaced else text
    return sum(has_letters(piece) for piece in spaced.split()) + (unspaced + 1) // 2


def tail_of(text: str) -> str:
    """The run of symbols at the end of `text`: everything after its last letter or digit, spaces included."""
    at = len(text)
    while at and not text[at - 1].isalnum():
        at -= 1
    return text[at:]


def word_set(words: str) -> frozenset[str]:
    """The words of a list written as running text."""
    return frozenset(words.split())
