"""Who waits for the texts the program wanted said."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from voice_agent.core.commands import CloseReply
from voice_agent.core.events import SayAsked
from voice_agent.errors import TransportClosed, VoiceAgentError

MOST = 64
"""Texts of one call that may wait; a program that asks for more does not listen to its own call."""


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a text."""

    heard: str
    """The words the listener heard, to the playhead."""
    interrupted: bool
    """Whether it was cut off: by the caller, by a text said at once, or by the end of the call."""


class Sayings:
    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Said]] = {}
        self._over = False

    def ask(self, at: float, text: str, *, interruptible: bool, at_once: bool) -> tuple[SayAsked, asyncio.Future[Said]]:
        """The event for the core, and what to wait for. Raises TransportClosed: the call is over; ValueError: no text;
        VoiceAgentError: too many wait already."""
        if self._over:
            raise TransportClosed("the call is over: nothing can be said any more")
        if not text.strip():
            raise ValueError("say() needs a text")
        if len(self._waiting) >= MOST:
            raise VoiceAgentError(f"{MOST} texts wait to be said already: await say() before asking for the next")
        self._last += 1
        future: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self._waiting[self._last] = future
        return SayAsked(at, self._last, text.strip(), interruptible, at_once), future

    def closed(self, command: CloseReply) -> None:
        future = self._waiting.pop(-command.turn, None)
        if future is not None and not future.done():
            future.set_result(Said(command.heard_text, command.interrupted))

    def call_over(self) -> None:
        """What has not begun never will."""
        self._over = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(TransportClosed("the call ended before the text was said"))
                future.exception()  # looked at: whoever stopped waiting must not leave a warning behind
        self._waiting.clear()
