"""What a caller may choose for the turns to come, read from a `settings` message (docs/events.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voice_agent.languages import ALLOWED, LANGUAGE

SLOWEST, FASTEST = 0.5, 2.0
"""Speaking rates within which the voices stay intelligible."""

LONGEST_PROMPT = 2000
"""Characters; more would leave the conversation too little of the model's window."""


@dataclass(frozen=True, slots=True)
class Choices:
    """None: as before."""

    speed: float | None = None
    """Speaking rate; 2.0 is twice as fast."""
    language: str | None = None
    """ISO 639-1 code of the caller's language, or `auto`."""
    prompt: str | None = None
    """Instructions to the language model."""


def read_choices(message: dict[str, Any]) -> Choices:
    """Raises ValueError with a text for the client; nothing is chosen then."""
    speed, language, prompt = message.get("speed"), message.get("language"), message.get("prompt")
    if speed is not None and not _is_speed(speed):
        raise ValueError(f"`speed` must be a number from {SLOWEST} to {FASTEST}")
    if language is not None and not (isinstance(language, str) and LANGUAGE.fullmatch(language)):
        raise ValueError(f"`language` must be {ALLOWED}")
    if prompt is not None and not (isinstance(prompt, str) and len(prompt) <= LONGEST_PROMPT):
        raise ValueError(f"`prompt` must be text of at most {LONGEST_PROMPT} characters")
    return Choices(None if speed is None else float(speed), language, None if prompt is None else prompt.strip())


def _is_speed(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return SLOWEST <= value <= FASTEST  # NaN is not; nor is an integer too large for a float
