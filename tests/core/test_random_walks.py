"""Any event is accepted in any state, and what must never happen never does: random walks with a printed seed."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable

import pytest

from voice_agent.core.commands import (
    CancelReply,
    CloseReply,
    Command,
    CommitTurn,
    PausePlayout,
    PrepareReply,
    Recognise,
    ReleaseReply,
    ResumePlayout,
    ScoreAudio,
    Speak,
)
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.core.events import (
    AudioScored,
    CallStarted,
    ClauseQueued,
    DeadlineReached,
    Event,
    InterruptAsked,
    PlayheadMoved,
    PlayoutBegan,
    PlayoutEnded,
    PlayoutStalled,
    ReplyComplete,
    ReplyFailed,
    ReplyText,
    SayAsked,
    SpeechDipped,
    SpeechPaused,
    SpeechStarted,
    TextTyped,
    TranscriptReady,
    WordMark,
    WordsScored,
)

TEXTS = ["", "Stop.", "Mm-hm.", "How far is it to the moon?", "I would like to", "word one two"]
WALKS = 4000 if os.environ.get("VOICE_AGENT_TEST_FULL") else 400


class Walk:
    """Random events, and a model of the outside that checks every command."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.conversation = Conversation(
            ConversationSettings(system_prompt="s", greeting=self.dice.choice(["", "Hello."]))
        )
        self.now = 0.0
        self.live: int | None = None
        self.released = self.paused = False
        self.says: dict[int, bool] = {}
        """Whether each text of the program's may be interrupted."""
        self.protected: int | None = None
        self.dead: set[int] = set()
        self.last_turn = 0
        self.asked = (0, 0)
        self.written: dict[int, str] = {}
        self.queued: dict[int, int] = {}
        self.marks: dict[int, list[WordMark]] = {}
        self.played: dict[int, int] = {}

    def step(self) -> None:
        self.now += self.dice.choice([0.0, 0.01, 0.1, 0.5, 2.0])
        deadline = self.conversation.deadline
        if deadline is not None and deadline <= self.now:
            self.put(DeadlineReached(max(deadline, self.now)))
        self.put(self.any_event())

    def any_event(self) -> Event:
        dice, now = self.dice, self.now
        reply = self.live if self.live is not None and dice.random() < 0.8 else dice.randint(1, 30)
        turn, revision = self.asked if dice.random() < 0.8 else (dice.randint(0, 9), dice.randint(0, 3))
        choices: list[Callable[[], Event]] = [
            lambda: CallStarted(now),
            lambda: SpeechStarted(now - dice.random() * 0.2),
            lambda: SpeechDipped(now - dice.random() * 0.1),
            lambda: SpeechPaused(now - dice.random() * 0.2),
            lambda: TranscriptReady(now, turn, revision, dice.choice(TEXTS), now),
            lambda: AudioScored(now, turn, revision, dice.random()),
            lambda: WordsScored(now, reply, dice.random()),
            lambda: self.text(reply),
            lambda: self.clause(reply),
            lambda: ReplyComplete(now, reply),
            lambda: ReplyFailed(now, reply, "broken"),
            lambda: PlayoutBegan(now, reply),
            lambda: PlayoutStalled(now, reply),
            lambda: self.playhead(reply),
            lambda: PlayoutEnded(now, reply),
            lambda: TextTyped(now, dice.choice(TEXTS)),
            lambda: InterruptAsked(now),
            self.say,
            lambda: DeadlineReached(now),
        ]
        weights = [1, 8, 6, 8, 10, 3, 3, 8, 8, 4, 1, 4, 1, 8, 3, 1, 1, 2, 4]
        return dice.choices(choices, weights)[0]()

    def say(self) -> Event:
        number = len(self.says) + 1
        self.says[number] = self.dice.random() < 0.5
        return SayAsked(self.now, number, "One two.", self.says[number], self.dice.random() < 0.3)

    def text(self, reply: int) -> Event:
        text = self.dice.choice(["alpha ", "beta ", "gamma. "])
        if reply == self.live:
            self.written[reply] += text
        return ReplyText(self.now, reply, text)

    def clause(self, reply: int) -> Event:
        start = self.queued.get(reply, 0)
        words = (WordMark(len(self.written.get(reply, "").rstrip()), start + 100),)
        if reply == self.live:
            self.queued[reply] = start + 100
            self.marks[reply] += words
        return ClauseQueued(self.now, reply, 0, words[0].end_char, 100, words)

    def playhead(self, reply: int) -> Event:
        to = self.dice.randint(-50, self.queued.get(reply, 0) + 150)
        if reply == self.live:
            self.played[reply] = max(self.played[reply], min(to, self.queued[reply]))
        return PlayheadMoved(self.now, reply, to)

    def put(self, event: Event) -> None:
        ended = isinstance(event, PlayoutEnded) and event.reply == self.live
        self.cutting = isinstance(event, SayAsked) and event.at_once
        self.broken = isinstance(event, ReplyFailed)
        for command in self.conversation.handle(event, self.now):
            self.check(command, ended)
        self.check_history()

    def check(self, command: Command, ended: bool) -> None:
        if isinstance(command, CancelReply | PausePlayout) and command.reply == self.protected:
            assert self.cutting or self.broken, "nothing the caller does stops a protected text"
        match command:
            case PrepareReply(reply=reply) | Speak(reply=reply):
                assert self.live is None, "two live replies"
                assert reply not in self.dead
                self.live, self.released, self.paused = reply, False, False
                if isinstance(command, Speak) and command.turn < 0 and not self.says[-command.turn]:
                    self.protected = reply
                self.written[reply], self.queued[reply], self.marks[reply], self.played[reply] = "", 0, [], 0
            case ReleaseReply(reply=reply):
                assert reply == self.live
                self.released = True
            case PausePlayout(reply=reply):
                assert (reply, self.released, self.paused) == (self.live, True, False)
                self.paused = True
            case ResumePlayout(reply=reply):
                assert (reply, self.paused) == (self.live, True), "a resume needs a pause"
                self.paused = False
            case CancelReply(reply=reply):
                assert reply == self.live
                self.bury(reply)
            case CloseReply(reply=reply, heard_text=heard):
                assert self.released or not heard, "only a released reply can have been heard"
                if reply == self.live:
                    self.bury(reply)
                self.check_heard(reply, heard, ended)
            case CommitTurn(turn=turn):
                assert turn > self.last_turn, "turn ids increase"
                self.last_turn = turn
        if isinstance(command, Recognise | ScoreAudio):
            self.asked = (command.turn, command.revision)

    def bury(self, reply: int) -> None:
        self.dead.add(reply)
        self.live, self.paused = None, False

    def check_heard(self, reply: int, heard: str, ended: bool) -> None:
        written = self.written[reply]
        assert written.strip().startswith(heard), "heard is a prefix of what was generated"
        whole = ended or self.played[reply] >= self.queued[reply]
        limit = max((m.end_char for m in self.marks[reply] if whole or m.sample <= self.played[reply]), default=0)
        assert len(heard) <= limit, "nothing counts as heard that was not played"

    def check_history(self) -> None:
        messages = [m for m in self.conversation.messages if m.role != "system"]
        assert all(message.content.strip() for message in messages)
        assert all(a.role != b.role for a, b in itertools.pairwise(messages))


@pytest.mark.parametrize("block", range(4))
def test_random_walks_keep_the_invariants(block: int) -> None:
    for seed in range(block * WALKS // 4, (block + 1) * WALKS // 4):
        walk = Walk(seed)
        try:
            for _ in range(120):
                walk.step()
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from problem


def test_a_pause_is_followed_by_resume_or_cancel_when_the_caller_falls_silent() -> None:
    """Whatever happened before: once the sound is over and recognised, nobody is left muted."""
    for seed in range(WALKS):
        walk = Walk(seed)
        for _ in range(60):
            walk.step()
        walk.put(SpeechPaused(walk.now))
        walk.put(TranscriptReady(walk.now, *walk.asked, "", walk.now))
        while (deadline := walk.conversation.deadline) is not None:
            walk.now = max(walk.now, deadline)
            walk.put(DeadlineReached(walk.now))
        assert not walk.paused, f"seed {seed}: still paused"
