"""The caller chooses speed, language and prompt in the middle of a call."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.session.rig import Call
from voice_agent.session.choices import Choices, read_choices

FAR = "How far is the moon?"
ANSWER = "It is about two hundred thousand miles from here."


def settings(**chosen: Any) -> dict[str, Any]:
    return {"type": "settings", **chosen}


def length(stretch: tuple[float, float]) -> float:
    return stretch[1] - stretch[0]


def test_a_new_speed_and_prompt_count_from_the_next_turn_on() -> None:
    chosen = settings(speed=2, prompt="Speak like a pirate.")
    call = Call([(1.0, 2.0), (8.0, 9.0)], [FAR, FAR], [ANSWER, ANSWER], at=[(3.0, chosen)], seconds=14.0).run()
    first, second = call.transport.audible()
    assert length(first) == pytest.approx(2 * length(second), rel=0.05), "the reply under way keeps its speed"
    assert [asked.messages[0].content for asked in call.model.asked] == ["Be brief.", "Speak like a pirate."]
    (told,) = call.transport.of("settings")
    assert (told["speed"], told["language"], told["prompt"]) == (2.0, None, "Speak like a pirate.")


def test_a_new_language_is_what_is_listened_for() -> None:
    chosen = [(0.5, settings(language="de")), (4.0, settings(language="auto"))]
    call = Call([(1.0, 2.0), (5.0, 6.0)], ["Wie weit?", "How far?"], [ANSWER], at=chosen, seconds=9.0).run()
    languages = [language for _, language, _ in call.stt.asked]
    assert languages[0] == "de"
    assert languages[-1] is None


def test_an_empty_prompt_leaves_no_system_message() -> None:
    call = Call([(1.0, 2.0)], [FAR], [ANSWER], at=[(0.5, settings(prompt="  "))]).run()
    assert [message.role for message in call.model.asked[0].messages] == ["user"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 0.1},
        {"speed": 9},
        {"speed": True},
        {"speed": "fast"},
        {"speed": math.nan},
        {"language": "Klingon"},
        {"language": "xx"},
        {"language": 7},
        {"prompt": 7},
        {"prompt": "x" * 2001},
        {"speed": 1.5, "language": "?"},
    ],
)
def test_what_cannot_be_chosen_is_told_and_changes_nothing(wrong: dict[str, Any]) -> None:
    call = Call([(1.0, 2.0)], [FAR], [ANSWER], at=[(0.5, settings(**wrong))]).run()
    (error,) = call.transport.of("error")
    assert error["code"] == "bad_message"
    assert str(next(name for name in wrong if f"`{name}`" in error["message"]))
    assert call.transport.of("settings") == []
    assert call.model.asked[0].messages[0].content == "Be brief."


def test_nothing_chosen_is_fine() -> None:
    assert read_choices({"type": "settings"}) == Choices()
    assert read_choices({"speed": 1, "language": None}) == Choices(speed=1.0)
