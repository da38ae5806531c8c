"""The one bridge between the engine's thread and an event loop: a bounded mailbox per request.

The thread posts, the loop takes. A reader that falls behind makes the mailbox full; the thread then leaves that
request out of its batches, so that nothing is generated that nobody takes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from voice_agent.engines.ports import ChatRequest, LanguageEvent
from voice_agent.errors import EngineError

MAILBOX = 32
"""Events a reader may be behind."""

Message = LanguageEvent | EngineError | float | None


class Ticket:
    """Made on the loop that reads it. `post`, `hold` and `cancelled` are for the engine's thread."""

    def __init__(self, request: ChatRequest, *, reply: bool, wake: Callable[[], None]) -> None:
        self.request = request
        self.reply = reply
        """True: generate; False: only the probability that the turn is over."""
        self.cancelled = False
        self.finished = False
        """Set by the engine's thread once it will post no more."""
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._mailbox: asyncio.Queue[Message] = asyncio.Queue()
        # Each counter has one writer, so neither needs a lock.
        self._posted = 0
        self._taken = 0
        self._held = False
        self._caught_up = threading.Event()

    def hold(self) -> bool:
        """Whether the mailbox is full; if so, `wake` is called once it is not."""
        # The flag goes up before the check, so that a reader who empties the mailbox in between sees it.
        self._held = True
        self._held = self._full()
        return self._held

    def post(self, message: Message) -> None:
        """Hand over one message; from the engine's thread."""
        self._posted += 1
        self._caught_up.clear()
        try:
            self._loop.call_soon_threadsafe(self._mailbox.put_nowait, message)
        except RuntimeError:  # the loop is closed: its reader can only be gone
            self.cancelled = True

    def wait_until_read(self, timeout: float) -> None:
        """Block until the reader has dealt with everything posted, and what that set off has begun; at most `timeout`
        seconds. From the engine's thread."""
        self._caught_up.wait(timeout)

    async def take(self) -> LanguageEvent | float | None:
        """The next message, in order. Raises the EngineError that ended the request. Cancelling loses nothing."""
        if self._mailbox.empty():
            # After all that is scheduled already: a clause this reader has just handed on is being spoken by then.
            self._loop.call_soon(self._caught_up.set)
        message = await self._mailbox.get()
        self._taken += 1
        if self._held and not self._full():
            self._wake()
        if isinstance(message, EngineError):
            raise message
        return message

    def cancel(self) -> None:
        """The reader is gone; no effect on a request that is over."""
        if not self.finished:
            self.cancelled = True
            self._wake()

    def _full(self) -> bool:
        return self._posted - self._taken >= MAILBOX
