"""`Call.say` in whole calls on a virtual loop: what the listener hears, and what the waiting program is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.session.rig import Call as RigCall
from voice_agent.api.call import Call, Said
from voice_agent.api.events import CallBegan
from voice_agent.api.hooks import Hooks
from voice_agent.errors import TransportClosed, VoiceAgentError
from voice_agent.session.sayings import MOST
from voice_agent.session.session import Session

NOTICE = "This call is recorded for training."
"""Six words, 2.4 s in the fake voice."""


def hold(program: Callable[[Call], Awaitable[None]], **call: Any) -> RigCall:
    """A call of 12 s in which the program does something from the beginning."""
    hooks = Hooks()

    async def begin(call: Call, event: CallBegan) -> None:
        await program(call)

    hooks.add((CallBegan,), begin)

    def attend(session: Session) -> None:
        session._publisher.listener = hooks.attend(session)

    return RigCall(**{"speech": [], "texts": [""], "during": attend, **call}).run()


def test_it_tells_what_was_heard() -> None:
    said: list[Said] = []

    async def program(call: Call) -> None:
        said.append(await call.say(NOTICE))

    call = hold(program)
    assert said == [Said(NOTICE, False)]
    assert call.history == [("assistant", NOTICE)]


def test_it_waits_for_the_greeting() -> None:
    async def program(call: Call) -> None:
        await call.say(NOTICE)

    call = hold(program, greeting="Hello there.")
    assert call.history == [("assistant", f"Hello there. {NOTICE}")]
    assert [message["turn"] for message in call.transport.of("reply.done")] == [0, -1]


def test_an_interruptible_text_is_cut_off_by_words() -> None:
    said: list[Said] = []

    async def program(call: Call) -> None:
        said.append(await call.say(NOTICE))

    call = hold(program, speech=[(1.0, 1.6)], texts=["How far is the moon?"])
    assert said[0].interrupted
    assert NOTICE.startswith(said[0].heard)
    assert said[0].heard != NOTICE
    assert len(call.transport.audible()) == 2


def test_speech_over_a_protected_text_leaves_no_gap_and_is_answered_afterwards() -> None:
    said: list[Said] = []

    async def program(call: Call) -> None:
        said.append(await call.say(NOTICE, interruptible=False))

    call = hold(program, speech=[(0.8, 2.2)], texts=["How far is the moon?"])
    assert said == [Said(NOTICE, False)]
    first, second = call.transport.audible()
    assert first[1] - first[0] == pytest.approx(2.4, abs=0.03)
    assert second[0] > first[1]
    assert call.history == [
        ("assistant", NOTICE),
        ("user", "How far is the moon?"),
        ("assistant", "It is far away from here my friend."),
    ]


def test_the_stop_button_does_not_stop_it() -> None:
    said: list[Said] = []

    async def program(call: Call) -> None:
        said.append(await call.say(NOTICE, interruptible=False))

    hold(program, at=[(1.0, {"type": "interrupt"})])
    assert said == [Said(NOTICE, False)]


def test_at_once_cuts_off_another_text() -> None:
    said: list[Said] = []

    async def program(call: Call) -> None:
        first = asyncio.create_task(call.say(NOTICE))
        await asyncio.sleep(1.0)
        said.append(await call.say("Fire! Leave now.", at_once=True))
        said.append(await first)

    hold(program)
    assert said[0] == Said("Fire! Leave now.", False)
    assert said[1].interrupted


def test_the_end_of_the_call_ends_the_wait() -> None:
    seen: list[object] = []

    async def program(call: Call) -> None:
        first = asyncio.create_task(call.say(NOTICE))
        second = asyncio.create_task(call.say("Second."))
        await asyncio.sleep(1.0)
        call.hang_up()
        seen.append(await first)
        for late in (second, call.say("Third.")):
            try:
                await late
            except TransportClosed as error:
                seen.append(type(error))

    call = hold(program)
    assert call.reason == "hang-up"
    assert isinstance(seen[0], Said)
    assert seen[0].interrupted
    assert seen[1:] == [TransportClosed, TransportClosed]


def test_a_program_that_stopped_waiting_is_not_missed() -> None:
    async def program(call: Call) -> None:
        task = asyncio.create_task(call.say(NOTICE))
        await asyncio.sleep(0.5)
        task.cancel()

    call = hold(program)
    assert call.reason == "caller hung up"
    assert call.history == [("assistant", NOTICE)]


def test_no_text_and_too_many_texts_are_refused() -> None:
    refused: list[str] = []

    async def program(call: Call) -> None:
        waiting = [asyncio.create_task(call.say("One more.")) for _ in range(MOST)]
        await asyncio.sleep(0)
        for text in (" ", "Too many."):
            try:
                await call.say(text)
            except (ValueError, VoiceAgentError) as error:
                refused.append(str(error))
        for task in waiting:
            task.cancel()

    hold(program)
    assert "needs a text" in refused[0]
    assert str(MOST) in refused[1]
