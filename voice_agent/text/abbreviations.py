"""Words that end in a full stop without ending the sentence, and words that tell when they do end it."""

from __future__ import annotations

import re

from voice_agent.text.chars import word_set

_NEVER_LAST = word_set("mr mrs mx prof messrs mme mlle e.g i.e eg ie vs cf viz bzw z.b d.h sra srta dott sig approx")
"""Always followed by more of the same sentence."""

_SOMETIMES_LAST = word_set(
    """dr ms st ave rd blvd ln sq mt ft jr sr rev fr hon pres gov sen rep gen col maj capt cpt lt cmdr sgt etc al inc
    ltd co corp dept est jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri ph.d
    incl esp ca usw str mm"""
)
"""May end a sentence; the next word tells."""

_BEFORE_NUMBERS = word_set("no nos nr fig figs vol p pp ch sec art ext tel")
"""Abbreviations only when a number follows ("No. 5")."""

_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
"""Initials without the last full stop: "J", "U.S", "a.m"."""

_SENTENCE_STARTERS = word_set(
    """a an the this that these those it it's its he he's she she's we we're we'll they they're you you're you'll i i'm
    i'll i'd i've there there's here here's my your his her our their some many most all both each every no not yes and
    but so or because if when while after before since although then now today tomorrow also however still just please
    what what's when where who why how which is are was were do does did can could would will should have has had let
    let's for in on at to with from by as of one another both thanks thank sorry sure okay ok well in"""
)
"""Words that, written with a capital, begin a sentence rather than a name."""


def is_abbreviation(word: str) -> bool:
    """True for a word, given without its last full stop, after which a sentence may go on ("Dr", "U.S", "a.m")."""
    low = word.casefold()
    return low in _NEVER_LAST or low in _SOMETIMES_LAST or _DOTTED.fullmatch(word) is not None


def never_ends_sentence(word: str) -> bool:
    """True if no sentence ends with this word and its full stop ("Mrs", "e.g")."""
    return word.casefold() in _NEVER_LAST


def belongs_to_number(word: str) -> bool:
    """True if the word and its full stop belong to a number that follows ("No", "Fig")."""
    return word.casefold() in _BEFORE_NUMBERS


def starts_sentence(word: str) -> bool:
    """True if this word, after an abbreviation, shows that the abbreviation ended its sentence."""
    return word[:1].isupper() and word.replace("\u2019", "'").casefold() in _SENTENCE_STARTERS
