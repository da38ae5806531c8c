"""Whole calls with fake engines on a virtual clock: what is heard, told, remembered and freed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.session.rig import Call
from voice_agent.core.conversation import Conversation
from voice_agent.core.events import Event
from voice_agent.errors import EngineError
from voice_agent.report import read_report, summary
from voice_agent.session.trace import FileTrace, as_dict, event_from_dict, read_trace

FAR = "How far is the moon from the earth?"
ANSWER = "It is about two hundred thousand miles from here, more or less."


def test_a_question_is_answered_aloud_remembered_and_reported() -> None:
    call = Call([(1.0, 2.0)], [FAR], [ANSWER]).run()
    start, end = call.transport.audible()[0]
    assert start == pytest.approx(2.0 + 0.5, abs=0.04), "released at the endpoint, ready by then"
    assert end - start == pytest.approx(12 * 0.4, abs=0.05)
    assert call.history == [("user", FAR), ("assistant", ANSWER)]
    assert [m["text"] for m in call.transport.of("transcript.final")] == [FAR]
    report = call.transport.of("turn.report")[-1]["report"]
    assert report["voice_to_voice_ms"] == pytest.approx(500, abs=40)
    assert sum(report["stages_ms"].values()) == pytest.approx(report["voice_to_voice_ms"], abs=1)
    assert report["heard_text"] == ANSWER
    assert "".join(m["text"] + " " for m in call.transport.of("reply.text")).strip() == ANSWER
    assert call.transport.of("reply.heard")[-1]["text"]
    states = [(m["user"], m["agent"]) for m in call.transport.of("state")]
    assert ("silent", "speaking") in states
    assert states[-1] == ("silent", "idle")


def test_messages_are_numbered_without_gaps() -> None:
    call = Call([(1.0, 2.0)], [FAR], [ANSWER]).run()
    assert [m["seq"] for m in call.transport.sent] == list(range(1, len(call.transport.sent) + 1))
    assert call.transport.sent[-1]["type"] == "session.ended"


def test_talking_over_the_reply_stops_it_and_cuts_the_history() -> None:
    call = Call([(1.0, 2.0), (4.2, 5.4)], [FAR, "Stop, what about the sun?"], [ANSWER, "The sun is further."]).run()
    first, second = call.transport.audible()
    assert first[1] == pytest.approx(4.2 + 0.1, abs=0.06), "silent within a tenth of a second"
    assert second[0] > 5.4
    heard = call.history[1][1]
    assert ANSWER.startswith(heard)
    assert len(heard.split()) == 4, "four and a half words were spoken by then"
    assert [m.content for m in call.model.asked[-1].messages[1:]] == [FAR, heard, "Stop, what about the sun?"]
    assert call.transport.of("reply.done")[0]["interrupted"]
    assert call.metrics.counted.count("barge-in") == 1


def test_a_backchannel_lets_it_go_on_without_a_lost_or_repeated_sample() -> None:
    plain = Call([(1.0, 2.0)], [FAR], [ANSWER]).run()
    call = Call([(1.0, 2.0), (4.0, 4.3)], [FAR, "Mm-hm."], [ANSWER]).run()
    parts = call.transport.audible()
    assert len(parts) == 2
    assert parts[1][0] - parts[0][1] < 0.7
    spoken = sum(end - start for start, end in parts)
    whole = plain.transport.audible()[0]
    assert spoken == pytest.approx(whole[1] - whole[0], abs=0.05)
    assert call.history == plain.history
    assert len(call.model.asked) == 1


def test_an_unheard_draft_leaves_no_sound_no_message_and_no_running_model() -> None:
    """The caller goes on after a pause: the reply prepared for half the sentence is never heard or mentioned."""
    call = Call(
        [(1.0, 1.8), (2.1, 3.0)],
        ["I would like", "I would like a table."],
        ["A draft nobody hears.", "For how many people?"],
        pace=0.2,
    ).run()
    assert len(call.transport.audible()) == 1
    assert call.history == [("user", "I would like a table."), ("assistant", "For how many people?")]
    assert all("draft" not in json.dumps(message) for message in call.transport.sent)
    assert call.model.running == 0


def test_noise_without_words_causes_nothing() -> None:
    call = Call([(1.0, 1.4), (3.0, 3.5)], [""]).run()
    assert call.transport.audible() == []
    assert call.model.asked == []
    assert call.history == []


def test_a_greeting_is_said_first() -> None:
    call = Call([], [""], greeting="Hello there my friend.").run()
    assert call.transport.audible()[0][0] < 0.1
    assert call.history == [("assistant", "Hello there my friend.")]


def test_typed_text_and_the_stop_button() -> None:
    call = Call(
        [],
        [""],
        ["First answer to hear aloud now.", "Second one."],
        at=[
            (1.0, {"type": "text", "text": "hello"}),
            (2.0, {"type": "interrupt"}),
            (4.0, {"type": "text", "text": "again"}),
        ],
    ).run()
    first, second = call.transport.audible()
    assert first[1] == pytest.approx(2.0, abs=0.05)
    assert second[0] == pytest.approx(4.0, abs=0.1)
    assert [role for role, _ in call.history] == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize(
    "message", [{"type": "nonsense"}, {"type": "text"}, {"type": "text", "text": "x" * 5000}, {"a": 1}]
)
def test_an_unknown_message_is_answered_and_changes_nothing(message: dict[str, object]) -> None:
    call = Call([(2.0, 3.0)], [FAR], [ANSWER], at=[(1.0, message)]).run()
    assert [m["code"] for m in call.transport.of("error")] == ["bad_message"]
    assert call.history == [("user", FAR), ("assistant", ANSWER)]


def test_ping_and_hang_up() -> None:
    call = Call([], [""], at=[(1.0, {"type": "ping", "id": 7}), (2.0, {"type": "hangup"})]).run()
    assert [m["id"] for m in call.transport.of("pong")] == [7]
    assert call.reason == "hang-up"
    assert call.transport.closed == "hang-up"


def test_a_hang_up_in_the_middle_frees_everything_and_keeps_what_was_heard() -> None:
    """I11: no task, no model work is left."""
    call = Call([(1.0, 2.0)], [FAR], [ANSWER], seconds=4.0).run()
    assert call.reason == "caller hung up"
    assert call.tasks_left == 0
    assert call.model.running == 0
    assert call.model.forgotten == ["call-1"]
    assert ANSWER.startswith(call.history[1][1])
    assert call.history[1][1] != ANSWER


def test_a_failing_recognition_is_reported_and_the_call_goes_on() -> None:
    """D14."""
    call = Call([(1.0, 2.0), (4.0, 5.0)], [EngineError("stt", "broken", "no"), FAR], [ANSWER]).run()
    assert [m["code"] for m in call.transport.of("error")] == ["recognition_failed"]
    assert call.history == [("user", FAR), ("assistant", ANSWER)]


def test_a_failing_model_is_apologised_for_aloud() -> None:
    call = Call([(1.0, 2.0)], [FAR], [EngineError("llm", "broken", "out of order")]).run()
    assert [m["code"] for m in call.transport.of("error")] == ["reply_failed"]
    assert call.history[-1] == ("assistant", "Sorry, something went wrong. Could you say that again?")
    assert len(call.transport.audible()) == 1


def test_an_unexpected_error_ends_this_call_alone_and_says_so() -> None:
    def sabotage(session: object) -> None:
        async def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("a bug")

        call.stt.transcribe = broken  # type: ignore[method-assign, assignment]

    call = Call([(1.0, 2.0)], [FAR], during=sabotage)
    call.run()
    assert [m["code"] for m in call.transport.of("error")] == ["internal"]
    assert call.tasks_left == 0


def test_long_replies_wait_for_the_listener() -> None:
    """Synthesis stays about ten seconds ahead of the ear, whatever the length of the reply."""
    long = " ".join(f"Sentence number {n} is here to be spoken now." for n in range(30))
    ahead = []

    def watch(session: object) -> None:
        import asyncio

        def look() -> None:
            ahead.append(call.transport.playout.buffered / 48_000)
            asyncio.get_running_loop().call_later(0.1, look)

        look()

    call = Call([(1.0, 2.0)], [FAR], [long], seconds=30.0, during=watch)
    call.run()
    assert 8.0 < max(ahead) < 15.0


def test_a_trace_replays_to_the_same_commands_and_reports(tmp_path: Path) -> None:
    problems: list[str] = []
    path = tmp_path / "call.jsonl"
    call = Call(
        [(1.0, 2.0), (4.0, 5.2)],
        [FAR, "Stop, what about the sun?"],
        [ANSWER, "Far."],
        trace=FileTrace(path, problems.append),
    ).run()
    entries = list(read_trace(path))
    replayed = Conversation(call.session.conversation._settings)
    again = [
        as_dict(command)
        for entry in entries
        if entry["kind"] == "event"
        for command in replayed.handle(event_from_dict(entry["event"]), entry["now"])
    ]
    recorded = [entry["command"] for entry in entries if entry["kind"] == "command"]
    assert json.loads(json.dumps(again)) == recorded
    report = read_report(path)
    assert [turn["turn"] for turn in report.turns] == [1, 2]
    assert report.end_reason == "caller hung up"
    assert summary([report])["interrupted"] == 1
    assert problems == []


def test_a_trace_that_cannot_be_written_never_stops_a_call(tmp_path: Path) -> None:
    problems: list[str] = []
    (tmp_path / "file").write_text("")
    call = Call([(1.0, 2.0)], [FAR], [ANSWER], trace=FileTrace(tmp_path / "file" / "x.jsonl", problems.append)).run()
    assert call.history == [("user", FAR), ("assistant", ANSWER)]
    assert len(problems) == 1


def test_every_event_survives_the_trace() -> None:
    import dataclasses
    import typing

    for kind in typing.get_args(Event):
        fields = {field.name: 1 for field in dataclasses.fields(kind)}
        if "words" in fields:
            fields["words"] = ()  # type: ignore[assignment]
        event = kind(**fields)
        assert event_from_dict(json.loads(json.dumps(as_dict(event)))) == event
