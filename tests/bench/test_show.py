from __future__ import annotations

import json
from typing import Any

import pytest

from voice_agent.bench.ear import Segment
from voice_agent.bench.measure import Line, Reported, measure
from voice_agent.bench.run import CallResult
from voice_agent.bench.show import AgentUsage, as_json, call_table, summary_table

AGENT = AgentUsage(cpu_seconds=12.0, wall_seconds=24.0, peak_rss=512 * 2**20, ready_seconds=3.21, exit_code=0)


def reported(at: float, whole: float | None, **stages: float) -> Reported:
    return Reported(at, {"turn": 1, "voice_to_voice_ms": whole, "stages_ms": stages, "user_text": "what was said"})


@pytest.fixture
def call() -> CallResult:
    lines = [
        Line("a", "plain", 101.0, 102.0),
        Line("b", "barge", 104.0, 105.0, True, True),
        Line("c", "paused", 110.0, 112.0),
        Line("d", "barge", 120.0, 121.0, True, True),
    ]
    segments = [Segment(102.5, 104.2), Segment(105.8, 107.0), Segment(111.5, 113.0)]
    heard = measure(lines, segments, 130.0)
    reports = (
        reported(102.5, 470.0, endpointing=300.0, send=170.0),
        reported(105.8, 700.0, endpointing=300.0, send=400.0),
        None,
        reported(125.0, None),
    )
    return CallResult("abc", 100.0, 30.0, 0.25, tuple(heard), reports, tuple(segments), 0.031, None)


def test_each_line_shows_both_sides_and_their_difference(call: CallResult) -> None:
    rows = call_table(call, 1).splitlines()
    assert rows[0] == "call 1: abc, 30 s, media after 250 ms"
    assert rows[1].split() == ["line", "tag", "heard", "agent", "diff", "endpointing", "send"]
    assert rows[2].split() == ["a", "plain", "500", "470", "30", "300", "170"]
    assert rows[3].strip() == "understood: what was said"
    assert rows[4].split(maxsplit=7)[:7] == ["b", "barge", "800", "700", "100", "300", "400"]
    assert rows[4].endswith("stopped after 200 ms, talked over 200 ms")
    assert rows[6].endswith("CUT IN 500 ms before the end")
    assert rows[7].split(maxsplit=7)[2:7] == ["-"] * 5
    assert rows[7].endswith("came when the agent was silent, NO REPLY")


def test_the_summary_has_stages_names_and_the_machine(call: CallResult) -> None:
    text = summary_table([call, call], AGENT)
    rows = {" ".join(row.split()) for row in text.splitlines()}
    assert rows >= {
        "2 calls, 8 lines",
        "voice to voice, heard by the caller 2 500 500 500",
        "after a barge-in 2 800 800 800",
        "the agent's own figure 2 470 470 470",
        "difference 2 30 30 30",
        "endpointing 300 64% of its median",
        "send 170 36% of its median",
        "barge-in: stopped after 2 200 200 200",
        "no reply: 2 (d, d)",
        "cut in: 2 (c, c)",
        "barge-in met silence: 2 (d, d)",
        "the caller itself was late by up to 31 ms: this machine was short of CPU",
        "agent process: 12.0 CPU s in 24.0 s (0.50 cores), peak 512 MiB, ready after 3.2 s, exit code 0",
    }


def test_the_json_has_everything(call: CallResult) -> None:
    figures: dict[str, Any] = json.loads(json.dumps(as_json("http://x", [call], AGENT)))
    assert figures["summary"]["voice_to_voice"] == {"n": 1, "median": 500.0, "p95": 500.0, "min": 500.0, "max": 500.0}
    assert figures["agent_reports"]["difference_ms"]["median"] == 30.0
    assert figures["agent_reports"]["stages"]["send"] == {"median_ms": 170.0, "share": 0.362}
    assert figures["agent_process"]["peak_rss"] == 512 * 2**20
    turn = figures["calls"][0]["turns"][1]
    assert (turn["onset_s"], turn["stop_ms"], turn["interrupted"]) == (4.0, 200.0, True)
    assert turn["agent_report"]["user_text"] == "what was said"
    assert figures["calls"][0]["agent_speech_s"][0] == [2.5, 4.2]
    assert as_json("http://x", [call], None)["agent_process"] is None


def test_an_agent_that_reports_nothing_is_measured_all_the_same(call: CallResult) -> None:
    silent = CallResult("", 100.0, 30.0, 0.25, call.heard, (None,) * 4, call.segments, 0.0, None)
    assert "500" in call_table(silent, 1)
    text = summary_table([silent], None)
    assert "short of CPU" not in text
    assert [row.split()[-4:] for row in text.splitlines() if row.startswith("difference")] == [["0", "-", "-", "-"]]
