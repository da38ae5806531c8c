"""The delay before a turn is over, from three witnesses."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from voice_agent.core.endpointing import DelaySettings, Evidence, endpoint_delay, in_doubt, patience_for

SETTINGS = DelaySettings(0.3, 2.4)
LEVELS = (None, 0.02, 0.5, 0.98)
WORDS = (None, 0.000001, 0.003, 0.3)


def test_everything_says_complete() -> None:
    assert endpoint_delay(Evidence(0.98, 0.95, 0.2), SETTINGS) == pytest.approx(0.3, abs=0.02)


def test_open_words_wait_whatever_the_sound_says() -> None:
    assert endpoint_delay(Evidence(0.99, 0.1, 0.05), SETTINGS) == 2.4


def test_complete_words_are_not_held_up_long_by_the_sound_alone() -> None:
    assert endpoint_delay(Evidence(0.02, 0.95, 0.1), SETTINGS) < 0.6


def test_the_delay_is_always_between_the_two() -> None:
    for audio, rules, words in itertools.product(LEVELS, (0.0, 0.3, 0.5, 0.9), WORDS):
        assert 0.3 <= endpoint_delay(Evidence(audio, rules, words), SETTINGS) <= 2.4


def test_more_evidence_of_an_end_never_waits_longer() -> None:
    for rules, words in itertools.product((0.3, 0.5, 0.9), WORDS):
        delays = [endpoint_delay(Evidence(audio, rules, words), SETTINGS) for audio in LEVELS[1:]]
        assert delays == sorted(delays, reverse=True)
    for audio, rules in itertools.product(LEVELS, (0.3, 0.5, 0.9)):
        delays = [endpoint_delay(Evidence(audio, rules, words), SETTINGS) for words in WORDS[1:]]
        assert delays == sorted(delays, reverse=True)


def test_a_misheard_end_that_reads_like_a_sentence_is_held_back_by_the_model() -> None:
    """ "So the address is" recognised as "So the addresses.": rules are unsure, the sound says over."""
    assert endpoint_delay(Evidence(0.96, 0.5, 0.003), SETTINGS) > 1.5


def test_rules_that_know_too_little_are_outvoted_in_part() -> None:
    assert 1.0 < endpoint_delay(Evidence(0.9, 0.1, 0.9), SETTINGS) < 1.5


def test_a_command_is_complete_even_if_the_model_expects_more() -> None:
    assert endpoint_delay(Evidence(0.6, 0.95, 0.007), SETTINGS) < 0.6


@pytest.mark.parametrize("words", [0.0066, 0.0009, 0.0001])
def test_a_whole_short_answer_is_an_end_though_a_model_expects_more(words: float) -> None:
    assert endpoint_delay(Evidence(None, 0.95, words), SETTINGS) < 0.6
    assert endpoint_delay(Evidence(0.97, 0.95, words), SETTINGS) < 0.4


@pytest.mark.parametrize(
    ("rules", "asked", "log_probability", "patience"),
    [
        (0.5, 0.0, -0.55, 0.75),
        (0.5, 0.0, -0.44, 0.0),
        (0.5, 0.0, 0.0, 0.0),
        (0.85, 0.2, -0.9, 0.2),
        (0.5, 0.9, -0.9, 0.9),
    ],
)
def test_words_that_may_be_misheard_get_time(
    rules: float, asked: float, log_probability: float, patience: float
) -> None:
    assert patience_for(rules, asked, log_probability) == patience


def test_a_greeting_or_a_statement_gets_a_moment_more_though_it_is_whole() -> None:
    sure = Evidence(audio=1.0, rules=0.95, words=0.9)
    assert endpoint_delay(sure, SETTINGS) < 0.31
    patient = replace(sure, patience=0.4)
    assert endpoint_delay(patient, SETTINGS) == pytest.approx(SETTINGS.min_delay + 0.4)
    assert not in_doubt(patient, SETTINGS), "the sound need not be asked for that"
    assert endpoint_delay(replace(patient, words=0.00001, rules=0.3), SETTINGS) > 1.5, "it never shortens a wait"
    assert endpoint_delay(replace(patient, patience=9.0), SETTINGS) == SETTINGS.max_delay
