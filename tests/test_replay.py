"""Replay: an unchanged core repeats itself; another one, or another trace, shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.talk.rig import hold, voice
from tests.virtual_loop import run_virtual
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.errors import VoiceAgentError
from voice_agent.replay import as_json, as_text, replay, settings_from_dict
from voice_agent.session.factory import conversation_settings
from voice_agent.settings import Settings


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    talked = run_virtual(hold(voice(), traces=tmp_path))
    return tmp_path / f"{talked.session_id}.jsonl"


def _edit(trace: Path, change) -> Path:
    """A copy of a trace whose entries went through `change`; an entry for which it gives None is left out."""
    entries = [change(json.loads(line)) for line in trace.read_text().splitlines()]
    edited = trace.with_suffix(".edited")
    edited.write_text("".join(json.dumps(entry) + "\n" for entry in entries if entry is not None))
    return edited


def test_an_unchanged_core_repeats_a_call(trace: Path) -> None:
    result = replay(trace)
    assert result.differences == []
    assert result.complete
    assert result.events > 20
    assert result.commands >= 6
    assert "as recorded" in as_text(result, 10)
    assert as_json(result)["same"] is True


def test_a_core_that_decides_otherwise_is_found(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Conversation.handle

    def mute(self: Conversation, event: Any, now: float) -> Any:
        return [command for command in handle(self, event, now) if type(command).__name__ != "ReleaseReply"]

    monkeypatch.setattr(Conversation, "handle", mute)
    (difference,) = replay(trace).differences
    assert difference.event["type"] == "DeadlineReached"
    assert [command["type"] for command in difference.recorded] == ["CommitTurn", "ReleaseReply"]
    assert [command["type"] for command in difference.replayed] == ["CommitTurn"]
    assert json.loads(trace.read_text().splitlines()[difference.line - 1])["event"] == difference.event
    text = as_text(replay(trace), 10)
    assert "1 event answered otherwise" in text
    assert 'recorded  CommitTurn(turn=1, text="How far is the moon?")' in text


def test_the_settings_are_those_of_the_call(trace: Path) -> None:
    def slower(entry: dict[str, Any]) -> dict[str, Any]:
        if entry["kind"] == "call":
            entry["conversation"]["caller"]["delays"]["min_delay"] = 2.0
        return entry

    assert replay(_edit(trace, slower)).differences


def test_many_differences_are_counted_and_some_shown(trace: Path) -> None:
    result = replay(_edit(trace, lambda entry: None if entry["kind"] == "command" else entry))
    assert len(result.differences) > 3
    text = as_text(result, 2)
    assert f"{len(result.differences) - 2} more" in text
    assert "recorded  nothing" in text


def test_a_killed_process_leaves_a_trace_that_replays(trace: Path) -> None:
    whole = trace.read_text()
    for end in range(len(whole) // 2, len(whole) // 2 + 400):
        trace.write_text(whole[:end])
        result = replay(trace)
        assert not result.complete
        assert result.differences == []
    assert "ends in the middle" in as_text(result, 10)


def test_a_trace_without_settings_says_what_to_do(trace: Path) -> None:
    old = _edit(trace, lambda entry: {k: v for k, v in entry.items() if k != "conversation"})
    with pytest.raises(VoiceAgentError, match="--trace-dir"):
        replay(old)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("event", {"type": "Nonsense"}, "unknown event 'Nonsense'"),
        ("event", {"type": "SpeechStarted", "when": 1}, "does not fit"),
        ("event", {"type": "ClauseQueued"}, "words"),
        ("now", "soon", "is no event"),
    ],
)
def test_an_event_of_another_version_is_named_with_its_line(
    trace: Path, field: str, value: object, message: str
) -> None:
    def change(entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, field: value} if entry["kind"] == "event" else entry

    with pytest.raises(VoiceAgentError, match=message) as caught:
        replay(_edit(trace, change))
    assert ".edited:2 " in str(caught.value)


def test_settings_survive_the_file_and_unknown_ones_are_refused() -> None:
    import dataclasses

    settings = conversation_settings(Settings())
    written = json.loads(json.dumps(dataclasses.asdict(settings)))
    assert settings_from_dict(written, Path("x")) == settings
    assert settings_from_dict({}, Path("x")) == ConversationSettings()
    with pytest.raises(VoiceAgentError, match=r"conversation\.caller\.mood"):
        settings_from_dict({"caller": {"mood": 1}}, Path("x"))
    with pytest.raises(VoiceAgentError, match=r"pre_roll = 'long' does not fit"):
        settings_from_dict({"caller": {"pre_roll": "long"}}, Path("x"))
