"""A clause as one piece, for whoever does not want it as a stream."""

from __future__ import annotations

import numpy as np

from voice_agent.engines.ports import Speech, TextToSpeech


async def synthesize(voice: TextToSpeech, text: str, *, speed: float = 1.0) -> Speech:
    """All of `voice.stream(text)` put together. Raises EngineError."""
    pieces = [piece async for piece in voice.stream(text, speed=speed)]
    return Speech(
        np.concatenate([piece.samples for piece in pieces]),
        pieces[0].rate,
        tuple(word for piece in pieces for word in piece.words),
        exact=all(piece.exact for piece in pieces),
    )
