"""Whole calls: real WebRTC, real models, an agent in its own process. No time is asserted here but order."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from voice_agent.bench.agent_process import AgentProcess, start_agent
from voice_agent.bench.caller import Caller
from voice_agent.engines.ports import Pcm16
from voice_agent.report import read_report

Say = Callable[[str], Pcm16]

PATIENCE = 60.0
"""Seconds: two cores may be shared with the rest of a test run."""

CALLS = 50 if os.environ.get("VOICE_AGENT_TEST_FULL") else 6


async def get(agent: AgentProcess, path: str) -> Any:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        response = await client.get(f"{agent.url}{path}")
        assert response.status_code == 200, response.text
        return response.json()


async def answered(caller: Caller, samples: Pcm16) -> float:
    """Say something and wait until the agent begins to answer: when it did."""
    _, end = caller.say(samples)
    return await caller.wait_agent_started(end, timeout=PATIENCE)


def test_a_question_is_heard_answered_reported_and_remembered(agent: AgentProcess, say: Say, traces: Path) -> None:
    async def call() -> tuple[str, dict[str, Any], dict[str, Any]]:
        async with Caller(agent.url) as caller:
            await answered(caller, say("What is the capital of France?"))
            await caller.wait_event("reply.done", timeout=PATIENCE)
            session = caller.session_id
            report, history = [await get(agent, f"/api/sessions/{session}/{what}") for what in ("report", "history")]
        return session, report, history

    session, report, history = asyncio.run(call())
    question, answer = history["messages"][1:3]
    assert question["role"] == "user"
    assert "capital of france" in question["content"].lower()
    assert "paris" in answer["content"].lower()
    turn = report["turns"][0]
    assert turn["heard_text"] == answer["content"] == turn["generated_text"]
    assert turn["voice_to_voice_ms"] > 0
    assert sum(turn["stages_ms"].values()) == pytest.approx(turn["voice_to_voice_ms"], abs=1)
    recorded = read_report(traces / f"{session}.jsonl")
    assert recorded.turns[0] == turn


def test_talking_over_the_agent_stops_it_and_only_what_was_heard_is_remembered(agent: AgentProcess, say: Say) -> None:
    async def call() -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        async with Caller(agent.url) as caller:
            began = await answered(caller, say("Please tell me a very long story about a ship."))
            await caller.wait_until(began + 1.5)
            onset, _ = caller.say(say("Stop, stop. What is two plus two?"))
            await caller.wait_event("reply.done", timeout=PATIENCE, after=onset)
            await caller.wait_event("turn.report", timeout=PATIENCE, after=onset + 0.5)
            await caller.wait_agent_silent(timeout=PATIENCE)
            session = caller.session_id
            report, history = [await get(agent, f"/api/sessions/{session}/{what}") for what in ("report", "history")]
            return report, history, caller.segments

    report, history, _ = asyncio.run(call())
    first = report["turns"][0]
    assert first["interrupted"]
    assert first["generated_text"].startswith(first["heard_text"])
    assert len(first["heard_text"]) < len(first["generated_text"])
    contents = [message["content"] for message in history["messages"]]
    assert (first["heard_text"] in contents) == bool(first["heard_text"])
    assert first["generated_text"] not in contents


def test_silence_and_noise_are_not_answered(agent: AgentProcess) -> None:
    async def call() -> tuple[list[Any], dict[str, Any]]:
        async with Caller(agent.url) as caller:
            noise = (np.random.default_rng(1).standard_normal(2 * 48_000) * 600).astype(np.int16)
            _, end = caller.say(noise)
            await caller.wait_until(end + 2.0)
            return caller.segments, await get(agent, f"/api/sessions/{caller.session_id}/history")

    segments, history = asyncio.run(call())
    assert segments == []
    assert [message["role"] for message in history["messages"]] == ["system"]


def test_two_calls_at_once_hear_their_own_answers(agent: AgentProcess, say: Say) -> None:
    async def one(question: str) -> str:
        async with Caller(agent.url) as caller:
            await answered(caller, say(question))
            await caller.wait_event("reply.done", timeout=PATIENCE)
            history = await get(agent, f"/api/sessions/{caller.session_id}/history")
            return " ".join(message["content"] for message in history["messages"][1:]).lower()

    async def both() -> tuple[str, str]:
        return await asyncio.gather(one("What is the capital of France?"), one("What is the capital of Italy?"))

    france, italy = asyncio.run(both())
    assert "france" in france
    assert "italy" not in france
    assert "italy" in italy
    assert "france" not in italy


def test_a_typed_question_is_answered_aloud(agent: AgentProcess) -> None:
    async def call() -> dict[str, Any]:
        async with Caller(agent.url) as caller:
            started = await caller.wait_event("session.started")
            caller.send({"type": "text", "text": "What is the capital of Spain?"})
            await caller.wait_agent_started(started.at, timeout=PATIENCE)
            await caller.wait_event("reply.done", timeout=PATIENCE)
            return dict(await get(agent, f"/api/sessions/{caller.session_id}/history"))

    messages = asyncio.run(call())["messages"]
    assert messages[1] == {"role": "user", "content": "What is the capital of Spain?"}
    assert "madrid" in messages[2]["content"].lower()


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


async def tasks(agent: AgentProcess) -> float:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        text = (await client.get(f"{agent.url}/metrics")).text
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    over = float(figures["voice_agent_sessions_active"]) == 0
    return float(figures["voice_agent_tasks"]) if over else math.inf


async def settled(look: Callable[[], Any], most: float) -> float:
    """A count that has to come down to `most` within five seconds of the call's end."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 5.0
    while True:
        value = look()
        value = await value if asyncio.iscoroutine(value) else value
        if value <= most or loop.time() > deadline:
            return float(value)
        await asyncio.sleep(0.05)


