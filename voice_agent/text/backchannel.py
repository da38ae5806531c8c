"""What a listener says without wanting the floor, and what the microphone caught of the agent itself."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from difflib import SequenceMatcher

from voice_agent.text.chars import UNSPACED_OR_HANGUL, word_set

# Spelling is the recogniser's: without hyphens and apostrophes, letters repeated three times or more written twice.
_SOUNDS = re.compile(
    r"m+h+m*|(?:m+ ?h*)+|h+m+|u+h+ ?h+u+h*|a+h+a*|a ha|o+h+|o+oh|u+h+|u+m+|e+rm*|e+h+|(?:ha ?){1,12}|(?:he ?){2,12}|hm+"
)

_WORDS: dict[str, frozenset[str]] = {
    "en": word_set(
        """yeah yep yup right okay ok okey alright i_see i_know uh_huh mm_hm mm_hmm mhm hmm oh ah aha wow
        really cool nice great good true exactly indeed of_course got_it all_right sounds_good makes_sense i_understand
        oh_really oh_okay oh_i_see oh_wow fair_enough thats_right thats_true thats_good very_good go_on"""
    ),
    "de": word_set("ja jaja genau okay ok hm mhm aha ach_so achso stimmt gut klar richtig verstehe ich_verstehe super"),
    "es": word_set("ya sí si claro vale okay ok ajá aja mm bien entiendo exacto bueno de_acuerdo"),
    "fr": word_set("oui ouais d_accord daccord ok okay hum mm mhm ah_bon je_vois voilà voila bien exactement"),
    "it": word_set("sì si ok okay certo va_bene ho_capito capito giusto esatto mm mhm ah bene"),
    "pt": word_set("sim ok okay certo tá ta pois pois_é uhum aham entendi claro exato bem"),
}
_LONGEST = 4
"""Words: a longer text is a claim, whatever it is made of."""

# Said while the agent talks, each of these is a claim to the floor, also as an exact copy of its words.
COMMANDS = word_set(
    """stop wait no nope yes hold pause quiet enough cancel nein halt warte stopp ja para espera alto sí non oui
    arrête attends attendez ferma fermati aspetta basta não sim espere pare
    停 停下 等 等一下 等等 不 不要 不是 对 是 好 はい いいえ 待って 止めて やめて 아니요
    아니 네 예 잠깐 잠깐만 멈춰 그만"""
)

_TAGS = re.compile(r"\[[^\[\]]{0,60}\]|\([^()]{0,60}\)|\*[^*]{0,60}\*|<[^<>]{0,60}>|[\u266a\u266b]+")


def is_backchannel(text: str, language: str = "en") -> bool:
    """True for "mm-hm", "I see", laughter, noise tags and empty text: heard while the agent talks, it goes on talking.

    Never for a word that may want the agent to stop ("no", "wait"), nor for anything that goes on ("yes but").
    Languages without a list know only the sounds that are the same everywhere.
    """
    words = _words(_TAGS.sub(" ", text))
    if not words:
        return True
    known = _WORDS.get(language.replace("_", "-").split("-")[0].casefold(), frozenset())
    return len(words) <= _LONGEST and _made_of(words, known)


def _made_of(words: list[str], known: frozenset[str]) -> bool:
    """True if the words can be read as a row of known entries and sounds."""
    if not words:
        return True
    for length in range(len(words), 0, -1):
        head = words[:length]
        matches = "_".join(head) in known or _SOUNDS.fullmatch(" ".join(head)) is not None
        if matches and _made_of(words[length:], known):
            return True
    return False


_PASSAGE = 24
_LONGEST_SPOKEN = 160
"""Words, or characters of an unspaced script: what was said longer ago is no longer in the room."""


def echoes(text: str, spoken: str, threshold: float = 0.8) -> bool:
    """True if a transcript repeats what the agent has just said: the microphone heard the loudspeaker.

    `spoken` is the agent's recent text, as long as it can still be heard. One or two words count only as an exact run
    of it and never if one of them is a command; a longer text with a command that the like passage does not have is
    somebody talking over the agent.
    """
    joined = UNSPACED_OR_HANGUL.search(text) is not None
    heard, said = _units(text, joined=joined), _units(spoken, joined=joined)[-_LONGEST_SPOKEN:]
    if not heard or not said:
        return False
    if len(heard) <= (4 if joined else 2):
        commands = {"".join(heard)} if joined else set(heard)
        return not commands & COMMANDS and any(said[at : at + len(heard)] == heard for at in range(len(said)))
    if not joined and (set(heard) & COMMANDS) - set(said):
        return False
    parts = -(-len(heard) // _PASSAGE)
    size = -(-len(heard) // parts)
    passages = [heard[first : first + size] for first in range(0, len(heard), size)]
    return all(_like_a_passage(passage, said, "" if joined else " ", threshold) for passage in passages)


def _like_a_passage(heard: list[str], said: list[str], space: str, threshold: float) -> bool:
    """True if some passage of the same length is as like, counted in characters."""
    length = len(heard)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(space.join(heard))
    for first in range(max(1, len(said) - length + 1)):
        passage = said[first : first + length]
        # The cheap bounds leave the costly comparison to the few passages that can pass. A misheard word keeps most
        # of its characters, so at a likeness of 0.8 well over a third of the words are the same.
        if sum((Counter(passage) & Counter(heard)).values()) < length * (threshold - 0.4):
            continue
        matcher.set_seq1(space.join(passage))
        if matcher.quick_ratio() >= threshold and matcher.ratio() >= threshold:
            return True
    return False


def _words(text: str) -> list[str]:
    """Lower-case words; hyphens part them, apostrophes and other marks vanish."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = "".join(
        char if char.isalnum() or unicodedata.category(char)[0] == "M" else "" if char in "'\u2019" else " "
        for char in folded
    )
    return [re.sub(r"(.)\1{2,}", r"\1\1", word) for word in plain.split()]


def _units(text: str, *, joined: bool) -> list[str]:
    """What two texts are compared by: words, or characters where recognisers put spaces at will."""
    words = _words(text)
    return list("".join(words)) if joined else words
