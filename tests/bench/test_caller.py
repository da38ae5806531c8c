"""Real WebRTC over loopback, in real time: few calls, with all that can be seen in each."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from tests.bench.echo_agent import SESSION, STAGES, echo_agent
from tests.bench.sounds import RATE, silence, tone
from voice_agent.bench.caller import Caller
from voice_agent.bench.ear import speech_bounds
from voice_agent.bench.run import reported_turns, run_call
from voice_agent.bench.script import Script, Turn, When
from voice_agent.errors import TransportClosed, VoiceAgentError

SLACK = 2.0
"""Seconds a busy machine may add. What must hold on any machine is asserted without it."""


def test_a_call_is_heard_and_measured() -> None:
    async def call() -> None:
        async with echo_agent() as agent, Caller(agent.url, api_key="secret") as caller:
            assert caller.session_id == SESSION
            started = await caller.wait_event("session.started")
            caller.send({"type": "ping", "id": 1})
            onset, end = caller.say(np.concatenate([silence(0.1), tone(0.3), silence(0.2)]))
            assert end - onset == pytest.approx(0.3, abs=0.021)
            later, _ = caller.say(tone(0.1))
            assert later == pytest.approx(onset + 0.5, abs=0.021)  # after what is queued, its silence included
            await caller.wait_until(end)
            assert time.monotonic() >= end
            began = await caller.wait_agent_started(end)
            silent = await caller.wait_agent_silent(0.3)
            # The last line takes 100 ms, the agent waits for 300 ms of silence, its tone is 800 ms long.
            assert 0.4 <= began - later <= 0.5 + SLACK
            assert 0.3 <= silent - began <= 0.8 + SLACK
            assert (caller.segments[0].start, caller.segments[-1].end) == (began, silent)
            report = await caller.wait_event("turn.report", after=onset)
            assert started.at < report.at
            assert caller.events[1].message == {"type": "", "unreadable": "'no JSON'"}
            assert agent.received == ['{"type": "ping", "id": 1}']
            assert set(agent.authorization) == {"Bearer secret"}
            with pytest.raises(TimeoutError, match=r"the agent did not speak within 0\.1 seconds"):
                await caller.wait_agent_started(silent, timeout=0.1)
            caller_side, agent_side = caller.recording()
            heard_from, heard_to = speech_bounds(caller_side)
            assert heard_from / RATE == pytest.approx(onset - caller.mic.began, abs=0.021)
            assert (heard_to - heard_from) / RATE == pytest.approx(0.6, abs=0.021)
            delay = speech_bounds(agent_side)[0] / RATE - (began - caller.mic.began)
            assert -0.08 <= delay <= SLACK
        assert caller.ended
        with pytest.raises(TransportClosed):
            caller.say(tone(0.1))

    asyncio.run(call())


def test_waiting_ends_when_the_agent_hangs_up() -> None:
    async def call() -> None:
        async with echo_agent() as agent, Caller(agent.url, record=False) as caller:
            waiting = asyncio.create_task(caller.wait_agent_started(0.0, timeout=30))
            await caller.wait_event("session.started")
            await agent.end_call()
            with pytest.raises(TransportClosed, match="did not speak: the call ended"):
                await waiting
            assert caller.recording().shape == (2, 0)

    asyncio.run(call())


def test_a_scripted_call_matches_the_agents_report() -> None:
    script = Script(
        (
            Turn("first", When("line", 0.1), say="a"),
            Turn("late", When("agent_started", 0.15), say="b", tag="barge"),
        ),
        done=0.3,
    )
    said: list[str] = []

    async def call() -> None:
        async with echo_agent() as agent:
            result = await run_call(agent.url, script, [tone(0.3), tone(0.8)], record=True, progress=said.append)
        first, late = result.heard
        assert first.voice_to_voice is not None
        assert 0.3 <= first.voice_to_voice <= 0.3 + SLACK
        assert late.interrupted
        assert late.stop is not None
        assert 0 < late.stop < 0.8  # the agent finishes its tone of 800 ms
        assert late.voice_to_voice is not None
        reports = [reported.report for reported in result.reports if reported is not None]
        assert [report["turn"] for report in reports] == [1, 2]
        assert reports[0]["stages_ms"] == STAGES
        assert reports[0]["user_text"] == "a final tone"  # what GET …/report says replaces what the event said
        assert result.recording is not None
        assert result.session_id == SESSION

    asyncio.run(call())
    assert [line.split() for line in said] == [["1/2", "plain", "a"], ["2/2", "barge", "b"]]


def test_calls_that_are_not_taken() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 503 X\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{"error":"full"')
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def call() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(VoiceAgentError, match="did not take the call: HTTP 503"):
            await Caller(url).__aenter__()
        server.close()
        await server.wait_closed()
        with pytest.raises(VoiceAgentError, match="no agent answers at http://127"):
            await Caller(url).__aenter__()
        with pytest.raises(VoiceAgentError, match="no agent answers at nonsense"):
            await Caller("nonsense").__aenter__()

    asyncio.run(call())


def test_turns_without_an_event_are_not_placed() -> None:
    assert reported_turns([], {"turns": [{"turn": 1}]}) == []
    assert reported_turns([], None) == []
