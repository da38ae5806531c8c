"""Which stretch of the synthesised sound is which word of the text. Pure.

A voice knows how long each of its phonemes sounds, but phonemes are not the text's words: espeak joins "of the" into
one, makes two of "25" and drops a dash. Counting the gaps is therefore not enough (two such errors may cancel out);
instead each word's own phonemes are looked up and matched, in order, with those that were spoken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from voice_agent.engines.ports import WordTime


@dataclass(frozen=True, slots=True)
class Phoneme:
    symbol: str
    """One phoneme; space, punctuation, or empty (padding) between words."""
    start: int
    end: int
    """Half-open range in samples."""


Pronounce = Callable[[str], str]
"""The phonemes of a word spoken by itself, as one string."""

_SEPARATORS = frozenset(" .,;:!?¿¡…—–-'\"()«»“”„")
_WORD = re.compile(r"\S+")


def words_of(text: str) -> list[tuple[int, int]]:
    """Character ranges of the whitespace-separated words."""
    return [match.span() for match in _WORD.finditer(text)]


def speakable(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return any(character.isalnum() for character in text)


def is_phoneme(symbol: str) -> bool:
    return bool(symbol) and symbol not in _SEPARATORS


def match_words(text: str, phonemes: Sequence[Phoneme], pronounce: Pronounce) -> tuple[WordTime, ...] | None:
    """Times of all words of `text` in the sound of `phonemes`; None if some word cannot be found in it.

    A word with nothing to say ("-") gets an empty range where it stands.
    """
    spans = words_of(text)
    spoken = [index for index, (start, end) in enumerate(spans) if speakable(text[start:end])]
    sounds = [phoneme for phoneme in phonemes if is_phoneme(phoneme.symbol)]
    expected = [
        (symbol, order)
        for order, index in enumerate(spoken)
        for symbol in pronounce(text[slice(*spans[index])])
        if is_phoneme(symbol)
    ]
    owners = _owners([phoneme.symbol for phoneme in sounds], expected, len(spoken), _breaks(phonemes))
    if owners is None:
        return None
    times: dict[int, tuple[int, int]] = {}
    for phoneme, order in zip(sounds, owners, strict=True):
        index = spoken[order]
        begin = times[index][0] if index in times else phoneme.start
        times[index] = (begin, phoneme.end)
    return _in_order(spans, times)


def estimate_words(text: str, start: int, end: int) -> tuple[WordTime, ...]:
    """Times in proportion to the letters; a digit, spoken as a word, counts as three."""
    spans = words_of(text)
    weights = [_weight(text[slice(*span)]) for span in spans]
    total = sum(weights)
    times: dict[int, tuple[int, int]] = {}
    done = 0
    for index, weight in enumerate(weights):
        if weight:
            begin = start + (end - start) * done // total
            done += weight
            times[index] = (begin, start + (end - start) * done // total)
    return _in_order(spans, times)


def _weight(word: str) -> int:
    if not speakable(word):
        return 0
    return 1 + sum(3 if character.isdigit() else 1 for character in word if character.isalnum())


def _in_order(spans: list[tuple[int, int]], times: dict[int, tuple[int, int]]) -> tuple[WordTime, ...]:
    """One WordTime per span; words without a time get an empty range where the word before them ends."""
    words = []
    last = min((start for start, _ in times.values()), default=0)
    for index, (start_char, end_char) in enumerate(spans):
        start, end = times.get(index, (last, last))
        words.append(WordTime(start_char, end_char, start, end))
        last = end
    return tuple(words)


def _breaks(phonemes: Sequence[Phoneme]) -> list[int]:
    """How many groups of separators come before each sound."""
    breaks: list[int] = []
    count, inside = 0, True
    for phoneme in phonemes:
        if is_phoneme(phoneme.symbol):
            inside = True
            breaks.append(count)
        elif inside:
            inside = False
            count += 1
    return breaks


def _owners(actual: list[str], expected: list[tuple[str, int]], words: int, breaks: list[int]) -> list[int] | None:
    """For each spoken phoneme the number of its word, never falling; None if a word has none."""
    owners: list[int | None] = [None] * len(actual)
    matcher = SequenceMatcher(None, [symbol for symbol, _ in expected], actual, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            owners[block.b + offset] = expected[block.a + offset][1]
    filled: list[int] = []
    position = 0
    while position < len(owners):
        owner = owners[position]
        if owner is not None:
            filled.append(owner)
            position += 1
            continue
        stop = position
        while stop < len(owners) and owners[stop] is None:
            stop += 1
        before = filled[-1] if filled else None
        after = owners[stop] if stop < len(owners) else None
        filled.extend(_fill(before, after, words, position, stop, breaks))
        position = stop
    return filled if set(filled) == set(range(words)) else None


def _fill(before: int | None, after: int | None, words: int, start: int, stop: int, breaks: list[int]) -> list[int]:
    """Owners of the unmatched phonemes [start, stop) between a phoneme of word `before` and one of word `after`.

    Where the gaps between spoken words fit the number of words they decide.
    """
    first = before if before is not None else 0
    last = after if after is not None else words - 1
    # Counted from the sound before the hole (or from its first), so that a gap at its very edge is seen too.
    base = breaks[start - 1] if before is not None else breaks[start]
    end = breaks[stop] if after is not None else breaks[stop - 1]
    if end - base == last - first:
        return [first + breaks[index] - base for index in range(start, stop)]
    # Joined words ("for a" as "fera"): what comes after the last gap begins the word after; words that were not found
    # share what is before it, one phoneme each from the end.
    begun = sum(1 for index in range(start, stop) if breaks[index] == end > base)
    inner = stop - start - begun
    missing = list(range(first + 1, last))[-inner:] if inner else []
    return [first] * (inner - len(missing)) + missing + [last] * begun
