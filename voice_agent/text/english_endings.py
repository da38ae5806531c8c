"""English: the rules that tell from the last sentence whether more is to come, strongest first.

Each rule looks for one kind of open or closed end and leaves the sentence to the next rule where it sees none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from voice_agent.text import open_words as lists
from voice_agent.text.abbreviations import is_abbreviation
from voice_agent.text.endings import Completeness, ends_closed, ends_open, words_in
from voice_agent.text.half_prepositions import holds_open
from voice_agent.text.numbers import digits_at_end, digits_of
from voice_agent.text.phrases import fold, made_of

AFTER_OPENER = 0.4
"""Seconds more after a greeting or a call to stop: "Hello there. How are you today?", "Wait. What time is it?" """
AFTER_STATEMENT = 0.2
"""… and after a statement, which its question may follow. In read speech sentences are 0.24 to 0.42 s apart."""

_SENTENCE_END = re.compile(r"(\S+)[.?!]\s+(?=.*\w)")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The last sentence of the text; English rules look at nothing else."""

    text: str
    words: tuple[str, ...]
    """In lower case."""
    body: tuple[str, ...]
    """The words without "so", "okay", "please" and the like in front."""

    @property
    def last(self) -> str:
        return self.words[-1]

    @property
    def previous(self) -> str:
        return self.words[-2] if len(self.words) > 1 else ""

    @property
    def first(self) -> str:
        return self.body[0] if self.body else ""

    @property
    def asks_wh(self) -> bool:
        """Begins like a question with a question word; "what I want" does not."""
        second = self.body[1] if len(self.body) > 1 else ""
        return self.first in lists.WH and not (
            self.first not in {"who", "which", "whose"} and second in lists.PRONOUNS | lists.ARTICLES
        )

    @property
    def asks_aux(self) -> bool:
        """Begins like a question that can be answered by yes or no."""
        return self.first in lists.AUXILIARIES | lists.COPULAS | lists.NEGATED

    @property
    def answers(self) -> bool:
        """Begins with yes or no."""
        return self.words[0] in lists.YES_NO


_Rule = Callable[[_Sentence], Completeness | None]


def judge_english(text: str) -> Completeness:
    """How finished an English text that has at least one word sounds."""
    sentence = _last_sentence(text)
    whole = words_in(text)
    if len(whole) <= 8 and made_of(whole, lists.COMMANDS.__contains__):
        return Completeness(0.95, "command", AFTER_OPENER if set(whole) != {"no"} else 0.0)
    open_mark = ends_open(text)
    if len(whole) <= 8 and made_of(whole, (lists.ANSWERS | lists.COMMANDS).__contains__):
        if open_mark and not text.endswith(","):
            return Completeness(0.5, "short answer, open mark")
        if open_mark:
            return Completeness(0.3, "short answer, comma")
        opener = made_of(whole, (lists.OPENERS | lists.COMMANDS).__contains__)
        return Completeness(0.95, "short answer", AFTER_OPENER if opener else 0.0)
    if open_mark:
        return Completeness(0.1, "open mark")
    for rule in _RULES:
        found = rule(sentence)
        if found is not None:
            return _without_full_stop(text, found)
    return Completeness(0.5, "unsure")


def _last_sentence(text: str) -> _Sentence:
    begins = [match.end() for match in _SENTENCE_END.finditer(text) if not is_abbreviation(match[1])]
    last = text[begins[-1] if begins else 0 :]
    words = words_in(last)
    at = 0
    while at < len(words) - 1 and words[at] in lists.LEADS:
        at += 1
    if words[at : at + 2] == ("excuse", "me") and len(words) > at + 2:
        at += 2
    return _Sentence(last, words, words[at:])


def _without_full_stop(text: str, found: Completeness) -> Completeness:
    """A recogniser that writes capitals and commas leaves the final mark out where it hears no end."""
    punctuates = text[0].isupper() or re.search(r"[.,?!] ", text) is not None
    if found.score <= 0.6 or not punctuates or ends_closed(text):
        return found
    return Completeness(0.6 if "question" in found.reason else 0.5, f"{found.reason}, no final mark")


def _low(score: float, reason: str) -> Completeness:
    return Completeness(score, reason)


_ASKED_ABOUT = frozenset({"what", "all", "everything", "anything", "how"})
"""With one of these before it, "you know" is the verb of the sentence."""


