"""The loop on which waiting takes no time and computing does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import numpy as np

from tests.session.rig import ScriptedModel
from voice_agent.engines.fakes import FakeEndOfTurn, FakeSpeechToText, FakeTextToSpeech, FakeVoiceActivity
from voice_agent.engines.ports import ChatRequest
from voice_agent.session.session import CallEngines
from voice_agent.talk.counted import CountedVoiceActivity, counted_engines
from voice_agent.talk.fast_loop import Busy, FastLoop


def _run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(main)


def _loop() -> FastLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    return loop


def test_an_hour_of_waiting_passes_on_its_clock_alone() -> None:
    async def wait() -> float:
        before = _loop().time()
        await asyncio.sleep(3600)
        return _loop().time() - before

    began = time.monotonic()
    assert 3600 <= _run(wait()) < 3660
    assert time.monotonic() - began < 60


def test_timers_keep_their_order() -> None:
    async def wait() -> list[int]:
        order: list[int] = []
        for number in (3, 1, 2):
            _loop().call_later(number, order.append, number)
        await asyncio.sleep(4)
        return order

    assert _run(wait()) == [1, 2, 3]


def test_while_something_computes_nothing_is_skipped() -> None:
    async def compute() -> tuple[bool, float]:
        loop, done = _loop(), asyncio.Event()

        def work() -> None:
            sum(range(200_000))
            loop.call_soon_threadsafe(done.set)

        with loop.busy:
            threading.Thread(target=work).start()
            patience = asyncio.create_task(asyncio.sleep(1000))
            waiting = asyncio.create_task(done.wait())
            await asyncio.wait({patience, waiting}, return_when=asyncio.FIRST_COMPLETED)
        patience.cancel()
        return waiting.done(), loop.skipped

    assert _run(compute()) == (True, 0.0)


def test_a_job_of_the_executor_counts_by_itself() -> None:
    async def compute() -> float:
        patience = asyncio.create_task(asyncio.sleep(1000))
        await asyncio.to_thread(sum, range(200_000))
        assert not patience.done()
        patience.cancel()
        assert not _loop().busy
        return _loop().skipped

    assert _run(compute()) == 0.0


def test_engines_count_from_their_first_step_to_their_end() -> None:
    async def use() -> None:
        busy, hold = Busy(), asyncio.Event()
        engines = counted_engines(
            CallEngines(
                FakeEndOfTurn(hold=hold),
                FakeSpeechToText(["a"], hold),
                ScriptedModel(["b c"]),
                FakeTextToSpeech(hold=hold),
            ),
            busy,
            scripted=False,
        )
        activity = CountedVoiceActivity(FakeVoiceActivity(hold=hold), busy)
        sound = np.ones(512, np.int16)
        request = ChatRequest("call", ())
        for work in (
            engines.stt.transcribe(sound),
            engines.end_of_turn.score(sound),
            activity.open().feed(sound),
        ):
            hold.clear()
            task = asyncio.ensure_future(work)
            await asyncio.sleep(0)
            assert busy
            hold.set()
            await task
            assert not busy
        async with aclosing(engines.llm.stream(request)) as events:  # type: ignore[type-var]
            async for _ in events:
                assert busy
                break
        assert not busy, "also when its reader leaves early"
        async with aclosing(engines.tts.stream("one two")) as pieces:  # type: ignore[type-var]
            assert [len(piece.samples) > 0 async for piece in pieces] == [True, True]
        assert not busy

    asyncio.run(use())


def test_a_scripted_model_is_not_work() -> None:
    model = ScriptedModel(["a"])
    engines = CallEngines(FakeEndOfTurn(), FakeSpeechToText(), model, FakeTextToSpeech())
    assert counted_engines(engines, Busy(), scripted=True).llm is model
