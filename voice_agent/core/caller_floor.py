"""The caller's side of the floor: from sounds to turns, and what a turn means for a reply that is being heard.

Speech opens a turn or goes on with the open one; every pause is recognised at once and a reply prepared, so that the
work is done while the endpoint is still being waited for; speech that goes on voids it. Speech over a reply pauses the
reply first and is understood second: a backchannel, noise or our own echo lets it go on, words or long speech take the
floor.

A reply that nothing interrupts changes what speech over it means: the words are recognised, but neither understood as
a claim nor answered before the reply is over (`_understand`, `commit`, `floor_free`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from voice_agent.core.agent_floor import AgentFloor
from voice_agent.core.commands import Command, CommitTurn, ReadAhead, Recognise, ScoreAudio
from voice_agent.core.endpointing import DelaySettings, in_doubt
from voice_agent.core.events import (
    AudioScored,
    SpeechDipped,
    SpeechPaused,
    SpeechStarted,
    TranscriptReady,
    WordsScored,
)
from voice_agent.core.history import History
from voice_agent.core.latency import Budget, LatencyBook
from voice_agent.core.turn import Turn, joined, same_words
from voice_agent.text.backchannel import echoes, is_backchannel

FIRST_WORD = "I"
"""Any word: what the model reads ahead is all that comes before it."""


class User(Enum):
    SILENT = "silent"
    SPEAKING = "speaking"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class CallerSettings:
    language: str = "en"
    delays: DelaySettings = field(default_factory=DelaySettings)
    pre_roll: float = 0.5
    claim_speech: float = 0.8
    """Seconds of overlapping speech that take the floor without waiting for words."""
    max_sound: float = 15.0
    """Seconds of unbroken sound after which it is recognised in the middle."""
    max_audio: float = 25.0
    """Most audio handed to one recognition, seconds."""
    settle_after: float = 8.0
    """A pause after this much unsettled audio settles its text, so that long turns stay cheap."""
    partial_after: float = 0.25
    """Seconds of speech before words are looked for while the caller still speaks …"""
    partial_every: float = 1.5
    """… which happens at a dip of the voice, or after so many seconds without one."""
    patient_after: int = 2
    """False alarms within one reply after which sounds no longer pause it; only words or long speech do."""
    echo_window: float = 1.0
    """Seconds after our own voice within which a copy of our words is taken for an echo."""


class CallerFloor:
    def __init__(
        self, settings: CallerSettings, agent: AgentFloor, history: History, budget: Budget, out: list[Command]
    ) -> None:
        self._settings = settings
        self._agent = agent
        self._history = history
        self._budget = budget
        self._out = out
        self._last_turn = 0
        self._voice = False
        self._free_from = float("-inf")
        """Audio before this belongs to an earlier turn and is never recognised again."""
        self.turn: Turn | None = None

    @property
    def state(self) -> User:
        if self._voice:
            return User.SPEAKING
        return User.PAUSED if self.turn is not None else User.SILENT

    def change_language(self, language: str) -> None:
        """Words are judged as this language's from now on; an ISO 639-1 code, or `auto`."""
        self._settings = replace(self._settings, language=language)

    @property
    def deadline(self) -> float | None:
        turn = self.turn
        if turn is None:
            return None
        if turn.paused_at is not None:
            return None if self._agent.protected else turn.endpoint_at(self._settings.delays)
        moments = [] if turn.cutting else [turn.next_cut]
        if turn.overlap:
            if not self._agent.protected:
                moments.append(turn.speech_at + self._settings.claim_speech)
        elif not (turn.cutting or turn.pending):
            moments.append(self._next_partial(turn))
        return min(moments, default=None)

    def speech_started(self, event: SpeechStarted) -> None:
        self._voice = True
        next_cut = event.at + self._settings.max_sound
        if self.turn is None:
            self.turn = self._open_turn(event.at, next_cut)
        elif self.turn.paused_at is not None:
            self._go_on(self.turn, event.at, next_cut)
        if self._agent.has_floor:
            self.turn.overlap = True
            reply = self._agent.reply
            if reply is not None and reply.false_alarms < self._settings.patient_after:
                self._agent.pause()
        else:
            self._agent.cancel("resumed")  # at most a prepared reply: nobody heard of it
            if not self.turn.words_so_far:
                self._read_ahead(FIRST_WORD)

    def speech_dipped(self, event: SpeechDipped, now: float) -> None:
        """Perhaps the end: recognise now rather than when it is certain. Otherwise it gives words so far."""
        turn = self.turn
        if turn is None or turn.paused_at is not None or turn.overlap or turn.cutting:
            return
        if event.at - turn.speech_at >= self._settings.partial_after and turn.may_ask_at_dip(event.at, now):
            self._ask(turn, now, known_until=event.at if event.until is None else event.until)

    def speech_paused(self, event: SpeechPaused, now: float) -> None:
        self._voice = False
        turn = self.turn
        if turn is None or turn.paused_at is not None:
            return
        turn.pause(event.at)
        turn.latency.pause(event.at, now)
        if not turn.recognised_to_the_end or turn.cutting:
            self._ask(turn, now)
        if not turn.pending:
            self._words_known(turn, turn.partial, now)

    def transcript_ready(self, event: TranscriptReady) -> None:
        turn = self.turn
        if turn is None or turn.id != event.turn or turn.revision != event.revision or not turn.pending:
            return
        turn.answered(event.text, event.at, event.log_probability)
        if turn.paused_at is not None:
            self._words_known(turn, event.text, event.at)
        elif turn.cutting:
            self._understand_cut(turn, event)
        elif not turn.overlap:
            known = turn.words_so_far.split()[:-1]  # the last word may be half a word
            if known:
                self._read_ahead(" ".join(known))

    def audio_scored(self, event: AudioScored) -> None:
        turn = self.turn
        if turn and turn.id == event.turn and turn.revision == event.revision and turn.paused_at is not None:
            turn.judged(audio=event.score)

    def words_scored(self, event: WordsScored, now: float) -> None:
        reply = self._agent.reply
        if self.turn and reply and reply.id == event.reply and reply.turn == self.turn.id:
            self.turn.words_due = False
            self.turn.judged(words=event.probability)
            self._listen_if_in_doubt(self.turn, now)

    def deadline_reached(self, now: float) -> None:
        turn = self.turn
        if turn is None:
            return
        endpoint = turn.endpoint_at(self._settings.delays)
        if endpoint is not None:
            if now >= endpoint:
                self.commit(now)
            return
        if turn.paused_at is not None:
            return
        if turn.overlap and now >= turn.speech_at + self._settings.claim_speech:
            self._claim(turn)
        if turn.cutting:
            return
        if now >= turn.next_cut:
            turn.cutting = True
            self._ask(turn, now, cut=True)
        elif not (turn.overlap or turn.pending) and now >= self._next_partial(turn):
            self._ask(turn, now)

    def typed(self, text: str, at: float) -> None:
        """A typed message is a turn of its own, or joins the words that are being spoken."""
        self._agent.yield_floor("typed")
        if self.turn is not None and self.turn.heard is None:
            self.turn.settled = joined(self.turn.settled, text)  # speech is under way: one turn holds both
            self.turn.overlap = False
            return
        if self.turn is None:
            self.turn = self._open_turn(at, at + self._settings.max_sound)
            self.turn.pause(at)
            self.turn.latency.pause(at, at)
        self.turn.heard = joined(self.turn.heard or "", text)
        self.turn.latency.transcript(at)
        self.turn.overlap = False
        self.commit(at)

    def commit(self, at: float) -> None:
        """The turn is over: its words become history and the reply may be heard."""
        turn = self.turn
        if turn is None:
            return
        if self._agent.protected:
            turn.waits = True
            return
        text = turn.text
        reply = self._agent.reply
        if reply is None or not same_words(reply.basis, text):
            self._prepare(turn)
        self._close_turn(turn, text, at)
        self._history.add_user(text)
        self._agent.release(text, at)

    def hold(self) -> None:
        """A text that nothing interrupts is about to be said: an open turn is answered after it."""
        self._agent.cancel("revised")
        if self.turn is not None and self.turn.paused_at is not None and self.turn.heard is not None:
            self.turn.waits = True

    def floor_free(self, now: float) -> None:
        """Perhaps a reply that nothing interrupts is over: a turn that waited for it is understood now."""
        turn = self.turn
        if turn is None or not turn.waits or self._agent.protected:
            return
        turn.waits = False
        if turn.paused_at is not None and turn.heard is not None:
            # The caller has waited for an answer since now: before, they were listening.
            turn.latency.pause(now, now)
            turn.latency.transcript(now)
            self._understand(turn, now)

    def _next_partial(self, turn: Turn) -> float:
        quiet_since = max(turn.asked_at, turn.speech_at) + self._settings.partial_every
        return max(quiet_since, turn.rest_until)

    def _ask(self, turn: Turn, now: float, *, known_until: float = float("-inf"), cut: bool = False) -> None:
        turn.ask(now, known_until)
        self._out.append(Recognise(turn.id, turn.revision, self._since(turn, now), now, cut))

    def _since(self, turn: Turn, now: float) -> float:
        return max(turn.audio_from, now - self._settings.max_audio)

    def read_ahead(self) -> None:
        """Let the model read what the next turn's request will begin with."""
        self._read_ahead(FIRST_WORD)

    def _read_ahead(self, words: str) -> None:
        self._out.append(ReadAhead(self._history.with_user(words)))

    def _listen_if_in_doubt(self, turn: Turn, now: float) -> None:
        """The sound is asked where the words leave it open. It is a weak witness that gets better as the silence grows,
        and asking at once would slow down the recognition that everything waits for."""
        if turn.paused_at is not None and in_doubt(turn.evidence, self._settings.delays):
            self._out.append(ScoreAudio(turn.id, turn.revision, self._since(turn, now)))

    def _words_known(self, turn: Turn, text: str, at: float) -> None:
        turn.cutting = False
        turn.heard = text
        turn.latency.transcript(at)
        self._understand(turn, at)

    def _open_turn(self, at: float, next_cut: float) -> Turn:
        self._last_turn += 1
        audio_from = max(at - self._settings.pre_roll, self._free_from)
        return Turn(self._last_turn, audio_from, at, LatencyBook(self._budget), next_cut=next_cut)

    def _go_on(self, turn: Turn, at: float, next_cut: float) -> None:
        paused_at = turn.paused_at
        if (
            turn.heard is not None
            and paused_at is not None
            and (turn.waits or paused_at - turn.audio_from > self._settings.settle_after)
        ):
            turn.settle(max(paused_at, at - self._settings.pre_roll))
        turn.resume(at, next_cut)

    def _understand(self, turn: Turn, at: float) -> None:
        """The words up to this pause are known: decide what they are, and prepare for them."""
        if (
            not turn.text
            or self._is_echo(turn)
            or (turn.overlap and is_backchannel(turn.text, self._settings.language))
        ):
            self._dismiss(turn, at)
        elif self._agent.protected:
            turn.waits = True
        else:
            if turn.overlap:
                self._claim(turn)
            turn.judge_words(self._settings.language)
            self._prepare(turn)

    def _understand_cut(self, turn: Turn, event: TranscriptReady) -> None:
        """Unbroken sound was recognised in the middle. New words: the caller goes on talking. None: it is no speech."""
        turn.cutting = False
        turn.next_cut = event.at + self._settings.max_sound
        turn.audio_from, turn.partial = event.until, ""
        if event.text:
            turn.settled = joined(turn.settled, event.text)
            if turn.overlap:
                self._claim(turn)
        elif turn.settled:
            turn.heard, turn.paused_at = "", event.at
            turn.latency.pause(event.until, event.at)
            turn.latency.transcript(event.at)
            self.commit(event.at)
        elif turn.overlap:
            turn.overlap = False
            self._agent.resume()

    def _is_echo(self, turn: Turn) -> bool:
        near = turn.overlap or turn.speech_at - self._agent.last_spoke_at < self._settings.echo_window
        if not near:
            return False
        reply = self._agent.reply
        spoken = joined(self._agent.recently_spoken, reply.heard_and_next if reply else "")
        return bool(spoken) and echoes(turn.text, spoken)

    def _dismiss(self, turn: Turn, at: float) -> None:
        self._close_turn(turn, "", at)
        if turn.overlap:
            self._agent.resume()

    def _claim(self, turn: Turn) -> None:
        if self._agent.protected:
            return
        turn.overlap = False
        self._agent.cancel("barge-in")

    def _prepare(self, turn: Turn) -> None:
        if self._agent.reply is not None:
            self._agent.cancel("revised")
        turn.latency.restart_reply()
        turn.words_due = True
        self._agent.prepare(turn.id, turn.text, self._history.with_user(turn.text), turn.latency)

    def _close_turn(self, turn: Turn, text: str, at: float) -> None:
        self.turn = None
        # The next turn's pre-roll may reach back into the silence after this one, never into its words.
        self._free_from = max(self._free_from, turn.paused_at if turn.paused_at is not None else at)
        self._out.append(CommitTurn(turn.id, text))
