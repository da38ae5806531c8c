"""An event loop whose clock jumps to the next timer instead of waiting for it. For code without sockets."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("deadlock: everybody waits and there is no timer")
        self.now += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _JumpingSelector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now

    def spend(self, seconds: float) -> None:
        """The program is busy: time passes and nothing runs."""
        self.selector.now += seconds


def run_virtually(main: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run` in virtual time; `asyncio.get_running_loop().time` is the clock to hand out."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
