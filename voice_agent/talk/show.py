"""A conversation as it happens, for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voice_agent.core.latency import STAGES
from voice_agent.talk.run import Talked

LABELS = {stage: stage.replace("_", " ") for stage in STAGES}


class Transcript:
    """Takes the messages of a call (docs/events.md) and prints who said what, with a line on each turn's time."""

    def __init__(self, line: Callable[[str], None], problem: Callable[[str], None]) -> None:
        self._line = line
        self._problem = problem
        self._over: set[int] = set()

    def __call__(self, message: dict[str, Any]) -> None:
        match message:
            case {"type": "transcript.final", "text": text}:
                self._line(f"caller  {text}")
            case {"type": "reply.done", "turn": turn, "heard_text": text, "interrupted": interrupted}:
                self._over.add(turn)
                self._line(f"agent   {text or '(nothing was heard)'}{' — cut off' if interrupted else ''}")
            case {"type": "turn.report", "report": dict(report)} if report["turn"] in self._over:
                if report["voice_to_voice_ms"] is not None:
                    self._line(f"        {turn_line(report)}")
            case {"type": "error", "message": text}:
                self._problem(str(text))


def turn_line(report: dict[str, Any]) -> str:
    """`812 ms = endpointing 300 + recognition 180 + …`; stages of no length are left out."""
    stages = [f"{LABELS[stage]} {spent:.0f}" for stage, spent in report["stages_ms"].items() if round(spent)]
    return f"{report['voice_to_voice_ms']:.0f} ms = {' + '.join(stages)}"


def closing_line(talked: Talked) -> str:
    answered = sum(turn["voice_to_voice_ms"] is not None for turn in talked.turns)
    gaps = f", {talked.speech_gaps} gaps in the agent's speech" if talked.speech_gaps else ""
    return (
        f"{talked.reason}: {talked.call_seconds:.1f} s of call in {talked.wall_seconds:.1f} s, {answered} answers{gaps}"
    )
