"""The data channel `events` (docs/events.md): JSON objects both ways, with a client that may send anything.

Nothing here grows with what a client does or fails to do: messages to it wait in a bounded queue while the channel is
not open or is not read, messages from it are read at a bounded rate, and complaints about them are rarer still.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiortc import RTCDataChannel

from voice_agent.transports.webrtc.mailbox import Mailbox

log = logging.getLogger(__name__)

LABEL = "events"
MAX_MESSAGE = 16 * 1024
"""Bytes of one message from the client (docs/events.md)."""
MAX_PENDING = 512
"""Messages that wait for the client."""
MAX_PENDING_BYTES = 256 * 1024
HIGH_WATER = 64 * 1024
"""Bytes inside aiortc beyond which we keep messages ourselves, where they can still be dropped."""

CLIENT_TYPES = frozenset({"ping", "text", "interrupt", "settings", "hangup"})


class BadMessage(ValueError):
    """What is wrong with a message, fit for the client."""


def read_message(raw: str | bytes) -> dict[str, Any]:
    """A client's message as documented in docs/events.md; raises BadMessage."""
    if not isinstance(raw, str):
        raise BadMessage("binary messages are not understood")
    if len(raw) > MAX_MESSAGE or len(raw.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        raise BadMessage(f"longer than {MAX_MESSAGE} bytes")
    try:
        message = json.loads(raw)
        # Infinity and lone surrogates pass the parser, and would break whoever writes them out again: the answer to a
        # ping, the trace, the history.
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadMessage("not JSON") from error
    if not isinstance(message, dict):
        raise BadMessage("not a JSON object")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in CLIENT_TYPES:
        raise BadMessage("unknown type")
    if kind == "text" and not isinstance(message.get("text"), str):
        raise BadMessage("a text message needs a string `text`")
    return message


class Allowance:
    """Lets `burst` events through at once and `rate` per second in the long run. Pure."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        if self._at is not None:
            self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


@dataclass(slots=True)
class ChannelCounters:
    received: int = 0
    bad: int = 0
    flooded: int = 0
    """Ignored unread, because too many came."""
    sent: int = 0
    dropped: int = 0
    """Messages the client never got because it does not read."""


class EventChannel:
    """Both directions of the channel of one call. Lives on the event loop's thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.inbox: Mailbox[dict[str, Any]] = Mailbox(256)
        self.counters = ChannelCounters()
        self._clock = clock
        self._began = clock()
        self._sequence = 0
        self._pending: deque[str] = deque()
        self._pending_size = 0
        self._channel: RTCDataChannel | None = None
        self._read = Allowance(rate=50, burst=100)
        self._complain = Allowance(rate=2, burst=3)
        self._idle = asyncio.Event()

    @property
    def busy(self) -> bool:
        """True while messages wait that an open channel will take."""
        channel = self._channel
        return channel is not None and channel.readyState == "open" and bool(self._pending or channel.bufferedAmount)

    async def wait_idle(self) -> None:
        """Wait until everything that an open channel will take has left."""
        while self.busy:
            self._idle.clear()
            await self._idle.wait()

    @property
    def pending(self) -> int:
        return len(self._pending)

    def attach(self, channel: RTCDataChannel) -> None:
        """The client opened a channel (again)."""
        if channel.label != LABEL:
            log.debug("- data channel of another label ignored")
            return
        self._channel = channel
        channel.on("message", self.receive)
        channel.on("open", self._flush)
        channel.on("bufferedamountlow", self._flush)  # its threshold is 0: everything has left
        self._flush()

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message. `seq` is given here, since errors of this layer count too; `at_ms` if it is missing."""
        self._sequence += 1
        at_ms = round((self._clock() - self._began) * 1000)
        text = json.dumps({"at_ms": at_ms, **message, "seq": self._sequence}, ensure_ascii=False, separators=(",", ":"))
        self._pending.append(text)
        self._pending_size += len(text)
        while len(self._pending) > MAX_PENDING or (self._pending_size > MAX_PENDING_BYTES and len(self._pending) > 1):
            self._pending_size -= len(self._pending.popleft())
            self.counters.dropped += 1
        self._flush()

    def receive(self, raw: str | bytes) -> None:
        """A message came from the client."""
        now = self._clock()
        if not self._read.take(now):
            self.counters.flooded += 1
            self._refuse("too many messages", now)
            return
        self.counters.received += 1
        try:
            message = read_message(raw)
        except BadMessage as error:
            self.counters.bad += 1
            self._refuse(str(error), now)
        else:
            self.inbox.put(message)

    def receive_garbled(self) -> None:
        """A message came that is not even text."""
        self.counters.bad += 1
        self._refuse("not UTF-8", self._clock())

    def close(self) -> None:
        """No more messages either way."""
        self.inbox.close()
        self._channel = None
        self._pending.clear()
        self._pending_size = 0

    def _refuse(self, reason: str, now: float) -> None:
        if self._complain.take(now):
            self.send({"type": "error", "code": "bad_message", "message": reason})

    def _flush(self) -> None:
        channel = self._channel
        while self._pending and channel is not None and channel.readyState == "open":
            if channel.bufferedAmount > HIGH_WATER:
                return
            text = self._pending.popleft()
            self._pending_size -= len(text)
            try:
                channel.send(text)
            except ValueError:  # larger than this client can take
                self.counters.dropped += 1
            else:
                self.counters.sent += 1
        self._idle.set()
