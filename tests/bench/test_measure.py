from __future__ import annotations

from typing import Any

import pytest

from voice_agent.bench.ear import Segment
from voice_agent.bench.measure import (
    Figures,
    Heard,
    Line,
    Reported,
    figures,
    match_reports,
    measure,
    stage_shares,
    summarise,
)


def one(
    segments: list[tuple[float, float]], *, reply: bool = True, barge: bool = False, call_end: float = 20.0
) -> Heard:
    """What comes of a line from second 10 to second 12."""
    line = Line("it", "plain", 10.0, 12.0, reply, barge)
    return measure([line], [Segment(*s) for s in segments], call_end)[0]


def test_waiting_is_from_the_last_sound_to_the_first() -> None:
    heard = one([(12.6, 14.0), (14.5, 15.0)])
    assert heard.reply == 12.6
    assert heard.voice_to_voice == pytest.approx(0.6)
    assert heard.reply_length == pytest.approx(1.9)
    assert not heard.missing
    assert not heard.interrupted
    assert heard.cut_in is None
    assert heard.stop is None


@pytest.mark.parametrize("segments", [[], [(5.0, 8.0)], [(20.5, 21.0)]])
def test_no_speech_before_the_next_line_is_a_missing_reply(segments: list[tuple[float, float]]) -> None:
    heard = one(segments)
    assert heard.missing
    assert heard.voice_to_voice is None


def test_silence_where_none_was_expected_is_not_missing() -> None:
    assert not one([], reply=False).missing


def test_speech_that_begins_in_the_line_is_a_cut_in() -> None:
    heard = one([(11.2, 13.0)])
    assert heard.cut_in == pytest.approx(0.8)
    assert heard.voice_to_voice is None
    assert not heard.missing
    assert not heard.interrupted


def test_an_interrupted_agent_is_measured_until_its_last_sound() -> None:
    heard = one([(8.0, 10.3), (12.7, 14.0)], barge=True)
    assert heard.interrupted
    assert heard.stop == pytest.approx(0.3)
    assert heard.talked_over == pytest.approx(0.3)
    assert heard.cut_in is None
    assert heard.voice_to_voice == pytest.approx(0.7)


def test_an_agent_that_pauses_and_goes_on_has_not_stopped() -> None:
    heard = one([(8.0, 10.2), (11.0, 13.5)])
    assert heard.stop == pytest.approx(3.5)
    assert heard.talked_over == pytest.approx(0.2 + 1.0)
    assert heard.missing
    assert heard.cut_in is None


def test_a_gap_between_two_words_is_still_speaking_but_nothing_is_stopped() -> None:
    heard = one([(8.0, 9.8), (12.5, 13.0)])
    assert heard.interrupted
    assert heard.stop is heard.talked_over is None
    assert not one([(8.0, 9.7), (12.5, 13.0)]).interrupted
    resumed = one([(8.0, 9.8), (10.1, 10.5), (12.5, 13.0)])
    assert resumed.stop == pytest.approx(0.5)
    assert resumed.talked_over == pytest.approx(0.4)


def test_an_agent_that_never_stops_is_charged_until_the_next_line() -> None:
    lines = [Line("a", "barge", 10.0, 12.0, True, True), Line("b", "plain", 15.0, 16.0)]
    heard = measure(lines, [Segment(8.0, 30.0)], 31.0)
    assert heard[0].stop == pytest.approx(5.0)
    assert heard[0].talked_over == pytest.approx(2.0)
    assert heard[1].interrupted


def test_a_reply_belongs_to_the_line_before_it() -> None:
    lines = [Line("a", "plain", 1.0, 2.0), Line("b", "short", 5.0, 5.5)]
    heard = measure(lines, [Segment(2.5, 3.0), Segment(6.5, 7.0)], 8.0)
    assert [h.voice_to_voice for h in heard] == [pytest.approx(0.5), pytest.approx(1.0)]


def test_figures_are_milliseconds() -> None:
    assert figures([None, 0.1, 0.3, 0.2]) == Figures(3, 200.0, 290.0, 100.0, 300.0)
    assert figures([None]) == Figures(0)


def test_a_summary_keeps_waiting_and_interrupting_apart() -> None:
    lines = [
        Line("a", "plain", 1.0, 2.0),
        Line("b", "short", 5.0, 6.0),
        Line("c", "barge", 7.5, 8.5, True, True),
        Line("d", "paused", 12.0, 14.0),
        Line("e", "barge", 20.0, 21.0, True, True),
    ]
    speech = [(2.4, 3.0), (6.6, 7.8), (9.5, 10.0), (13.0, 15.0)]
    summary = summarise(measure(lines, [Segment(*s) for s in speech], 30.0))
    assert summary.lines == 5
    assert summary.voice_to_voice == Figures(2, 500.0, 590.0, 400.0, 600.0)
    assert {tag: found.median for tag, found in summary.by_tag.items()} == {"plain": 400.0, "short": 600.0}
    assert summary.after_barge_in.median == 1000.0
    assert summary.stop == Figures(1, 300.0, 300.0, 300.0, 300.0)
    assert summary.missing == ("e",)
    assert summary.cut_ins == ("d",)
    assert summary.not_interrupting == ("e",)


def report(turn: int, whole: float | None = 100.0, **stages: float) -> dict[str, Any]:
    return {"turn": turn, "voice_to_voice_ms": whole, "stages_ms": stages}


def test_a_report_belongs_to_the_reply_it_was_announced_with() -> None:
    lines = [Line("a", "paused", 1.0, 4.0), Line("b", "plain", 8.0, 9.0), Line("c", "plain", 15.0, 16.0)]
    heard = measure(lines, [Segment(2.0, 2.2), Segment(4.5, 6.0)], 20.0)
    early, answer, unheard = Reported(2.0, report(1)), Reported(4.51, report(2)), Reported(9.8, report(3))
    assert match_reports(heard, [early, answer, unheard], 20.0) == [answer, unheard, None]


def test_stages_are_shares_of_the_median_of_the_whole() -> None:
    reports = [report(1, 100.0, think=60.0, speak=40.0), report(2, 300.0, think=100.0, speak=200.0), report(3, None)]
    assert stage_shares(reports) == {"think": (80.0, 0.4), "speak": (120.0, 0.6)}
    assert stage_shares([report(1, None)]) == {}
