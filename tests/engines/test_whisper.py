from __future__ import annotations

import asyncio
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

from tests.contracts import speech_to_text
from tests.contracts.speech_to_text import plain
from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.whisper import WhisperRecogniser
from voice_agent.errors import EngineError

MODELS = ("whisper-base", "whisper-tiny.en")


def transcripts(folder: Path, clips, **options):
    """What a fresh engine makes of each clip, in order."""

    async def body():
        engine = WhisperRecogniser(folder)
        try:
            return [await engine.transcribe(clip, **options) for clip in clips]
        finally:
            await engine.close()

    return asyncio.run(body())


@pytest.mark.parametrize("name", MODELS)
def test_contract(weights, question, name):
    def model() -> WhisperRecogniser:
        return WhisperRecogniser(weights / name, threads=2, gate=CpuGate())

    speech_to_text.check_recognises(model, question, "what is the capital of france")
    speech_to_text.check_silence_is_empty(model)
    speech_to_text.check_refuses_more_than_30_s(model)
    speech_to_text.check_close(model, question)


@pytest.mark.parametrize("name", MODELS)
def test_noise_is_not_speech(weights, noises, name):
    found = transcripts(weights / name, noises.values(), language="en")
    assert {sound: transcript.text for sound, transcript in zip(noises, found, strict=True)} == dict.fromkeys(
        noises, ""
    )


@pytest.mark.parametrize("name", MODELS)
def test_noise_with_a_hint_does_not_repeat_the_hint(weights, noises, name):
    found = transcripts(weights / name, noises.values(), language="en", hint="Thank you, Mister Okonkwo.")
    assert [transcript.text for transcript in found] == [""] * len(noises)


@pytest.mark.parametrize("name", MODELS)
def test_a_word_is_not_doubled_by_the_silence_before_it(weights, say, name):
    words = ("Four.", "Seven.", "Stop!", "Yes.", "Proceed.")
    silence = np.zeros(8000, np.int16)
    clips = [np.concatenate((silence, say(word), silence[:1600])) for word in words]
    found = transcripts(weights / name, clips, language="en")
    heard = [plain(transcript.text).split() for transcript in found]
    assert all(len(words) == len(set(words)) <= 2 for words in heard), heard  # "Per seed." is a mishearing, no echo
    assert sum(bool(transcript.text) for transcript in found) >= 4


def test_the_language_is_detected_when_it_is_not_fixed(weights, question):
    (found,) = transcripts(weights / "whisper-base", [question])
    assert found.language == "en"
    assert plain(found.text) == "what is the capital of france"


def test_one_english_word_stays_latin_when_the_language_is_fixed(weights, say):
    clips = [say("Proceed."), say("Okay."), say("No.")]
    for transcript in transcripts(weights / "whisper-base", clips, language="en"):
        assert transcript.language == "en"
        assert transcript.text.isascii()


def test_noise_has_no_language(weights, noises):
    for transcript in transcripts(weights / "whisper-base", [noises["pink noise -40"], noises["keyboard"]]):
        assert (transcript.text, transcript.language) == ("", None)


def test_an_unsure_detection_gives_the_fallback_language(weights):
    """Korean at 0.4 for one English word must not turn the call Korean."""
    engine = WhisperRecogniser(weights / "whisper-tiny.en", fallback_language="en")

    class Detector:
        is_multilingual = True

        def __init__(self, probability: float) -> None:
            self.probability = probability

        def detect_language(self, _encoded: object) -> list[list[tuple[str, float]]]:
            return [[("<|ko|>", self.probability), ("<|en|>", 0.3)]]

    found = []
    for probability in (0.4, 0.9):
        engine._model = Detector(probability)
        found.append(engine._language(None, None))
    asyncio.run(engine.close())
    assert found == ["en", "ko"]


def test_an_english_model_ignores_the_language_and_a_multilingual_one_refuses_unknown_codes(weights, question):
    (found,) = transcripts(weights / "whisper-tiny.en", [question], language="de")
    assert found.language == "en"
    with pytest.raises(EngineError, match="'xx' is not a language"):
        transcripts(weights / "whisper-base", [question], language="xx")


def test_digits_are_recognised_in_some_form(weights, say):
    (found,) = transcripts(weights / "whisper-base", [say("My code is seven, four, one, five.")], language="en")
    digits = plain(found.text)
    for word, digit in (("seven", "7"), ("four", "4"), ("one", "1"), ("five", "5")):
        digits = digits.replace(word, digit)
    assert "".join(character for character in digits if character.isdigit()) == "7415"


def test_loading_never_opens_a_socket(weights, monkeypatch):
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    engine = WhisperRecogniser(weights / "whisper-tiny.en")
    asyncio.run(engine.close())


def test_broken_folders_are_named(weights, tmp_path):
    with pytest.raises(EngineError, match=r"lacks model\.bin, config\.json, tokenizer\.json"):
        WhisperRecogniser(tmp_path / "none")
    source = weights / "whisper-tiny.en"
    broken = tmp_path / "broken"
    shutil.copytree(source, broken, ignore=shutil.ignore_patterns("model.bin"))
    (broken / "model.bin").write_bytes((source / "model.bin").read_bytes()[:5_000_000])
    with pytest.raises(EngineError, match="broken or cut off") as caught:
        WhisperRecogniser(broken)
    assert (caught.value.engine, caught.value.code) == ("whisper", "load")
    (broken / "tokenizer.json").unlink()
    with pytest.raises(EngineError, match=r"lacks tokenizer\.json"):
        WhisperRecogniser(broken)


@pytest.mark.parametrize(
    ("clip", "words"),
    [
        ("short_turns/whatstheweatherlike.wav", "what's the weather like"),
        ("short_turns/yes_1000ms.wav", "yes"),
        ("short_turns/half_an_hour.wav", "half an hour"),
        ("read_en/LJ001-0008.wav", "has never been surpassed"),
    ],
)
def test_real_recordings(weights, recordings, clip, words):
    import soundfile
    import soxr

    audio, rate = soundfile.read(recordings / clip, dtype="int16")
    (found,) = transcripts(weights / "whisper-base", [soxr.resample(audio, rate, 16_000)], language="en")
    assert plain(found.text) == words
