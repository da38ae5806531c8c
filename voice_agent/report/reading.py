"""The reports in a trace, checked: whoever shows them can rely on every field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voice_agent.core.latency import STAGES
from voice_agent.errors import VoiceAgentError
from voice_agent.session.trace import read_trace

LARGEST = 1e15
"""Figures beyond are no measurement (milliseconds, or seconds since 1970)."""


@dataclass(frozen=True, slots=True)
class CallReport:
    session_id: str
    turns: list[dict[str, Any]]
    """As `TurnReport.as_dict` made them, in order."""
    end_reason: str | None
    """None: the trace ends without saying why (a killed process)."""
    began: float | None = None
    """Seconds since 1970."""


def read_report(path: Path) -> CallReport:
    """Raises VoiceAgentError for a file that is no trace."""
    session_id, reason, began = path.stem, None, None
    turns: list[dict[str, Any]] = []
    for number, entry in enumerate(read_trace(path), 1):
        match entry:
            case {"kind": "call", "session_id": str(name)}:
                session_id, began = str(_shown(name)), entry.get("began")
            case {"kind": "report", "report": dict(report)}:
                if problem := _problem(report):
                    raise VoiceAgentError(f"{path}:{number} is no turn report: {problem}")
                turns.append({name: _shown(value) for name, value in report.items()})
            case {"kind": "end", "reason": str(why)}:
                reason = str(_shown(why))
    return CallReport(session_id, turns, reason, began if _number(began) else None)


def _shown(value: Any) -> Any:
    """Text without what would steer the terminal it is printed on."""
    return "".join(c if c.isprintable() else "?" for c in value) if isinstance(value, str) else value


def _problem(report: dict[str, Any]) -> str:
    """What a report lacks; empty if it is whole."""
    texts = [name for name in ("user_text", "heard_text", "generated_text") if not isinstance(report.get(name), str)]
    if texts:
        return f"{texts[0]} is no text"
    if not isinstance(report.get("turn"), int) or not isinstance(report.get("interrupted"), bool):
        return "turn and interrupted are needed"
    if not isinstance(report.get("gaps", 0), int):  # traces of 0.1 have none
        return "gaps is no whole number"
    if not _number(report.get("budget_ms")) or report["budget_ms"] <= 0:
        return "budget_ms is no number above 0"
    total = report.get("voice_to_voice_ms", "")
    if total is not None and not _number(total):
        return "voice_to_voice_ms is no number"
    for name, needed in (("stages_ms", total is not None), ("budget_stages_ms", True)):
        stages = report.get(name)
        if not isinstance(stages, dict) or (needed and not all(_number(stages.get(stage)) for stage in STAGES)):
            return f"{name} does not hold a number for each of {', '.join(STAGES)}"
    return ""


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST < value < LARGEST
