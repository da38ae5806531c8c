"""Conversations from a recording with fake engines: the product's own session, transport and trace."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.session.rig import ScriptedModel
from voice_agent.engines.fakes import FakeEndOfTurn, FakeSpeechToText, FakeTextToSpeech, FakeVoiceActivity
from voice_agent.engines.ports import Pcm16
from voice_agent.session.session import CallEngines
from voice_agent.settings import Settings
from voice_agent.talk.run import Loaded, Talked, hold_call
from voice_agent.transports.local.file_call import FRAME, PERIOD, FileCall
from voice_agent.transports.local.stereo_file import StereoFile

QUESTION = "How far is the moon?"
ANSWER = "It is about two hundred thousand miles from here."
SPEECH = (1.0, 2.0)
SECONDS = 2.5
LEVEL = 3000


def voice(seconds: float = SECONDS) -> Iterator[Pcm16]:
    """A caller who makes a sound during SPEECH."""
    for number in range(round(seconds / PERIOD)):
        speaking = SPEECH[0] <= number * PERIOD < SPEECH[1]
        yield np.full(FRAME, LEVEL if speaking else 0, np.int16)


def loaded(*, speech: bool = True) -> Loaded:
    middles = [(index + 0.5) * 0.032 for index in range(400)]
    probabilities = [0.95 if speech and SPEECH[0] < at < SPEECH[1] else 0.01 for at in middles]
    engines = CallEngines(
        FakeEndOfTurn(), FakeSpeechToText([QUESTION]), ScriptedModel([ANSWER]), FakeTextToSpeech(rate=48_000)
    )
    return Loaded(FakeVoiceActivity(probabilities), engines)


def settings(traces: Path | None = None) -> Settings:
    default = Settings()
    return dataclasses.replace(default, server=dataclasses.replace(default.server, trace_dir=str(traces or "")))


async def hold(
    caller: Iterator[Pcm16], *, traces: Path | None = None, out: Path | None = None, speech: bool = True
) -> Talked:
    """One call on the running loop."""
    told: list[dict[str, Any]] = []
    recording = StereoFile(out, 48_000) if out else None
    try:
        transport = FileCall(caller, asyncio.get_running_loop().time, told.append, recording)
        return await hold_call(settings(traces), transport, loaded(speech=speech))
    finally:
        if recording:
            recording.close()