def test_calls_leave_no_task_thread_or_file_behind(agent: AgentProcess, say: Say) -> None:
    """H01: after the calls everything counts what it counted after the first ones."""

    async def one(question: Pcm16) -> None:
        async with Caller(agent.url) as caller:
            _, end = caller.say(question)
            await caller.wait_until(end + 0.3)

    async def series() -> None:
        question = say("Yes please.")
        for _ in range(3):
            await one(question)
        await asyncio.sleep(1)
        files, running, census = open_files(agent.pid), threads(agent.pid), await tasks(agent)
        assert math.isfinite(census), "a call is still open"
        for _ in range(CALLS):
            await one(question)
        assert await settled(lambda: tasks(agent), census) <= census
        assert await settled(lambda: open_files(agent.pid), files) <= files
        assert await settled(lambda: threads(agent.pid), running) <= running

    asyncio.run(series())


def test_more_calls_than_lines_are_refused_and_the_lines_come_back(agent: AgentProcess) -> None:
    async def fill() -> None:
        async with Caller(agent.url), Caller(agent.url), Caller(agent.url):
            from voice_agent.errors import VoiceAgentError

            with pytest.raises(VoiceAgentError, match="503"):
                async with Caller(agent.url):
                    pass
        for _ in range(100):
            try:
                async with Caller(agent.url):
                    return
            except VoiceAgentError:
                await asyncio.sleep(0.05)
        raise AssertionError("no line came back within five seconds")

    asyncio.run(fill())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_call_ends_it_cleanly(number: signal.Signals, weights: Path, say: Say) -> None:
    async def life() -> None:
        async with start_agent(["--profile=small", "--llm=scripted"]) as own, Caller(own.url) as caller:
            caller.say(say("Yes please."))
            await caller.wait_event("state")
            os.kill(own.pid, number)
            ended = await caller.wait_event("session.ended")
            assert ended.message["reason"]
        assert own.exit_code == 0

    asyncio.run(life())
