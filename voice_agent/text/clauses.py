"""A reply's text, as it is generated, cut into clauses to be spoken one by one.

The first clause decides when the listener hears something, so it comes early; later ones have time while it plays
and are whole sentences. Characters are looked at one by one and a decision uses only what came before it, so the
clauses, and the character at which each is released, do not depend on how the text was cut into deltas.

A decision waits for the fewest characters that keep it right:
- "." for the next visible character ("3.14", "e.g. this"), after "U.S." and the like for the next word;
- "?" and "!" for the white space (a quote, a bracket or another mark may follow), behind a quote for one more;
- "," for the white space, after a digit for one more ("May 5, 2024");
- the full stop of an unspaced script for nothing, unless a quote or bracket is open; a line break for nothing.
Models put the space and the next letters into one token, so all but the next word usually cost one token.

Invariant: clauses follow one another; between them is only white space. A piece without letters or digits is never a
clause: it goes to the clause after it, and at the very end it is left out, for there is nothing to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from voice_agent.text.abbreviations import (
    belongs_to_number,
    is_abbreviation,
    never_ends_sentence,
    starts_sentence,
)
from voice_agent.text.chars import UNSPACED, UNSPACED_CHAR, count_words, has_letters, is_break, tail_of, word_set

_CLOSERS = frozenset(")]}\"'\u201d\u2019\u00bb*_`~\uff09\u3011\u300d\u300f\u300b\u3009")
_OPENERS = "\"'\u201c\u2018*_("
_UNSPACED_ENDS = frozenset("\u3002\uff61\uff01\uff1f")
_UNSPACED_STOPS = frozenset("\u3002\uff61")
_UNSPACED_COMMAS = frozenset("\uff0c\u3001\uff1b\uff1a\uff64")
_MARKS = re.compile(r"[.?!,;:\u2026\u2014\u2013]|" + f"[{''.join(_UNSPACED_ENDS | _UNSPACED_COMMAS)}]")
_DASHES = frozenset({"-", "--", "---", "\u2013", "\u2014", "\u2014\u2014"})
_LIST_MARK = re.compile(r"\W*\d{1,3}[.)]\Z")
_WORD_END = re.compile(r"\S(?=\s)")
_OPENED = re.compile(r"[\u300c\u300e\uff08\u201c\u300a\u3010(\[]")
_CLOSED = re.compile(r"[\u300d\u300f\uff09\u201d\u300b\u3011)\]]")
# A link's label and address and an HTML tag make sense only whole; a line break ends the wait for their end.
_OPEN_MARKUP = re.compile(r"\[[^\]\n]*\Z|\]\([^)\n]*\Z|<[/A-Za-z][^>\n]*\Z")
_UNSPACED_ASCII_END = re.compile(f"[{UNSPACED}][.!?]\\Z")

# A clause does not end on these where there is a choice: the voice would drop its pitch in the middle of a phrase.
_LEADS_ON = word_set(
    """a an the my your his her its our their this that these those some any every each no to of in on at for with from
    by about into over under between and or but nor so because if when while as than that which who is are was were be
    am been can could will would should may might must do does did have has had not very more most really just only
    i we he she they you're it's i'm that's there's we're they're i'll you'll der die das ein eine und oder zu von mit
    el la los las un una y o de en con le les des et ou du il lo gli e di per em os"""
)


@dataclass(frozen=True, slots=True)
class Clause:
    index: int
    """0 for the first clause of the reply."""
    start: int
    end: int
    """Half-open range of characters in the whole generated text."""
    text: str
    """The original characters of that range."""


class _Need(Enum):
    CHARACTER = auto()
    WORD = auto()


@dataclass(frozen=True, slots=True)
class _Wait:
    """A possible end that only what follows can confirm."""

    end: int
    need: _Need
    comma: bool = False


class ClauseSplitter:
    """Cuts one reply; take a new one for the next reply, so that nothing unfinished is ever carried over."""

    def __init__(self, first_words: int | None = 6, *, clause_words: int = 8, max_chars: int = 200) -> None:
        """`first_words`: the first clause ends after so many words if no punctuation comes (None: at punctuation only).

        `clause_words`: a later clause may end at a comma from so many words on. `max_chars`: no clause is longer,
        unless a single word is.
        """
        if (first_words is not None and first_words < 1) or clause_words < 1 or max_chars < 1:
            raise ValueError("first_words, clause_words and max_chars must be at least 1")
        self._first_words = first_words
        self._clause_words = clause_words
        self._max_chars = max_chars
        self._text = ""
        self._start = 0  # where the pending clause begins, white space before it included
        self._count = 0
        self._wait: _Wait | None = None
        self._finished = False

    @property
    def text(self) -> str:
        """All text pushed so far."""
        return self._text

    def push(self, delta: str) -> list[Clause]:
        """Take the next piece of generated text, return the clauses it completes. Raises ValueError after finish()."""
        if self._finished:
            raise ValueError("this reply is finished; a new one needs a new splitter")
        before = len(self._text)
        self._text += delta
        clauses: list[Clause] = []
        for at in range(before, len(self._text)):
            self._look(at, clauses)
        return clauses

    def finish(self) -> list[Clause]:
        """The text is complete: return what is left. Calling it again returns nothing."""
        if self._finished:
            return []
        self._finished = True
        clauses: list[Clause] = []
        if self._wait is not None and self._wait.need is _Need.WORD and self._confirmed_by_word(self._wait):
            self._cut(self._wait.end, clauses)
        self._cut(len(self._text), clauses)
        return clauses

    # Everything below reads the text only up to and including the character at `at`.

    def _look(self, at: int, out: list[Clause]) -> None:
        char = self._text[at]
        if self._wait is not None:
            self._resolve(self._wait, at, char, out)
        if is_break(char):
            if char == "\n":
                self._line_end(at, out)
            elif at > self._start and not is_break(self._text[at - 1]):
                self._word_end(at, out)
        else:
            self._inside(at, char, out)

    def _resolve(self, wait: _Wait, at: int, char: str, out: list[Clause]) -> None:
        if wait.need is _Need.CHARACTER:
            if is_break(char):
                return
            self._wait = None
            if self._confirmed_by_character(wait, char):
                (self._cut_at_comma if wait.comma else self._cut)(wait.end, out)
            return
        following = self._text[wait.end : at].strip().lstrip(_OPENERS)
        if char.isalpha() or char in "'\u2019" or (not following and (is_break(char) or char in _OPENERS)):
            return
        self._wait = None
        if self._confirmed_by_word(wait, at):
            self._cut(wait.end, out)

    def _confirmed_by_character(self, wait: _Wait, char: str) -> bool:
        if wait.comma:
            return not char.isdigit()
        if char.islower() or char in _CLOSERS - set("\"'*_`~"):
            # An abbreviation nobody listed, or "'Halt.' and ran": as good as a comma.
            return count_words(self._text[self._start : wait.end]) >= self._clause_words
        return not (char.isdigit() and belongs_to_number(self._last_word(wait.end).rstrip(".")))

    def _confirmed_by_word(self, wait: _Wait, at: int | None = None) -> bool:
        return starts_sentence(self._text[wait.end : at].strip().lstrip(_OPENERS))

    def _line_end(self, at: int, out: list[Clause]) -> None:
        self._wait = None
        if not _LIST_MARK.fullmatch(self._text[self._start : at].strip()):
            self._cut(at, out)

    def _word_end(self, end: int, out: list[Clause]) -> None:
        if end - self._start > self._max_chars:
            self._cut_long(end, out)
        word = self._last_word(end)
        tail = tail_of(word)
        marks = "".join(_MARKS.findall(tail))
        pending = self._text[self._start : end]
        if _OPEN_MARKUP.search(pending) or not has_letters(pending):
            return
        if word in _DASHES or (marks and marks[-1] in ",;:\u2014\u2013\u2026") or marks.endswith(".."):
            if word[: -len(tail)].endswith(tuple("0123456789")) and marks[-1:] == ",":
                self._wait = _Wait(end, _Need.CHARACTER, comma=True)
            else:
                self._cut_at_comma(end, out)
        elif marks:
            self._sentence_end(end, word, tail, marks, out)
        else:
            self._first_clause_by_words(end, out)

    def _sentence_end(self, end: int, word: str, tail: str, marks: str, out: list[Clause]) -> None:
        if any(mark in "?!" or mark in _UNSPACED_ENDS for mark in marks):
            if tail[-1] in _CLOSERS:
                self._wait = _Wait(end, _Need.CHARACTER)
            else:
                self._cut(end, out)
            return
        bare = word.strip("\"'\u201c\u2018*_()[]`").removesuffix(".")
        if never_ends_sentence(bare) or _LIST_MARK.fullmatch(self._text[self._start : end].strip()):
            self._first_clause_by_words(end, out)
        elif is_abbreviation(bare):
            self._wait = _Wait(end, _Need.WORD)
        else:
            self._wait = _Wait(end, _Need.CHARACTER)

    def _inside(self, at: int, char: str, out: list[Clause]) -> None:
        """Ends that no white space follows: unspaced scripts, a dash between two words, an endless word."""
        if at > self._start and not self._text[at - 1].isalnum() and not is_break(self._text[at - 1]):
            self._after_marks(at, char, tail_of(self._text[self._start : at]), out)
        if char in _UNSPACED_COMMAS:
            self._cut_at_comma(at + 1, out)
        elif char in _UNSPACED_STOPS and self._nothing_open(self._start, at):
            self._cut(at + 1, out)
        elif at - self._start >= self._max_chars // 3 and UNSPACED_CHAR.match(char):
            # Such a character takes about as long to say as three Latin letters.
            if len(UNSPACED_CHAR.findall(self._text[self._start : at])) >= self._max_chars // 3:
                self._cut(at, out)
        elif at - self._start >= 4 * self._max_chars:
            self._cut(at, out)

    def _after_marks(self, at: int, char: str, tail: str, out: list[Clause]) -> None:
        if char in _CLOSERS or char in _UNSPACED_ENDS or char in "!?." or not tail:
            return
        before = self._text[self._start : at - len(tail)]
        ascii_end = tail[0] in ".!?" and _UNSPACED_ASCII_END.search(before[-1:] + tail[0]) and not char.isdigit()
        if any(mark in _UNSPACED_ENDS for mark in tail) or ascii_end:
            self._cut(at, out)
        elif tail[-1] == "\u2014" and char != "\u2014" and not (before[-1:].isdigit() and char.isdigit()):
            self._cut_at_comma(at, out)

    def _cut_at_comma(self, end: int, out: list[Clause]) -> None:
        pending = self._text[self._start : end]
        least = 2 if self._count == 0 else self._clause_words
        if count_words(pending) >= least and not _OPEN_MARKUP.search(pending):
            self._cut(end, out)

    def _first_clause_by_words(self, end: int, out: list[Clause]) -> None:
        if self._count or self._first_words is None:
            return
        pending = self._text[self._start : end]
        if count_words(pending) < self._first_words:
            return
        place = self._good_end(end, least_words=min(3, self._first_words))
        if place is not None:
            self._cut(place, out)

    def _good_end(self, end: int, *, least_words: int) -> int | None:
        """The last end of a word, at or before `end`, where a voice may well pause; None: there is none yet."""
        pending = self._text[self._start : end] + " "
        for match in reversed(list(_WORD_END.finditer(pending))):
            place = self._start + match.end()
            if count_words(self._text[self._start : place]) < least_words:
                return None
            word = self._last_word(place).strip("\"'\u201c\u2018*_()[]`")
            stopped = word.endswith(".") and (never_ends_sentence(word[:-1]) or is_abbreviation(word[:-1]))
            leads_on = word.replace("\u2019", "'").casefold() in _LEADS_ON or any(c.isdigit() for c in word)
            if has_letters(word) and not (leads_on or stopped or _OPEN_MARKUP.search(pending[: match.end()])):
                return place
        return None

    def _cut_long(self, end: int, out: list[Clause]) -> None:
        """The pending text has outgrown the limit with its last word: cut before that word."""
        ends = [self._start + m.end() for m in _WORD_END.finditer(self._text[self._start : end])]
        ends = [place for place in ends if has_letters(self._text[self._start : place])]
        if not ends:
            self._cut(end, out)
            return
        commas = [
            place for place in ends if self._text[place - 1] in ",;:" and place - self._start > self._max_chars // 3
        ]
        good = self._good_end(ends[-1], least_words=3)
        self._cut(commas[-1] if commas else good or ends[-1], out)

    def _nothing_open(self, start: int, end: int) -> bool:
        pending = self._text[start:end]
        return len(_OPENED.findall(pending)) <= len(_CLOSED.findall(pending)) and pending.count('"') % 2 == 0

    def _last_word(self, end: int) -> str:
        begin = end
        while begin > self._start and not is_break(self._text[begin - 1]):
            begin -= 1
        return self._text[begin:end]

    def _cut(self, end: int, out: list[Clause]) -> None:
        pending = self._text[self._start : end]
        if not has_letters(pending):
            return
        start = self._start + len(pending) - len(pending.lstrip())
        end = self._start + len(pending.rstrip())
        out.append(Clause(self._count, start, end, self._text[start:end]))
        self._count += 1
        self._start = end
        self._wait = None
