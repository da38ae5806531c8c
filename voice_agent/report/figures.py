"""Percentiles of the whole and of its stages, over any number of calls. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from voice_agent.core.latency import STAGES
from voice_agent.report.reading import CallReport

PERCENTILES = (50, 90, 95, 99)


def percentile(values: Iterable[float], share: float) -> float | None:
    """Nearest-rank percentile: a value that was measured, none in between. `share` 0.5 is the median.

    None without values.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    # Rounded first, or 0.95 * 20 = 19.000000000000004 would be rank 20.
    rank = max(1, math.ceil(round(share * len(ordered), 9)))
    return ordered[rank - 1]


def spread(values: Sequence[float]) -> dict[str, Any]:
    """{"n", "p50", "p90", "p95", "p99", "max"}; None where there is no value."""
    found: dict[str, Any] = {"n": len(values)}
    found |= {f"p{number}": percentile(values, number / 100) for number in PERCENTILES}
    return {**found, "max": max(values, default=None)}


def summary(calls: Iterable[CallReport]) -> dict[str, Any]:
    """Over all turns of all calls, in milliseconds; times are of answered turns.

    `share_of_budget` is what was spent of the voice-to-voice budget, `budget_ms` what a stage may take (the mean, where
    calls had different budgets). `hold` has no budget of its own: it is waiting for the endpoint, as `endpointing` is.
    """
    turns = [turn for call in calls for turn in call.turns]
    answered = [turn for turn in turns if turn["voice_to_voice_ms"] is not None]
    budget = sum(turn["budget_ms"] for turn in answered)
    latencies = [turn["voice_to_voice_ms"] for turn in answered]
    return {
        "turns": len(turns),
        "answered": len(answered),
        "interrupted": sum(turn["interrupted"] for turn in turns),
        "gaps": sum(turn.get("gaps", 0) for turn in turns),
        "over_budget": sum(turn["voice_to_voice_ms"] > turn["budget_ms"] for turn in answered),
        "voice_to_voice_ms": {**spread(latencies), **_budget(sum(latencies), budget, budget, len(answered))},
        "stages_ms": {stage: _stage(stage, answered, budget) for stage in STAGES},
    }


def _stage(stage: str, answered: Sequence[dict[str, Any]], budget: float) -> dict[str, Any]:
    spent = [turn["stages_ms"][stage] for turn in answered]
    own = sum(turn["budget_stages_ms"][stage] for turn in answered)
    return {**spread(spent), **_budget(sum(spent), own, budget, len(answered))}


def _budget(spent: float, own: float, whole: float, count: int) -> dict[str, Any]:
    if not count:
        return {"budget_ms": None, "share_of_budget": None}
    return {"budget_ms": round(own / count, 1), "share_of_budget": round(spent / whole, 4)}


def outer_note(count: int) -> str:
    """What a reader of the outer percentiles of `count` turns should know; empty where they are figures of their own.

    By nearest rank p95 of 19 values and p99 of 99 are the largest.
    """
    if not 0 < count < 100:
        return ""
    which = "p95 and p99 are" if count < 20 else "p99 is"
    return f"of {count} turn{'' if count == 1 else 's'}, {which} the slowest one"
