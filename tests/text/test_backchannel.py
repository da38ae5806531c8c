"""Cases B07 and B09 of the public bug reports: listening noises and the agent's own voice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.text.backchannel import COMMANDS, echoes, is_backchannel


@pytest.mark.parametrize(
    "text",
    [
        "mm-hm", "Mm-hmm.", "uh-huh", "Uh huh.", "yeah", "Yeah, yeah.", "right", "Okay.", "OK", "I see.", "mhm",
        "hmm", "Hmmmm...", "Mm.", "Oh, okay.", "Ah, I see.", "That's right.", "Got it.", "[laughter]", "(laughs)",
        "*coughs*", "Ha ha ha.", "hahaha", "", "   ", "...", "[BLANK_AUDIO]", "\u266a", "Wow.", "oh really?",
    ],
)  # fmt: skip
def test_backchannels(text: str) -> None:
    assert is_backchannel(text)


@pytest.mark.parametrize(
    "text",
    [
        "stop", "Stop.", "wait", "no", "No, no.", "hold on", "Hold on a second.", "yes but", "Yeah, but no.", "hello",
        "Right, and what about planes?", "yes", "I see a problem", "oh no", "Okay, thanks, bye.", "mhm wait", "four",
        "Yeah yeah yeah yeah yeah I know that already", "what?", "(laughs) stop", "okay stop", "goodbye",
    ],
)  # fmt: skip
def test_claims(text: str) -> None:
    assert not is_backchannel(text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Ach so."), ("de-AT", "ja"), ("es", "de acuerdo"), ("fr", "D'accord."), ("it", "va bene"),
        ("pt", "pois é"), ("ja", "mm"), ("nl", "uh-huh"),
    ],
)  # fmt: skip
def test_backchannels_in_other_languages(language: str, text: str) -> None:
    assert is_backchannel(text, language)


@pytest.mark.parametrize(("language", "text"), [("de", "nein"), ("de", "halt"), ("es", "para"), ("fr", "stop")])
def test_claims_in_other_languages(language: str, text: str) -> None:
    assert not is_backchannel(text, language)


SPOKEN = (
    "The capital of France is Paris. It has about two million people, and many visitors come each year "
    "to see the Eiffel Tower. Would you like to hear more, yes or no?"
)


@pytest.mark.parametrize(
    "text",
    [
        "It has about two million people",
        "it has about 2 million people and many visitors",
        "has about two million people in many visitors come",
        "The capital of France is Paris.",
        "The capitol of France is Paris, it has",
        "Eiffel tower",
        "Paris",
        SPOKEN,
    ],
)
def test_near_copies_of_what_was_said_are_echoes(text: str) -> None:
    assert echoes(text, SPOKEN)


@pytest.mark.parametrize(
    "text",
    [
        "", "...", "stop", "wait", "No.", "yes", "London", "Paris please", "What is the capital of Spain?",
        "It has about two million people, stop", "How many people live there?", "Tell me more about it.",
        "many of the visitors were from my home town",
    ],
)  # fmt: skip
def test_own_words_are_no_echo(text: str) -> None:
    assert not echoes(text, SPOKEN)


CHINESE = "你好。今天天气很好，我们可以出去散步。"
KOREAN = "안녕하세요. 오늘 날씨가 아주 좋습니다. 산책하러 갈까요?"
JAPANESE = "今日はとても良い天気ですね。散歩に行きましょう。"


@pytest.mark.parametrize(
    ("text", "spoken", "echo"),
    [
        ("今天天气很好我们可以", CHINESE, True),
        ("今天天起很好我们可以", CHINESE, True),
        ("天气很好", CHINESE, True),
        ("我想订一张桌子", CHINESE, False),
        ("好", CHINESE, False),
        ("停", CHINESE + "停", False),
        ("오늘날씨가 아주 좋습니다", KOREAN, True),
        ("오늘 날씨가 아주 조습니다.", KOREAN, True),
        ("잠깐만", KOREAN + " 잠깐만", False),
        ("내일 약속을 취소해 주세요", KOREAN, False),
        ("とても良い天気ですね", JAPANESE, True),
        ("予約をお願いします", JAPANESE, False),
    ],
)
def test_echoes_without_spaces(text: str, spoken: str, *, echo: bool) -> None:
    assert echoes(text, spoken) is echo


def test_the_threshold_decides() -> None:
    text = "it had about ten million people"
    assert echoes(text, SPOKEN, 0.8)
    assert not echoes(text, SPOKEN, 0.95)


def test_own_words_after_an_echo_are_kept() -> None:
    long_echo = " ".join(SPOKEN.split()[:20])
    assert echoes(long_echo, SPOKEN)
    assert not echoes(long_echo + " but I would rather know how far it is from here to the sea by train", SPOKEN)


def test_nothing_was_said() -> None:
    assert not echoes("hello there everybody", "")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_is_never_an_echo(command: str) -> None:
    assert not echoes(command, f"say {command} now")


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.integers(0, 30), st.integers(3, 12))
def test_every_passage_is_an_echo_of_the_whole(first: int, length: int) -> None:
    words = SPOKEN.split()
    passage = words[first : first + length]
    if len(passage) >= 3:
        assert echoes(" ".join(passage).upper(), SPOKEN)
