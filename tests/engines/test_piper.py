from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
import threading

import numpy as np
import pytest

from tests.contracts import text_to_speech
from voice_agent.engines import piper_model
from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.piper import PiperSpeaker
from voice_agent.engines.speech import synthesize
from voice_agent.errors import EngineError


@pytest.fixture
def model(voice_path):
    return lambda: PiperSpeaker(voice_path, gate=CpuGate(), threads=1)


def spoken(model, *texts: str):
    async def body():
        engine = model()
        try:
            return [await synthesize(engine, text) for text in texts]
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
    utter = piper_model.PiperModel.utter
    monkeypatch.setattr(
        piper_model.PiperModel, "utter", lambda *args: dataclasses.replace(utter(*args), durations=None)
    )
    text = "It is one of the best."
    (speech,) = spoken(model, text)
    assert not speech.exact
    text_to_speech.check_words(text, speech)
    assert speech.words[-1].end == speech.samples.size


def latent(voice: piper_model.PiperModel, text: str) -> piper_model.Uttered:
    ids = [1, 0, *(ord(letter) % 30 + 14 for letter in text), 2]
    return voice.utter(ids, (0.667, 1.0, 0.8), None)


def test_pieces_are_the_whole(voice_path):
    """Sentences of all lengths: not a sample is missing, doubled or different."""
    voice = piper_model.PiperModel(voice_path, 1, 256)
    assert voice.in_pieces
    for text in (
        "a",
        "a bit",
        "a sentence of some words",
        "a sentence that is long enough to need several pieces, " * 3,
    ):
        uttered = latent(voice, text)
        assert uttered.latent is not None
        assert uttered.durations is not None
        pieces = list(voice.sound(uttered))
        assert [last for _, last in pieces] == [False] * (len(pieces) - 1) + [True]
        together = np.concatenate([piece for piece, _ in pieces])
        once = voice._piece(uttered.latent, 0, uttered.latent.shape[2])
        assert together.size == once.size == uttered.samples == uttered.durations.sum()
        assert np.abs(together - once).max() < 1e-4
    assert len(pieces) > 3


def test_the_first_piece_is_short_and_the_words_come_with_their_sound(model):
    text = "This is a sentence of quite a number of words, so that it has to come in pieces."

    async def body():
        engine = model()
        try:
            return [piece async for piece in engine.stream(text)]
        finally:
            await engine.close()

    pieces = asyncio.run(body())
    assert len(pieces) > 2
    assert pieces[0].samples.size < 0.4 * pieces[0].rate
    end = 0
    for number, piece in enumerate(pieces):
        begin, end = end, end + piece.samples.size
        for word in piece.words:
            assert begin < word.end <= end or number in (0, len(pieces) - 1)
    assert " ".join(text[w.start_char : w.end_char] for piece in pieces for w in piece.words) == text


def test_a_voice_that_cannot_be_cut_is_spoken_whole(model, monkeypatch):
    def no_seam(_model):
        raise ValueError("no decoder of a known kind")

    monkeypatch.setattr(piper_model, "_halves", no_seam)
    (speech,) = spoken(model, "It is one of the best.")
    assert speech.exact
    assert speech.samples.size > 0.5 * speech.rate


def test_a_voice_whose_pieces_sound_different_is_spoken_whole(voice_path, monkeypatch):
    monkeypatch.setattr(piper_model, "CONTEXT", 1)
    assert not piper_model.PiperModel(voice_path, 1, 256).in_pieces


def test_cancelling_stops_between_two_pieces(model, monkeypatch):
    first_done, go_on, computed = threading.Event(), threading.Event(), []
    original = piper_model.PiperModel._piece

    def watched(self, latent, begin, end):
        computed.append(begin)
        first_done.set()
        assert go_on.wait(10)
        return original(self, latent, begin, end)

    async def body():
        speaker = model()
        monkeypatch.setattr(piper_model.PiperModel, "_piece", watched)
        speaking = asyncio.create_task(synthesize(speaker, "One. Two. Three. Four."))
        assert await asyncio.to_thread(first_done.wait, 10)
        speaking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await speaking
        go_on.set()
        await speaker.close()

    asyncio.run(body())
    assert len(computed) == 1


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
