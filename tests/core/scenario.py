"""Scripts a conversation under a virtual clock: events go in, `DeadlineReached` fires exactly when it is due."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

from voice_agent.core.caller_floor import CallerSettings
from voice_agent.core.commands import Command, PrepareReply, Recognise, Speak
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.core.events import (
    ClauseQueued,
    DeadlineReached,
    Event,
    PlayheadMoved,
    PlayoutBegan,
    PlayoutEnded,
    ReplyComplete,
    ReplyText,
    SpeechPaused,
    SpeechStarted,
    TranscriptReady,
    WordMark,
)

Kind = TypeVar("Kind")

WORD_SAMPLES = 19_200
"""0.4 s of playout per word."""

RATE = 48_000

DETECT = 0.1
"""Seconds from a sound's beginning or end until the gate says so."""

RECOGNISE = 0.13


@dataclass
class Scenario:
    settings: ConversationSettings = field(
        default_factory=lambda: ConversationSettings("Be brief.", caller=CallerSettings(partial_every=math.inf))
    )

    def __post_init__(self) -> None:
        self.conversation = Conversation(self.settings)
        self.now = 0.0
        self.log: list[tuple[float, Command]] = []
        self.played_to: dict[int, int] = {}

    def until(self, now: float) -> None:
        """Let time pass; deadlines fire on the way."""
        while (deadline := self.conversation.deadline) is not None and deadline <= now:
            self._put(DeadlineReached(deadline), max(deadline, self.now))
        self.now = max(self.now, now)

    def happen(self, now: float, event: Event) -> list[Command]:
        self.until(now)
        return self._put(event, now)

    def _put(self, event: Event, now: float) -> list[Command]:
        self.now = now
        commands = self.conversation.handle(event, now)
        self.log += [(round(now, 3), command) for command in commands]
        return commands

    def speech(self, start: float, end: float) -> list[Command]:
        """The caller makes a sound; returns what the pause asked for."""
        self.happen(start + DETECT, SpeechStarted(start))
        return self.happen(end + DETECT, SpeechPaused(end))

    def say(self, start: float, end: float, text: str) -> list[Command]:
        """The caller says something and it is recognised."""
        return self.recognised(self.speech(start, end), text, end + DETECT + RECOGNISE)

    def recognised(self, commands: list[Command], text: str, now: float) -> list[Command]:
        asked = only(commands, Recognise)
        return self.happen(now, TranscriptReady(now, asked.turn, asked.revision, text, asked.until))

    def write(self, reply: int, text: str, now: float, *, complete: bool = True) -> None:
        """The model writes `text` and it is synthesised as one clause, 0.4 s a word."""
        base = self._live_generated(reply)
        lead = " " if base else ""
        self.happen(now, ReplyText(now, reply, lead + text))
        start = self.played_to.setdefault(-reply, 0)
        marks, char = [], base + len(lead)
        for number, word in enumerate(text.split(), 1):
            char = base + len(lead) + text.index(word, char - base - len(lead)) + len(word)
            marks.append(WordMark(char, start + number * WORD_SAMPLES))
        count = len(marks) * WORD_SAMPLES
        self.played_to[-reply] = start + count
        self.happen(now, ClauseQueued(now, reply, 0, base + len(lead) + len(text), count, tuple(marks)))
        if complete:
            self.happen(now, ReplyComplete(now, reply))

    def _live_generated(self, reply: int) -> int:
        live = self.conversation._agent.reply
        return len(live.generated) if live is not None and live.id == reply else 0

    def begin(self, reply: int, now: float) -> None:
        self.happen(now, PlayoutBegan(now, reply))

    def play(self, reply: int, words: float, now: float) -> None:
        self.happen(now, PlayheadMoved(now, reply, round(words * WORD_SAMPLES)))

    def drain(self, reply: int, now: float) -> None:
        self.happen(now, PlayoutEnded(now, reply))

    def answered(self, start: float, end: float, text: str, answer: str) -> tuple[int, float]:
        """A whole exchange up to the first word of the answer; returns the reply and when it began."""
        prepared = only(self.say(start, end, text), PrepareReply)
        self.write(prepared.reply, answer, self.now + 0.1)
        self.until(end + 3.0)
        began = end + 3.0
        self.begin(prepared.reply, began)
        return prepared.reply, began

    def all(self, kind: type[Kind]) -> list[tuple[float, Kind]]:
        return [(at, command) for at, command in self.log if isinstance(command, kind)]

    @property
    def roles(self) -> list[tuple[str, str]]:
        return [(message.role, message.content) for message in self.conversation.messages if message.role != "system"]


def only(commands: list[Command], kind: type[Kind]) -> Kind:
    """The single command of a kind among `commands`."""
    found = [command for command in commands if isinstance(command, kind)]
    assert len(found) == 1, f"expected one {kind.__name__} in {commands}"
    return found[0]


def spoken(commands: list[Command]) -> list[str]:
    return [command.text for command in commands if isinstance(command, Speak)]
