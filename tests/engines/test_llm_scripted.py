from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable

import pytest

from tests.contracts.language_model import LanguageModelContract, chat
from voice_agent.engines.ports import TextDelta
from voice_agent.engines.scripted_llm import REPLY, ScriptedEngine


class TestContract(LanguageModelContract):
    @pytest.fixture
    def engine(self) -> ScriptedEngine:
        return ScriptedEngine(rate_tokens_per_s=1e6, first_token_s=0.0)

    @pytest.fixture
    def make(self) -> Callable[[], ScriptedEngine]:
        return lambda: ScriptedEngine(rate_tokens_per_s=1e6, first_token_s=0.0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Time passes only when everybody waits, and then at once."""

    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Selector(selectors.SelectSelector):
            def select(self, timeout: float | None = None):
                loop.now += timeout or 0.0
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now


def test_tokens_come_at_the_set_rate() -> None:
    engine = ScriptedEngine(rate_tokens_per_s=50.0, first_token_s=0.2, reply="One two three. Four!")

    async def scenario() -> list[tuple[float, str]]:
        loop = asyncio.get_running_loop()
        events = engine.stream(chat("Hello"))
        return [(round(loop.time(), 6), event.text) async for event in events if isinstance(event, TextDelta)]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(scenario()) == [(0.2, "One"), (0.22, " two"), (0.24, " three."), (0.26, " Four!")]


def test_a_slow_reader_does_not_shift_the_clock() -> None:
    engine = ScriptedEngine(rate_tokens_per_s=10.0, first_token_s=0.0, reply="a b c d")

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        async for event in engine.stream(chat("Hello")):
            if event == TextDelta("a"):
                await asyncio.sleep(0.15)
        return loop.time()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(scenario()) == pytest.approx(0.3)


def test_every_reply_is_the_same_text() -> None:
    engine = ScriptedEngine(rate_tokens_per_s=1e6, first_token_s=0.0)

    async def say() -> str:
        events = engine.stream(chat("Hello", max_tokens=100))
        return "".join([event.text async for event in events if isinstance(event, TextDelta)])

    assert asyncio.run(say()) == asyncio.run(say()) == REPLY
