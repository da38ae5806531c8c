from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.contracts import voice_activity
from voice_agent.engines.silero_vad import SileroVad
from voice_agent.engines.worker import Worker
from voice_agent.errors import EngineError


@pytest.fixture
def model(weights: Path):
    return lambda: SileroVad(weights / "silero-vad" / "silero_vad.onnx")


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(1).integers(-2000, 2000, 40_000, dtype=np.int16)


def test_contract(model, question, noise):
    voice_activity.check_any_chunking_gives_the_same(model, question)
    voice_activity.check_states_are_independent(model, question, noise)
    voice_activity.check_reset_forgets(model, question)
    voice_activity.check_values(model, question)


def probabilities(model, audio) -> np.ndarray:
    async def body():
        engine = model()
        found = await engine.open().feed(audio)
        await engine.close()
        return np.array(found)

    return asyncio.run(body())


def test_speech_is_told_from_silence_and_noise(model, question, noise):
    found = probabilities(model, question)
    assert found[:14].max() < 0.2
    assert found[20:50].mean() > 0.8
    assert probabilities(model, noise).max() < 0.5


def test_state_is_carried_from_window_to_window(model, question):
    async def body():
        engine = model()
        fresh = [
            (await engine.open().feed(question[start : start + 512]))[0]
            for start in range(0, question.size // 512 * 512, 512)
        ]
        await engine.close()
        return np.array(fresh)

    assert np.abs(asyncio.run(body()) - probabilities(model, question)).max() > 0.2


@pytest.mark.parametrize("word", ["Stop!", "No.", "Yes."])
def test_a_short_word_is_speech(model, say, word):
    """About 200 ms of speech: enough windows over 0.5 for an utterance of 64 ms to begin."""
    audio = say(word)[:4200]
    silence = np.zeros(8000, np.int16)
    found = probabilities(model, np.concatenate((silence, audio, silence)))
    assert np.count_nonzero(found > 0.5) >= 2


def test_a_shared_worker_is_left_open(weights):
    worker = Worker("shared")

    async def body():
        engine = SileroVad(weights / "silero-vad" / "silero_vad.onnx", worker)
        await engine.warm_up()
        await engine.close()
        assert len(await engine.open().feed(np.zeros(1024, np.int16))) == 2

    asyncio.run(body())
    worker.close()


def test_broken_files_are_named(weights, tmp_path):
    whole = (weights / "silero-vad" / "silero_vad.onnx").read_bytes()
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(whole[: len(whole) // 2])
    for path, words in (
        (tmp_path / "none.onnx", "there is no model file"),
        (cut, "broken or cut off"),
        (weights / "smart-turn-v3.2" / "smart-turn-v3.2-cpu.onnx", "different model"),
    ):
        with pytest.raises(EngineError, match=words) as caught:
            SileroVad(path)
        assert caught.value.code == "load"
        assert path.name in str(caught.value)


def test_real_recordings(model, recordings):
    import soundfile
    import soxr

    audio, rate = soundfile.read(recordings / "short_turns" / "yes_1000ms.wav", dtype="int16")
    speech = probabilities(model, soxr.resample(audio, rate, 16_000))
    assert speech.max() > 0.9
