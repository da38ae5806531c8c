"""The book of calls: limits without races, slots that come back, records that stay for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from tests.session.rig import FakeTransport
from tests.virtual_loop import run_virtual
from voice_agent.core.commands import Message
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.core.events import TextTyped
from voice_agent.errors import OfferError
from voice_agent.session.calls import CallBook
from voice_agent.session.factory import SessionFactory
from voice_agent.transports.ports import Transport


class Counter:
    def __init__(self) -> None:
        self.ended: list[str] = []

    def session_started(self) -> None:
        """Counted by the book itself."""

    def session_ended(self, reason: str) -> None:
        self.ended.append(reason)


class IdleSession:
    """Runs until it is hung up."""

    def __init__(self, transport: Transport, earlier: tuple[Message, ...]) -> None:
        self.conversation = Conversation(ConversationSettings(system_prompt="Be brief."), earlier)
        self._transport = transport
        self._over = asyncio.Event()
        self._why = ""

    async def run(self) -> str:
        await self._over.wait()
        await self._transport.close(self._why)
        return self._why

    def hang_up(self, reason: str = "hang-up") -> None:
        self._why = reason
        self._over.set()


class Factory:
    def __init__(self, failing: bool = False) -> None:
        self._failing = failing

    def build(self, session_id: str, transport: Transport, earlier: tuple[Message, ...] = ()) -> IdleSession:
        if self._failing:
            raise RuntimeError("no session today")
        return IdleSession(transport, earlier)


class Rig:
    def __init__(self, limit: int = 3, keep: float = 600.0, *, failing: bool = False) -> None:
        self.transports: list[FakeTransport] = []
        self.now = 0.0
        self.metrics = Counter()
        self.book = CallBook(self._connect, limit, keep, self.metrics, lambda: self.now)
        self.book.open(cast(SessionFactory, Factory(failing)))

    async def _connect(self, sdp: str, kind: str) -> tuple[Transport, str]:
        await asyncio.sleep(0.1)
        if sdp == "bad":
            raise OfferError(400, "bad_sdp", "not an offer")
        transport = FakeTransport([], 1.0)
        self.transports.append(transport)
        return transport, "answer"

    async def offer(self, sdp: str = "offer") -> str | int:
        """The session id, or the status of the refusal."""
        try:
            return (await self.book.accept(sdp, "offer", {}))[2]
        except OfferError as error:
            return error.status


def run(story: Callable[[], Awaitable[Any]]) -> None:
    async def main() -> None:
        await story()

    run_virtual(main())


@pytest.mark.parametrize("round_number", range(5))
def test_simultaneous_offers_never_exceed_the_limit(round_number: int) -> None:
    """K04: a slot is taken before anything is awaited."""

    async def story() -> None:
        rig = Rig(limit=3)
        for _ in range(10):
            results = await asyncio.gather(*(rig.offer() for _ in range(20)))
            accepted = [result for result in results if isinstance(result, str)]
            assert len(accepted) == 3
            assert [result for result in results if not isinstance(result, str)] == [503] * 17
            await asyncio.gather(*(rig.book.hang_up(session) for session in accepted))
            assert rig.book.active == 0

    run(story)


def test_a_refused_or_broken_offer_gives_its_slot_back() -> None:
    async def story() -> None:
        rig = Rig(limit=1)
        for _ in range(5):
            assert await rig.offer("bad") == 400
        assert isinstance(await rig.offer(), str)

    run(story)


def test_a_session_that_cannot_be_built_closes_its_transport_and_gives_its_slot_back() -> None:
    async def story() -> None:
        rig = Rig(limit=1, failing=True)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no session today"):
                await rig.offer()
        assert [transport.closed for transport in rig.transports] == ["error", "error"]
        assert rig.book.active == 0

    run(story)


def test_starting_and_stopping_again_and_again_is_always_accepted() -> None:
    """H03."""

    async def story() -> None:
        rig = Rig(limit=1)
        for _ in range(10):
            session = await rig.offer()
            assert isinstance(session, str)
            assert await rig.book.hang_up(session)
        assert rig.metrics.ended == ["hang-up"] * 10

    run(story)


def test_an_ended_call_stays_readable_for_its_time_and_can_be_hung_up_again() -> None:
    async def story() -> None:
        rig = Rig(keep=600.0)
        session = str(await rig.offer())
        assert await rig.book.hang_up(session)
        rig.now = 599.0
        assert await rig.book.hang_up(session)
        report, history = rig.book.report(session), rig.book.history(session)
        assert report is not None
        assert report["end_reason"] == "hang-up"
        assert history is not None
        assert history["messages"] == [{"role": "system", "content": "Be brief."}]
        rig.now = 601.0
        assert rig.book.report(session) is None
        assert not await rig.book.hang_up(session)

    run(story)


def test_a_running_call_is_never_forgotten() -> None:
    async def story() -> None:
        rig = Rig(keep=1.0)
        session = str(await rig.offer())
        rig.now = 1e6
        assert rig.book.report(session) is not None
        await rig.book.close()

    run(story)


def test_closing_ends_all_calls_and_refuses_new_ones() -> None:
    async def story() -> None:
        rig = Rig()
        assert isinstance(await rig.offer(), str)
        assert isinstance(await rig.offer(), str)
        await rig.book.close()
        assert rig.book.active == 0
        assert await rig.offer() == 503

    run(story)


def test_before_the_models_are_loaded_offers_are_refused_with_a_reason() -> None:
    async def story() -> None:
        book = CallBook(Rig()._connect, 1, 1.0, Counter(), lambda: 0.0)
        book.loading(["recognition"])
        assert book.progress()["loading"] == ["recognition"]
        with pytest.raises(OfferError, match="loading") as refused:
            await book.accept("offer", "offer", {})
        assert refused.value.status == 503

    run(story)


def test_whoever_comes_back_is_remembered_and_frees_the_line_they_lost() -> None:
    async def story() -> None:
        rig = Rig(limit=1)
        lost = str(await rig.offer())
        record = rig.book._records[lost]
        record.conversation.handle(TextTyped(0.0, "My name is Ada."), 0.0)
        _, _, again = await rig.book.accept("offer", "offer", {"continues": lost})
        assert rig.book.active == 1
        assert rig.metrics.ended == ["hang-up"]
        history = rig.book.history(again)
        assert history is not None
        assert [message["content"] for message in history["messages"]] == ["Be brief.", "My name is Ada."]
        await rig.book.close()

    run(story)


@pytest.mark.parametrize("nonsense", ["", "no such call", 7, None, ["x"], {"a": 1}])
def test_coming_back_to_a_call_that_nobody_knows_begins_a_new_one(nonsense: Any) -> None:
    async def story() -> None:
        rig = Rig()
        _, _, session = await rig.book.accept("offer", "offer", {"continues": nonsense})
        history = rig.book.history(session)
        assert history is not None
        assert [message["role"] for message in history["messages"]] == ["system"]
        await rig.book.close()

    run(story)


def test_an_offer_that_cannot_be_served_leaves_the_call_it_would_have_continued() -> None:
    async def story() -> None:
        rig = Rig(limit=1)
        lost = str(await rig.offer())
        with pytest.raises(OfferError):
            await rig.book.accept("bad", "offer", {"continues": lost})
        assert rig.book.active == 1
        assert rig.metrics.ended == []
        _, _, again = await rig.book.accept("offer", "offer", {"continues": lost})
        assert rig.book.active == 1
        assert again != lost

    run(story)
