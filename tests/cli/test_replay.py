"""`voice-agent replay`: exit codes, JSON and files that cannot be replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.talk.rig import hold, voice
from tests.virtual_loop import run_virtual
from voice_agent.cli.main import main


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    talked = run_virtual(hold(voice(), traces=tmp_path))
    return tmp_path / f"{talked.session_id}.jsonl"


@pytest.fixture
def changed(trace: Path) -> Path:
    file = trace.with_name("changed.jsonl")
    file.write_text(trace.read_text().replace('"text": "How far is the moon?"}}', '"text": "How far?"}}'))
    return file


def test_an_unchanged_core_is_exit_code_0(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(trace)], {}) == 0
    assert "as recorded" in capsys.readouterr().out
    assert main(["replay", "--json", str(trace)], {}) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["same"] is True
    assert report["calls"][0]["differences"] == []


def test_a_difference_is_exit_code_1(trace: Path, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(trace), str(changed)], {}) == 1
    out = capsys.readouterr().out
    assert "as recorded" in out
    assert "answered otherwise" in out
    assert main(["replay", "--json", str(changed)], {}) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["same"] is False
    assert report["calls"][0]["differences"][0]["recorded"][0]["text"] == "How far?"


def test_what_cannot_be_replayed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "none.jsonl")], {}) == 1
    assert "cannot read trace" in capsys.readouterr().err
    old = tmp_path / "old.jsonl"
    old.write_text('{"kind": "call", "format": 1}\n')
    assert main(["replay", str(old)], {}) == 1
    assert "--trace-dir" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["replay", "--most", "0", str(old)], {})
    assert caught.value.code == 2


@pytest.mark.parametrize("spoil", [10**400, "text", None, [], {}])
def test_events_no_call_has_recorded_are_told_in_one_line(
    trace: Path, tmp_path: Path, spoil: object, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["kind"] == "event":
            line["event"]["at"] = spoil
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    assert main(["replay", str(hostile)]) == 1
    assert "Traceback" not in capsys.readouterr().err
