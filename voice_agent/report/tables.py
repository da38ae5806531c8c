"""Reports for a terminal."""

from __future__ import annotations

from typing import Any

from voice_agent.core.latency import STAGES
from voice_agent.report.figures import PERCENTILES, outer_note
from voice_agent.report.reading import CallReport

BAR_WIDTH = 24


def table(call: CallReport) -> str:
    """The turns of one call: one row per turn, stages in milliseconds, a bar for the whole."""
    head = f"{'turn':>4}  {'total':>6}  " + "  ".join(f"{stage:>12}" for stage in STAGES) + "  of budget"
    rows = [f"call {call.session_id}: {len(call.turns)} turns, ended: {call.end_reason or 'not recorded'}", head]
    for turn in call.turns:
        rows.append(_row(turn))
        remarks = ["cut off"] if turn["interrupted"] else []
        if gaps := turn.get("gaps", 0):
            remarks.append(f"{gaps} gap{'s' if gaps > 1 else ''}")
        remark = f" ({', '.join(remarks)})" if remarks else ""
        rows.append(f"      heard{remark}: {turn['heard_text'] or '-'}")
    return "\n".join(rows)


def summary_table(figures: dict[str, Any]) -> str:
    """What `figures.summary` found, as a table."""
    whole = figures["voice_to_voice_ms"]
    columns = "".join(f"{f'p{number}':>8}" for number in PERCENTILES)
    rows = [
        f"{figures['turns']} turns, {figures['answered']} answered, {figures['interrupted']} interrupted, "
        f"{figures['over_budget']} over budget, {figures['gaps']} gaps while speaking",
        f"{'milliseconds':<16}{'n':>6}{columns}{'max':>8}{'budget':>8}{'spent':>8}",
        _spread("voice-to-voice", whole),
    ]
    rows += [_spread(f"  {stage}", found) for stage, found in figures["stages_ms"].items()]
    rows.append("spent: mean share of the voice-to-voice budget; hold counts to endpointing there")
    if note := outer_note(whole["n"]):
        rows.append(note)
    return "\n".join(rows)


def _spread(name: str, found: dict[str, Any]) -> str:
    cells = "".join(f"{_shown(found[f'p{number}']):>8}" for number in PERCENTILES)
    share = found["share_of_budget"]
    spent = "-" if share is None else f"{share:.0%}"
    return f"{name:<16}{found['n']:>6}{cells}{_shown(found['max']):>8}{_shown(found['budget_ms']):>8}{spent:>8}"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _row(turn: dict[str, Any]) -> str:
    total, stages = turn["voice_to_voice_ms"], turn["stages_ms"]
    if total is None:
        return f"{turn['turn']:>4}  {'-':>6}  not answered aloud"
    share = total / turn["budget_ms"]
    bar = "#" * min(BAR_WIDTH, round(share * BAR_WIDTH / 2))
    cells = "  ".join(f"{stages[stage]:>12.0f}" for stage in STAGES)
    return f"{turn['turn']:>4}  {total:>6.0f}  {cells}  {share:>4.0%} {bar}"
