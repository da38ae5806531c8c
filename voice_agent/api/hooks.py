"""Hooks: functions of the embedding program that are told what happens in its calls.

Every hook has a line of its own in every call: it is called with one event after the other, in order, and the next one
waits until the last was dealt with. Hooks do not wait for each other, and no call waits for a hook. An exception in a
hook is logged and ends nothing. Lines are bounded; a hook that stays behind loses the oldest events.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from voice_agent.api.call import Call
from voice_agent.api.events import CallBegan, CallEnded, CallEvent, TurnReported, event_of
from voice_agent.errors import TransportClosed
from voice_agent.session.session import Session

log = logging.getLogger(__name__)

E = TypeVar("E", bound=CallEvent)
Hook: TypeAlias = Callable[[Call, E], Awaitable[None] | None]

LONGEST_LINE = 256
"""Events that wait for one hook in one call."""
GRACE = 2.0
"""Seconds after the end of a call in which its hooks may finish; then they are cancelled."""


class Hooks:
    def __init__(self) -> None:
        self._hooks: list[tuple[tuple[type[CallEvent], ...], Hook[Any]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        """Of hooks that finish after their call."""
        self._calls: dict[str, Call] = {}

    def add(self, kinds: tuple[type[CallEvent], ...], hook: Hook[Any]) -> None:
        """From the next call on, `hook` is told of events of these kinds."""
        self._hooks.append((kinds, hook))

    def attend(self, session: Session) -> Callable[[dict[str, Any]], None]:
        """A call begins: what it returns takes the call's messages (see `session.factory.Attend`)."""
        call = self._calls[session.id] = Call(session)
        lines = [(kinds, _Line(call, hook)) for kinds, hook in self._hooks]
        reported = 0
        began = False

        def tell(event: CallEvent) -> None:
            for kinds, line in lines:
                if isinstance(event, kinds):
                    line.put(event)

        def message(message: dict[str, Any]) -> None:
            nonlocal reported, began
            if not began:
                began = True
                tell(CallBegan())
            event = event_of(message)
            if event is None or (isinstance(event, TurnReported) and event.turn <= reported):
                return  # the apology for a broken reply brings that reply's report once more
            if isinstance(event, TurnReported):
                reported = event.turn
            if isinstance(event, CallEnded):
                call.end_reason = event.reason
                self._calls.pop(call.id, None)
            tell(event)
            if isinstance(event, CallEnded):
                for _, line in lines:
                    line.end()
                    self._tasks.add(line.task)
                    line.task.add_done_callback(self._tasks.discard)

        return message

    def call(self, session_id: str) -> Call:
        """The running call of that session."""
        return self._calls[session_id]

    async def finish(self) -> None:
        """Wait for hooks of calls that are over; GRACE bounds it."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks)


class _Line:
    """What one hook is yet to be told of one call. Begins with the first event."""

    def __init__(self, call: Call, hook: Hook[Any]) -> None:
        self._call = call
        self._hook = hook
        self._queue: asyncio.Queue[CallEvent | None] = asyncio.Queue()
        self._lost = 0
        self._name = getattr(hook, "__qualname__", repr(hook))
        self.task = asyncio.create_task(self._run(), name=f"hook {self._name} of call {call.id}")

    def put(self, event: CallEvent) -> None:
        if self._queue.qsize() >= LONGEST_LINE:
            self._queue.get_nowait()
            self._lost += 1
            if self._lost == 1:
                log.warning("! %s hook %s is too slow: it loses events", self._call.id, self._name)
        self._queue.put_nowait(event)

    def end(self) -> None:
        """No more comes: the hook may deal with what waits until its time is up."""
        self._queue.put_nowait(None)
        timer = asyncio.get_running_loop().call_later(GRACE, self.task.cancel)
        self.task.add_done_callback(lambda _: timer.cancel())

    async def _run(self) -> None:
        while (event := await self._queue.get()) is not None:
            try:
                waiting = self._hook(self._call, event)
                if inspect.isawaitable(waiting):
                    await waiting
            except TransportClosed as error:
                log.info("x %s hook %s ends: %s", self._call.id, self._name, error)
            except Exception:  # a fault of the program's is not the caller's: the call goes on
                log.exception("! %s hook %s failed at %s", self._call.id, self._name, type(event).__name__)
