"""Where the time of one turn went.

Stages are consecutive and sum exactly to the voice-to-voice latency: each begins where the one before ended. Work
that ran ahead (recognition and the reply are prepared while the caller may still go on) makes a stage short or zero;
what then remains is `hold`: the reply was ready and waited for the endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STAGES = ("endpointing", "recognition", "first_token", "first_clause", "synthesis", "hold", "send")
"""In the order they happen; `hold` belongs to endpointing in the budget."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Milliseconds each stage may take. Waiting for the endpoint is `endpointing` and `hold` together."""

    endpointing: int = 300
    recognition: int = 150
    first_token: int = 120
    first_clause: int = 100
    synthesis: int = 80
    send: int = 50

    @property
    def total(self) -> int:
        return self.endpointing + self.recognition + self.first_token + self.first_clause + self.synthesis + self.send

    def stages(self) -> dict[str, int]:
        return {stage: 0 if stage == "hold" else getattr(self, stage) for stage in STAGES}


@dataclass(frozen=True, slots=True)
class TurnStamps:
    """Moments of one turn, seconds on the session clock; None: did not happen."""

    end_of_speech: float | None = None
    pause_detected: float | None = None
    final_transcript: float | None = None
    first_token: float | None = None
    first_clause: float | None = None
    first_audio_synthesised: float | None = None
    endpoint: float | None = None
    first_audio_sent: float | None = None

    def relative_ms(self) -> dict[str, float]:
        """Milliseconds after the end of speech, in the order of the fields; what did not happen is left out."""
        if self.end_of_speech is None:
            return {}
        origin = self.end_of_speech
        moments = {name: getattr(self, name) for name in self.__slots__}
        return {name: round((at - origin) * 1e3, 1) for name, at in moments.items() if at is not None}

    @property
    def voice_to_voice(self) -> float | None:
        """Seconds from the caller's last sound to the reply's first sample handed to the listener."""
        if self.end_of_speech is None or self.first_audio_sent is None:
            return None
        return self.first_audio_sent - self.end_of_speech

    def stages_ms(self) -> dict[str, float]:
        """Consecutive stages; they sum to the voice-to-voice latency. Empty until the first audio was sent."""
        if self.end_of_speech is None or self.first_audio_sent is None:
            return {}
        ends = (
            self.pause_detected,
            self.final_transcript,
            self.first_token,
            self.first_clause,
            self.first_audio_synthesised,
            self.endpoint,
            self.first_audio_sent,
        )
        stages: dict[str, float] = {}
        reached = self.end_of_speech
        for stage, end in zip(STAGES, ends, strict=True):
            moment = min(max(reached, end if end is not None else reached), self.first_audio_sent)
            stages[stage] = round((moment - reached) * 1e3, 1)
            reached = moment
        return stages


@dataclass(frozen=True, slots=True)
class TurnReport:
    turn: int
    user_text: str
    generated_text: str
    heard_text: str
    interrupted: bool
    stamps: TurnStamps
    budget: Budget
    gaps: int = 0
    """Times the listener heard silence in the middle of the reply because its audio was not ready."""

    def as_dict(self) -> dict[str, object]:
        """As served by the API and written to the trace; times in milliseconds."""
        latency = self.stamps.voice_to_voice
        return {
            "turn": self.turn,
            "interrupted": self.interrupted,
            "user_text": self.user_text,
            "heard_text": self.heard_text,
            "generated_text": self.generated_text,
            "voice_to_voice_ms": None if latency is None else round(latency * 1e3, 1),
            "gaps": self.gaps,
            "budget_ms": self.budget.total,
            "stages_ms": self.stamps.stages_ms(),
            "budget_stages_ms": self.budget.stages(),
            "stamps_ms": self.stamps.relative_ms(),
        }


class LatencyBook:
    """Collects the stamps of one turn; the first stamp of a kind wins, a new pause starts all of them again."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._stamps = TurnStamps()

    @property
    def stamps(self) -> TurnStamps:
        return self._stamps

    def pause(self, end_of_speech: float, detected: float) -> None:
        """The caller fell silent: everything that was prepared for an earlier pause is void."""
        self._stamps = TurnStamps(end_of_speech=end_of_speech, pause_detected=detected)

    def transcript(self, at: float) -> None:
        self._first("final_transcript", at)

    def restart_reply(self) -> None:
        """The prepared reply was thrown away; its stamps with it."""
        self._stamps = replace(self._stamps, first_token=None, first_clause=None, first_audio_synthesised=None)

    def first_token(self, at: float) -> None:
        self._first("first_token", at)

    def first_clause(self, at: float) -> None:
        self._first("first_clause", at)

    def first_audio(self, at: float) -> None:
        self._first("first_audio_synthesised", at)

    def endpoint(self, at: float) -> None:
        self._first("endpoint", at)

    def sent(self, at: float) -> None:
        self._first("first_audio_sent", at)

    def report(self, turn: int, user_text: str, generated: str, heard: str, *, interrupted: bool) -> TurnReport:
        return TurnReport(turn, user_text, generated, heard, interrupted, self._stamps, self._budget)

    def _first(self, name: str, at: float) -> None:
        if getattr(self._stamps, name) is None:
            self._stamps = replace(self._stamps, **{name: at})
