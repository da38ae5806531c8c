"""Percentiles and shares, on numbers a reader can check by hand."""

from __future__ import annotations

import pytest

from tests.report.calls import turn
from voice_agent.report import CallReport, percentile, summary, summary_table, table
from voice_agent.report.figures import outer_note


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [
        (1, 0.5, 1),
        (2, 0.5, 1),
        (3, 0.5, 2),
        (20, 0.95, 19),
        (21, 0.95, 20),
        (100, 0.99, 99),
        (100, 0.9, 90),
        (10, 0.9, 9),
    ],
)
def test_percentiles_are_nearest_rank(count: int, share: float, expected: int) -> None:
    assert percentile(range(count, 0, -1), share) == expected


def test_no_values_have_no_percentile() -> None:
    assert percentile([], 0.5) is None


def test_every_rank_is_the_exact_one() -> None:
    for count in range(1, 300):
        for number in (50, 90, 95, 99):
            assert percentile(range(1, count + 1), number / 100) == -(-count * number // 100)


def _calls() -> list[CallReport]:
    first = [turn(1, each=100.0), turn(2, each=200.0, interrupted=True)]
    second = [turn(1, each=None), turn(2, each=50.0)]
    return [CallReport("a", first, "hang-up"), CallReport("b", second, None)]


def test_the_sum_is_over_all_calls() -> None:
    figures = summary(_calls())
    assert [figures[name] for name in ("turns", "answered", "interrupted", "over_budget")] == [4, 3, 1, 1]
    whole = figures["voice_to_voice_ms"]
    assert (whole["n"], whole["p50"], whole["p90"], whole["p99"], whole["max"]) == (3, 700, 1400, 1400, 1400)
    assert whole["budget_ms"] == 800
    assert whole["share_of_budget"] == pytest.approx((700 + 1400 + 350) / 2400, abs=1e-4)


def test_shares_of_the_stages_sum_to_the_whole() -> None:
    figures = summary(_calls())
    stages = figures["stages_ms"]
    assert sum(stage["share_of_budget"] for stage in stages.values()) == pytest.approx(
        figures["voice_to_voice_ms"]["share_of_budget"], abs=1e-3
    )
    assert sum(stage["budget_ms"] for stage in stages.values()) == 800
    assert (stages["hold"]["budget_ms"], stages["recognition"]["p50"]) == (0, 100)


def test_nothing_answered_is_no_division() -> None:
    figures = summary([CallReport("a", [turn(each=None)], None)])
    assert figures["voice_to_voice_ms"] == {
        **{"n": 0, "p50": None, "p90": None, "p95": None, "p99": None, "max": None},
        **{"budget_ms": None, "share_of_budget": None},
    }
    assert "voice-to-voice" in summary_table(figures)


@pytest.mark.parametrize(
    ("count", "words"), [(0, ""), (1, "1 turn,"), (19, "p95 and p99 are"), (20, "p99 is"), (99, "p99 is"), (100, "")]
)
def test_outer_percentiles_of_few_turns_are_called_what_they_are(count: int, words: str) -> None:
    assert words in outer_note(count)
    assert bool(outer_note(count)) is bool(words)


def test_tables_show_every_turn_and_percentile() -> None:
    call = _calls()[1]
    shown = table(call)
    assert "not answered aloud" in shown
    assert "ended: not recorded" in shown
    rows = {line.split()[0]: line.split()[1:] for line in summary_table(summary(_calls())).splitlines()[1:]}
    assert rows["milliseconds"] == ["n", "p50", "p90", "p95", "p99", "max", "budget", "spent"]
    assert rows["voice-to-voice"] == ["3", "700", "1400", "1400", "1400", "1400", "800", "102%"]
    assert rows["recognition"] == ["3", "100", "200", "200", "200", "200", "150", "15%"]
