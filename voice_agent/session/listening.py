"""Caller audio in, beginnings and pauses of speech out; keeps the audio for whoever wants to hear it again."""

from __future__ import annotations

from voice_agent.audio.levels import last_sound, level_db, quietest
from voice_agent.audio.ring import AudioRing
from voice_agent.core.events import SpeechPaused
from voice_agent.core.speech_gate import GateSettings, SpeechChange, SpeechGate
from voice_agent.engines.ports import ENGINE_RATE, Pcm16, VoiceActivity
from voice_agent.transports.ports import AudioFrame

WINDOW = 512
"""Samples per voice activity probability."""

KEPT_SECONDS = 32.0
"""More than one recognition can take (30 s)."""

BLOCK = ENGINE_RATE // 100
"""10 ms: how finely the end of a sound is located."""

LOOK_BACK = 0.4
"""Seconds before a pause in which its true end is looked for: the model lags the sound by about 0.07 s."""

CUT_WITHIN = 3.0
"""Seconds before a cut in the middle of speech in which the quietest spot is looked for."""


class Listening:
    """One call's ear. `hear` must be awaited frame after frame, in order."""

    def __init__(self, activity: VoiceActivity, settings: GateSettings) -> None:
        self._activity = activity
        self._gate = SpeechGate(settings, WINDOW / ENGINE_RATE)
        self._ring = AudioRing(KEPT_SECONDS)
        self._judged = 0
        """Samples that the voice activity model has judged."""

    async def hear(self, frame: AudioFrame) -> list[SpeechChange]:
        self._ring.push(frame.samples, frame.at)
        happened: list[SpeechChange] = []
        for probability in await self._activity.feed(frame.samples):
            window = self._ring.samples(self._judged, self._judged + WINDOW)
            self._judged += WINDOW
            change = self._gate.push(probability, level_db(window), self._ring.time_of(self._judged))
            if change is not None:
                happened.append(self._exact(change))
        return happened

    def audio(self, since: float, until: float, *, cut: bool = False) -> tuple[Pcm16, float]:
        """Audio between two moments and where it ends; with `cut` it ends at the quietest spot near `until`."""
        samples = self._ring.between(since, until)
        if not cut:
            return samples, until
        tail = min(len(samples), int(CUT_WITHIN * ENGINE_RATE))
        end = len(samples) - tail + quietest(samples[len(samples) - tail :], 10 * BLOCK)
        return samples[:end], until - (len(samples) - end) / ENGINE_RATE

    def _exact(self, change: SpeechChange) -> SpeechChange:
        """Move a pause to where the sound really ended: windows are coarse and the model is late."""
        if not isinstance(change, SpeechPaused):
            return change
        end = self._ring.total
        start = end - int(LOOK_BACK * ENGINE_RATE)
        sound = last_sound(self._ring.samples(start, end), BLOCK)
        if sound == 0:
            return change
        held = len(self._ring.samples(start, end))
        return SpeechPaused(min(change.at + WINDOW / ENGINE_RATE, self._ring.time_of(end - held + sound)))
