"""One thing that was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(Enum):
    OK = "ok"
    NOTE = "note"
    """Good to know; nothing has to be done."""
    WARNING = "warning"
    """It works, but badly, or not for everything."""
    PROBLEM = "problem"
    """It will not work."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    verdict: Verdict
    found: str
    """What was found, in one line."""
    advice: str = ""
    """What to do; empty where all is well."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What was measured, for programs; the unit is in the name."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "found": self.found,
            "advice": self.advice,
            "figures": dict(self.figures),
        }


def lines(check: Check) -> list[str]:
    """For a terminal."""
    shown = [f"{check.verdict.value:8} {check.name}: {check.found}"]
    return [*shown, f"{'':8} → {check.advice}"] if check.advice else shown
