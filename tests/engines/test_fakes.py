from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.contracts import end_of_turn, speech_to_text, text_to_speech, voice_activity
from voice_agent.engines.fakes import FakeEndOfTurn, FakeSpeechToText, FakeTextToSpeech, FakeVoiceActivity
from voice_agent.engines.ports import Transcript
from voice_agent.engines.speech import synthesize
from voice_agent.errors import EngineError

AUDIO = np.arange(1, 16_001, dtype=np.int16)


def test_voice_activity_contract():
    def model() -> FakeVoiceActivity:
        return FakeVoiceActivity([0.1, 0.9, 0.8, 0.3] * 5)

    voice_activity.check_any_chunking_gives_the_same(model, AUDIO)
    voice_activity.check_states_are_independent(model, AUDIO, AUDIO[::-1].copy())
    voice_activity.check_reset_forgets(model, AUDIO)
    voice_activity.check_values(model, AUDIO)


def test_end_of_turn_contract():
    end_of_turn.check_scores_any_length(lambda: FakeEndOfTurn([0.2, 0.7]), AUDIO)
    end_of_turn.check_close(FakeEndOfTurn, AUDIO)


def test_speech_to_text_contract():
    def model() -> FakeSpeechToText:
        return FakeSpeechToText(["Hello there."])

    speech_to_text.check_recognises(model, AUDIO, "hello there")
    speech_to_text.check_silence_is_empty(model)
    speech_to_text.check_refuses_more_than_30_s(model)
    speech_to_text.check_close(model, AUDIO)


@pytest.mark.parametrize("value", [1000, None])
def test_text_to_speech_contract(value):
    def model() -> FakeTextToSpeech:
        return FakeTextToSpeech(value)

    text_to_speech.check_speaks(model)
    text_to_speech.check_nothing_to_say(model)
    text_to_speech.check_speed(model)
    text_to_speech.check_close(model)


def test_scripts_are_followed_and_the_last_entry_stays():
    async def body():
        engine = FakeSpeechToText(["one", Transcript("two", "de"), EngineError("fake-stt", "failed", "as asked")])
        assert (await engine.transcribe(AUDIO, hint="h")).text == "one"
        assert (await engine.transcribe(AUDIO)).language == "de"
        for _ in range(2):
            with pytest.raises(EngineError, match="as asked"):
                await engine.transcribe(AUDIO)
        assert engine.asked[0] == (16_000, None, "h")
        scorer = FakeEndOfTurn([0.2, 0.7])
        assert [await scorer.score(AUDIO) for _ in range(3)] == [0.2, 0.7, 0.7]

    asyncio.run(body())


def test_speech_has_known_samples_and_times():
    async def body():
        speech = await synthesize(FakeTextToSpeech(value=None, rate=1000), "Hi — you")
        assert speech.samples.tolist() == list(range(1, 801))
        assert [(word.start, word.end) for word in speech.words] == [(0, 400), (400, 400), (400, 800)]

    asyncio.run(body())


def test_hold_makes_an_engine_slow_and_cancellable():
    async def body():
        hold = asyncio.Event()
        engine = FakeTextToSpeech(hold=hold)
        first = asyncio.create_task(synthesize(engine, "one"))
        second = asyncio.create_task(synthesize(engine, "two"))
        await asyncio.sleep(0)
        assert not first.done()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        hold.set()
        assert (await first).samples.size == 6400
        assert engine.cancelled == 1

    asyncio.run(body())
