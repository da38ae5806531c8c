"""How long to wait in silence before a turn is over.

Three witnesses: the sound (end-of-turn model), the words by rule, and the words by the language model's own
next-token distribution. Each alone is wrong too often (docs/decisions/0010-three-witnesses.md has the figures); their
weighted log-odds decide between the short delay after a complete turn and the long one after an open one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

EVEN_WORDS = 0.04
"""The language model's probability that speaks neither for an end nor against it."""

DOUBT = 0.1
"""Seconds over the shortest delay from which on the witnesses count as leaving it open."""

SURE_WORDS = 0.3
SURE_RULES = 0.95
"""Rule score of what is whole by itself: a short answer, a command."""

MISHEARD = -0.45
"""Mean log-probability per word piece of a transcript, below which its words are as likely wrong as right. Of 90 clear
complete lines three lay below it, all misheard; so did the cut-off "So the address is," heard as "Soviet dresses"."""

MISHEARD_PATIENCE = 0.75
"""Seconds more for words that may not be the caller's: the witnesses judge a sentence that nobody said."""

PLAIN_RULES = 0.8
"""Rule score of words that are whole although one of them may be misheard: a question, a request."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about the end of a turn; None: not known (yet)."""

    audio: float | None = None
    """End-of-turn model, 0..1."""
    rules: float = 0.5
    """Completeness of the words by rule, 0..1."""
    words: float | None = None
    """Language model's probability that the words are complete; 0.1 is complete, 0.00005 is cut off."""
    patience: float = 0.0
    """Seconds beyond the shortest delay that the rules ask for whatever the witnesses say."""


@dataclass(frozen=True, slots=True)
class DelaySettings:
    min_delay: float = 0.3
    max_delay: float = 2.4
    open_below: float = 0.25
    """Words whose rule score is below this wait the long delay whatever the sound says."""


def log_odds(evidence: Evidence) -> float:
    """Positive: the turn is over; negative: the caller is likely to go on."""
    total = 4.0 * (evidence.rules - 0.5)
    if evidence.audio is not None:
        total += evidence.audio - 0.5
    if evidence.words is not None:
        # in calls complete utterances had 0.05 to 0.99 ("No." and "Stop." less) and cut-off ones 0.00004 to 0.008.
        decades = math.log10(max(evidence.words, 1e-7)) - math.log10(EVEN_WORDS)
        # After a whole short answer ("No.") a model expects more, because in writing more mostly follows.
        least = -1.0 if evidence.rules >= SURE_RULES else -3.0
        total += max(least, min(1.5, 2.5 * decades))
    return total


def endpoint_delay(evidence: Evidence, settings: DelaySettings) -> float:
    """Seconds of silence after which the turn is over."""
    if evidence.rules < settings.open_below:
        # Rules know few words; a model that is sure of an end may halve the wait, never end it.
        sure = evidence.words is not None and evidence.words >= SURE_WORDS
        return (settings.min_delay + settings.max_delay) / 2 if sure else settings.max_delay
    delay = settings.min_delay + (settings.max_delay - settings.min_delay) * _openness(evidence)
    return min(max(delay, settings.min_delay + evidence.patience), settings.max_delay)


def patience_for(rules: float, asked: float, log_probability: float) -> float:
    """Seconds beyond the shortest delay: what the rules ask for, more if the words may be misheard.

    `log_probability` as in `Transcript`; 0: not known, so not doubted.
    """
    if log_probability < MISHEARD and rules < PLAIN_RULES:
        return max(asked, MISHEARD_PATIENCE)
    return asked


def in_doubt(evidence: Evidence, settings: DelaySettings) -> bool:
    """Whether the witnesses heard so far leave it open, so that another one is worth its price."""
    if evidence.rules < settings.open_below:
        return True
    return (settings.max_delay - settings.min_delay) * _openness(evidence) > DOUBT


def _openness(evidence: Evidence) -> float:
    return 1.0 / (1.0 + math.exp(3.0 * log_odds(evidence)))
