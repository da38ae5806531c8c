"""Voice activity with Silero VAD 6 (ONNX, MIT) on onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from voice_agent.engines.onnx_session import open_session
from voice_agent.engines.ports import ENGINE_RATE, Pcm16, VoiceActivity
from voice_agent.engines.worker import Worker

WINDOW = 512
"""Samples per probability: 32 ms at 16 kHz. The model accepts no other length."""
CONTEXT = 64
"""Samples of the previous window that the model sees before each window."""
STATE_SHAPE = (2, 1, 128)


class SileroVad:
    """One loaded model for all calls: they share the session and one thread, never their state."""

    def __init__(self, path: Path, worker: Worker | None = None) -> None:
        """Raises EngineError `load`. A given `worker` stays the caller's to close; it must have one thread."""
        self._session = open_session("silero-vad", path, threads=1, inputs=("input", "state", "sr"))
        self._own_worker = worker is None
        # About 0.1 ms per window: a hundred calls keep the queue nearly empty, and the limit is for a stalled machine.
        self._worker = worker if worker is not None else Worker("silero-vad", limit=256)

    def open(self) -> VoiceActivity:
        return _SileroState(self._session, self._worker)

    async def warm_up(self) -> None:
        await self.open().feed(np.zeros(4 * WINDOW, np.int16))

    async def close(self) -> None:
        if self._own_worker:
            await self._worker.close_async()


class _Memory:
    """What the model remembers of one call. Replaced as a whole, so that a running inference keeps the old one."""

    __slots__ = ("context", "state")

    def __init__(self) -> None:
        self.state: NDArray[np.float32] = np.zeros(STATE_SHAPE, np.float32)
        self.context: NDArray[np.float32] = np.zeros(CONTEXT, np.float32)


class _SileroState:
    def __init__(self, session: ort.InferenceSession, worker: Worker) -> None:
        self._session = session
        self._worker = worker
        self._memory = _Memory()
        self._remainder: Pcm16 = np.zeros(0, np.int16)

    async def feed(self, samples: Pcm16) -> list[float]:
        audio = np.concatenate((self._remainder, samples))
        complete = audio.size // WINDOW
        self._remainder = audio[complete * WINDOW :].copy()
        if not complete:
            return []
        windows = audio[: complete * WINDOW].astype(np.float32).reshape(complete, WINDOW) / 32768.0
        return await self._worker.run(_infer, self._session, self._memory, windows)

    def reset(self) -> None:
        self._memory = _Memory()
        self._remainder = np.zeros(0, np.int16)


def _infer(session: ort.InferenceSession, memory: _Memory, windows: NDArray[np.float32]) -> list[float]:
    """Probabilities of `windows` (n, 512) in order; advances `memory`."""
    rate = np.array(ENGINE_RATE, np.int64)
    probabilities = []
    for window in windows:
        frame = np.concatenate((memory.context, window))[np.newaxis, :]
        output, state = session.run(None, {"input": frame, "state": memory.state, "sr": rate})
        memory.state = state
        memory.context = window[-CONTEXT:]
        probabilities.append(float(output[0, 0]))
    return probabilities
