"""An event loop whose time jumps to the next timer when every task waits: an hour of call runs in milliseconds.

Threads would outrun a jumping clock, so `run_in_executor` runs its job inline. A wait that no timer and no task will
ever end is reported as a deadlock instead of hanging. Timers of the same moment run in the order they were set.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class _JumpingSelector(selectors.BaseSelector):
    """Never sleeps: adds the time that would have been slept to the loop's clock."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = self._real.select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: every task waits and no timer is set")
        self.now += timeout
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> Any:
        return self._real.unregister(fileobj)

    def get_map(self) -> Any:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9
        self._nudges = 0

    def time(self) -> float:
        return self._jumping.now

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, **options: Any) -> asyncio.TimerHandle:  # type: ignore[override]
        # asyncio's heap is not first-in-first-out for equal moments; a hundredth of a nanosecond makes it so.
        self._nudges += 1
        return super().call_at(when + self._nudges * 1e-11, callback, *args, **options)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run_virtual(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a fresh virtual loop and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
