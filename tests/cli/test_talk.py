"""`voice-agent talk`: options that do not go together, missing devices, and a whole call with the real engines."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from tests.report.calls import turn
from voice_agent.audio.resample import resample
from voice_agent.cli.main import main
from voice_agent.engine_makers import make_voice
from voice_agent.engines.ports import ENGINE_RATE, Pcm16, Speech
from voice_agent.engines.speech import synthesize
from voice_agent.settings import Settings
from voice_agent.talk.show import Transcript, turn_line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "a.wav"], "--out goes with --wav"),
        (["--fast"], "--fast goes with --wav"),
        (["--wav", "a.wav", "--microphone", "1"], "--microphone does not go with --wav"),
        (["--wav", "a.wav", "--out", "./a.wav"], "would overwrite"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["talk", *words], {}) == 2
    assert message in capsys.readouterr().err


def test_a_file_is_judged_before_the_models_are_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["talk", "--wav", str(tmp_path / "none.wav")], {}) == 1
    error = capsys.readouterr().err
    assert "No such file" in error
    assert "loading" not in error


def test_without_the_package_talk_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert main(["talk"], {}) == 1
    error = capsys.readouterr().err
    assert "pip install 'voice-agent[talk]'" in error
    assert "--wav IN --out OUT" in error
    assert "loading" not in error


def test_the_transcript_has_one_line_per_turn_when_it_is_over() -> None:
    lines: list[str] = []
    problems: list[str] = []
    transcript = Transcript(lines.append, problems.append)
    report = turn(1, each=100.0)
    for message in (
        {"type": "transcript.final", "turn": 1, "text": "Hello?"},
        {"type": "turn.report", "report": report},
        {"type": "reply.done", "turn": 1, "heard_text": "Hi", "interrupted": True},
        {"type": "turn.report", "report": report},
        {"type": "reply.done", "turn": 2, "heard_text": "", "interrupted": False},
        {"type": "turn.report", "report": turn(2, each=None)},
        {"type": "error", "code": "reply_failed", "message": "the answer broke off"},
        {"type": "state", "user": "silent", "agent": "idle"},
    ):
        transcript(message)
    assert lines == [
        "caller  Hello?",
        "agent   Hi — cut off",
        f"        {turn_line(report)}",
        "agent   (nothing was heard)",
    ]
    assert problems == ["the answer broke off"]


def test_stages_without_length_are_left_out() -> None:
    report = turn(1, each=0.0)
    report["stages_ms"]["recognition"] = report["voice_to_voice_ms"] = 180.0
    assert turn_line(report) == "180 ms = recognition 180"


@pytest.fixture
def spoken_question(weights: Path) -> Pcm16:
    """At 16 kHz, by the product's own voice."""

    async def speak() -> Speech:
        models = dataclasses.replace(Settings().models, model_dir=str(weights))
        voice = make_voice(dataclasses.replace(Settings(), models=models))
        try:
            return await synthesize(voice, "How far is the moon from the earth?")
        finally:
            await voice.close()

    speech = asyncio.run(speak())
    return resample(speech.samples, speech.rate, ENGINE_RATE)


def test_a_recording_calls_and_is_answered(spoken_question: Pcm16, tmp_path: Path) -> None:
    caller, out = tmp_path / "caller.wav", tmp_path / "call.wav"
    silence = np.zeros(8_000, np.int16)
    with wave.open(str(caller), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.concatenate([silence, spoken_question, silence]).tobytes())
    words = [
        "--wav",
        str(caller),
        "--out",
        str(out),
        "--fast",
        "--json",
        "--llm",
        "scripted",
        "--trace-dir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "voice_agent", "talk", *words], capture_output=True, text=True, check=True, timeout=120
    )
    talked = json.loads(done.stdout)
    assert "moon" in talked["messages"][0]["content"]
    assert talked["messages"][1]["content"].startswith("Thank you for calling.")
    assert talked["turns"][0]["voice_to_voice_ms"] > 0
    assert talked["wall_seconds"] < talked["call_seconds"]
    with wave.open(str(out)) as file:
        assert file.getnframes() / 48_000 == pytest.approx(talked["call_seconds"], abs=0.2)
    assert main(["replay", str(tmp_path / f"{talked['session_id']}.jsonl")], {}) == 0
