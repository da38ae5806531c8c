from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor

from tests.contracts import end_of_turn
from voice_agent.engines.smart_turn import SmartTurn, turn_features
from voice_agent.errors import EngineError


@pytest.fixture
def path(weights: Path) -> Path:
    return weights / "smart-turn-v3.2" / "smart-turn-v3.2-cpu.onnx"


def reference_features(audio: np.ndarray) -> np.ndarray:
    """Whisper's features by their definition, frame by frame in double precision, of 8 s normalised audio."""
    padded = np.concatenate((np.zeros(128_000), audio / 32768.0))[-128_000:]
    normal = (padded - padded.mean()) / np.sqrt(padded.var() + 1e-7)
    mirrored = np.pad(normal, 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = np.stack([mirrored[start : start + 400] * window for start in range(0, 128_000, 160)])
    power = np.abs(np.fft.rfft(frames)) ** 2

    def hertz(mel: np.ndarray) -> np.ndarray:
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    edges = hertz(np.linspace(0, 15 + 27 * np.log(8000 / 1000) / np.log(6.4), 82))
    bins = np.arange(201) * 40.0
    rows = []
    for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
        triangle = np.clip(np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)), 0, None)
        rows.append(triangle * 2 / (high - low))
    log = np.log10(np.maximum(np.array(rows) @ power.T, 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4


def test_features_follow_the_definition(question):
    for audio in (question, np.tile(question, 8), question[:0]):
        features = turn_features(audio, FeatureExtractor(chunk_length=8))
        assert features.shape == (80, 800)
        assert features.dtype == np.float32
        assert np.abs(features - reference_features(audio)).max() < 1e-3


def test_contract(path, question):
    end_of_turn.check_scores_any_length(lambda: SmartTurn(path), question)
    end_of_turn.check_close(lambda: SmartTurn(path), question)


def test_only_the_last_8_seconds_count(path, question):
    async def body():
        engine = SmartTurn(path)
        long = np.concatenate((np.tile(question, 3), np.tile(question, 10)[-128_000:]))
        scores = await engine.score(long), await engine.score(long[-128_000:])
        await engine.close()
        return scores

    first, second = asyncio.run(body())
    assert first == second


def test_a_finished_sentence_scores_above_a_cut_one(path, say):
    """Means over several sentences: the score of a single one says little."""
    sentences = ("Could you book a table for two?", "I would like a cup of coffee, please.", "What time is it now?")
    spoken = [say(text) for text in sentences]

    async def body():
        engine = SmartTurn(path)
        silence = np.zeros(3200, np.int16)
        whole = [await engine.score(np.concatenate((audio, silence))) for audio in spoken]
        cut = [await engine.score(np.concatenate((audio[: audio.size // 2], silence))) for audio in spoken]
        await engine.close()
        return np.mean(whole), np.mean(cut)

    whole, cut = asyncio.run(body())
    assert whole > cut


def test_a_truncated_file_is_named(path, tmp_path):
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(path.read_bytes()[:1_000_000])
    with pytest.raises(EngineError, match=r"smart-turn: .*cut\.onnx.*cut off"):
        SmartTurn(cut)
