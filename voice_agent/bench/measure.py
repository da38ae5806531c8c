"""From what was said and heard, and when, to what a person on the line would have noticed. Pure.

A turn is one line of the caller. Its replies are the agent's stretches of speech that begin after it and before the
next line. A line that begins while the agent speaks is a barge-in; what the agent then still says is not a reply.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voice_agent.bench.ear import MERGE, Segment


@dataclass(frozen=True, slots=True)
class Line:
    """One thing the caller said; seconds on the caller's clock."""

    id: str
    tag: str
    onset: float
    end: float
    expects_reply: bool = True
    barge: bool = False
    """It was meant to begin while the agent speaks."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one line. Seconds; None: did not happen."""

    line: Line
    reply: float | None
    """Clock time of the reply's first sound."""
    voice_to_voice: float | None
    """From the line's last sound to the reply's first."""
    missing: bool
    """A reply was expected and none came before the next line."""
    cut_in: float | None
    """The agent began to speak this long before the line's end."""
    interrupted: bool
    """The agent was speaking when the line began, or had been until less than `MERGE` before."""
    stop: float | None
    """From the line's onset to the agent's last sound; only where it interrupted and there was sound to stop."""
    talked_over: float | None
    """Time both spoke; as `stop`."""
    reply_length: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A distribution in milliseconds; `p95` interpolates between ranks."""

    n: int
    median: float | None = None
    p95: float | None = None
    min: float | None = None
    max: float | None = None


def measure(lines: Sequence[Line], segments: Sequence[Segment], call_end: float) -> list[Heard]:
    """Both in order of time. The last line's replies end with the call."""
    nexts = [*(line.onset for line in lines[1:]), call_end]
    return [_judge(line, segments, until) for line, until in zip(lines, nexts, strict=True)]


def _judge(line: Line, segments: Sequence[Segment], until: float) -> Heard:
    interrupted = any(s.start <= line.onset <= s.end + MERGE for s in segments)
    during = [s for s in segments if line.onset < s.start <= line.end]
    replies = [s for s in segments if line.end < s.start < until]
    reply = replies[0].start if replies else None
    stop = talked_over = None
    if interrupted:
        going_on = [s for s in segments if s.start <= line.end and s.end > line.onset]
        if going_on:
            stop = min(going_on[-1].end, until) - line.onset
            talked_over = sum(min(s.end, line.end) - max(s.start, line.onset) for s in going_on)
    return Heard(
        line=line,
        reply=reply,
        voice_to_voice=None if reply is None else reply - line.end,
        missing=line.expects_reply and reply is None and not (during and not interrupted),
        cut_in=line.end - during[0].start if during and not interrupted else None,
        interrupted=interrupted,
        stop=stop,
        talked_over=talked_over,
        reply_length=sum(max(0.0, min(s.end, until) - max(s.start, line.end)) for s in segments),
    )


def figures(seconds: Iterable[float | None]) -> Figures:
    """Of everything that is not None."""
    values = [value * 1e3 for value in seconds if value is not None]
    if not values:
        return Figures(0)
    p95 = float(np.percentile(values, 95))
    return Figures(len(values), *(round(v, 1) for v in (statistics.median(values), p95, min(values), max(values))))


@dataclass(frozen=True, slots=True)
class Summary:
    """Over the lines of one or more calls."""

    lines: int
    voice_to_voice: Figures
    """Without barge-ins and lines the agent cut into: there is no waiting in those."""
    by_tag: dict[str, Figures]
    after_barge_in: Figures
    stop: Figures
    talked_over: Figures
    missing: tuple[str, ...]
    """Identifiers of the lines."""
    cut_ins: tuple[str, ...]
    not_interrupting: tuple[str, ...]
    """Barge-ins that came when the agent was silent already: they say nothing about barge-in."""


def summarise(heard: Sequence[Heard]) -> Summary:
    waited = [h for h in heard if not h.interrupted and h.cut_in is None and h.voice_to_voice is not None]
    barged = [h for h in heard if h.interrupted]
    tags = dict.fromkeys(h.line.tag for h in waited)
    return Summary(
        lines=len(heard),
        voice_to_voice=figures(h.voice_to_voice for h in waited),
        by_tag={tag: figures(h.voice_to_voice for h in waited if h.line.tag == tag) for tag in tags},
        after_barge_in=figures(h.voice_to_voice for h in barged),
        stop=figures(h.stop for h in barged),
        talked_over=figures(h.talked_over for h in barged),
        missing=tuple(h.line.id for h in heard if h.missing),
        cut_ins=tuple(h.line.id for h in heard if h.cut_in is not None),
        not_interrupting=tuple(h.line.id for h in heard if h.line.barge and h.stop is None),
    )


@dataclass(frozen=True, slots=True)
class Reported:
    """The agent's own report of a turn, and when its first audio was announced."""

    at: float
    """Arrival of the first `turn.report` event of the turn, on the caller's clock."""
    report: dict[str, Any]
    """As in GET /api/sessions/{id}/report."""


def match_reports(heard: Sequence[Heard], reported: Sequence[Reported], call_end: float) -> list[Reported | None]:
    """The agent's report of each line's reply: the one announced nearest to its first sound, between line and next.

    A line the agent took for two turns has two; the one that answered counts. A line without a reply gets the last.
    """
    nexts = [*(h.line.onset for h in heard[1:]), call_end]
    found: list[Reported | None] = []
    for h, until in zip(heard, nexts, strict=True):
        here = [r for r in reported if h.line.onset < r.at < until]
        if h.reply is None:
            found.append(here[-1] if here else None)
        else:
            reply = h.reply
            found.append(min(here, key=lambda r: abs(r.at - reply), default=None))
    return found


def stage_shares(reports: Iterable[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """By stage: median in milliseconds, and its share (0..1) of the reports' median voice-to-voice latency.

    Medians of parts need not sum to the median of the whole.
    """
    answered = [r for r in reports if r.get("voice_to_voice_ms") is not None]
    if not answered:
        return {}
    whole = statistics.median(r["voice_to_voice_ms"] for r in answered)
    shares: dict[str, tuple[float, float]] = {}
    for stage in answered[0]["stages_ms"]:
        median = statistics.median(r["stages_ms"].get(stage, 0.0) for r in answered)
        shares[stage] = (median, median / whole if whole else 0.0)
    return shares
