"""Runs blocking model calls on threads of their own, away from the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.errors import EngineError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Job:
    """One call, its future and the loop that waits for it."""

    __slots__ = ("call", "future", "loop")

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    def deliver(self, result: Any, error: BaseException | None) -> None:
        """Hand the outcome to the waiting loop, from any thread."""
        try:
            self.loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            # The loop is closed, so nobody waits any more: the outcome of an abandoned call is dropped.
            return

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class Worker:
    """A bounded queue and named daemon threads; with one thread, calls run in the order they came.

    It belongs to no event loop: several loops may use it, one after the other or at once.
    """

    def __init__(self, name: str, threads: int = 1, limit: int = 64, gate: CpuGate | None = None) -> None:
        """`limit` counts waiting calls, not running ones. With `gate`, calls count as urgent from when they are asked
        for until they are through."""
        self.name = name
        self._limit = limit
        self._gate = gate
        self._queue: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many calls are queued and not yet started."""
        with self._changed:
            return len(self._queue)

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call `function(*args)` on a thread of this worker and wait for its result.

        Cancelling takes a waiting call out of the queue; a running one finishes and its result is dropped.
        Raises EngineError: `busy` when the queue is full, `closed` after `close`, `failed` (with the cause attached)
        when the function raised anything but an EngineError.
        """
        job = _Job(lambda: function(*args), asyncio.get_running_loop())
        with self._changed:
            if self._closed:
                raise self._error_closed()
            if len(self._queue) >= self._limit:
                raise EngineError(self.name, "busy", f"{self._limit} calls are waiting already; try again later")
            self._queue.append(job)
            if self._gate is not None:
                self._gate.enter()
            self._changed.notify()
        try:
            result: T = await job.future
        except asyncio.CancelledError:
            self._withdraw(job)
            raise
        return result

    def close(self) -> None:
        """Refuse waiting and further calls, let running ones finish, and join the threads. Safe to call twice."""
        with self._changed:
            self._closed = True
            dropped = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        for job in dropped:
            self._leave_gate()
            job.deliver(None, self._error_closed())
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    async def close_async(self) -> None:
        """`close` without blocking the event loop while a running call finishes."""
        await asyncio.to_thread(self.close)

    def _error_closed(self) -> EngineError:
        return EngineError(self.name, "closed", "the engine has been closed")

    def _withdraw(self, job: _Job) -> None:
        with self._changed:
            if job in self._queue:
                self._queue.remove(job)
                self._leave_gate()

    def _leave_gate(self) -> None:
        if self._gate is not None:
            self._gate.leave()

    def _next(self) -> _Job | None:
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            return self._queue.popleft() if self._queue else None

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.deliver(*self._perform(job.call))
            # Otherwise the last result (and its arrays) would live until the next call.
            del job

    def _perform(self, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            return call(), None
        except EngineError as error:
            return None, error
        except Exception as error:
            wrapped = EngineError(self.name, "failed", f"{type(error).__name__}: {error}")
            wrapped.__cause__ = error
            return None, wrapped
        finally:
            self._leave_gate()
