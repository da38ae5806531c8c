"""A bounded queue that never blocks the sender: the oldest item makes room."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """For one event loop. `items()` ends once the box is closed and empty, for however many readers there are."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.dropped = 0
        """Items nobody took in time."""
        self._items: deque[Item] = deque()
        self._closed = False
        self._changed = asyncio.Event()

    def put(self, item: Item) -> None:
        """Add an item; ignored after `close`."""
        if self._closed:
            return
        if len(self._items) >= self.capacity:
            self._items.popleft()
            self.dropped += 1
        self._items.append(item)
        self._changed.set()

    def close(self) -> None:
        """No more items come; what is in the box can still be read."""
        self._closed = True
        self._changed.set()

    def __len__(self) -> int:
        return len(self._items)

    async def items(self) -> AsyncIterator[Item]:
        """Safe to cancel: an item is either given or still in the box."""
        while True:
            while self._items:
                yield self._items.popleft()
            if self._closed:
                return
            self._changed.clear()
            await self._changed.wait()
