"""How much audio an encoded payload holds, read from its first bytes."""

from __future__ import annotations

# RFC 6716, table 2: frame durations of the 32 configurations, in 48 kHz samples.
_SILK = (480, 960, 1920, 2880)
_HYBRID = (480, 960)
_CELT = (120, 240, 480, 960)
_OPUS_FRAME = _SILK * 3 + _HYBRID * 2 + _CELT * 4

OPUS_MAX_SAMPLES = 5760
"""120 ms, the most one packet may hold (RFC 6716, section 3.2.5)."""


def opus_samples(payload: bytes) -> int:
    """Duration of an Opus packet in 48 kHz samples; 0 if it is empty or malformed (RFC 6716, section 3.1)."""
    if not payload:
        return 0
    frame = _OPUS_FRAME[payload[0] >> 3]
    count = (1, 2, 2, 0)[payload[0] & 3]
    if payload[0] & 3 == 3 and len(payload) > 1:
        count = payload[1] & 0x3F
    samples = frame * count
    return samples if samples <= OPUS_MAX_SAMPLES else 0


def byte_samples(payload: bytes) -> int:
    """Duration of G.711 and G.722 payloads in RTP ticks (8 kHz): one per byte (RFC 3551, section 4.5)."""
    return len(payload)
