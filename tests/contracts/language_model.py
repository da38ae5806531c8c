"""What every `LanguageModel` must do. Subclass `LanguageModelContract` in the engine's test file and give it an engine.

Nothing here waits for time to pass: an engine that must have done something by now is asked one more question, and its
statistics are read when the answer has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pytest

from voice_agent.engines.llm_statistics import LanguageStatistics
from voice_agent.engines.ports import ChatMessage, ChatRequest, GenerationEnded, LanguageEvent, LanguageModel, TextDelta
from voice_agent.errors import EngineError


class Observable(LanguageModel, Protocol):
    def stream(self, request: ChatRequest) -> AsyncGenerator[LanguageEvent, None]: ...

    def statistics(self) -> LanguageStatistics: ...


@dataclass(frozen=True)
class Answer:
    text: str
    deltas: int
    end: GenerationEnded


def chat(text: str, *, conversation: str = "one", max_tokens: int = 12) -> ChatRequest:
    """A greedy request with one user message."""
    return ChatRequest(conversation, (ChatMessage("user", text),), max_tokens=max_tokens, temperature=0.0)


async def ask(engine: Observable, request: ChatRequest) -> Answer:
    events = [event async for event in engine.stream(request)]
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    ends = [event for event in events if isinstance(event, GenerationEnded)]
    assert ends == events[-1:], "exactly one end, and that last"
    assert all(texts), "no empty delta"
    return Answer("".join(texts), len(texts), ends[0])


async def first_delta_then_leave(engine: Observable, request: ChatRequest) -> None:
    async with aclosing(engine.stream(request)) as events:
        async for _event in events:
            break


async def read_for_ever(engine: Observable, request: ChatRequest, begun: asyncio.Event) -> None:
    async with aclosing(engine.stream(request)) as events:
        async for _event in events:
            begun.set()


WORDS = ("apple", "river", "candle", "winter")
LONG = "Tell me a long story."


class LanguageModelContract:
    """Needs two fixtures: `engine`, which the tests share, and `make`, which makes one that the test closes."""

    def test_a_stream_is_text_and_one_end(self, engine: Observable) -> None:
        answer = asyncio.run(ask(engine, chat("What is the capital of France?")))
        assert answer.text.strip()
        assert answer.deltas <= answer.end.completion_tokens <= 12

    def test_max_tokens_end_a_reply(self, engine: Observable) -> None:
        answer = asyncio.run(ask(engine, chat(LONG, max_tokens=5)))
        assert (answer.end.reason, answer.end.completion_tokens) == ("length", 5)

    def test_a_stop_string_ends_a_reply_and_is_not_in_it(self, engine: Observable) -> None:
        async def both() -> tuple[Answer, Answer, str]:
            whole = await ask(engine, chat(LONG, max_tokens=16))
            stop = whole.text[len(whole.text) // 2 :][:6]
            return whole, await ask(engine, replace(chat(LONG, max_tokens=16), stop=("never said", stop))), stop

        whole, stopped, stop = asyncio.run(both())
        assert stopped.end.reason == "stop"
        assert stopped.text == whole.text[: whole.text.index(stop)]
        assert 0 < stopped.end.completion_tokens < whole.end.completion_tokens

    def test_usage_counts_the_prompt_and_what_was_cached(self, engine: Observable) -> None:
        request = chat("Please count these words for me, one after the other.", conversation="usage", max_tokens=2)

        async def thrice() -> list[GenerationEnded]:
            first, second = (await ask(engine, request)).end, (await ask(engine, request)).end
            engine.forget("usage")
            return [first, second, (await ask(engine, request)).end]

        first, second, third = asyncio.run(thrice())
        assert first.prompt_tokens == second.prompt_tokens == third.prompt_tokens > 8
        assert first.cached_tokens < second.cached_tokens <= second.prompt_tokens
        assert third.cached_tokens == first.cached_tokens, "forgotten"

    def test_forgetting_a_stranger_is_fine(self, engine: Observable) -> None:
        engine.forget("nobody")
        assert asyncio.run(ask(engine, chat("Hello"))).text

    @pytest.mark.parametrize("by_task", [False, True])
    def test_a_cancelled_stream_is_freed_within_one_step(self, engine: Observable, by_task: bool) -> None:
        async def scenario() -> tuple[LanguageStatistics, ...]:
            before = engine.statistics()
            long = chat(LONG, conversation="left", max_tokens=400)
            if by_task:
                begun = asyncio.Event()
                task = asyncio.create_task(
                    read_for_ever(engine, chat(LONG, conversation="left", max_tokens=400), begun)
                )
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await first_delta_then_leave(engine, long)
            cancelled = engine.statistics()
            await ask(engine, chat("Hello", max_tokens=1))
            return before, cancelled, engine.statistics()

        before, cancelled, after = asyncio.run(scenario())
        assert after.cancelled == before.cancelled + 1
        assert (after.active, after.waiting) == (0, 0)
        # One step may have been under way, and one token belongs to the question after it.
        assert after.decoded_tokens - cancelled.decoded_tokens <= 2

    def test_start_cancel_start_never_mixes_texts(self, engine: Observable) -> None:
        question = chat("Say the word apple.", conversation="busy", max_tokens=4)

        async def scenario() -> None:
            alone = await ask(engine, question)
            for round_number in range(30):
                other = chat(f"Story number {round_number}: {LONG}", conversation="busy", max_tokens=300)
                if round_number % 3 == 0:
                    await first_delta_then_leave(engine, other)
                else:
                    task = asyncio.create_task(ask(engine, other))
                    for _ in range(round_number):
                        await asyncio.sleep(0)
                    task.cancel()
                assert (await ask(engine, question)).text == alone.text

        asyncio.run(scenario())
        assert engine.statistics().active == 0

    def test_four_at_once_say_what_each_says_alone(self, engine: Observable) -> None:
        # Short and plain, because the last bit of a logit depends on the batch it was computed in: a near tie may
        # fall the other way.
        requests = [chat(f"Say the word {w}.", conversation=w, max_tokens=5) for w in WORDS]

        async def scenario() -> tuple[list[str], list[str]]:
            alone = [(await ask(engine, request)).text for request in requests]
            return alone, [answer.text for answer in await asyncio.gather(*(ask(engine, r) for r in requests))]

        alone, together = asyncio.run(scenario())
        assert together == alone

    def test_the_end_of_a_turn_is_a_probability_or_unknown(self, engine: Observable) -> None:
        score = asyncio.run(engine.end_of_turn(chat("What is the capital of France")))
        assert score is None or 0 <= score <= 1
        nothing = ChatRequest("one", (ChatMessage("assistant", "Hello."),))
        assert asyncio.run(engine.end_of_turn(nothing)) is None

    def test_a_warm_engine_answers(self, engine: Observable) -> None:
        async def scenario() -> Answer:
            await engine.warm_up()
            return await ask(engine, chat("Hello"))

        assert asyncio.run(scenario()).text

    def test_closing_fails_what_runs_and_what_comes(self, make: Callable[[], Observable]) -> None:
        async def scenario() -> None:
            engine = make()
            running = engine.stream(chat(LONG, max_tokens=400))
            await anext(running)
            await engine.close()
            await engine.close()
            refused: list[Coroutine[Any, Any, Any]] = [_drain(running), ask(engine, chat("Hello"))]
            refused.append(engine.end_of_turn(chat("Hello")))
            for question in refused:
                with pytest.raises(EngineError, match="closed") as caught:
                    await question
                assert caught.value.code == "closed"
            engine.forget("one")

        asyncio.run(scenario())


async def _drain(events: AsyncGenerator[LanguageEvent, None]) -> None:
    async for _event in events:
        pass
