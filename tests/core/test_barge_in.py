"""Speech over a reply: what stops it, what does not, and what the history keeps."""

from __future__ import annotations

import pytest

from tests.core.scenario import Scenario, only
from tests.core.test_conversation import MOON, certain
from voice_agent.core.agent_floor import Agent
from voice_agent.core.commands import (
    CancelReply,
    CloseReply,
    CommitTurn,
    PausePlayout,
    PrepareReply,
    ReleaseReply,
    ResumePlayout,
    Speak,
)
from voice_agent.core.conversation import ConversationSettings
from voice_agent.core.events import (
    CallStarted,
    ClauseQueued,
    PlayheadMoved,
    PlayoutBegan,
    PlayoutEnded,
    ReplyText,
    SpeechPaused,
    SpeechStarted,
)

MONTHS = "January, February, March, April, May, June, July, August, September, October, November, December."


def talking(words: float = 4, answer: str = MONTHS) -> tuple[Scenario, int, float]:
    """A call in which the agent has said `words` words of its answer."""
    call = Scenario(certain())
    reply, began = call.answered(0.0, 1.0, "Name the months.", answer)
    now = began + words * 0.4
    call.play(reply, words, now)
    return call, reply, now


def test_speech_pauses_at_once_and_words_take_the_floor() -> None:
    call, reply, now = talking(5)
    assert call.happen(now + 0.1, SpeechStarted(now)) == [PausePlayout(reply)]
    assert call.conversation.agent is Agent.YIELDING
    asked = call.happen(now + 0.4, SpeechPaused(now + 0.3))
    done = call.recognised(asked, "Stop.", now + 0.55)
    assert done[:2] == [
        CancelReply(reply, "barge-in"),
        CloseReply(reply, 1, "January, February, March, April, May,", True),
    ]


def test_the_next_request_holds_what_was_heard() -> None:
    """C03: the twelve months, cut after May."""
    call, _, now = talking(5)
    done = call.say(now, now + 0.6, "And how many are there?")
    request = only(done, PrepareReply)
    assert [m.content for m in request.messages][1:] == [
        "Name the months.",
        "January, February, March, April, May,",
        "And how many are there?",
    ]
    assert request.messages[2].interrupted


@pytest.mark.parametrize("words", [0, 0.1, 0.99])
def test_a_reply_nobody_heard_leaves_no_message(words: float) -> None:
    """C01, C10: users' messages are merged, no blank message is stored or sent."""
    call, _, now = talking(words)
    request = only(call.say(now, now + 0.6, "No, the planets."), PrepareReply)
    assert [(m.role, m.content) for m in request.messages] == [
        ("system", "Be brief."),
        ("user", "Name the months. No, the planets."),
    ]


@pytest.mark.parametrize("text", ["", "Mm-hm.", "Uh-huh.", "Yeah."])
def test_noise_and_backchannels_let_the_reply_go_on(text: str) -> None:
    """B09: it goes on where it stopped, the history is not cut, the model is not asked."""
    call, reply, now = talking(4)
    requests = len(call.all(PrepareReply))
    call.say(now, now + 0.3, text)
    assert call.log[-1][1] == ResumePlayout(reply)
    assert call.log[-1][0] - now <= 1.0
    assert len(call.all(PrepareReply)) == requests
    call.drain(reply, now + 8.0)
    assert call.roles[-1] == ("assistant", MONTHS)


@pytest.mark.parametrize("text", ["Stop.", "Wait.", "No.", "Hold on."])
def test_short_commands_are_no_backchannel(text: str) -> None:
    """A06 and B03: 200 ms of 'stop' stop it."""
    call, reply, now = talking(4)
    done = call.say(now, now + 0.2, text)
    assert done[0] == CancelReply(reply, "barge-in")


def test_long_speech_takes_the_floor_before_it_is_understood() -> None:
    call, reply, now = talking(4)
    call.happen(now + 0.1, SpeechStarted(now))
    call.until(now + 0.79)
    assert call.all(CancelReply) == []
    call.until(now + 2.0)
    assert [(at, command.reply) for at, command in call.all(CancelReply)] == [(round(now + 0.8, 3), reply)]


def test_our_own_voice_is_no_turn() -> None:
    """B07: a near-copy of what is being said over it is an echo."""
    call, reply, now = talking(6)
    call.say(now, now + 0.5, "march april may")
    assert call.log[-1][1] == ResumePlayout(reply)
    assert len(call.all(PrepareReply)) == 1


def test_a_noisy_line_does_not_make_the_reply_stutter_for_ever() -> None:
    call, _, now = talking(3)
    for number in range(6):
        call.say(now + number, now + number + 0.2, "")
    assert len(call.all(PausePlayout)) == 2


