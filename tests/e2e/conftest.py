"""A real agent in its own process, with real models, for the whole test session; and lines spoken by its own voice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voice_agent.audio.resample import resample
from voice_agent.bench.agent_process import AgentProcess, start_agent
from voice_agent.engines.piper import PiperSpeaker
from voice_agent.engines.ports import Pcm16
from voice_agent.engines.speech import synthesize

PROMPT = "You are on a phone call. Answer in plain spoken sentences. When asked for a story, tell a very long one."


class Background:
    """An event loop in a thread: keeps a child process's output read while tests run on loops of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agent keeper")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=400)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="session")
def background() -> Iterator[Background]:
    keeper = Background()
    yield keeper
    keeper.close()


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="session")
def agent(background: Background, traces: Path, weights: Path) -> Iterator[AgentProcess]:
    """Stopped with SIGTERM at the end; an exit code other than 0 fails the session."""
    context = start_agent([f"--trace-dir={traces}", f"--system-prompt={PROMPT}", "--max-sessions=3"])
    yield background.run(context.__aenter__())
    background.run(context.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def say(background: Background, weights: Path) -> Iterator[Callable[[str], Pcm16]]:
    """Text to 48 kHz speech, without silence around it; may be called inside and outside of a loop."""
    voice = PiperSpeaker(weights / "piper-joe" / "en_US-joe-medium.onnx")
    spoken: dict[str, Pcm16] = {}

    def speak(text: str) -> Pcm16:
        if text not in spoken:
            speech = background.run(synthesize(voice, text))
            samples = resample(speech.samples, speech.rate, 48_000).astype(np.float32)
            spoken[text] = (samples / np.abs(samples).max() * 16_000).astype(np.int16)
        return spoken[text]

    yield speak
    background.run(voice.close())
