"""Calls that exist only as numbers: enough to test everything HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from voice_agent.errors import OfferError


@dataclass
class FakeCalls:
    limit: int = 3
    ready: bool = True
    loading: list[str] = field(default_factory=lambda: ["speech recognition"])
    gate: asyncio.Event | None = None
    """Where set, `accept` holds its slot and waits for it."""
    raises: Exception | None = None
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    entered: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, holds: Callable[[FakeCalls], bool]) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: holds(self))

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def progress(self) -> dict[str, Any]:
        return {"loading": self.loading}

    async def accept(self, sdp: str, type: str, fields: dict[str, Any], /) -> tuple[str, str, str]:
        self.entered += 1
        await self._notify()
        if self.raises:
            raise self.raises
        if len(self.live) >= self.limit:
            raise OfferError(503, "busy", f"all {self.limit} lines are taken")
        session_id = f"call-{len(self.live) + len(self.ended) + 1}"
        self.live[session_id] = {"sdp": sdp, "type": type, "fields": fields}
        if self.gate:
            await self.gate.wait()
        return f"answer to {sdp}", "answer", session_id

    def report(self, session_id: str, /) -> dict[str, Any] | None:
        return {"turns": []} if self._known(session_id) else None

    def history(self, session_id: str, /) -> dict[str, Any] | None:
        return {"messages": []} if self._known(session_id) else None

    async def hang_up(self, session_id: str, /) -> bool:
        if self.live.pop(session_id, None) is not None:
            self.ended.add(session_id)
            await self._notify()
        return session_id in self.ended

    def listing(self) -> list[dict[str, Any]]:
        return [{"session_id": session_id} for session_id in self.live]

    def _known(self, session_id: str) -> bool:
        return session_id in self.live or session_id in self.ended
