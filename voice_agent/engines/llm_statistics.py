"""What a language model engine has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanguageStatistics:
    """Counters since the engine was made, except `active` and `waiting`, which are now."""

    active: int = 0
    """Requests that hold a sequence."""
    waiting: int = 0
    """Requests that do not hold one yet."""
    requests: int = 0
    cancelled: int = 0
    failed: int = 0
    steps: int = 0
    """Batches run."""
    prefilled_tokens: int = 0
    """Prompt tokens computed."""
    cached_tokens: int = 0
    """Prompt tokens that were in the cache already."""
    decoded_tokens: int = 0
    """Tokens generated, those of cancelled requests included."""
    largest_batch: int = 0
    """Tokens of the largest batch."""
    most_sequences: int = 0
    """Requests in the widest batch."""
    gate_waits: int = 0
    """Steps that were held up by more urgent work."""
    cells: int = 0
    """Cache cells spoken for now, out of the context's size; an upper bound, since shared ones count twice."""