def _filler(s: _Sentence) -> Completeness | None:
    if s.last in lists.FILLERS:
        return _low(0.1, "filler")
    for length in (2, 3, 4):
        phrase = " ".join(s.words[-length:])
        if phrase in lists.THINKING and (len(s.words) == length or not set(s.words[:-length]) & _ASKED_ABOUT):
            return _low(0.1, f"ends on '{phrase}'")
    return None


_DICTATED = re.compile(
    r"\b(number|code|pin|phone|mobile|zip|postcode|account|reference|tracking|serial|policy|passport|extension|card|id|"
    r"address)\b(?P<between>.*)"
)
_SAYS = re.compile(r"\b(?:is|was|are|it's|that's|'s)\b|'s\b")


def _dictation(s: _Sentence) -> Completeness | None:
    """Digits and letters given one by one: finished only if a usual length is reached."""
    letters = _letters_at_end(s)
    if letters:
        spelled_before = len(letters) > 1 and letters in s.words
        return Completeness(0.85, "spelled word") if spelled_before else _low(0.2, "spelling")
    digits = digits_at_end(s.text)
    if not digits:
        return None
    folded = fold(s.text)
    named = _DICTATED.search(folded)
    if named is not None and _SAYS.search(named["between"]):
        return _low(*_dictated(folded, named[1], len(digits)))
    if digits_of(s.text) is None:
        return None
    if len(s.words) == 1 or re.fullmatch(r"\w+ty[ -]\w+\W*", folded):
        return Completeness(0.5, "a number")
    return _low(0.2, "digits") if len(digits) < 4 else Completeness(0.5, "digits")


def _dictated(folded: str, name: str, count: int) -> tuple[float, str]:
    if name == "address":
        return 0.15, "house number"
    if "phone" in folded or "mobile" in folded or re.search(r"\bmy number\b", folded):
        usual = 10
    elif name == "card":
        usual = 16
    elif name in {"zip", "postcode"}:
        usual = 5
    else:
        usual = 4
    return (0.5, f"{count} digits of a {name}") if count >= usual else (0.15, f"only {count} digits of a {name}")


def _letters_at_end(s: _Sentence) -> str:
    words = [piece for word in s.words for piece in (word.split("-") if re.fullmatch(r"\w(?:-\w)+", word) else [word])]
    at = len(words)
    while at and len(words[at - 1]) == 1 and words[at - 1].isalpha():
        at -= 1
    letters = "".join(words[at:])
    announced = (
        at > 0 and words[at - 1] in {"spelled", "spelt", "letter", "letters", "is", "it's"} and letters not in "ai"
    )
    return letters if len(letters) >= 2 or (letters and announced) else ""


def _preposition(s: _Sentence) -> Completeness | None:
    if holds_open(s.words):
        return _low(0.2, f"ends on '{s.last}'")
    if s.last not in lists.PREPOSITIONS:
        return None
    if s.last in {"in", "on"} and s.previous in lists.PARTICLE_HOSTS:
        return None
    if s.asks_wh and (s.previous in lists.STRANDING or (s.previous in lists.PRONOUNS and len(s.body) >= 4)):
        return Completeness(0.8, "question with its preposition last")
    if s.previous in lists.STRANDING and set(s.words[:-2]) & lists.RELATIVES:
        return Completeness(0.6, "relative clause with its preposition last")
    if s.last == "to" and (s.previous in {"love", "happy"} or set(s.words) & {"if", "don't", "didn't", "not"}):
        return Completeness(0.4, "ends on 'to'")
    return _low(0.1, f"ends on '{s.last}'")


def _copula(s: _Sentence) -> Completeness | None:
    if s.last not in lists.COPULAS:
        return None
    if s.answers and len(s.words) <= 4 and s.previous in lists.PRONOUNS:
        return Completeness(0.9, "elliptical answer")
    inner = [at for at, word in enumerate(s.body[:-2]) if word in lists.WH and at > 0]
    if inner or (s.asks_wh and s.last in {"be", "been"}):
        return Completeness(0.8, "indirect question")
    return _low(0.1, f"ends on '{s.last}'")


