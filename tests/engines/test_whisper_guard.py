from __future__ import annotations

import numpy as np
import pytest

from voice_agent.engines.whisper_guard import (
    Evidence,
    clean_transcript,
    collapse_loops,
    compression_ratio,
    has_echo,
    is_loop,
    loudest_dbfs,
)


def heard(text: str, *, no_speech: float = 0.05, log: float = -0.2, seconds: float = 3.0, loud: float = -20.0, hint=""):
    return clean_transcript(Evidence(text, no_speech, log, seconds, loud, hint))


@pytest.mark.parametrize(
    ("text", "said_once"),
    [
        ("little " * 60, "little"),
        ("and on we go " * 12, "and on we go"),
        ("No, no, no, no, no!", "No,"),
        ("O-O-O-O-O-O", "O"),
        ("ありがとう" * 9, "ありがとう"),
        ("So 5 5 5 5 5 5 5 5 5 5 5 5", "So 5"),
        ("one two three four five six seven eight " * 5, "one two three four five six seven eight"),
    ],
)
def test_loops_are_said_once(text, said_once):
    assert collapse_loops(text) == said_once
    assert is_loop(text)
    assert has_echo(text) or " " not in text.strip()


@pytest.mark.parametrize(
    "text", ["no no no", "very very good", "My number is 5, 5, 5, 5, 1.", "That is 100000 euros.", "hmmmm", "bye-bye"]
)
def test_what_people_say_twice_stays(text):
    assert heard(text) == text
    assert not is_loop(text)


def test_never_more_than_three_equal_word_groups_in_a_row():
    random = np.random.default_rng(3)
    for _ in range(200):
        words = collapse_loops(" ".join(random.choice(["a", "b"], 40))).split()
        for length in range(1, 11):
            for start in range(len(words) - 4 * length + 1):
                group = words[start : start + length]
                assert words[start : start + 4 * length] != group * 4, words


@pytest.mark.parametrize("text", ["[BLANK_AUDIO]", "(silence)", "[Music]", "♪♪", "*sighs*", "...", ". . .", "", " "])
def test_noise_tags_are_no_speech_however_sure(text):
    assert heard(text, no_speech=0.0, log=0.0) == ""


def test_noise_tags_leave_the_words_beside_them():
    assert heard("[door] Come in. (laughs) ♪") == "Come in."


@pytest.mark.parametrize(
    "text",
    [
        "Thank you for watching.",
        "Thanks for watching!",
        "Untertitel der Amara.org-Community",
        "Продолжение следует...",
        "ご視聴ありがとうございました",
        "Sous-titrage ST' 501",
    ],
)
def test_farewells_of_videos_need_clear_speech(text):
    assert heard(text, no_speech=0.3) == ""
    assert heard(text, log=-0.6) == ""
    assert heard(text, no_speech=0.9) == ""


def test_a_clear_farewell_is_believed():
    assert heard("Thank you for watching the kids.", log=-0.1, no_speech=0.01) == "Thank you for watching the kids."


@pytest.mark.parametrize("text", ["Thank you.", "you", "Okay.", "Bye-bye."])
def test_short_phrases_fall_only_in_doubt(text):
    assert heard(text) == text
    assert heard(text, log=-0.6, no_speech=0.3) == text
    assert heard(text, log=-0.6, no_speech=0.9) == ""
    assert heard(text, log=-0.95, no_speech=0.3) == ""


@pytest.mark.parametrize(
    "signs",
    [
        {"log": -1.6},
        {"log": -1.1, "no_speech": 0.5},
        {"log": -0.8, "no_speech": 0.9},
        {"log": -0.8, "loud": -48.0},
        {"seconds": 0.5},
    ],
)
def test_a_sentence_falls_on_any_strong_doubt(signs):
    text = "I'm going to go to the beach."
    assert heard(text) == text
    assert heard(text, **signs) == ""


def test_a_likely_text_survives_a_silent_verdict():
    """A recording of digits with long pauses: the model is sure of the words and of the silence."""
    assert heard("10001 90210", no_speech=0.96, log=-0.48) == "10001 90210"


def test_an_echo_of_the_hint_is_not_speech_in_doubt():
    hint = "We talked about Wilhelmina Okonkwo."
    assert heard("Wilhelmina Okonkwo", hint=hint) == "Wilhelmina Okonkwo"
    assert heard("Wilhelmina Okonkwo", hint=hint, no_speech=0.7) == ""


def test_measures():
    assert compression_ratio("") == 0.0
    assert compression_ratio("no " * 50) > 2.4 > compression_ratio("The birch canoe slid on the smooth planks.")
    assert loudest_dbfs(np.zeros(0, np.int16)) == -120.0
    audio = np.zeros(16_000, np.int16)
    audio[3200:4800] = 3277
    assert loudest_dbfs(audio) == pytest.approx(-20.0, abs=0.01)
