"""How loud sound is, and where it stops."""

from __future__ import annotations

import numpy as np

from voice_agent.engines.ports import Pcm16

SILENCE_DB = -100.0


def level_db(samples: Pcm16) -> float:
    """RMS level in dBFS (a full-scale square wave is 0); SILENCE_DB for nothing at all."""
    if len(samples) == 0:
        return SILENCE_DB
    power = float(np.mean(np.square(samples.astype(np.float32) / 32768.0)))
    return max(SILENCE_DB, 10.0 * float(np.log10(power + 1e-12)))


def block_levels(samples: Pcm16, block: int) -> list[float]:
    """Levels of consecutive whole blocks of `block` samples; a remainder is left out."""
    return [level_db(samples[i : i + block]) for i in range(0, len(samples) - block + 1, block)]


def last_sound(samples: Pcm16, block: int, *, drop_db: float = 30.0, floor_db: float = -45.0) -> int:
    """Index just after the last block that belongs to the sound: above `floor_db`, or within `drop_db` of the loudest.

    The lower of the two thresholds counts, so a quiet voice is measured against itself. 0 if there is none.
    """
    levels = block_levels(samples, block)
    if not levels:
        return 0
    threshold = min(floor_db, max(levels) - drop_db)
    loud = [i for i, level in enumerate(levels) if level > threshold and level > SILENCE_DB]
    return (loud[-1] + 1) * block if loud else 0


def quietest(samples: Pcm16, block: int) -> int:
    """Index of the middle of the quietest block."""
    levels = block_levels(samples, block)
    if not levels:
        return len(samples)
    return levels.index(min(levels)) * block + block // 2
