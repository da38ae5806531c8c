"""End of turn from the sound of the voice, with Smart Turn v3 (ONNX, BSD-2) on onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor
from numpy.typing import NDArray

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.onnx_session import open_session
from voice_agent.engines.ports import ENGINE_RATE, Pcm16
from voice_agent.engines.worker import Worker

WINDOW = 8 * ENGINE_RATE
"""Samples the model looks at."""
INPUT = "input_features"


class SmartTurn:
    def __init__(self, path: Path, gate: CpuGate | None = None, threads: int = 1) -> None:
        """Raises EngineError `load`."""
        self._session = open_session("smart-turn", path, threads, inputs=(INPUT,))
        self._extractor = FeatureExtractor(chunk_length=8)
        self._worker = Worker("smart-turn", gate=gate)

    async def score(self, samples: Pcm16) -> float:
        return await self._worker.run(self._score, samples[-WINDOW:].copy())

    async def warm_up(self) -> None:
        noise = np.random.default_rng(0).integers(-300, 300, WINDOW, dtype=np.int16)
        await self.score(noise)

    async def close(self) -> None:
        await self._worker.close_async()

    def _score(self, samples: Pcm16) -> float:
        features = turn_features(samples, self._extractor)
        (probability,) = self._session.run(None, {INPUT: features[np.newaxis]})
        return float(probability.reshape(-1)[0])


def turn_features(samples: Pcm16, extractor: FeatureExtractor) -> NDArray[np.float32]:
    """Whisper's log-mel features (80, 800) of the last 8 s, as the model was trained on them.

    The end of the audio sits at the end of the window (silence is put before it), and the whole window, that silence
    included, is brought to zero mean and unit variance first.
    """
    audio = np.zeros(WINDOW, np.float32)
    tail = samples[-WINDOW:]
    if tail.size:
        audio[-tail.size :] = tail.astype(np.float32) / 32768.0
    audio = (audio - audio.mean()) / np.sqrt(audio.var() + 1e-7)
    features: NDArray[np.float32] = extractor(audio, padding=0).astype(np.float32)
    return features
