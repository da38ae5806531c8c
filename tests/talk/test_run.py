"""A conversation from a recording, on clocks that wait for nothing: what is said, recorded and left behind."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.talk.rig import ANSWER, LEVEL, QUESTION, SECONDS, SPEECH, hold, voice
from tests.virtual_loop import run_virtual
from voice_agent.engines.ports import Pcm16
from voice_agent.errors import VoiceAgentError
from voice_agent.report import read_report
from voice_agent.talk.fast_loop import FastLoop


def test_a_recording_is_answered_and_the_call_ends_by_itself() -> None:
    talked = run_virtual(hold(voice()))
    assert talked.reason == "the recording is over"
    assert not talked.failed
    assert [(m["role"], m["content"]) for m in talked.messages] == [("user", QUESTION), ("assistant", ANSWER)]
    (turn,) = talked.turns
    assert turn["heard_text"] == ANSWER
    spoken = 0.4 * len(ANSWER.split())
    answered = SPEECH[1] + turn["voice_to_voice_ms"] / 1e3
    assert talked.call_seconds == pytest.approx(answered + spoken + 1.0, abs=0.1), "a second of quiet, then it ends"


def test_the_loop_that_skips_waiting_holds_the_same_conversation_in_no_time() -> None:
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        talked = runner.run(hold(voice()))
    assert [m["content"] for m in talked.messages] == [QUESTION, ANSWER]
    exact = run_virtual(hold(voice()))
    assert talked.call_seconds == pytest.approx(exact.call_seconds, abs=0.5)
    assert talked.wall_seconds < talked.call_seconds / 2


def test_the_recorded_call_has_the_caller_left_and_the_agent_right(tmp_path: Path) -> None:
    out = tmp_path / "call.wav"
    talked = run_virtual(hold(voice(), out=out))
    with wave.open(str(out)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (2, 48_000, 2)
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    caller, agent = sound[:, 0], sound[:, 1]
    assert np.flatnonzero(caller)[[0, -1]].tolist() == [48_000, 96_000 - 1]
    assert caller[48_000] == LEVEL
    begins = np.flatnonzero(agent)[0] / 48_000
    assert begins == pytest.approx(SPEECH[1] + talked.turns[0]["voice_to_voice_ms"] / 1e3, abs=0.02), (
        "to the 10 ms of the last sound"
    )


def test_the_call_leaves_a_trace_like_any_other(tmp_path: Path) -> None:
    talked = run_virtual(hold(voice(), traces=tmp_path))
    report = read_report(tmp_path / f"{talked.session_id}.jsonl")
    assert report.turns == talked.turns
    assert report.end_reason == talked.reason


def test_a_recording_without_speech_ends_after_its_silence() -> None:
    talked = run_virtual(hold(iter([np.zeros(960, np.int16)] * 10), speech=False))
    assert talked.turns == []
    assert talked.call_seconds == pytest.approx(0.2 + 1.0, abs=0.03)


def test_a_recording_that_breaks_off_is_told() -> None:
    def broken() -> Iterator[Pcm16]:
        yield from voice(0.5)
        raise VoiceAgentError("cannot read a.wav: it broke off")

    async def call() -> int:
        with pytest.raises(VoiceAgentError, match="broke off"):
            await hold(broken())
        return len(asyncio.all_tasks())

    assert run_virtual(call()) == 1, "no task but ours is left"


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(VoiceAgentError, match="cannot write /dev/full"):
        run_virtual(hold(voice(SECONDS * 20), out=Path("/dev/full")))
