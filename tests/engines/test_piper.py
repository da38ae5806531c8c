from __future__ import annotations

import asyncio
import json
import shutil
import threading

import numpy as np
import pytest

from tests.contracts import text_to_speech
from voice_agent.engines import piper as piper_module
from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.piper import PiperSpeaker, sounding
from voice_agent.errors import EngineError


@pytest.fixture
def model(voice_path):
    return lambda: PiperSpeaker(voice_path, gate=CpuGate(), threads=1)


def spoken(model, *texts: str):
    async def body():
        engine = model()
        try:
            return [await engine.synthesize(text) for text in texts]
        finally:
            await engine.close()

    return asyncio.run(body())


def test_contract(model):
    text_to_speech.check_speaks(model)
    text_to_speech.check_nothing_to_say(model)
    text_to_speech.check_speed(model)
    text_to_speech.check_close(model)


def test_word_times_come_from_the_voice(model):
    """Joined words, numbers, dashes, abbreviations and several sentences included."""
    texts = (
        "It is one of the best — really.",
        "The temperature is 25 degrees in the afternoon.",
        "Dr. Smith paid $5.50 on the 3rd of May.",
        "Sure! I'd love to help you with that. What do you need?",
        "A loaf of bread for a friend, e.g. from example.com.",
    )
    for text, speech in zip(texts, spoken(model, *texts), strict=True):
        assert speech.exact, text
        text_to_speech.check_words(text, speech)
        lengths = [word.end - word.start for word in speech.words if text[word.start_char : word.end_char] != "—"]
        assert min(lengths) > 0.02 * speech.rate, text


def test_pauses_lie_between_the_words(model):
    (speech,) = spoken(model, "Yes. No. Stop.")
    loud = np.abs(speech.samples.astype(float))
    for word, following in zip(speech.words, speech.words[1:], strict=False):
        gap = loud[word.end : following.start]
        assert gap.size > 0.05 * speech.rate
        assert loud[word.start : word.end].max() > 20 * gap[gap.size // 4 : gap.size // 2].mean()


def test_silence_is_trimmed_and_the_edges_do_not_click(model):
    for speech in spoken(model, "Hello there, how are you?", "Yes.", "I can do that for you."):
        level = np.abs(speech.samples.astype(float))
        audible = np.flatnonzero(level > level.max() * 10 ** (-45 / 20))
        assert audible[0] < 0.025 * speech.rate
        assert level.size - audible[-1] < 0.08 * speech.rate
        assert level[0] <= 1
        assert level[-1] <= 1
        assert speech.words[0].start < 0.08 * speech.rate


def test_marks_for_raw_phonemes_are_not_obeyed(model):
    (speech,) = spoken(model, "Say [[hˈaʊ]] now")
    assert len(speech.words) == 3
    assert speech.samples.size > 0


def test_the_rate_is_the_voices_own(voice_path, tmp_path):
    copy = tmp_path / voice_path.name
    copy.symlink_to(voice_path)
    description = json.loads((voice_path.parent / f"{voice_path.name}.json").read_text(encoding="utf-8"))
    description["audio"]["sample_rate"] = 16_000
    (tmp_path / f"{voice_path.name}.json").write_text(json.dumps(description), encoding="utf-8")
    (low,) = spoken(lambda: PiperSpeaker(copy, threads=1), "Hello.")
    (original,) = spoken(lambda: PiperSpeaker(voice_path, threads=1), "Hello.")
    assert (low.rate, original.rate) == (16_000, 22_050)


def test_without_durations_the_times_are_estimates(model, monkeypatch):
    monkeypatch.setattr(piper_module, "_with_durations", lambda path: None)
    text = "It is one of the best."
    (speech,) = spoken(model, text)
    assert not speech.exact
    text_to_speech.check_words(text, speech)
    assert speech.words[-1].end == speech.samples.size


def test_cancelling_stops_between_two_sentences(model, monkeypatch):
    speaker = model()
    first_done, go_on, sentences = threading.Event(), threading.Event(), []
    original = speaker._voice.synthesize

    def watched(*args, **options):
        for chunk in original(*args, **options):
            sentences.append(chunk)
            first_done.set()
            assert go_on.wait(10)
            yield chunk

    monkeypatch.setattr(speaker._voice, "synthesize", watched)

    async def body():
        speaking = asyncio.create_task(speaker.synthesize("One. Two. Three. Four."))
        assert await asyncio.to_thread(first_done.wait, 10)
        speaking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await speaking
        go_on.set()
        await speaker.close()

    asyncio.run(body())
    assert len(sentences) == 1


def test_sounding_finds_the_sound():
    audio = np.zeros(22_050, np.float32)
    assert sounding(audio, 22_050) == (0, 0)
    assert sounding(audio[:10], 22_050) == (0, 0)
    audio[4400:8800] = 0.5
    start, end = sounding(audio, 22_050)
    assert 4400 - 0.008 * 22_050 <= start <= 4400 - 0.004 * 22_050
    assert 8800 + 0.029 * 22_050 <= end <= 8800 + 0.033 * 22_050


def test_broken_files_are_named(voice_path, tmp_path):
    with pytest.raises(EngineError, match="no voice description"):
        PiperSpeaker(tmp_path / "none.onnx")
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(voice_path.read_bytes()[:3_000_000])
    description = tmp_path / "cut.onnx.json"
    description.write_text("{}", encoding="utf-8")
    with pytest.raises(EngineError, match="does not describe a Piper voice"):
        PiperSpeaker(cut)
    shutil.copy(voice_path.parent / f"{voice_path.name}.json", description)
    with pytest.raises(EngineError, match=r"cut\.onnx.*cut off") as caught:
        PiperSpeaker(cut)
    assert (caught.value.engine, caught.value.code) == ("piper", "load")
    cut.unlink()
    with pytest.raises(EngineError, match="there is no model file"):
        PiperSpeaker(cut)
