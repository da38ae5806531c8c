"""Voice activity probabilities in, beginnings, dips and pauses of speech out.

Hysteresis counted in audio, never in wall time: speech begins after `min_speech` seconds of windows at or above
`speech_threshold`, pauses after `min_silence` seconds of windows below `silence_threshold`. A window that is far
quieter than the voice was is silent whatever the model says: the model's probability lags the sound by some 70 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from voice_agent.core.events import SpeechDipped, SpeechPaused, SpeechStarted

SpeechChange = SpeechStarted | SpeechDipped | SpeechPaused


@dataclass(frozen=True, slots=True)
class GateSettings:
    speech_threshold: float = 0.5
    silence_threshold: float = 0.35
    min_speech: float = 0.064
    min_silence: float = 0.064
    quiet_drop_db: float = 30.0
    """A window this much below the loudest of the utterance's last second is silent …"""
    quiet_floor_db: float = -45.0
    """… if it is also below this level (dBFS)."""
    quiet_silence: float = 0.096
    """Seconds of such quiet windows that are a pause although the model still hears a voice."""


class SpeechGate:
    """Feed one window after another; each call returns what began or paused, if anything."""

    def __init__(self, settings: GateSettings, window: float) -> None:
        """`window` is the length of one window in seconds."""
        self._settings = settings
        self._window = window
        self._speaking = False
        self._candidate = 0.0
        """Seconds of consecutive windows that argue for a change of state."""
        self._quiet = 0.0
        self._changed_at = 0.0
        self._peak_db = -100.0

    @property
    def speaking(self) -> bool:
        return self._speaking

    def push(self, probability: float, level_db: float, end: float) -> SpeechChange | None:
        """`probability` and `level_db` (RMS, dBFS) of the window that ended at `end` on the session clock."""
        return (
            self._while_speaking(probability, level_db, end)
            if self._speaking
            else self._while_silent(probability, level_db, end)
        )

    def _while_silent(self, probability: float, level_db: float, end: float) -> SpeechStarted | None:
        if probability < self._settings.speech_threshold:
            self._candidate = 0.0
            return None
        if self._candidate == 0.0:
            self._changed_at = end - self._window
            self._peak_db = level_db
        self._peak_db = max(self._peak_db, level_db)
        self._candidate += self._window
        if self._candidate + 1e-9 < self._settings.min_speech:
            return None
        self._speaking, self._candidate, self._quiet = True, 0.0, 0.0
        return SpeechStarted(self._changed_at)

    def _while_speaking(self, probability: float, level_db: float, end: float) -> SpeechDipped | SpeechPaused | None:
        # The peak decays by 6 dB a second, so that one loud word does not make later quiet words silent.
        self._peak_db = max(level_db, self._peak_db - 6.0 * self._window)
        quiet = level_db < self._settings.quiet_floor_db and level_db < self._peak_db - self._settings.quiet_drop_db
        silent = probability < self._settings.silence_threshold
        if not (quiet or silent):
            self._candidate = self._quiet = 0.0
            return None
        first = self._candidate == 0.0 and self._quiet == 0.0
        if first:
            self._changed_at = end - self._window
        self._quiet = self._quiet + self._window if quiet else 0.0
        self._candidate = self._candidate + self._window if silent else 0.0
        enough = (
            self._candidate + 1e-9 >= self._settings.min_silence or self._quiet + 1e-9 >= self._settings.quiet_silence
        )
        if not enough:
            return SpeechDipped(self._changed_at, end) if first else None
        self._speaking, self._candidate, self._quiet = False, 0.0, 0.0
        return SpeechPaused(self._changed_at)
