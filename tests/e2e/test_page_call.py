"""A person at the page: real Chromium with a recording as its microphone, real models, nothing scripted."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.web.browser import launch_browser, open_page, wait_until
from voice_agent.bench.agent_process import AgentProcess
from voice_agent.engines.ports import Pcm16

RATE = 48_000
PATIENCE = 90.0
"""Seconds for each thing to appear; generous, because a test machine may be doing other things."""


@pytest.fixture(scope="module")
def microphone(say: Callable[[str], Pcm16], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question; later a request for something long; and, while it is being answered, an interruption."""

    def silence(seconds: float) -> Pcm16:
        return np.zeros(round(seconds * RATE), np.int16)

    samples = np.concatenate(
        [
            silence(3),
            say("What is the capital of France?"),
            silence(9),
            say("Please tell me a very long story about a ship."),
            silence(9),
            say("Stop, stop. What is two plus two?"),
            silence(20),
        ]
    )
    file = tmp_path_factory.mktemp("microphone") / "caller.wav"
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, RATE, len(samples), "NONE", ""))
        out.writeframes(samples.astype("<i2").tobytes())
    return file


def shown(text: str) -> str:
    return f"document.getElementById('transcript').innerText.toLowerCase().includes({text!r})"


def test_ask_hear_and_interrupt(agent: AgentProcess, microphone: Path) -> None:
    with launch_browser(microphone) as browser, open_page(browser, f"{agent.url}/?raw=1") as page:
        page.get_by_role("button", name="Start talking").click()
        wait_until(page, "voiceAgent.state.page === 'live'", timeout=PATIENCE)
        wait_until(page, shown("capital of france"), timeout=PATIENCE)
        wait_until(page, shown("paris"), timeout=PATIENCE)
        wait_until(
            page, "voiceAgent.reports.length > 0 && voiceAgent.reports[0].voice_to_voice_ms > 0", timeout=PATIENCE
        )
        wait_until(page, "voiceAgent.statistics().then((one) => one.totalAudioEnergy > 0.001)", timeout=PATIENCE)
        wait_until(page, "voiceAgent.reports.some((report) => report.interrupted)", timeout=PATIENCE)
        cut = page.evaluate("voiceAgent.reports.find((report) => report.interrupted)")
        assert cut["generated_text"].startswith(cut["heard_text"])
        assert len(cut["heard_text"]) < len(cut["generated_text"])
        page.get_by_role("button", name="Hang up").click()
        wait_until(page, "voiceAgent.state.page === 'ended'", timeout=PATIENCE)
