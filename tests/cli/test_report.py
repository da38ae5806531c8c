"""`voice-agent report`: tables, JSON, the page, and files that are no traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.calls import turn, write_trace
from voice_agent.cli.main import main


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    first = write_trace(tmp_path / "a.jsonl", [turn(1), turn(2, each=300.0)], session_id="one")
    second = write_trace(tmp_path / "b.jsonl", [turn(1, each=50.0)], session_id="two")
    return [str(first), str(second)]


def test_a_table_per_call_and_the_sum(traces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *traces], {}) == 0
    out = capsys.readouterr().out
    assert "call one: 2 turns" in out
    assert "call two: 1 turns" in out
    assert "3 turns, 3 answered, 0 interrupted, 1 over budget, 0 gaps while speaking" in out


def test_json_has_the_turns_and_the_figures(traces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json", *traces], {}) == 0
    report = json.loads(capsys.readouterr().out)
    assert [call["session_id"] for call in report["calls"]] == ["one", "two"]
    assert report["summary"]["voice_to_voice_ms"]["p50"] == 700
    assert report["summary"]["stages_ms"]["synthesis"]["n"] == 3


def test_the_page_is_written_beside_either(
    traces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "calls.html"
    assert main(["report", "--json", "--html", str(page), *traces], {}) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    assert str(page) in captured.err
    assert page.read_text().startswith("<!doctype html>")


def test_a_page_of_half_a_character_is_written_all_the_same(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "a.jsonl", [turn(1, heard_text="\ud83d half")])
    page = tmp_path / "a.html"
    assert main(["report", "--html", str(page), str(trace)], {}) == 0
    assert "? half" in page.read_text()


def test_what_cannot_be_read_or_written_is_said(
    traces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path / "none.jsonl")], {}) == 1
    assert "cannot read trace" in capsys.readouterr().err
    (tmp_path / "c.jsonl").write_text("hello\n")
    assert main(["report", str(tmp_path / "c.jsonl")], {}) == 1
    assert "c.jsonl:1 is no JSON" in capsys.readouterr().err
    assert main(["report", "--html", str(tmp_path / "no" / "x.html"), traces[0]], {}) == 1
    assert "cannot write" in capsys.readouterr().err


def test_many_traces_are_counted_as_they_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(write_trace(tmp_path / "a.jsonl", [turn(1)]))
    assert main(["report", "--json", *[trace] * 101], {}) == 0
    assert "100 of 101 traces read" in capsys.readouterr().err
