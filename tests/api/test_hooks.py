"""Hooks in whole calls on a virtual loop: order, independence, and that no fault of theirs touches the call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.session.rig import Call as RigCall
from voice_agent.api.call import Call
from voice_agent.api.events import (
    CallBegan,
    CallEnded,
    CallEvent,
    PartialTranscript,
    Problem,
    ReplyEnded,
    TurnEnded,
    TurnReported,
    event_of,
)
from voice_agent.api.hooks import GRACE, LONGEST_LINE, Hooks
from voice_agent.errors import EngineError
from voice_agent.session.session import Session

ANSWER = "It is far away from here my friend."


def hold(hooks: Hooks, **call: Any) -> RigCall:
    """A call with these hooks: one question from 1.0 to 2.0, one answer."""

    def attend(session: Session) -> None:
        session._publisher.listener = hooks.attend(session)

    chosen = {"speech": [(1.0, 2.0)], "texts": ["How far is the moon?"], "during": attend, **call}
    return RigCall(**chosen).run()


def collect(hooks: Hooks, *kinds: type[CallEvent]) -> list[CallEvent]:
    heard: list[CallEvent] = []
    hooks.add(kinds or (CallEvent,), lambda call, event: heard.append(event))
    return heard


def test_a_call_is_told_in_order() -> None:
    hooks = Hooks()
    heard = collect(hooks)
    hold(hooks)
    kinds = [type(event) for event in heard]
    assert kinds[0] is CallBegan
    assert kinds[-1] is CallEnded
    assert [kind for kind in kinds if kind in (TurnEnded, ReplyEnded, TurnReported)] == [
        TurnEnded,
        ReplyEnded,
        TurnReported,
    ]
    assert TurnEnded(1, "How far is the moon?") in heard
    assert ReplyEnded(1, ANSWER, False) in heard


def test_a_report_comes_once_and_its_stages_sum_up() -> None:
    hooks = Hooks()
    heard = collect(hooks, TurnReported)
    hold(hooks)
    (report,) = heard
    assert isinstance(report, TurnReported)
    assert report.voice_to_voice_ms == pytest.approx(sum(report.stages_ms.values()), abs=0.5)
    assert report.user_text == "How far is the moon?"


def test_a_broken_reply_is_reported_once_though_an_apology_follows() -> None:
    hooks = Hooks()
    heard = collect(hooks, TurnReported, Problem)
    hold(hooks, answers=[EngineError("llm", "broken", "no more")])
    assert [type(event) for event in heard] == [Problem, TurnReported]


def test_a_hook_hears_only_what_it_asked_for() -> None:
    hooks = Hooks()
    heard = collect(hooks, CallEnded, TurnEnded)
    hold(hooks)
    assert [type(event) for event in heard] == [TurnEnded, CallEnded]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_exception_in_a_hook_is_logged_and_ends_nothing(
    asynchronous: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(call: Call, event: CallEvent) -> None:
        raise RuntimeError("my shop is on fire")

    async def broken_later(call: Call, event: CallEvent) -> None:
        raise RuntimeError("my shop is on fire")

    hooks = Hooks()
    hooks.add((TurnEnded,), broken_later if asynchronous else broken)
    heard = collect(hooks)
    with caplog.at_level(logging.ERROR):
        call = hold(hooks)
    assert call.reason == "caller hung up"
    assert call.history[-1] == ("assistant", ANSWER)
    assert type(heard[-1]) is CallEnded
    (record,) = [record for record in caplog.records if "hook" in record.message]
    assert "broken" in record.message
    assert "TurnEnded" in record.message
    assert record.exc_info


def test_a_waiting_hook_holds_up_neither_the_call_nor_other_hooks() -> None:
    async def slow(call: Call, event: CallEvent) -> None:
        await asyncio.sleep(1000)

    hooks = Hooks()
    hooks.add((CallEvent,), slow)
    heard = collect(hooks)
    call = hold(hooks)
    assert call.history[-1] == ("assistant", ANSWER)
    assert type(heard[-1]) is CallEnded


def test_one_hook_gets_one_event_after_the_other() -> None:
    busy = 0
    seen: list[type[CallEvent]] = []

    async def careful(call: Call, event: CallEvent) -> None:
        nonlocal busy
        busy += 1
        assert busy == 1
        await asyncio.sleep(0.3)
        busy -= 1
        seen.append(type(event))

    hooks = Hooks()
    hooks.add((TurnEnded, ReplyEnded), careful)
    hold(hooks)
    assert seen == [TurnEnded, ReplyEnded]


def with_line(steps: Callable[[Hooks, Callable[[dict[str, Any]], None]], Any], hooks: Hooks) -> None:
    """A call that only exists for its messages."""

    class NoSession:
        id = "call-1"

    async def run() -> None:
        loop = asyncio.get_running_loop()
        await steps(hooks, hooks.attend(NoSession()))  # type: ignore[arg-type]
        assert loop.is_running()

    from tests.virtual_loop import run_virtual

    run_virtual(run())


def test_a_hook_that_stays_behind_loses_the_oldest_events_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    turns: list[int] = []
    go_on: list[asyncio.Event] = []

    async def slow(call: Call, event: PartialTranscript) -> None:
        await go_on[0].wait()
        turns.append(event.turn)

    async def steps(hooks: Hooks, tell: Callable[[dict[str, Any]], None]) -> None:
        go_on.append(asyncio.Event())
        for turn in range(LONGEST_LINE + 10):
            tell({"type": "transcript.partial", "turn": turn, "text": "…"})
        go_on[0].set()
        await asyncio.sleep(1)
        tell({"type": "session.ended", "reason": "hang-up"})
        await hooks.finish()

    hooks = Hooks()
    hooks.add((PartialTranscript,), slow)
    with caplog.at_level(logging.WARNING):
        with_line(steps, hooks)
    assert turns == list(range(10, LONGEST_LINE + 10))
    assert [record.message for record in caplog.records if "too slow" in record.message]


def test_hooks_may_finish_after_the_call_but_not_for_ever() -> None:
    done: list[str] = []

    async def quick(call: Call, event: CallEnded) -> None:
        await asyncio.sleep(GRACE / 2)
        done.append("quick")

    async def endless(call: Call, event: CallEnded) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            done.append("cancelled")

    async def steps(hooks: Hooks, tell: Callable[[dict[str, Any]], None]) -> None:
        began = asyncio.get_running_loop().time()
        tell({"type": "session.ended", "reason": "hang-up"})
        await hooks.finish()
        assert asyncio.get_running_loop().time() - began == pytest.approx(GRACE)
        assert len(asyncio.all_tasks()) == 1

    hooks = Hooks()
    hooks.add((CallEnded,), quick)
    hooks.add((CallEnded,), endless)
    with_line(steps, hooks)
    assert done == ["quick", "cancelled"]


def test_the_call_that_hooks_get_knows_how_it_ended_and_what_was_said() -> None:
    seen: list[tuple[str | None, int, int]] = []

    def end(call: Call, event: CallEnded) -> None:
        seen.append((call.end_reason, len(call.history), len(call.reports)))

    hooks = Hooks()
    hooks.add((CallEnded,), end)
    hold(hooks)
    assert seen == [("caller hung up", 3, 1)]


def test_messages_without_an_event_are_passed_over() -> None:
    assert event_of({"type": "pong", "id": 1}) is None
    assert event_of({"type": "turn.report", "final": False, "report": {}}) is None
    assert event_of({"type": "error", "code": "x", "message": "y"}) == Problem("x", "y")
