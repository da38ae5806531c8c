"""Counters for Prometheus, in the words of the field. Times are seconds.

Label values come from the program's own closed sets (end reasons, refusal codes, stage names), never from a client,
so the number of series is bounded. No label and no metric carries a session id or words that were said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

_VOICE_TO_VOICE_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
"""Densest where people begin to notice: gaps in human conversation are around 0.2 s, and a second feels slow."""
_STAGE_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2, 2.5, 5.0)


class Metrics:
    """One per process. Own registry, so that tests and several apps in one process do not meet."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        prefix = "voice_agent"
        self._active = Gauge(f"{prefix}_sessions_active", "Calls going on now", registry=registry)
        tasks = Gauge(f"{prefix}_tasks", "Tasks of the event loop that serves the request", registry=registry)
        tasks.set_function(_count_tasks)
        self._ended = Counter(f"{prefix}_sessions", "Calls ended, by reason", ["reason"], registry=registry)
        self._turns = Counter(f"{prefix}_turns", "User turns that were over", registry=registry)
        self._barge_ins = Counter(f"{prefix}_barge_ins", "Replies the user talked over", registry=registry)
        self._latency = Histogram(
            f"{prefix}_voice_to_voice_seconds",
            "End of the user's speech to first agent audio sent",
            buckets=_VOICE_TO_VOICE_BUCKETS,
            registry=registry,
        )
        self._stages = Histogram(
            f"{prefix}_stage_seconds",
            "Share of each stage in voice-to-voice time",
            ["stage"],
            buckets=_STAGE_BUCKETS,
            registry=registry,
        )
        self._refused = Counter(f"{prefix}_offers_refused", "Offers not served, by code", ["code"], registry=registry)
        self._audio_dropped = Counter(
            f"{prefix}_audio_dropped_frames", "Caller audio frames dropped because nobody read them", registry=registry
        )
        self._messages_dropped = Counter(
            f"{prefix}_messages_dropped", "Side-channel messages dropped because nobody read them", registry=registry
        )
        self._errors = Counter(f"{prefix}_call_errors", "Failures inside calls, by code", ["code"], registry=registry)
        self._starved = Counter(
            f"{prefix}_playout_starved", "Times a reply's audio ran out while it was being played", registry=registry
        )

    def session_started(self) -> None:
        self._active.inc()

    def session_ended(self, reason: str) -> None:
        self._active.dec()
        self._ended.labels(reason).inc()

    def turn_ended(self) -> None:
        self._turns.inc()

    def barge_in(self) -> None:
        self._barge_ins.inc()

    def first_audio(self, voice_to_voice: float, stages: Mapping[str, float]) -> None:
        """Once per turn, when the reply's first audio is sent; seconds, `stages` by stage name."""
        self._latency.observe(voice_to_voice)
        for stage, seconds in stages.items():
            self._stages.labels(stage).observe(seconds)

    def offer_refused(self, code: str) -> None:
        """The HTTP routes count refusals themselves, including those that `Calls.accept` raises."""
        self._refused.labels(code).inc()

    def call_error(self, code: str) -> None:
        self._errors.labels(code).inc()

    def playout_starved(self) -> None:
        self._starved.inc()

    def audio_dropped(self, frames: int) -> None:
        self._audio_dropped.inc(frames)

    def messages_dropped(self, count: int) -> None:
        self._messages_dropped.inc(count)

    def exposition(self) -> tuple[bytes, str]:
        """(body, content type) for /metrics, in Prometheus' text format."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def _count_tasks() -> int:
    """Tasks of the running event loop; 0 outside of one."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0