def test_resuming_before_the_first_sound_keeps_the_reply_unheard_and_folds_the_words() -> None:
    """B05, A08: both parts reach the model in one message, one reply is played."""
    call = Scenario(certain())
    first = only(call.say(0.0, 1.0, "Yes. A room"), PrepareReply)
    call.until(1.6)
    assert call.happen(1.7, SpeechStarted(1.6)) == [PausePlayout(first.reply)]
    asked = call.happen(2.1, SpeechPaused(2.0))
    done = call.recognised(asked, "for two.", 2.25)
    assert done[0] == CancelReply(first.reply, "barge-in")
    assert only(done, PrepareReply).messages[-1].content == "Yes. A room for two."
    call.until(4.0)
    assert [command.reply for _, command in call.all(ReleaseReply)] == [first.reply, only(done, PrepareReply).reply]
    assert call.roles == [("user", "Yes. A room for two.")]


def test_a_noise_before_the_first_sound_does_not_wipe_the_greeting() -> None:
    """B16."""
    call = Scenario(ConversationSettings(greeting="Welcome to the shop."))
    greeting = only(call.happen(0.0, CallStarted(0.0)), Speak)
    call.write(greeting.reply, "Welcome to the shop.", 0.05)
    call.say(0.1, 0.3, "")
    assert call.all(CancelReply) == []
    call.begin(greeting.reply, 0.6)
    call.drain(greeting.reply, 2.2)
    assert call.roles == [("assistant", "Welcome to the shop.")]


def test_the_second_question_is_the_next_thing_answered() -> None:
    """B11."""
    call, reply, now = talking(4)
    done = call.say(now, now + 1.2, "Which month is the shortest one?")
    second = call.all(PrepareReply)[-1][1].reply
    call.until(now + 3.0)
    assert CancelReply(reply, "barge-in") in [command for _, command in call.log]
    assert call.all(ReleaseReply)[-1][1] == ReleaseReply(second)
    assert done


def test_events_of_a_cancelled_reply_are_dropped() -> None:
    """B01, B19: nothing of it comes back."""
    call, reply, now = talking(2)
    call.say(now, now + 0.3, "Stop.")
    before = call.roles
    for event in (
        ReplyText(now + 1, reply, "leftover"),
        ClauseQueued(now + 1, reply, 3, 99, 48_000, ()),
        PlayoutBegan(now + 1, reply),
        PlayheadMoved(now + 1, reply, 999_999),
        PlayoutEnded(now + 1, reply),
    ):
        assert call.conversation.handle(event, now + 1) == []
    assert call.roles == before


def test_two_parts_and_an_interrupt_between_them() -> None:
    """C13: the second part was ready, not heard."""
    call = Scenario(certain())
    prepared = only(call.say(0.0, 1.0, "What is my balance?"), PrepareReply)
    call.write(prepared.reply, "One moment.", 1.4, complete=False)
    call.write(prepared.reply, "Your balance is 12 euros.", 1.5)
    call.until(2.0)
    call.begin(prepared.reply, 2.0)
    call.play(prepared.reply, 2, 2.8)
    call.say(2.8, 3.4, "Never mind, goodbye.")
    assert ("assistant", "One moment.") in call.roles


@pytest.mark.parametrize(
    ("played", "heard"), [(-5, ""), (0, ""), (4 * 19_200, "One two three four."), (10**9, "One two three four.")]
)
def test_a_playhead_out_of_range_is_clamped(played: int, heard: str) -> None:
    """C15."""
    call = Scenario(certain())
    reply, began = call.answered(0.0, 1.0, "Count to four.", "One two three four.")
    call.happen(began + 1, PlayheadMoved(began + 1, reply, played))
    call.say(began + 1, began + 1.5, "Stop it.")
    assert [content for role, content in call.roles if role == "assistant"] == ([heard] if heard else [])


def test_silence_after_a_barge_in_without_words_is_no_new_turn() -> None:
    call, _, now = talking(3)
    call.say(now, now + 0.3, "Stop.")
    call.until(now + 5.0)
    assert [command.text for _, command in call.all(CommitTurn)] == ["Name the months.", "Stop."]


def test_history_equals_the_text_when_everything_was_heard() -> None:
    """C08, C17: no doubled tail, no stray spaces, the original wording."""
    call = Scenario(certain())
    answer = "KLM asks $7.20, fine?"
    reply, began = call.answered(0.0, 1.0, MOON, answer)
    call.drain(reply, began + 3.0)
    assert call.roles[-1] == ("assistant", answer)
