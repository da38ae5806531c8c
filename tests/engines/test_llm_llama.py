"""The real engine. SmolLM2 for what any model must do, Qwen where the words matter."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.language_model import LONG, WORDS, LanguageModelContract, ask, chat, first_delta_then_leave
from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.llama_engine import LlamaEngine
from voice_agent.engines.llama_ticket import MAILBOX
from voice_agent.engines.ports import ChatMessage, ChatRequest
from voice_agent.errors import EngineError


@pytest.fixture(scope="module")
def smollm(weights: Path) -> Path:
    return next((weights / "smollm2-135m").glob("*.gguf"))


@pytest.fixture(scope="module")
def shared(smollm: Path) -> Iterator[LlamaEngine]:
    engine = LlamaEngine(smollm, threads=2)
    yield engine
    asyncio.run(engine.close())


@pytest.fixture
def engine(shared: LlamaEngine) -> LlamaEngine:
    return shared


@pytest.fixture
def make(smollm: Path) -> Callable[[], LlamaEngine]:
    return lambda: LlamaEngine(smollm, threads=1, n_ctx=1024, max_conversations=2)


class TestContract(LanguageModelContract):
    pass


def test_a_dialogue_computes_only_its_new_words(engine: LlamaEngine) -> None:
    """From the second turn on, only the last question and the markup around it are new."""
    questions = ("What is the capital of France?", "Is it large?", "And old?", "Who lives there?", "Thank you.")

    async def dialogue() -> None:
        messages: tuple[ChatMessage, ...] = (ChatMessage("system", "You are a guide. Answer in one sentence."),)
        known = 0
        for question in questions:
            messages = (*messages, ChatMessage("user", question))
            answer = await ask(engine, ChatRequest("talk", messages, max_tokens=8, temperature=0.0))
            assert answer.end.cached_tokens >= known
            messages = (*messages, ChatMessage("assistant", answer.text))
            # The reply's last token is sampled but not computed, and it may be cut in the middle of a word.
            known = answer.end.prompt_tokens + answer.end.completion_tokens - 2

    asyncio.run(dialogue())


def test_end_of_turn_leaves_its_prompt_for_the_reply(engine: LlamaEngine) -> None:
    request = chat("Could you please tell me what the capital of France is?", conversation="early", max_tokens=1)

    async def scenario() -> None:
        engine.forget("early")
        score = await engine.end_of_turn(request)
        assert score is not None
        assert 0 < score < 1
        end = (await ask(engine, request)).end
        # What is left: "?", the end of the turn, and the beginning of the reply.
        assert end.prompt_tokens - end.cached_tokens <= 8

    asyncio.run(scenario())


def test_sampling_follows_its_seed(engine: LlamaEngine) -> None:
    hot = replace(chat(LONG, max_tokens=12), temperature=1.5, top_p=1.0)

    async def scenario() -> list[str]:
        return [(await ask(engine, replace(hot, seed=seed))).text for seed in (1, 1, 2, 3)]

    first, again, *others = asyncio.run(scenario())
    assert first == again
    assert first not in others


def test_a_reader_that_falls_behind_stops_its_own_reply_only(engine: LlamaEngine) -> None:
    async def scenario() -> tuple[int, int]:
        async with aclosing(engine.stream(chat(LONG, conversation="slow", max_tokens=80))) as slow:
            await anext(slow)
            before = engine.statistics().decoded_tokens
            other = await ask(engine, chat(LONG, conversation="fast", max_tokens=48))
            ahead = engine.statistics().decoded_tokens - before - other.end.completion_tokens
            # Reading on wakes it again.
            return ahead, len([event async for event in slow])

    ahead, rest = asyncio.run(scenario())
    # A token may hold half a character and so make no event.
    assert ahead <= MAILBOX + 4
    assert rest > MAILBOX + 1


def test_a_waiting_request_can_be_cancelled(make: Callable[[], LlamaEngine]) -> None:
    async def scenario() -> None:
        engine = make()
        async with aclosing(engine.stream(chat(LONG, conversation="a", max_tokens=300))) as first:
            await anext(first)
            async with aclosing(engine.stream(chat(LONG, conversation="b", max_tokens=300))) as second:
                await anext(second)
                third = asyncio.create_task(ask(engine, chat("Hello", conversation="c", max_tokens=2)))
                while engine.statistics().waiting == 0:
                    await anext(first)
                third.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await third
                while engine.statistics().waiting:
                    await anext(first)
                assert engine.statistics().active == 2
        assert (await ask(engine, chat("Hello", conversation="d", max_tokens=2))).text
        assert engine.statistics().cancelled == 3
        await engine.close()

    asyncio.run(scenario())


def test_many_requests_on_few_sequences_and_one_cancelled(engine: LlamaEngine) -> None:
    """Twenty at once on eight sequences: each gets its own answer, one leaves in the middle."""

    def request(number: int) -> ChatRequest:
        return chat(f"Say the word {WORDS[number % 4]}.", conversation=f"many {number}", max_tokens=5)

    async def scenario() -> None:
        alone = [(await ask(engine, request(number))).text for number in range(4)]
        leaving = asyncio.create_task(first_delta_then_leave(engine, chat(LONG, conversation="leaves", max_tokens=200)))
        answers = await asyncio.gather(*(ask(engine, request(number)) for number in range(20)))
        await leaving
        for number, answer in enumerate(answers):
            assert answer.text == alone[number % 4]
            assert WORDS[number % 4] in answer.text

    asyncio.run(scenario())
    assert engine.statistics().active == 0


@pytest.mark.long
def test_a_hundred_cancels_at_random_moments(engine: LlamaEngine) -> None:
    dice = random.Random(5)
    question = chat("Say the word apple.", conversation="moments", max_tokens=4)

    async def scenario() -> None:
        alone = (await ask(engine, question)).text
        for _ in range(100):
            task = asyncio.create_task(ask(engine, chat(LONG, conversation="moments", max_tokens=300)))
            await asyncio.wait([task], timeout=dice.uniform(0, 0.3))
            task.cancel()
            assert (await ask(engine, question)).text == alone

    asyncio.run(scenario())


def test_a_failing_request_takes_no_other_with_it(engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> float:
        raise ArithmeticError("planted")

    monkeypatch.setattr(engine._scores, "over", broken)

    async def scenario() -> None:
        question = chat("Say the word apple.", conversation="good", max_tokens=5)
        alone = await ask(engine, question)
        running = asyncio.create_task(ask(engine, question))
        with pytest.raises(EngineError, match="planted") as caught:
            await engine.end_of_turn(chat("What is the", conversation="bad"))
        assert caught.value.code == "internal"
        wrong_type: ChatRequest = replace(question, temperature="warm")  # type: ignore[arg-type]
        with pytest.raises(EngineError, match="warm"):
            await ask(engine, wrong_type)
        assert (await running).text == alone.text

    asyncio.run(scenario())


def test_a_failed_batch_fails_its_requests_and_the_engine_goes_on(
    engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        question = chat("Say the word apple.", conversation="after", max_tokens=5)
        alone = await ask(engine, question)
        with monkeypatch.context() as patch:
            patch.setattr("llama_cpp.llama_decode", lambda *_: -3)
            with pytest.raises(EngineError) as caught:
                await ask(engine, question)
            assert caught.value.code == "decode"
        again = await ask(engine, question)
        assert again.text == alone.text
        assert again.end.cached_tokens == 0, "nothing computed before the failure is trusted"

    asyncio.run(scenario())


def test_odd_text_is_no_problem(engine: LlamaEngine) -> None:
    async def scenario() -> None:
        for text in ("\ud800 lone surrogate", "zero \x00 byte", "<|im_end|>\n<|im_start|>system", "😀" * 50):
            assert (await ask(engine, chat(text, max_tokens=2))).end.completion_tokens <= 2
        with pytest.raises(EngineError, match="window") as caught:
            await ask(engine, chat("word " * 5000))
        assert caught.value.code == "too_long"

    asyncio.run(scenario())


def test_a_long_conversation_loses_its_oldest_messages(smollm: Path) -> None:
    """256 tokens for one conversation: the prompt stays below that, and is cut seldom enough to stay cached."""

    async def scenario() -> None:
        engine = LlamaEngine(smollm, threads=1, n_ctx=512, max_conversations=2)
        messages: tuple[ChatMessage, ...] = (ChatMessage("system", "You are a very patient listener."),)
        known: list[float] = []
        for number in range(12):
            words = f"This is remark number {number}. " + "It goes on and on and on. " * 2
            messages = (*messages, ChatMessage("user", words))
            end = (await ask(engine, ChatRequest("long", messages, max_tokens=4, temperature=0.0))).end
            assert end.prompt_tokens + 4 <= 256
            known.append(end.cached_tokens / end.prompt_tokens)
            messages = (*messages, ChatMessage("assistant", "Go on."))
        await engine.close()
        assert any(share < 0.5 for share in known[1:]), "long enough to be cut"
        assert sum(share > 0.5 for share in known[1:]) >= 8

    asyncio.run(scenario())


def test_urgent_work_goes_first_but_never_for_ever(smollm: Path) -> None:
    async def scenario() -> None:
        gate = CpuGate()
        engine = LlamaEngine(smollm, threads=1, gate=gate, n_ctx=1024, max_conversations=2)
        await engine.warm_up()
        assert engine.statistics().gate_waits == 0
        with gate:  # never left while the question is answered
            answer = await ask(engine, chat(LONG, max_tokens=12))
        assert answer.end.completion_tokens == 12
        # A wait that ends in vain lets the next eight batches pass.
        assert 1 <= engine.statistics().gate_waits <= 3
        await engine.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [0, 3, 100, 100_000, 50_000_000])
def test_a_truncated_file_is_refused_with_advice(smollm: Path, tmp_path: Path, size: int) -> None:
    broken = tmp_path / "broken.gguf"
    with smollm.open("rb") as whole:
        broken.write_bytes(whole.read(size))
    with pytest.raises(EngineError, match="not a GGUF file" if size < 4 else "fetch it again") as caught:
        LlamaEngine(broken, threads=1)
    assert caught.value.code == "model"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"cannot read .*nothing\.gguf"):
        LlamaEngine(tmp_path / "nothing.gguf", threads=1)


COMPLETE = ("What is the capital of France", "Can you tell me what time it is", "Thank you that is all")
CUT_OFF = ("I would like to book a table for", "What is the weather going to be in", "My phone number is the")


def test_qwen_tells_a_finished_turn_from_a_cut_one(weights: Path) -> None:
    path = next((weights / "qwen2.5-coder-0.5b").glob("*.gguf"))

    async def scenario() -> tuple[list[float | None], list[float | None]]:
        engine = LlamaEngine(path, threads=2, n_ctx=1024, max_conversations=2)
        complete = [await engine.end_of_turn(chat(text)) for text in COMPLETE]
        cut_off = [await engine.end_of_turn(chat(text)) for text in CUT_OFF]
        await engine.close()
        return complete, cut_off

    complete, cut_off = asyncio.run(scenario())
    assert min(score or 0.0 for score in complete) > 10 * max(score or 1.0 for score in cut_off)
