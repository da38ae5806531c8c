"""A language model that always says the same, at a set rate: load tests without a model (VOICE_AGENT_LLM=scripted)."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import AsyncGenerator

from voice_agent.engines.detokenise import Detokeniser
from voice_agent.engines.llm_statistics import LanguageStatistics
from voice_agent.engines.ports import ChatMessage, ChatRequest, GenerationEnded, LanguageEvent, TextDelta
from voice_agent.errors import EngineError

REPLY = (
    "Thank you for calling. I am a scripted reply, and I always say the same words at the same speed. "
    "That makes it easy to compare one run with another. What else can I do for you?"
)


class ScriptedEngine:
    """A token is a word with the space before it. Deltas come at `first_token_s` and then every 1/rate seconds,
    counted from the request, on the event loop's own timers; nothing is computed."""

    def __init__(self, *, rate_tokens_per_s: float = 40.0, first_token_s: float = 0.1, reply: str = REPLY) -> None:
        self._interval = 1 / rate_tokens_per_s
        self._first = first_token_s
        self._tokens = re.findall(r"\s*\S+", reply)
        self._seen: dict[str, tuple[ChatMessage, ...]] = {}
        self._statistics = LanguageStatistics()
        self._closed = False

    async def stream(self, request: ChatRequest) -> AsyncGenerator[LanguageEvent, None]:
        """See `LanguageModel.stream`. Raises EngineError `closed`."""
        self._check_open()
        loop = asyncio.get_running_loop()
        due = loop.time() + self._first
        prompt = sum(_words(message) for message in request.messages)
        cached = self._cached(request)
        self._count(requests=1, active=1, cached_tokens=cached, prefilled_tokens=prompt - cached)
        text = Detokeniser(request.stop)
        said = 0
        ended = False
        try:
            while said < min(len(self._tokens), request.max_tokens) and not text.stopped:
                await asyncio.sleep(max(due - loop.time(), 0))
                self._check_open()
                due += self._interval
                piece = self._tokens[said]
                said += 1
                self._count(steps=1, decoded_tokens=1)
                if ready := text.feed(piece.encode()):
                    yield TextDelta(ready)
            if held := text.finish():
                yield TextDelta(held)
            complete = text.stopped or said == len(self._tokens)
            self._count(active=-1)
            ended = True
            yield GenerationEnded("stop" if complete else "length", prompt, cached, said)
        finally:
            if not ended:
                self._count(active=-1, cancelled=1)

    async def end_of_turn(self, request: ChatRequest) -> float | None:
        """Cannot tell."""
        self._check_open()
        return None

    def forget(self, conversation: str) -> None:
        self._seen.pop(conversation, None)

    async def warm_up(self) -> None:
        """Nothing to warm."""

    async def close(self) -> None:
        """Running streams end with EngineError `closed` at their next token."""
        self._closed = True

    def statistics(self) -> LanguageStatistics:
        return self._statistics

    def _cached(self, request: ChatRequest) -> int:
        """Words of the messages this conversation's last request began with, as a real cache would keep them."""
        before = self._seen.get(request.conversation, ())
        self._seen[request.conversation] = request.messages
        same = 0
        for old, new in zip(before, request.messages, strict=False):
            if old != new:
                break
            same += _words(new)
        return same

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError("llm", "closed", "the engine is closed")

    def _count(self, **more: int) -> None:
        now = self._statistics
        changed = {name: getattr(now, name) + value for name, value in more.items()}
        self._statistics = dataclasses.replace(now, **changed)


def _words(message: ChatMessage) -> int:
    return len(message.content.split())