def _auxiliary(s: _Sentence) -> Completeness | None:
    if s.last in lists.NEGATED:
        if s.answers and len(s.words) <= 4:
            return Completeness(0.9, "elliptical answer")
        return _low(0.4 if s.previous in lists.PRONOUNS else 0.2, "ends on a negation")
    if s.last not in lists.AUXILIARIES or (s.last == "may" and s.previous in lists.BEFORE_MONTHS):
        return None
    if s.answers and len(s.words) <= 4 and s.previous in lists.PRONOUNS:
        return Completeness(0.9, "elliptical answer")
    earlier = set(s.words[:-1])
    if s.asks_wh and earlier & (lists.AUXILIARIES | lists.COPULAS) and s.last in {"do", "have"}:
        return Completeness(0.9, "question")
    if earlier & lists.RELATIVES and s.previous in lists.PRONOUNS | lists.AUXILIARIES:
        return Completeness(0.6, "relative clause")
    if len(s.body) == 2 and s.previous in lists.PRONOUNS and s.last in {"do", "did", "can", "will", "have"}:
        return Completeness(0.5, "elliptical answer")
    return _low(0.15, f"ends on '{s.last}'")


_BEFORE_YOU = lists.AUXILIARIES | lists.COPULAS | {"if", "when", "that", "because", "unless", "whether"}
_BEFORE_IT = lists.COPULAS | {
    "does",
    "can",
    "will",
    "has",
    "would",
    "if",
    "that",
    "because",
    "when",
    "whether",
    "could",
}


def _pronoun(s: _Sentence) -> Completeness | None:
    """Subjects whose verb is still to come."""
    inverted = s.asks_wh and s.previous in lists.COPULAS and len(s.body) >= 3
    if s.last in lists.SUBJECTS:
        return None if inverted else _low(0.15, f"ends on '{s.last}'")
    if s.last == "you" and s.previous in _BEFORE_YOU:
        return None if inverted else _low(0.15, "ends before the verb")
    if s.last in {"it", "this", "that", "there", "these", "those"}:
        after_verb = s.last in {"it", "that", "this"} and s.previous in _BEFORE_IT - lists.COPULAS
        if (
            (s.previous in lists.COPULAS and not inverted)
            or after_verb
            or (s.last == "it" and s.previous == "did" and s.asks_wh and s.first != "who")
        ):
            return _low(0.15, "ends before the verb")
        if s.last == "that" and s.previous in {"said", "says", "think", "hope", "believe", "sure", "is", "was", "told"}:
            return None if inverted else _low(0.15, "ends on 'that'")
    return None


def _contraction(s: _Sentence) -> Completeness | None:
    if s.last in lists.CUT_CONTRACTIONS or s.last.endswith(("'m", "'re", "'ve", "'ll", "'d")):
        return _low(0.1, f"ends on '{s.last}'")
    return None


def _function_word(s: _Sentence) -> Completeness | None:
    if s.last in lists.ARTICLES | lists.CONJUNCTIONS | lists.INTENSIFIERS:
        return _low(0.1, f"ends on '{s.last}'")
    if s.last == "so" and s.previous not in {
        "think",
        "hope",
        "guess",
        "believe",
        "suppose",
        "said",
        "do",
        "even",
        "if",
    }:
        return _low(0.1, "ends on 'so'")
    if s.last == "not" and s.previous not in {"why", "course", "hope", "or", "if", "certainly", "probably", "maybe"}:
        return _low(0.2, "ends on 'not'")
    if s.last == "really" and s.previous in lists.COPULAS | lists.SUBJECTS:
        return _low(0.15, "ends on 'really'")
    if (s.last, s.previous) in {
        ("then", "and"),
        ("maybe", "or"),
        ("maybe", "but"),
        ("example", "for"),
        ("any", "there"),
    }:
        return _low(0.15, f"ends on '{s.previous} {s.last}'")
    if s.last == "well" and len(s.words) == 1:
        return _low(0.2, "ends on 'well'")
    if s.last in lists.WH:
        # "I know when" may be all; "it happened when" is not.
        alone = s.last not in {"when", "which", "whom", "whose"} or s.previous in lists.KNOWING
        return _low(0.4 if alone and s.previous not in lists.CONJUNCTIONS else 0.15, f"ends on '{s.last}'")
    return None


def _missing_object(s: _Sentence) -> Completeness | None:
    related = s.asks_wh or bool(set(s.words[:-2]) & lists.RELATIVES)
    if s.last == "me" and s.previous in lists.GIVING:
        return Completeness(0.5, "question") if s.asks_wh else _low(0.1, f"'{s.previous} me' without an object")
    if s.last == "like":
        wish = s.previous in {"would", "you'd", "we'd", "i'd"}
        likened = s.previous in {"it's", "something", "look", "looks", "feel", "sounds", "is", "was", "be"}
        return _low(0.1, "ends on 'like'") if (wish or likened) and not related else None
    if s.last in lists.OPEN_PARTICIPLES:
        return _low(0.15, f"ends on '{s.last}'")
    if s.last in lists.OPINIONS and s.previous in lists.PRONOUNS and not related:
        return _low(0.15, f"ends on '{s.last}'")
    verb = s.last in lists.TRANSITIVES and (len(s.body) == 1 or s.previous in lists.VERB_BEFORE)
    if verb and (related or "ready" in s.words):
        return Completeness(0.8 if s.asks_wh else 0.6, "question" if s.asks_wh else "relative clause")
    if verb:
        return _low(0.1, f"'{s.last}' without an object")
    if s.last == "please" and s.previous == "you" and s.asks_aux and len(s.body) <= 4:
        return _low(0.1, "request without its verb")
    return None


