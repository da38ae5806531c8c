"""Lets short urgent inference go before long patient inference on a machine with few cores.

Token generation runs for seconds; recognition, end-of-turn scoring and synthesis run for tens of milliseconds and a
person waits for them. Running both at once on two cores makes both slow (spinning barriers, shared caches). So the
patient side asks between two steps whether somebody urgent is at work, and waits for a bounded moment if so.
"""

from __future__ import annotations

import threading
from types import TracebackType


class CpuGate:
    """Thread-safe. `with gate:` marks urgent work; `wait_clear` is called by the patient side between its steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent = 0
        self._clear = threading.Event()
        self._clear.set()

    def enter(self) -> None:
        """Urgent work begins, or waits for a thread; `leave` must follow."""
        with self._lock:
            self._urgent += 1
            self._clear.clear()

    def leave(self) -> None:
        with self._lock:
            self._urgent -= 1
            if self._urgent == 0:
                self._clear.set()

    def __enter__(self) -> None:
        self.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def wait_clear(self, timeout: float = 0.25) -> bool:
        """Block until nobody urgent is at work or `timeout` seconds passed; says whether it is clear."""
        return self._clear.wait(timeout)
