"""An event loop on which computing takes real time and waiting takes none.

While an engine works, the loop's clock runs as a real one does, so recognition, the model and the voice cost what they
cost in a call, and the caller speaks on meanwhile. While nobody works, the clock jumps to the next timer. A call is
the same call, with the idle time left out.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Busy:
    """Counts what is being computed. `with busy:` around the work; for one event loop's thread."""

    def __init__(self) -> None:
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._count -= 1


class _SkippingSelector(selectors.BaseSelector):
    """Waits only for work; any other wait is added to `skipped` at once."""

    def __init__(self, busy: Busy) -> None:
        self._real = selectors.DefaultSelector()
        self._busy = busy
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._busy or timeout is None:
            return self._real.select(timeout)
        self.skipped += timeout
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> Any:
        return self._real.unregister(fileobj)

    def get_map(self) -> Any:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class FastLoop(asyncio.SelectorEventLoop):
    """Wrap work that the loop cannot see in `with loop.busy:`; jobs of its own executor count by themselves."""

    def __init__(self) -> None:
        self.busy = Busy()
        self._skipping = _SkippingSelector(self.busy)
        super().__init__(self._skipping)

    def time(self) -> float:
        return time.monotonic() + self._skipping.skipped

    @property
    def skipped(self) -> float:
        """Seconds that passed on this loop's clock and nowhere else."""
        return self._skipping.skipped

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        self.busy.__enter__()
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: self.busy.__exit__(None, None, None))
        return future