_NO_VERB_YET = re.compile(
    r"(?:.* )?(?:do|does|did|can|could|will|would|should|shall|has|have|had) "
    r"(?:the|my|your|our|their|his|her|this|that|these|those|a|an) \S+"
)


def _missing_noun_or_verb(s: _Sentence) -> Completeness | None:
    if s.last in lists.ADJECTIVES - {"little"} and s.previous in {"a", "an", "my", "your", "our", "their"}:
        return _low(0.15, "adjective without its noun")
    if s.previous == "the" and (s.last.endswith("est") or s.last in {"best", "most", "next", "main"}):
        if s.asks_wh and len(s.body) >= 4 and s.body[-3] in lists.COPULAS and s.body[-4] not in lists.WH:
            return Completeness(0.8, "question")  # "which planet is the biggest", but not "what is the biggest"
        return _low(0.2 if s.asks_wh or s.asks_aux else 0.4, "adjective without its noun")
    body = " ".join(s.body)
    if (s.asks_wh or s.asks_aux) and _NO_VERB_YET.fullmatch(body) and s.first not in {"who", "whose"}:
        have = re.search(r"\b(?:do|does|did|can|could|will|would|should)\b.*\b(?:have|has|had)\b", body)
        pronoun = s.previous in {"this", "that", "these", "those"} and s.last in lists.VERBS  # "what does that mean"
        return None if have or pronoun else _low(0.2, "question before its verb")
    if s.first in {"is", "are", "was", "were"} and len(s.body) == 3 and s.body[1] in lists.ARTICLES:
        return _low(0.3, "question before its complement")
    return None


def _subordinate(s: _Sentence) -> Completeness | None:
    second = s.body[1] if len(s.body) > 1 else ""
    opens = s.first in lists.SUBORDINATORS or (s.first == "when" and second in lists.PRONOUNS | lists.ARTICLES)
    if opens and "," not in s.text.rstrip(",") and len(s.body) < 8:
        return _low(0.2, "only a subordinate clause")
    return None


def _question(s: _Sentence) -> Completeness | None:
    if s.asks_wh:
        if s.body[:2] in {("how", "about"), ("what", "about")} or s.first == "who":
            return Completeness(0.85, "question")
        verb = any(word in lists.AUXILIARIES | lists.COPULAS | lists.NEGATED | lists.VERBS for word in s.body[1:])
        if verb or "'" in s.first:
            return Completeness(0.9 if len(s.body) >= 3 else 0.7, "question")
        return Completeness(0.4, "question without a verb")
    if s.asks_aux:
        return Completeness(0.9 if len(s.body) >= 4 else 0.8 if len(s.body) == 3 else 0.5, "question")
    return None


def _polite_end(s: _Sentence) -> Completeness | None:
    return Completeness(0.9, "polite end") if s.last in {"please", "thanks"} else None


def _imperative(s: _Sentence) -> Completeness | None:
    if s.first in lists.IMPERATIVES and len(s.body) >= 2:
        return Completeness(0.85, "imperative")
    return None


def _statement(s: _Sentence) -> Completeness | None:
    if len(s.body) < 3 and "'" not in s.first:
        return None
    known = lists.VERBS | lists.COPULAS | lists.AUXILIARIES | lists.NEGATED
    for at, word in enumerate(s.body):
        verb = (at > 0 and (word in known or word.endswith("ed"))) or ("'" in word and word not in lists.NEGATED)
        if verb and at + 1 < len(s.body):
            return Completeness(0.85, "statement", AFTER_STATEMENT)
    return Completeness(0.7, "statement") if s.last.endswith("ed") or s.last in lists.VERBS else None


_RULES: tuple[_Rule, ...] = (
    _filler, _dictation, _preposition, _copula, _auxiliary, _pronoun, _contraction, _function_word, _missing_object,
    _missing_noun_or_verb, _subordinate, _polite_end, _question, _imperative, _statement,
)  # fmt: skip
