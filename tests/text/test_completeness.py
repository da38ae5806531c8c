"""Case A05 of the public bug reports, and what the rules are worth on tables of utterances."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.utterances import COMPLETE, CUT_OFF, HELD_OUT_COMPLETE, HELD_OUT_CUT_OFF
from voice_agent.text.completeness import completeness

LOW, HIGH = 0.3, 0.7

# Answers that are no sentences stay in doubt; "said that" may be either.
IN_DOUBT = {"At half past nine.", "For two people.", "The second one."}
WRONG = {"You already said that."}


@pytest.mark.parametrize("text", [text for text in COMPLETE if text not in IN_DOUBT | WRONG])
def test_complete_utterances_score_high(text: str) -> None:
    found = completeness(text)
    assert found.score >= HIGH, found


@pytest.mark.parametrize("text", sorted(IN_DOUBT))
def test_fragments_that_may_be_answers_stay_in_the_middle(text: str) -> None:
    assert LOW < completeness(text).score < HIGH


@pytest.mark.parametrize("text", CUT_OFF)
def test_cut_off_utterances_score_low(text: str) -> None:
    found = completeness(text)
    assert found.score <= 0.2, found


def counts(complete: tuple[str, ...], cut_off: tuple[str, ...], threshold: float) -> tuple[int, int]:
    """How many complete, and how many cut-off, utterances are taken for complete."""
    return (
        sum(completeness(text).score >= threshold for text in complete),
        sum(completeness(text).score >= threshold for text in cut_off),
    )


@pytest.mark.parametrize(("threshold", "right", "wrong"), [(LOW, 39, 5), (HIGH, 34, 0)])
def test_worth_on_utterances_the_rules_were_not_made_for(threshold: float, right: int, wrong: int) -> None:
    assert counts(HELD_OUT_COMPLETE, HELD_OUT_CUT_OFF, threshold) == (right, wrong)


def test_a_full_stop_put_behind_every_cut_off_text_misleads_rarely() -> None:
    stopped = tuple(text.rstrip(".,-\u2014\u2026? ") + "." for text in HELD_OUT_CUT_OFF)
    assert counts((), stopped, HIGH)[1] == 4
    stopped = tuple(text.rstrip(".,-\u2014\u2026? ") + "." for text in CUT_OFF)
    assert counts((), stopped, HIGH)[1] <= 2


# A05: a dictated number grows; it is unfinished until it is as long as such numbers are.
@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("my number is", True),
        ("my number is zero six three four one", True),
        ("my number is zero six three four one nine five nine eight", True),
        ("my number is zero six three four one nine five nine eight four two zero", False),
        ("I would like to, um", True),
        ("I would like to, um book a table.", False),
        ("My order number is, four four", True),
        ("My order number is, four four one seven.", False),
        ("The pin is 7 4 1", True),
        ("The pin is 7415.", False),
        ("It's spelled J-O", True),
        ("John, that's J-O-H-N.", False),
        ("twenty five", False),
        ("seven", False),
    ],
)
def test_dictation(text: str, *, low: bool) -> None:
    assert (completeness(text).score <= 0.2) is low


@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("Where are you from?", False),
        ("Where do you come from?", False),
        ("That's from", True),
        ("Tell me where the station is.", False),
        ("What I need is", True),
        ("Where is it?", False),
        ("Is it", True),
        ("What would you like?", False),
        ("I would like", True),
        ("Cancel my order.", False),
        ("I want to order", True),
        ("Log in.", False),
        ("We met in", True),
        ("That's everything you know.", False),
        ("It was you know", True),
        ("It was on the second of May.", False),
        ("I think so.", False),
        ("I think", True),
        ("Why not?", False),
        ("I'd rather not.", True),
        ("Could you wake me up before?", True),
        ("Have we met before?", False),
        ("I've never seen that before.", False),
        ("Can you move it to after?", True),
        ("I will be there the day after.", False),
        ("Is there a pharmacy near?", True),
        ("What does that mean?", False),
        ("What does that man?", True),
        ("How much does this cost?", False),
        ("Which planet is the biggest?", False),
        ("What is the biggest?", True),
    ],
)
def test_the_same_last_word_may_be_an_end_or_not(text: str, *, low: bool) -> None:
    assert (completeness(text).score <= LOW) is low


def test_only_the_last_sentence_counts() -> None:
    assert completeness("My order is late. What should I do?").score >= HIGH
    assert completeness("My order is late. And the").score <= 0.2
    assert completeness("I saw Dr. Smith yesterday.").score >= HIGH


def test_final_marks_are_weak_evidence_for_an_end_and_strong_for_none() -> None:
    assert completeness("My order number is.").score <= 0.2
    assert completeness("The door is open.").score >= HIGH
    assert completeness("The door is open").score == 0.5
    assert completeness("the door is open").score >= HIGH
    assert completeness("The door is open...").score <= 0.2
    assert completeness("Stop...").score >= HIGH


@pytest.mark.parametrize(
    ("text", "patience"),
    [
        ("Hello there.", 0.4),
        ("Excuse me.", 0.4),
        ("Wait, stop please.", 0.4),
        ("Okay, thanks.", 0.4),
        ("My order is late.", 0.2),
        ("Yes.", 0.0),
        ("No.", 0.0),
        ("Okay, yes.", 0.0),
        ("Hello, how are you?", 0.0),
        ("My order is late. What should I do?", 0.0),
    ],
)
def test_what_is_often_followed_by_more_gets_a_moment(text: str, patience: float) -> None:
    found = completeness(text)
    assert (found.patience, found.score >= HIGH) == (patience, True)


@pytest.mark.parametrize("text", ["", "   ", "...", "\u266a"])
def test_nothing_said_tells_nothing(text: str) -> None:
    assert completeness(text).score == 0.5


@pytest.mark.parametrize(
    ("language", "complete", "cut_off"),
    [
        ("de", ["Ja.", "Nein, danke.", "Wann fährt der Zug?"], ["Ich möchte", "Ich suche einen", "Das ist für", "ähm"]),
        ("es", ["Sí, por favor.", "¿Cuánto cuesta el billete?"], ["Quiero un", "Es para", "Mi número es"]),
        ("fr", ["Merci beaucoup.", "Où est la gare?"], ["Je voudrais", "C'est pour", "C'est-à-dire que"]),
        ("it", ["Va bene, grazie.", "Dove si trova la stazione?"], ["Vorrei", "È per il", "Mi chiamo,"]),
        ("pt-BR", ["Sim, por favor.", "Onde fica a estação?"], ["Eu quero", "É para", "O meu número é"]),
    ],
)
def test_other_languages(language: str, complete: list[str], cut_off: list[str]) -> None:
    assert [text for text in complete if completeness(text, language).score < HIGH] == []
    assert [text for text in cut_off if completeness(text, language).score > 0.2] == []
    assert completeness("blablabla blibli", language).score == 0.5


def test_unknown_languages_are_told_by_their_marks_only() -> None:
    assert completeness("Voglem ipsu tro.", "xx") == completeness("Voglem", "xx")
    assert completeness("Voglem", "xx").reason == "unknown language"
    assert completeness("Voglem ipsu,", "xx").score <= 0.2
    assert completeness("今日は、", "ja").score <= 0.2


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.lists(st.sampled_from([w for text in COMPLETE + CUT_OFF for w in text.split()]), max_size=8).map(" ".join)
    | st.text(max_size=30),
    st.sampled_from(["en", "de", "fr", "xx"]),
)
def test_any_text_has_a_score(text: str, language: str) -> None:
    found = completeness(text, language)
    assert 0 <= found.score <= 1
    assert found.reason
