"""Traces with turn reports of chosen lengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from voice_agent.core.latency import STAGES, Budget


def turn(number: int = 1, *, each: float | None = 100.0, **changes: Any) -> dict[str, Any]:
    """A turn every stage of which took `each` milliseconds; None: it was not answered aloud."""
    budget = Budget()
    return {
        "turn": number,
        "interrupted": False,
        "user_text": "How far is the moon?",
        "heard_text": "Far away.",
        "generated_text": "Far away.",
        "voice_to_voice_ms": None if each is None else each * len(STAGES),
        "budget_ms": budget.total,
        "stages_ms": {} if each is None else dict.fromkeys(STAGES, each),
        "budget_stages_ms": budget.stages(),
        "stamps_ms": {},
        **changes,
    }


def write_trace(path: Path, turns: list[dict[str, Any]], *, session_id: str = "call", began: Any = 1.75e9) -> Path:
    entries = [
        {"kind": "call", "format": 1, "session_id": session_id, "began": began},
        *({"kind": "report", "report": report} for report in turns),
        {"kind": "end", "reason": "hang-up"},
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path
