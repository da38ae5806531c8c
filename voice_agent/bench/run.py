"""One scripted call: what was said, what was heard, what the agent itself reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from voice_agent.bench.caller import LOOPBACK, Caller, Received
from voice_agent.bench.ear import Segment
from voice_agent.bench.measure import Heard, Line, Reported, match_reports, measure
from voice_agent.bench.script import Script, Turn, When
from voice_agent.engines.ports import Pcm16
from voice_agent.errors import VoiceAgentError
from voice_agent.settings import WebRtcSettings

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CallResult:
    session_id: str
    began: float
    """Clock time of the microphone's first sample."""
    length: float
    """Seconds from there to the hang-up."""
    connect_seconds: float
    heard: tuple[Heard, ...]
    reports: tuple[Reported | None, ...]
    """The agent's report of each line's turn, as far as there is one."""
    segments: tuple[Segment, ...]
    microphone_delay: float
    """Seconds the caller's own latest frame left too late."""
    recording: NDArray[np.int16] | None
    """See `Caller.recording`."""


async def run_call(
    url: str,
    script: Script,
    sounds: Sequence[Pcm16],
    *,
    webrtc: WebRtcSettings = LOOPBACK,
    api_key: str = "",
    record: bool = False,
    progress: Progress = lambda text: None,
) -> CallResult:
    """Call, say the script's lines (`sounds`, one per turn), hang up, fetch the report.

    Raises VoiceAgentError if the call cannot be made, or ends before the script does.
    """
    lines: list[Line] = []
    async with Caller(url, webrtc=webrtc, noise_db=script.noise_db, api_key=api_key, record=record) as caller:
        previous = Line("", "", time.monotonic(), time.monotonic(), expects_reply=False)
        for number, (turn, sound) in enumerate(zip(script.turns, sounds, strict=True), 1):
            if problem := await _wait_turn(caller, turn.when, previous, script):
                progress(f"       {problem}")
            progress(f"{number:>3}/{len(script.turns)}  {turn.tag:<6}  {turn.say or turn.wav}")
            onset, end = caller.say(sound)
            previous = Line(turn.id, turn.tag, onset, end, turn.reply, barge=_is_barge(turn))
            lines.append(previous)
            await caller.wait_until(end)
        if problem := await _wait_turn(caller, When("agent_done"), previous, script):
            progress(f"       {problem}")
        call_end = time.monotonic()
    heard = measure(lines, caller.segments, call_end)
    final = await fetch_report(url, caller.session_id, api_key)
    return CallResult(
        session_id=caller.session_id,
        began=caller.mic.began,
        length=call_end - caller.mic.began,
        connect_seconds=caller.connect_seconds,
        heard=tuple(heard),
        reports=tuple(match_reports(heard, reported_turns(caller.events, final), call_end)),
        segments=tuple(caller.segments),
        microphone_delay=caller.mic.worst_delay,
        recording=caller.recording() if record else None,
    )


def _is_barge(turn: Turn) -> bool:
    return turn.when.after == "agent_started"


async def _wait_turn(caller: Caller, when: When, previous: Line, script: Script) -> str:
    """Wait for the moment; what went otherwise than planned, or nothing."""
    if when.after == "line":
        await caller.wait_until(previous.end + when.seconds)
        return ""
    moment = time.monotonic()
    problem = ""
    if previous.expects_reply or when.after == "agent_started":
        try:
            # Counted from the onset: an agent that cuts in has spoken, too.
            timeout = script.reply_timeout - (moment - previous.end)
            moment = await caller.wait_agent_started(previous.onset, timeout)
        except TimeoutError as error:
            return str(error)
    if when.after == "agent_done":
        try:
            await caller.wait_agent_silent(script.done, script.max_reply)
        except TimeoutError as error:
            problem = str(error)
        moment = time.monotonic()
    await caller.wait_until(moment + when.seconds)
    return problem


def reported_turns(events: Sequence[Received], final: dict[str, Any] | None) -> list[Reported]:
    """The agent's turns in order of their first `turn.report`; what it says in the end replaces what it said then."""
    latest: dict[object, dict[str, Any]] = {}
    first: dict[object, float] = {}
    for event in events:
        report = event.message.get("report")
        if event.type == "turn.report" and isinstance(report, dict):
            first.setdefault(report.get("turn"), event.at)
            latest[report.get("turn")] = report
    for report in (final or {}).get("turns", []):
        if report.get("turn") in latest:
            latest[report["turn"]] = report
    return [Reported(at, latest[turn]) for turn, at in first.items()]


async def fetch_report(url: str, session_id: str, api_key: str = "") -> dict[str, Any] | None:
    """GET /api/sessions/{id}/report; None if the agent has none. Raises VoiceAgentError if it does not answer."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
            response = await client.get(f"{url.rstrip('/')}/api/sessions/{session_id}/report", headers=headers)
    except httpx.HTTPError as error:
        raise VoiceAgentError(f"the agent at {url} gave no report: {error or type(error).__name__}") from error
    if response.status_code != 200:
        return None
    report: dict[str, Any] = response.json()
    return report
