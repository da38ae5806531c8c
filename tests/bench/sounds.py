"""48 kHz test sounds."""

from __future__ import annotations

import numpy as np

from voice_agent.engines.ports import Pcm16

RATE = 48_000


def tone(seconds: float, level: float = 0.3) -> Pcm16:
    times = np.arange(round(seconds * RATE)) / RATE
    return np.rint(np.sin(2 * np.pi * 330 * times) * level * 32767).astype(np.int16)


def silence(seconds: float) -> Pcm16:
    return np.zeros(round(seconds * RATE), np.int16)
