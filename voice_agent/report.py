"""Reads traces and says where the time of every turn went; pure functions over what `session.trace` wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voice_agent.core.latency import STAGES
from voice_agent.session.trace import read_trace

BAR_WIDTH = 24


@dataclass(frozen=True, slots=True)
class CallReport:
    session_id: str
    turns: list[dict[str, Any]]
    """As `TurnReport.as_dict` made them, in order."""
    end_reason: str | None
    """None: the trace ends without saying why (a killed process)."""


def read_report(path: Path) -> CallReport:
    """Raises VoiceAgentError for a file that is no trace."""
    session_id, reason = path.stem, None
    turns: list[dict[str, Any]] = []
    for entry in read_trace(path):
        match entry:
            case {"kind": "call", "session_id": str(name)}:
                session_id = name
            case {"kind": "report", "report": dict(report)}:
                turns.append(report)
            case {"kind": "end", "reason": str(why)}:
                reason = why
    return CallReport(session_id, turns, reason)


def percentile(values: Iterable[float], share: float) -> float | None:
    """Nearest-rank percentile; `share` 0.5 is the median. None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = max(1, -(-len(ordered) * round(share * 100) // 100))
    return ordered[rank - 1]


def summary(calls: Iterable[CallReport]) -> dict[str, Any]:
    """Median and 95th percentile of the whole and of each stage over all answered turns, in milliseconds."""
    turns = [turn for call in calls for turn in call.turns]
    answered = [turn for turn in turns if turn["voice_to_voice_ms"] is not None]
    latencies = [turn["voice_to_voice_ms"] for turn in answered]
    stages = {
        stage: {
            "p50": percentile((turn["stages_ms"][stage] for turn in answered), 0.5),
            "p95": percentile((turn["stages_ms"][stage] for turn in answered), 0.95),
        }
        for stage in STAGES
    }
    return {
        "turns": len(turns),
        "answered": len(answered),
        "interrupted": sum(turn["interrupted"] for turn in turns),
        "voice_to_voice_ms": {"p50": percentile(latencies, 0.5), "p95": percentile(latencies, 0.95)},
        "over_budget": sum(turn["voice_to_voice_ms"] > turn["budget_ms"] for turn in answered),
        "stages_ms": stages,
    }


def table(call: CallReport) -> str:
    """The turns of one call for a terminal: one row per turn, stages in milliseconds, a bar for the whole."""
    head = f"{'turn':>4}  {'total':>6}  " + "  ".join(f"{stage:>12}" for stage in STAGES) + "  of budget"
    rows = [f"call {call.session_id}: {len(call.turns)} turns, ended: {call.end_reason or 'not recorded'}", head]
    for turn in call.turns:
        rows.append(_row(turn))
        rows.append(f"      heard{' (cut off)' if turn['interrupted'] else ''}: {turn['heard_text'] or '-'}")
    return "\n".join(rows)


def summary_table(figures: dict[str, Any]) -> str:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.0f}"

    whole = figures["voice_to_voice_ms"]
    rows = [
        f"{figures['turns']} turns, {figures['answered']} answered, {figures['interrupted']} interrupted, "
        f"{figures['over_budget']} over budget",
        f"{'milliseconds':<16}{'median':>8}{'p95':>8}",
        f"{'voice-to-voice':<16}{shown(whole['p50']):>8}{shown(whole['p95']):>8}",
    ]
    rows += [f"  {stage:<14}{shown(f['p50']):>8}{shown(f['p95']):>8}" for stage, f in figures["stages_ms"].items()]
    return "\n".join(rows)


def _row(turn: dict[str, Any]) -> str:
    total, stages = turn["voice_to_voice_ms"], turn["stages_ms"]
    if total is None:
        return f"{turn['turn']:>4}  {'-':>6}  not answered aloud"
    share = total / turn["budget_ms"]
    bar = "#" * min(BAR_WIDTH, round(share * BAR_WIDTH / 2))
    cells = "  ".join(f"{stages[stage]:>12.0f}" for stage in STAGES)
    return f"{turn['turn']:>4}  {total:>6.0f}  {cells}  {share:>4.0%} {bar}"
