"""All calls of the process: accepts them up to the limit, ends them, remembers them for a while."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from voice_agent.core.commands import Message
from voice_agent.core.conversation import Conversation
from voice_agent.engines.ports import TextToSpeech
from voice_agent.errors import OfferError
from voice_agent.session.factory import SessionFactory
from voice_agent.session.session import Session
from voice_agent.transports.ports import Transport

log = logging.getLogger(__name__)

KEPT_RECORDS = 1000
"""Ended calls remembered at most, however short `keep_sessions` has not run out for them."""

Connect = Callable[[str, str], Awaitable[tuple[Transport, str]]]
"""(sdp, type) of an offer to the connection and the SDP of its answer; raises OfferError."""


class LifeMetrics(Protocol):
    def session_started(self) -> None: ...

    def session_ended(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Record:
    """What stays of a call: small text state, no audio, no model state."""

    conversation: Conversation
    began: float
    session: Session | None
    ended: float | None = None
    reason: str = ""


class CallBook:
    def __init__(
        self,
        connect: Connect,
        limit: int,
        keep: float,
        metrics: LifeMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`limit` calls at a time; `keep` seconds an ended call's report and history stay readable."""
        self._clock = clock
        self._connect = connect
        self._limit = limit
        self._keep = keep
        self._metrics = metrics
        self._factory: SessionFactory | None = None
        self._loading: list[str] = ["models"]
        self._taken = 0
        """Slots in use; counted before anything is awaited, so that simultaneous offers cannot share one."""
        self._claimed: set[str] = set()
        """Lost calls whose callers are coming back at this moment."""
        self._records: dict[str, _Record] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    @property
    def ready(self) -> bool:
        return self._factory is not None and not self._closing

    @property
    def active(self) -> int:
        return self._taken

    def progress(self) -> dict[str, Any]:
        return {"ready": self.ready, "loading": list(self._loading), "active": self._taken, "limit": self._limit}

    def loading(self, what: list[str]) -> None:
        """Names of what is still to come, for /readyz and the page."""
        self._loading = what

    def open(self, factory: SessionFactory) -> None:
        """Everything is loaded and warm: calls are accepted from now on.

        Called again, further calls are built by the new factory; running ones keep what they have.
        """
        self._factory, self._loading = factory, []

    def change_prompt(self, prompt: str) -> None:
        """Running calls follow this system prompt from their next reply on."""
        for record in self._records.values():
            if record.session is not None:
                record.session.change_prompt(prompt)

    async def wait_unused(self, voice: TextToSpeech) -> None:
        """Until the last call that speaks with this voice has ended; further calls must have another by now."""
        sessions = [(key, record.session) for key, record in self._records.items()]
        users = [self._running[key] for key, session in sessions if session is not None and session.uses(voice)]
        if users:
            await asyncio.wait(users)

    async def accept(self, sdp: str, type: str, fields: dict[str, Any], /) -> tuple[str, str, str]:
        if self._factory is None or self._closing:
            raise OfferError(503, "loading", "the models are still loading; try again in a few seconds")
        lost = self._lost(fields.get("continues"))
        # Whoever comes back does so on the line they had.
        if self._taken - (1 if lost in self._running else 0) >= self._limit:
            raise OfferError(503, "full", f"all {self._limit} lines are busy; try again later")
        self._taken += 1
        session_id = secrets.token_urlsafe(16)
        if lost is not None:
            self._claimed.add(lost)
        try:
            transport, answer = await self._connect(sdp, type)
            try:
                earlier = await self._take_over(lost)
                # The newest factory, which may have come meanwhile.
                session = self._factory.build(session_id, transport, earlier)
            except BaseException:
                await transport.close("error")
                raise
        except BaseException:
            self._taken -= 1
            raise
        finally:
            self._claimed.discard(lost or "")
        self._prune()
        self._records[session_id] = _Record(session.conversation, self._clock(), session)
        self._running[session_id] = asyncio.create_task(self._run(session_id, session), name=f"call {session_id}")
        self._metrics.session_started()
        return answer, "answer", session_id

    def _lost(self, session_id: object) -> str | None:
        """The call a caller has lost and comes back to; None if there is no such call, or somebody is just doing so.

        An id of a call that is unknown or forgotten is no error: the new call then begins from nothing.
        """
        known = isinstance(session_id, str) and session_id not in self._claimed and self._record(session_id) is not None
        return str(session_id) if known else None

    async def _take_over(self, lost: str | None) -> tuple[Message, ...]:
        """What was said in a call whose connection was lost. Its caller is back, so it ends and frees its slot."""
        record = self._record(lost) if lost is not None else None
        if record is None or lost is None:
            return ()
        await self.hang_up(lost)
        return record.conversation.messages

    def report(self, session_id: str, /) -> dict[str, Any] | None:
        record = self._record(session_id)
        if record is None:
            return None
        live = record.conversation.live_report
        reports = [*record.conversation.reports, *([live] if live else [])]
        return {
            "session_id": session_id,
            "active": record.ended is None,
            "end_reason": record.reason or None,
            "turns": [report.as_dict() for report in reports],
        }

    def history(self, session_id: str, /) -> dict[str, Any] | None:
        record = self._record(session_id)
        if record is None:
            return None
        messages = [
            {"role": message.role, "content": message.content, **({"interrupted": True} if message.interrupted else {})}
            for message in record.conversation.messages
        ]
        return {"session_id": session_id, "active": record.ended is None, "messages": messages}

    async def hang_up(self, session_id: str, /) -> bool:
        record = self._record(session_id)
        if record is None:
            return False
        running = self._running.get(session_id)
        if record.session is not None and running is not None:
            record.session.hang_up()
            await asyncio.wait([running])
        return True

    def listing(self) -> list[dict[str, Any]]:
        now = self._clock()
        return [
            {
                "session_id": key,
                "active": record.ended is None,
                "seconds": round((record.ended or now) - record.began, 1),
            }
            for key, record in self._records.items()
        ]

    async def close(self) -> None:
        """Refuse new calls and end the running ones."""
        self._closing = True
        for record in self._records.values():
            if record.session is not None:
                record.session.hang_up("the agent was stopped")
        if self._running:
            await asyncio.wait(list(self._running.values()))

    async def _run(self, session_id: str, session: Session) -> None:
        reason = "error"
        log.info("= %s call begins", session_id)
        try:
            reason = await session.run()
        except Exception:  # one call's failure is that call's alone; the log has the whole story
            log.exception("x %s call broke", session_id)
        finally:
            record = self._records[session_id]
            record.session, record.ended, record.reason = None, self._clock(), reason
            del self._running[session_id]
            self._taken -= 1
            self._metrics.session_ended(reason)
            log.info("x %s call ends: %s", session_id, reason)

    def _record(self, session_id: str) -> _Record | None:
        self._prune()
        return self._records.get(session_id)

    def _prune(self) -> None:
        oldest_kept = self._clock() - self._keep
        ended = [key for key, record in self._records.items() if record.ended is not None]
        surplus = len(ended) - KEPT_RECORDS
        for number, key in enumerate(ended):
            if number < surplus or (self._records[key].ended or 0.0) < oldest_kept:
                del self._records[key]
