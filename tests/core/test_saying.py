"""Texts the program says: when they begin, what stops them, and what becomes of words spoken over them."""

from __future__ import annotations

import pytest

from tests.core.scenario import Scenario, only, spoken
from tests.core.test_barge_in import talking
from tests.core.test_conversation import MOON, certain
from voice_agent.core.agent_floor import Agent
from voice_agent.core.commands import (
    CancelReply,
    CloseReply,
    Command,
    CommitTurn,
    PausePlayout,
    PrepareReply,
    Recognise,
    ReleaseReply,
    Speak,
)
from voice_agent.core.events import (
    CallEnded,
    InterruptAsked,
    PlayoutEnded,
    SayAsked,
    SpeechPaused,
    SpeechStarted,
    TextTyped,
    WordsScored,
)

NOTICE = "This call is recorded for training."
WORDS = len(NOTICE.split())


def ask(
    call: Scenario, now: float, text: str = NOTICE, *, say: int = 1, protected: bool = True, at_once: bool = False
) -> list[Command]:
    return call.happen(now, SayAsked(now, say, text, not protected, at_once))


def announcing(*, protected: bool = True) -> tuple[Scenario, int]:
    """From 1.0 on the notice is heard; two of its words are."""
    call = Scenario(certain())
    begun = only(ask(call, 1.0, protected=protected), Speak)
    assert begun.turn == -1
    call.write(begun.reply, NOTICE, 1.1)
    call.begin(begun.reply, 1.2)
    call.play(begun.reply, 2, 2.0)
    return call, begun.reply


def test_it_is_said_at_once_when_nobody_talks() -> None:
    call, reply = announcing()
    assert call.log[:2] == [(1.0, Speak(reply, -1, NOTICE)), (1.0, ReleaseReply(reply))]
    call.drain(reply, 4.0)
    assert call.log[-1] == (4.0, CloseReply(reply, -1, NOTICE, False))
    assert call.roles == [("assistant", NOTICE)]


def test_an_interruptible_text_yields_like_any_reply() -> None:
    call, reply = announcing(protected=False)
    assert call.happen(2.1, SpeechStarted(2.0)) == [PausePlayout(reply)]
    done = call.recognised(call.happen(2.7, SpeechPaused(2.6)), "Stop it please.", 2.8)
    assert done[:2] == [CancelReply(reply, "barge-in"), CloseReply(reply, -1, "This call", True)]


def test_speech_neither_pauses_nor_ends_a_protected_text() -> None:
    call, _ = announcing()
    assert call.happen(2.1, SpeechStarted(2.0)) == []
    assert call.conversation.agent is Agent.SPEAKING
    call.until(3.5)  # far beyond `claim_speech`
    done = call.recognised(call.happen(3.6, SpeechPaused(3.5)), "Stop it please.", 3.7)
    assert done == []
    call.until(20.0)  # far beyond any endpoint
    assert not call.all(CancelReply)
    assert not call.all(CommitTurn)
    assert call.conversation.deadline is None


def test_what_was_said_over_it_is_answered_after_it() -> None:
    call, reply = announcing()
    call.say(2.0, 3.5, MOON)
    done = call.happen(5.0, PlayoutEnded(5.0, reply))
    assert done[0] == CloseReply(reply, -1, NOTICE, False)
    prepared = only(done, PrepareReply)
    assert [(m.role, m.content) for m in prepared.messages[1:]] == [("assistant", NOTICE), ("user", MOON)]
    released = call.happen(5.1, WordsScored(5.1, prepared.reply, None))
    call.until(6.0)
    assert CommitTurn(prepared.turn, MOON) in [*released, *(command for _, command in call.log)]
    assert call.roles == [("assistant", NOTICE), ("user", MOON)]


def test_its_latency_counts_from_the_end_of_the_text() -> None:
    call, reply = announcing()
    call.say(2.0, 3.5, MOON)
    prepared = only(call.happen(5.0, PlayoutEnded(5.0, reply)), PrepareReply)
    call.write(prepared.reply, "Far away.", 5.3)
    call.until(8.0)
    call.begin(prepared.reply, 8.0)
    report = call.conversation.live_report
    assert report is not None
    assert report.stamps.voice_to_voice == pytest.approx(3.0)


def test_two_utterances_over_it_are_one_turn() -> None:
    call, reply = announcing()
    call.say(2.0, 2.5, "I want to know")
    call.say(3.2, 3.9, "how far the moon is.")
    prepared = only(call.happen(5.0, PlayoutEnded(5.0, reply)), PrepareReply)
    assert prepared.messages[-1].content == "I want to know how far the moon is."


