"""Text written for the eye, made fit for a voice, with the way back to the original.

Marks are removed, signs become words, and for every spoken word it is known where the original may be cut once that
word has been heard. History keeps the original text, never the spoken form.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from voice_agent.text.chars import UNSPACED, has_letters
from voice_agent.text.clauses import Clause
from voice_agent.text.rewriting import Rewriting
from voice_agent.text.speech_rules import apply_rules
from voice_agent.text.spoken_words import words_of

_WORD = re.compile(rf"[{UNSPACED}][^\w\s\u300c\u300e\uff08\u300a\u3010]*|[^\s{UNSPACED}]+")
"""A word: up to white space, or a single character of an unspaced script, with the symbols after it."""

_FENCE = re.compile(r"`{3,}|~{3,}")
_FENCED = re.compile(r"(`{3,}|~{3,}).*?(?:`{3,}|~{3,}|\Z)", re.DOTALL)
_FENCE_REST = re.compile(r"\A.*?(?:`{3,}|~{3,}|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SpokenText:
    text: str
    """What the voice is to say; empty if there is nothing."""
    marks: tuple[tuple[int, int], ...]
    """Per spoken word: where its last letter ends in `text`, and where the original may be cut once it is heard."""

    def original_end(self, spoken_char: int) -> int:
        """Length of the original that is heard when `text[:spoken_char]` is; part of a word does not count.

        An original word that is said in several words ("$5.50") counts when all of them are heard.
        """
        heard = bisect_right(self.marks, spoken_char, key=lambda mark: mark[0])
        return self.marks[heard - 1][1] if heard else 0


class SpeakableFilter:
    """Speaks the clauses of one reply in their order; knows whether the last one ended inside a code fence."""

    def __init__(self, language: str = "en") -> None:
        self._language = language
        self._in_fence = False

    def speak(self, clause: Clause) -> SpokenText:
        """The spoken form of the next clause; its character positions count from the start of that clause."""
        spoken = _speak(clause.text, self._language, in_fence=self._in_fence)
        if len(_FENCE.findall(clause.text)) % 2:
            self._in_fence = not self._in_fence
        return spoken


def speakable(text: str, language: str = "en") -> SpokenText:
    """The spoken form of a whole text. A code fence that is not closed reaches to its end."""
    return _speak(text, language, in_fence=False)


def heard_prefix(original: str, spoken: SpokenText, spoken_end: int) -> str:
    """What of `original` is heard when `spoken.text[:spoken_end]` is: whole words, without trailing white space."""
    return original[: spoken.original_end(spoken_end)]


def _speak(original: str, language: str, *, in_fence: bool) -> SpokenText:
    rewriting = Rewriting(original)
    if in_fence and original:
        rewriting.replace(_FENCE_REST)
    rewriting.replace(_FENCED, f" {words_of(language).code_omitted} ")
    apply_rules(rewriting, language)
    if not has_letters(rewriting.text):
        return SpokenText("", ())
    return SpokenText(rewriting.text, _marks(original, rewriting))


def _marks(original: str, rewriting: Rewriting) -> tuple[tuple[int, int], ...]:
    """Where the original may be cut after each spoken word.

    After a word it may be cut at the end of the original word that its last letter comes from; if the next spoken word
    comes from the same original word, only before that one.
    """
    words = [match.span() for match in _WORD.finditer(original)]
    begins = [begin for begin, _ in words]
    spoken: list[tuple[int, int, int]] = []
    for match in _WORD.finditer(rewriting.text):
        said = [at for at in range(*match.span()) if rewriting.text[at].isalnum()]
        if said:
            spoken.append((said[-1] + 1, rewriting.starts[said[0]], max(rewriting.ends[at] for at in said)))
    marks: list[tuple[int, int]] = []
    for number, (spoken_end, _, source_end) in enumerate(spoken):
        if number + 1 == len(spoken):
            cut = len(original.rstrip())
        else:
            cut = words[bisect_right(begins, source_end - 1) - 1][1]
            following = words[bisect_right(begins, spoken[number + 1][1]) - 1]
            if following[0] < cut:
                cut = len(original[: following[0]].rstrip())
        marks.append((spoken_end, max(cut, marks[-1][1] if marks else 0)))
    return tuple(marks)
