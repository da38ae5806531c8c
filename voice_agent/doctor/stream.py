"""How a streamed text arrives at a client, and whether something on the way holds it back. Pure.

A model that writes shows as many moments of arrival as pieces of text. Whoever buffers (a proxy, a compressor, the
server itself) hands over several pieces at once: the moments get fewer, and in the worst case there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from voice_agent.report.figures import percentile

TOGETHER = 0.003
"""Seconds within which pieces count as arriving at once: a write, its way through the kernel and our reading it."""
FEWEST = 8
"""Pieces below which nothing can be told."""
WAITED = 5.0
"""How many times longer than its arrival a text must have been waited for, to tell a buffer from a fast model."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Of one streamed answer; seconds on any clock."""

    asked: float
    pieces: Sequence[float]
    """When each piece of text was there, in order."""

    @property
    def first(self) -> float | None:
        return self.pieces[0] - self.asked if self.pieces else None

    @property
    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.pieces, self.pieces[1:], strict=False)]

    @property
    def bursts(self) -> list[int]:
        """How many pieces arrived at each moment."""
        found = [1] if self.pieces else []
        for gap in self.gaps:
            if gap <= TOGETHER:
                found[-1] += 1
            else:
                found.append(1)
        return found

    def figures(self) -> dict[str, float | int | None]:
        """Milliseconds."""

        def ms(seconds: float | None) -> float | None:
            return None if seconds is None else round(seconds * 1e3, 1)

        gaps = self.gaps
        return {
            "pieces": len(self.pieces),
            "first_piece_ms": ms(self.first),
            "gap_p50_ms": ms(percentile(gaps, 0.5)),
            "gap_p95_ms": ms(percentile(gaps, 0.95)),
            "gap_max_ms": ms(max(gaps, default=None)),
            "moments": len(self.bursts),
            "largest_burst": max(self.bursts, default=0),
        }


def held_back(arrivals: Arrivals) -> bool | None:
    """Whether pieces were collected on the way; None: it cannot be told from this answer."""
    count = len(arrivals.pieces)
    if count < FEWEST:
        return None
    if len(arrivals.bursts) > count / 2:
        return False
    span = arrivals.pieces[-1] - arrivals.pieces[0]
    first = arrivals.first or 0.0
    if len(arrivals.bursts) > 1 and span > WAITED * TOGETHER * len(arrivals.bursts):
        return True  # bursts with waits in between
    return True if first > max(WAITED * span, 0.1) else None


def buffering_hints(headers: Mapping[str, str]) -> list[str]:
    """What the answer's headers say about who may have collected it; keys in lower case."""
    hints: list[str] = []
    if "content-length" in headers:
        hints.append("Content-Length is set, so the whole answer was collected before it was sent")
    if encoding := headers.get("content-encoding"):
        hints.append(f"it is compressed ({encoding}), and compressors collect")
    if via := headers.get("via"):
        hints.append(f"it came via {via}")
    if "text/event-stream" not in headers.get("content-type", ""):
        hints.append(f"it is not text/event-stream but {headers.get('content-type') or 'of no type'}")
    return hints


class EventReader:
    """Splits a body into server-sent events, however it was cut on the way."""

    def __init__(self, limit: int = 1 << 20) -> None:
        """`limit` bytes without the end of a line raise ValueError: that is no event stream."""
        self._rest = b""
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[str]:
        """The `data` lines that are complete now."""
        *whole, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        if len(self._rest) > self._limit:
            raise ValueError("no line ends")
        for line in whole:
            if line.startswith(b"data:"):
                yield line[5:].strip().decode("utf-8", "replace")


def piece_of_text(data: str) -> str:
    """The text of one chat completion chunk; empty for all other events. Raises ValueError with the server's words
    for an error event."""
    try:
        event = json.loads(data)
    except ValueError:
        return ""  # [DONE]
    match event:
        case {"error": {"message": str(message)}} | {"error": str(message)}:
            raise ValueError(message)
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            return text
    return ""