@pytest.mark.parametrize("text", ["", "Mm-hm.", "This call is"])
def test_noise_backchannels_and_its_own_echo_are_dismissed(text: str) -> None:
    call, reply = announcing()
    call.play(reply, 3, 2.4)
    done = call.say(2.5, 2.8, text)
    assert only(done, CommitTurn).text == ""
    assert not [c for c in call.happen(5.0, PlayoutEnded(5.0, reply)) if isinstance(c, PrepareReply)]


def test_speech_that_outlasts_it_is_a_turn_as_usual() -> None:
    call, reply = announcing()
    call.happen(4.9, SpeechStarted(4.8))
    call.happen(5.0, PlayoutEnded(5.0, reply))
    prepared = only(call.recognised(call.happen(6.1, SpeechPaused(6.0)), MOON, 6.2), PrepareReply)
    call.until(9.0)
    assert CommitTurn(prepared.turn, MOON) in [command for _, command in call.log]


def test_unbroken_sound_over_it_is_cut_but_claims_nothing() -> None:
    call, reply = announcing()
    call.happen(2.1, SpeechStarted(2.0))
    call.until(17.0)
    cut = call.all(Recognise)[-1][1]
    assert cut.cut
    assert call.recognised([cut], "I talk and talk", 17.2) == []
    call.until(60.0)
    again = call.all(Recognise)[-1][1]
    call.recognised([again], "", again.until + 0.2)
    assert not call.all(CancelReply)
    assert not call.all(CommitTurn)
    prepared = only(call.happen(70.0, PlayoutEnded(70.0, reply)), PrepareReply)
    assert prepared.messages[-1].content == "I talk and talk"


def test_typed_text_and_the_stop_button_wait_as_well() -> None:
    call, reply = announcing()
    assert call.happen(2.1, InterruptAsked(2.1)) == []
    assert call.happen(2.2, TextTyped(2.2, MOON)) == []
    prepared = only(call.happen(5.0, PlayoutEnded(5.0, reply)), PrepareReply)
    assert prepared.messages[-1].content == MOON


def test_a_text_waits_for_the_reply_that_is_live() -> None:
    call, reply, now = talking(4)
    assert ask(call, now) == []
    call.drain(reply, now + 5)
    assert spoken([command for _, command in call.log]) == [NOTICE]


def test_a_text_waits_for_the_caller_and_their_answer() -> None:
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    ask(call, 1.5)
    prepared = only(call.recognised(call.happen(2.1, SpeechPaused(2.0)), MOON, 2.2), PrepareReply)
    call.write(prepared.reply, "Far away.", 2.4)
    call.until(5.0)
    call.begin(prepared.reply, 5.0)
    assert not spoken([command for _, command in call.log])
    call.drain(prepared.reply, 6.0)
    assert spoken([command for _, command in call.log]) == [NOTICE]


def test_texts_are_said_in_the_order_they_were_asked_for() -> None:
    call, reply = announcing(protected=False)
    ask(call, 2.0, "Second.", say=2)
    ask(call, 2.1, "Third.", say=3)
    call.drain(reply, 4.0)
    second = call.all(Speak)[-1][1]
    assert (second.text, second.turn) == ("Second.", -2)
    call.write(second.reply, "Second.", 4.1)
    call.drain(second.reply, 5.0)
    assert call.all(Speak)[-1][1].text == "Third."


def test_at_once_cuts_off_the_reply() -> None:
    call, reply, now = talking(4)
    done = ask(call, now, protected=False, at_once=True)
    assert done[:2] == [
        CancelReply(reply, "asked"),
        CloseReply(reply, 1, "January, February, March, April,", True),
    ]
    assert spoken(done) == [NOTICE]


def test_at_once_and_protected_is_said_over_the_caller() -> None:
    """The prepared reply is discarded; the question is answered afterwards all the same."""
    call = Scenario(certain())
    prepared = only(call.say(1.0, 2.0, MOON), PrepareReply)
    done = ask(call, 2.3, at_once=True)
    assert done[0] == CancelReply(prepared.reply, "revised")
    begun = only(done, Speak)
    call.until(9.0)
    assert not call.all(CommitTurn)
    call.write(begun.reply, NOTICE, 9.1)
    again = only(call.happen(12.0, PlayoutEnded(12.0, begun.reply)), PrepareReply)
    assert again.messages[-1].content == MOON


def test_at_once_but_interruptible_lets_the_caller_finish() -> None:
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    assert ask(call, 1.5, protected=False, at_once=True) == []


def test_at_once_wins_over_a_protected_text() -> None:
    call, reply = announcing()
    done = ask(call, 2.1, "Fire!", say=2, at_once=True)
    assert done[:2] == [CancelReply(reply, "asked"), CloseReply(reply, -1, "This call", True)]
    assert spoken(done) == ["Fire!"]


def test_the_end_of_the_call_ends_it() -> None:
    call, reply = announcing()
    assert call.happen(2.1, CallEnded(2.1, "hang-up"))[0] == CancelReply(reply, "ended")
    assert ask(call, 2.2, say=2) == []
