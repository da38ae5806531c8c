from __future__ import annotations

import pytest

from voice_agent.engines.ports import WordTime
from voice_agent.engines.word_times import Phoneme, estimate_words, match_words, words_of


def sound(spoken: str) -> list[Phoneme]:
    """Every symbol lasts 10 samples; `_` is padding."""
    return [Phoneme("" if s == "_" else s, index * 10, index * 10 + 10) for index, s in enumerate(spoken)]


def matched(text: str, spoken: str, alone: dict[str, str]) -> list[str] | None:
    """For each word the symbols that sound in its time."""
    times = match_words(text, sound(spoken), lambda word: alone[word])
    if times is None:
        return None
    assert [(word.start_char, word.end_char) for word in times] == words_of(text)
    return [spoken[word.start // 10 : word.end // 10] for word in times]


ALONE = {
    "one": "wan", "of": "ov", "the": "thi", "best": "best", "25": "twenti faiv", "for": "foh", "a": "ei",
    "loaf": "loaf", "no": "nou", "—": "", "It": "it", "is": "iz", "Dr.": "dokta.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "spoken", "words"),
    [
        ("one best", "_wan best_", ["wan", "best"]),
        ("one of the best", "_wan ovtha best._", ["wan", "ov", "tha", "best"]),
        ("25 of the best", "_twenti faiv ovthi best_", ["twenti faiv", "ov", "thi", "best"]),
        ("for a loaf", "_fura loaf_", ["fur", "a", "loaf"]),
        ("no no no no", "_nou, nou nou nou_", ["nou"] * 4),
        ("one — best", "_wan; best_", ["wan", "", "best"]),
        ("Dr. is best", "_dokta.__iz best_", ["dokta", "iz", "best"]),
    ],
)
def test_words_are_found_in_the_sound(text, spoken, words):
    assert matched(text, spoken, ALONE) == words


def test_equal_counts_are_not_enough():
    """25 makes two words and "of the" one, so the counts agree, but the words do not."""
    found = matched("25 of the best", "_twenti faiv ovthi best_", ALONE)
    assert found is not None
    assert found[1] == "ov"


def test_a_word_without_any_sound_is_an_honest_failure():
    assert matched("one a best", "_wan best_", ALONE) is None
    assert matched("one best", "", ALONE) is None


def test_estimates_follow_the_letters_and_fill_the_range():
    assert estimate_words("ab — abcde 1", 100, 220) == (
        WordTime(0, 2, 100, 127),
        WordTime(3, 4, 127, 127),
        WordTime(5, 10, 127, 183),
        WordTime(11, 12, 183, 220),
    )
    assert estimate_words("", 0, 100) == ()
    assert estimate_words("—", 5, 100) == (WordTime(0, 1, 0, 0),)
