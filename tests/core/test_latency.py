"""Stages are consecutive and sum to the whole, however the work overlapped."""

from __future__ import annotations

import pytest

from voice_agent.core.latency import STAGES, Budget, LatencyBook, TurnStamps


def test_stages_of_a_turn_worked_on_ahead() -> None:
    stamps = TurnStamps(10.0, 10.1, 10.24, 10.3, 10.38, 10.43, 10.5, 10.51)
    assert stamps.stages_ms() == {
        "endpointing": 100.0,
        "recognition": 140.0,
        "first_token": 60.0,
        "first_clause": 80.0,
        "synthesis": 50.0,
        "hold": 70.0,
        "send": 10.0,
    }
    assert stamps.voice_to_voice == pytest.approx(0.51)


def test_an_endpoint_before_the_reply_was_ready_costs_nothing() -> None:
    stages = TurnStamps(0.0, 0.1, 0.2, 0.5, 0.6, 0.7, 0.3, 0.71).stages_ms()
    assert stages["hold"] == 0.0
    assert sum(stages.values()) == pytest.approx(710.0)


@pytest.mark.parametrize(
    "stamps",
    [
        TurnStamps(0.0, 0.1, None, None, None, None, 0.3, 0.71),
        TurnStamps(0.0, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.6),
        TurnStamps(0.0, 0.1, 0.2, 0.3, 0.4, 0.9, 0.5, 0.7),
    ],
)
def test_stages_always_sum_to_the_latency(stamps: TurnStamps) -> None:
    stages = stamps.stages_ms()
    assert list(stages) == list(STAGES)
    assert sum(stages.values()) == pytest.approx((stamps.voice_to_voice or 0) * 1e3)
    assert all(spent >= 0 for spent in stages.values())


def test_nothing_is_claimed_before_audio_was_sent() -> None:
    assert TurnStamps(1.0, 1.1).stages_ms() == {}
    assert TurnStamps(1.0, 1.1).voice_to_voice is None
    assert TurnStamps(1.0, 1.1).relative_ms() == {"end_of_speech": 0.0, "pause_detected": 100.0}


def test_a_new_pause_starts_the_stamps_again_and_first_stamps_win() -> None:
    book = LatencyBook(Budget())
    book.pause(1.0, 1.1)
    book.first_token(1.2)
    book.pause(3.0, 3.1)
    assert book.stamps == TurnStamps(3.0, 3.1)
    book.first_token(3.3)
    book.first_token(3.5)
    assert book.stamps.first_token == 3.3
    book.restart_reply()
    assert book.stamps.first_token is None


def test_the_default_budget_is_800_ms_and_stages_are_settable() -> None:
    assert Budget().total == 800
    assert sum(Budget(endpointing=400).stages().values()) == 900


def test_a_report_as_json_has_the_stages_of_the_budget() -> None:
    report = LatencyBook(Budget()).report(1, "hi", "Hello.", "Hello.", interrupted=False).as_dict()
    assert report["voice_to_voice_ms"] is None
    assert report["budget_stages_ms"] == Budget().stages()
    assert list(Budget().stages()) == list(STAGES)
