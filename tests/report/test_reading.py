"""Reports are checked as they are read: whoever shows them need not doubt them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.report.calls import turn, write_trace
from voice_agent.errors import VoiceAgentError
from voice_agent.report import read_report


def test_a_trace_is_read(tmp_path: Path) -> None:
    call = read_report(write_trace(tmp_path / "a.jsonl", [turn(1), turn(2, each=None)], session_id="xyz"))
    assert (call.session_id, call.end_reason, call.began) == ("xyz", "hang-up", 1.75e9)
    assert [report["turn"] for report in call.turns] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"user_text": None}, "user_text is no text"),
        ({"turn": "1"}, "turn and interrupted"),
        ({"interrupted": 1}, "turn and interrupted"),
        ({"budget_ms": 0}, "budget_ms"),
        ({"voice_to_voice_ms": "fast"}, "voice_to_voice_ms"),
        ({"voice_to_voice_ms": math.nan}, "voice_to_voice_ms"),
        ({"voice_to_voice_ms": True}, "voice_to_voice_ms"),
        ({"stages_ms": {}}, "stages_ms"),
        ({"stages_ms": [1]}, "stages_ms"),
        ({"budget_stages_ms": None}, "budget_stages_ms"),
    ],
)
def test_a_report_that_is_none_is_named_with_its_line(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write_trace(tmp_path / "a.jsonl", [turn(1), turn(2, **changes)])
    with pytest.raises(VoiceAgentError, match=words) as caught:
        read_report(path)
    assert "a.jsonl:3 is no turn report" in str(caught.value)


def test_a_beginning_that_is_no_time_is_left_out(tmp_path: Path) -> None:
    assert read_report(write_trace(tmp_path / "a.jsonl", [], began="then")).began is None
