"""Every example holds a call: small real models where cheap, made-up engines where the example is about them."""

from __future__ import annotations

import asyncio
import csv
import importlib
import json
import os
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.wav_call import FRAME, WavTransport
from tests.examples.conftest import Say
from voice_agent import Agent, Call
from voice_agent.engines.ports import ChatMessage, ChatRequest, Pcm16, TextDelta

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
RATE = FRAME * 50


@pytest.fixture(autouse=True)
def small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_PROFILE", "small")


def example(name: str) -> Any:
    """A fresh copy, with an agent and hooks of its own."""
    sys.modules.pop(f"examples.{name}", None)
    return importlib.import_module(f"examples.{name}")


def quiet(seconds: float) -> Pcm16:
    return np.zeros(round(seconds * RATE), np.int16)


def hold(agent: Agent, *sounds: Pcm16, patience: float = 6.0) -> tuple[Call, WavTransport]:
    async def call() -> tuple[Call, WavTransport]:
        async with agent:
            transport = WavTransport(np.concatenate(sounds), patience)
            return await agent.call(transport), transport

    return asyncio.run(call())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_says_how_to_run_it(name: str) -> None:
    source = (ROOT / "examples" / f"{name}.py").read_text()
    assert len(source.splitlines()) <= 80
    assert f"python examples/{name}.py" in (example(name).__doc__ or "")


def test_there_are_five() -> None:
    assert len(EXAMPLES) >= 5


def test_the_shop_writes_every_turn_as_a_json_line(say: Say, tmp_path: Path) -> None:
    shop = example("shop")
    shop.log = tmp_path / "orders.jsonl"
    call, _ = hold(shop.agent, quiet(3.0), say("I would like two bags of apples please."))
    lines = [json.loads(line) for line in shop.log.read_text().splitlines()]
    assert {line["call"] for line in lines} == {call.id}
    assert "apples" in next(line["caller"] for line in lines if "caller" in line)
    replies = [line["agent"] for line in lines if "agent" in line]
    assert replies[0].startswith("Green's")
    assert len(replies) == 2
    assert lines[-1]["turns"] == 1


def test_the_announcement_is_heard_to_its_end_and_the_question_answered_after_it(say: Say) -> None:
    announcement = example("announcement")
    # The notice takes about five seconds; the question falls into its middle.
    call, _ = hold(announcement.agent, quiet(1.5), say("What is the capital of France?"), quiet(20.0))
    heard = [message.content for message in call.history if message.role == "assistant"]
    assert heard[0] == announcement.NOTICE
    asked = [message.content.lower() for message in call.history if message.role == "user"]
    assert "capital of france" in asked[0]
    assert call.reports[0].heard
    assert announcement.INVITATION in heard[-1]


def test_the_own_language_model_answers_by_its_rules(say: Say) -> None:
    rules = example("own_language_model")
    call, _ = hold(Agent(llm=rules.OpeningHours()), say("When do you open tomorrow?"))
    assert call.history[-1].content == rules.RULES[0][1]


def test_the_own_language_model_works_as_a_setting(say: Say) -> None:
    call, _ = hold(Agent(llm="examples.own_language_model:OpeningHours"), say("Where can I find you?"))
    assert "Market Street" in call.history[-1].content


@pytest.mark.parametrize(("question", "number"), [("When do you open?", 0), ("Where are you?", 1), ("Fish?", None)])
def test_its_rules(question: str, number: int | None) -> None:
    rules = example("own_language_model")

    async def answer() -> str:
        request = ChatRequest("call", (ChatMessage("user", question),))
        return "".join([e.text async for e in rules.OpeningHours().stream(request) if isinstance(e, TextDelta)])

    assert asyncio.run(answer()) == (rules.OTHERWISE if number is None else rules.RULES[number][1])


def test_two_wav_files_hold_a_call(say: Say, tmp_path: Path) -> None:
    question, answer = tmp_path / "question.wav", tmp_path / "answer.wav"
    with wave.open(str(question), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(say("What is the capital of France?").tobytes())
    command = [sys.executable, "examples/wav_call.py", str(question), str(answer)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=_here())
    assert done.returncode == 0, done.stderr
    assert "user: What is the capital of France?" in done.stdout
    assert "assistant: " in done.stdout
    with wave.open(str(answer)) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        assert np.count_nonzero(sound) > file.getframerate(), "more than a second of speech"


def test_a_wav_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "cd.wav"), "wb") as file:
        file.setparams((2, 2, 44_100, 0, "NONE", ""))
    command = [sys.executable, "examples/wav_call.py", str(tmp_path / "cd.wav"), str(tmp_path / "out.wav")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=_here())
    assert done.returncode == 1
    assert "16 kHz, mono, 16 bit" in done.stderr


def _here() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_the_latency_of_every_turn_becomes_a_row(say: Say, tmp_path: Path) -> None:
    latency = example("latency_csv")
    latency.out = tmp_path / "latency.csv"
    call, _ = hold(latency.agent, say("What is the capital of France?"), quiet(12.0), say("Where is the moon?"))
    with latency.out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["call"] for row in rows] == [call.id] * len(call.reports)
    assert len(rows) == 2
    for row in rows:
        stages = sum(float(row[stage]) for stage in latency.STAGES)
        assert stages == pytest.approx(float(row["voice_to_voice"]), abs=1)
