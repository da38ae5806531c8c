"""Whole conversations under a virtual clock, exact to the millisecond."""

from __future__ import annotations

import math

import pytest

from tests.core.scenario import Scenario, only, spoken
from voice_agent.core.agent_floor import Agent
from voice_agent.core.caller_floor import CallerSettings, User
from voice_agent.core.commands import (
    CancelReply,
    CloseReply,
    CommitTurn,
    Message,
    PausePlayout,
    PrepareReply,
    ReadAhead,
    Recognise,
    ReleaseReply,
    ResumePlayout,
    ScoreAudio,
    Speak,
)
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.core.endpointing import DelaySettings
from voice_agent.core.events import (
    AudioScored,
    CallEnded,
    CallStarted,
    InterruptAsked,
    ReplyComplete,
    ReplyFailed,
    SettingsChanged,
    SpeechDipped,
    SpeechPaused,
    SpeechStarted,
    TextTyped,
    TranscriptReady,
    WordsScored,
)

MOON = "How far is the moon from the earth?"


def certain() -> ConversationSettings:
    """Both delays equal: the endpoint is exactly 0.5 s after the last sound, whatever the words are."""
    caller = CallerSettings(delays=DelaySettings(0.5, 0.5), partial_every=math.inf)
    return ConversationSettings(system_prompt="Be brief.", caller=caller)


def test_a_question_is_recognised_at_the_pause_and_answered_at_the_endpoint() -> None:
    call = Scenario(certain())
    asked = call.speech(1.0, 2.0)
    assert asked == [Recognise(1, 1, 0.5, 2.1)]
    prepared = only(call.recognised(asked, MOON, 2.23), PrepareReply)
    assert [m.content for m in prepared.messages] == ["Be brief.", MOON]
    call.until(5.0)
    assert call.log[-2:] == [(2.5, CommitTurn(1, MOON)), (2.5, ReleaseReply(prepared.reply))]
    assert call.roles == [("user", MOON)]
    assert call.conversation.agent is Agent.THINKING


def test_speech_that_goes_on_voids_what_was_prepared() -> None:
    call = Scenario(certain())
    first = only(call.say(1.0, 2.0, "I would like to"), PrepareReply)
    assert call.happen(2.4, SpeechStarted(2.3))[0] == CancelReply(first.reply, "resumed")
    call.happen(3.1, SpeechPaused(3.0))
    call.happen(3.2, TranscriptReady(3.2, 1, 2, "I would like to book a table.", 3.1))
    call.until(9.0)
    assert [command for _, command in call.all(CommitTurn)] == [CommitTurn(1, "I would like to book a table.")]
    assert len(call.all(ReleaseReply)) == 1


def test_a_stale_recognition_changes_nothing() -> None:
    call = Scenario(certain())
    asked = only(call.speech(1.0, 2.0), Recognise)
    call.happen(2.2, SpeechStarted(2.1))
    assert call.happen(2.25, TranscriptReady(2.25, asked.turn, asked.revision, "Hello", 2.1)) == []
    assert call.conversation.user is User.SPEAKING


def test_no_turn_ends_while_the_caller_speaks() -> None:
    """A15: eight seconds without a pause are one turn."""
    call = Scenario(certain())
    call.happen(0.1, SpeechStarted(0.0))
    call.until(8.0)
    assert call.all(CommitTurn) == []
    asked = call.happen(8.1, SpeechPaused(8.0))
    call.recognised(asked, "all of it", 8.2)
    call.until(12.0)
    assert [command for _, command in call.all(CommitTurn)] == [CommitTurn(1, "all of it")]


@pytest.mark.parametrize("text", ["", "   "])
def test_a_turn_without_words_is_closed_and_causes_no_reply(text: str) -> None:
    """A03: speech was detected, nothing was recognised."""
    call = Scenario(certain())
    call.recognised(call.speech(1.0, 1.8), text.strip(), 2.0)
    assert call.log[-1] == (2.0, CommitTurn(1, ""))
    assert call.conversation.user is User.SILENT
    assert call.all(PrepareReply) == []
    assert call.conversation.deadline is None
    call.say(3.0, 4.0, MOON)
    call.until(6.0)
    assert call.roles == [("user", MOON)]


def test_an_open_sentence_waits_and_stays_one_turn() -> None:
    """A05: a number in pieces and a thought aloud are one request."""
    call = Scenario()
    call.say(0.0, 1.5, "My order number is")
    call.say(2.4, 3.5, "My order number is four four one seven.")
    call.until(9.0)
    assert [command.text for _, command in call.all(CommitTurn)] == ["My order number is four four one seven."]


def test_an_open_sentence_nobody_finishes_is_answered_after_the_long_delay() -> None:
    call = Scenario()
    call.say(0.0, 1.5, "I would like to, um")
    call.until(10.0)
    committed = call.all(CommitTurn)
    assert committed == [(round(1.5 + DelaySettings().max_delay, 3), CommitTurn(1, "I would like to, um"))]


def test_complete_words_and_sound_end_a_turn_sooner_than_open_ones() -> None:
    delays = {}
    for name, audio, words in [("complete", 0.95, 0.1), ("open", 0.05, 0.00001)]:
        call = Scenario()
        asked = call.speech(0.0, 1.5)
        prepared = only(call.recognised(asked, MOON, 1.73), PrepareReply)
        call.happen(1.75, WordsScored(1.75, prepared.reply, words))
        call.happen(1.78, AudioScored(1.78, 1, 1, audio))
        call.until(10.0)
        delays[name] = call.all(CommitTurn)[0][0] - 1.5
    assert delays["complete"] == pytest.approx(DelaySettings().min_delay, abs=0.05)
    assert delays["open"] > delays["complete"] + 0.3


def test_typed_text_is_a_turn_that_stops_the_reply_and_cuts_it_first() -> None:
    """B18: the request is built after the history was cut."""
    call = Scenario(certain())
    reply, began = call.answered(0.0, 1.0, MOON, "It is about two hundred thousand miles.")
    call.play(reply, 2.5, began + 1.0)
    done = call.happen(began + 1.0, TextTyped(began + 1.0, "In kilometres please"))
    assert done[0] == CancelReply(reply, "typed")
    assert done[1] == CloseReply(reply, 1, "It is", True)
    request = only(done, PrepareReply)
    assert [m.content for m in request.messages][1:] == [MOON, "It is", "In kilometres please"]
    assert isinstance(done[-1], ReleaseReply)


def test_typed_text_during_speech_joins_the_spoken_words() -> None:
    call = Scenario(certain())
    call.happen(0.1, SpeechStarted(0.0))
    call.happen(0.5, TextTyped(0.5, "Order 4417:"))
    call.recognised(call.happen(1.1, SpeechPaused(1.0)), "where is it?", 1.2)
    call.until(3.0)
    assert call.roles == [("user", "Order 4417: where is it?")]


def test_a_greeting_is_spoken_and_remembered_before_the_first_answer() -> None:
    """C06: the request after the greeting holds the greeting."""
    call = Scenario(
        ConversationSettings(
            greeting="Hello there.", caller=CallerSettings(delays=DelaySettings(0.5, 0.5), partial_every=math.inf)
        )
    )
    speak = only(call.happen(0.0, CallStarted(0.0)), Speak)
    call.write(speak.reply, "Hello there.", 0.05)
    call.begin(speak.reply, 0.1)
    call.drain(speak.reply, 0.9)
    prepared = only(call.say(1.0, 1.5, "Hi."), PrepareReply)
    assert [m.content for m in prepared.messages] == ["Hello there.", "Hi."]


def test_a_failed_reply_is_apologised_for_once() -> None:
    """F11: the caller does not wait in silence; a failed apology ends quietly."""
    call = Scenario(certain())
    prepared = only(call.say(0.0, 1.0, MOON), PrepareReply)
    call.until(2.0)
    done = call.happen(2.1, ReplyFailed(2.1, prepared.reply, "model gone"))
    assert spoken(done) == [ConversationSettings().apology]
    apology = only(done, Speak).reply
    assert spoken(call.happen(2.2, ReplyFailed(2.2, apology, "voice gone"))) == []
    assert call.conversation.agent is Agent.IDLE
    call.say(3.0, 4.0, "Are you there?")
    call.until(6.0)
    assert call.roles == [("user", f"{MOON} Are you there?")]


def test_a_reply_that_failed_before_the_endpoint_is_apologised_for_at_the_endpoint() -> None:
    call = Scenario(certain())
    prepared = only(call.say(0.0, 1.0, MOON), PrepareReply)
    assert call.happen(1.4, ReplyFailed(1.4, prepared.reply, "model gone")) == []
    call.until(1.6)
    assert spoken([command for _, command in call.log]) == [ConversationSettings().apology]


def test_a_reply_of_nothing_speakable_ends_in_listening() -> None:
    """E13: '...' is no reply to wait for."""
    call = Scenario(certain())
    prepared = only(call.say(0.0, 1.0, MOON), PrepareReply)
    call.happen(1.3, ReplyComplete(1.3, prepared.reply))
    call.until(2.0)
    assert call.conversation.agent is Agent.IDLE
    assert call.roles == [("user", MOON)]


def test_music_without_end_is_heard_through_and_then_a_turn_works() -> None:
    """A01: sound without words is recognised at the cap and dropped; nothing piles up."""
    call = Scenario(certain())
    call.happen(0.1, SpeechStarted(0.0))
    sinces = []
    for number in range(6):
        call.until(15.0 * (number + 1) + 1.0)
        cut = call.all(Recognise)[-1][1]
        assert cut.cut
        sinces.append(cut.since)
        call.happen(call.now, TranscriptReady(call.now, cut.turn, cut.revision, "", cut.until))
    assert sinces == sorted(set(sinces))
    assert all(command.until - command.since <= 25.0 for _, command in call.all(Recognise))
    call.recognised(call.happen(95.0, SpeechPaused(94.9)), "", 95.2)
    assert call.conversation.user is User.SILENT
    call.say(97.0, 98.0, MOON)
    call.until(99.0)
    assert call.roles == [("user", MOON)]


def test_a_person_who_talks_for_a_minute_is_never_cut_off() -> None:
    call = Scenario(certain())
    call.happen(0.1, SpeechStarted(0.0))
    for number in range(4):
        call.until(15.5 * (number + 1))
        cut = call.all(Recognise)[-1][1]
        call.happen(call.now, TranscriptReady(call.now, cut.turn, cut.revision, f"part {number}", cut.until))
    assert call.all(CommitTurn) == []
    call.recognised(call.happen(64.1, SpeechPaused(64.0)), "and the end.", 64.3)
    call.until(66.0)
    assert call.roles == [("user", "part 0 part 1 part 2 part 3 and the end.")]


def test_words_followed_by_music_end_the_turn_at_the_cap() -> None:
    call = Scenario(certain())
    call.happen(0.1, SpeechStarted(0.0))
    call.until(15.0)
    cut = call.all(Recognise)[-1][1]
    call.happen(15.2, TranscriptReady(15.2, cut.turn, cut.revision, MOON, cut.until))
    call.until(30.5)
    cut = call.all(Recognise)[-1][1]
    done = call.happen(30.6, TranscriptReady(30.6, cut.turn, cut.revision, "", cut.until))
    assert CommitTurn(1, MOON) in done
    assert call.happen(40.0, SpeechPaused(39.9)) == []  # the phantom end of what was settled already (A13)


def test_long_turns_settle_their_text_at_pauses() -> None:
    call = Scenario()
    call.say(0.0, 10.0, "So the first thing I want to say is that")
    call.happen(10.9, SpeechStarted(10.8))
    asked = only(call.happen(12.1, SpeechPaused(12.0)), Recognise)
    assert asked.since == pytest.approx(10.3)
    call.happen(12.3, TranscriptReady(12.3, asked.turn, asked.revision, "it works.", asked.until))
    call.until(20.0)
    assert call.roles == [("user", "So the first thing I want to say is that it works.")]


def test_a_hang_up_cuts_the_reply_and_ends_everything() -> None:
    call = Scenario(certain())
    reply, began = call.answered(0.0, 1.0, MOON, "It is far away from here.")
    call.play(reply, 3, began + 1.2)
    done = call.happen(began + 1.2, CallEnded(began + 1.2, "caller hung up"))
    assert done == [CancelReply(reply, "ended"), CloseReply(reply, 1, "It is far", True)]
    assert call.happen(99.0, SpeechStarted(98.0)) == []
    assert call.conversation.deadline is None


def test_the_stop_button_stops_and_does_not_answer() -> None:
    call = Scenario(certain())
    reply, began = call.answered(0.0, 1.0, MOON, "It is far away.")
    call.play(reply, 1, began + 0.4)
    done = call.happen(began + 0.4, InterruptAsked(began + 0.4))
    assert done == [CancelReply(reply, "asked"), CloseReply(reply, 1, "It", True)]
    assert call.conversation.agent is Agent.IDLE
    assert call.happen(began + 0.5, InterruptAsked(began + 0.5)) == []


def test_pause_and_resume_commands_pair_up_in_a_false_alarm() -> None:
    call = Scenario(certain())
    reply, began = call.answered(0.0, 1.0, MOON, "It is about two hundred thousand miles away.")
    call.say(began + 1.0, began + 1.3, "Mm-hm.")
    assert [command for _, command in call.log if isinstance(command, PausePlayout | ResumePlayout)] == [
        PausePlayout(reply),
        ResumePlayout(reply),
    ]


def test_the_first_dip_is_recognised_and_is_enough_if_the_pause_follows() -> None:
    """What was asked for at the first sign of the end is not asked for again."""
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    asked = call.happen(2.04, SpeechDipped(2.0))
    assert asked == [Recognise(1, 1, 0.5, 2.04)]
    assert call.happen(2.1, SpeechPaused(2.0)) == []
    assert isinstance(call.recognised(asked, MOON, 2.2)[0], PrepareReply)


def test_a_dip_answered_before_the_pause_is_certain_is_used_at_the_pause() -> None:
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    call.recognised(call.happen(2.04, SpeechDipped(2.0)), MOON, 2.08)
    assert isinstance(call.happen(2.1, SpeechPaused(2.0))[-1], PrepareReply)


def test_audio_that_comes_late_is_not_taken_for_heard() -> None:
    """A stalled machine gets a second of speech at once: the recognition asked at a dip in it hears no more than came
    before, whatever the clock says."""
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    first = only(call.happen(3.0, SpeechDipped(1.6, 1.632)), Recognise)
    again = only(call.happen(3.01, SpeechPaused(2.1)), Recognise)
    assert (first.revision, again.revision) == (1, 2)


def test_a_dip_replaces_a_recognition_that_hears_less_but_only_once() -> None:
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    first = only(call.happen(1.7, SpeechDipped(1.65, 1.7)), Recognise)
    assert call.happen(1.75, SpeechDipped(1.69, 1.74)) == [], "the one under way hears that already"
    second = only(call.happen(2.04, SpeechDipped(2.0)), Recognise)
    assert (first.revision, second.revision, second.until) == (1, 2, 2.04)
    assert call.happen(2.4, SpeechDipped(2.35)) == [], "a slow machine must get through some time"
    call.recognised([first], "How far", 2.5)
    assert call.conversation.words_so_far == (1, ""), "overtaken"
    call.recognised([second], "How far is the", 2.6)
    assert call.conversation.words_so_far == (1, "How far is the")


def test_a_dip_in_the_middle_gives_words_to_read_ahead_and_no_turn() -> None:
    call = Scenario(certain())
    call.happen(1.1, SpeechStarted(1.0))
    dip = call.happen(1.7, SpeechDipped(1.65))
    ahead = only(call.recognised(dip, "How far is the", 1.8), ReadAhead)
    assert ahead.messages[-1].content == "How far is"
    assert call.conversation.words_so_far == (1, "How far is the")
    assert call.happen(1.84, SpeechDipped(1.82)) == [], "a rest after each recognition"
    asked = call.happen(2.6, SpeechPaused(2.5))
    assert only(asked, Recognise).until == 2.6
    call.recognised(asked, MOON, 2.7)
    call.until(4.0)
    assert call.roles == [("user", MOON)]


def test_speech_without_dips_is_recognised_from_time_to_time() -> None:
    call = Scenario(ConversationSettings("", caller=CallerSettings()))
    call.happen(0.1, SpeechStarted(0.0))
    for _ in range(3):
        call.until(call.now + 2.0)
        at, asked = call.all(Recognise)[-1]
        call.happen(call.now, TranscriptReady(call.now, 1, asked.revision, "words", at))
    assert len(call.all(Recognise)) == 3
    assert call.all(CommitTurn) == []


def test_the_sound_is_asked_only_where_the_words_leave_it_open() -> None:
    for words, asked in [(0.5, 0), (0.00001, 1)]:
        call = Scenario()
        prepared = only(call.say(0.0, 1.5, MOON), PrepareReply)
        done = call.happen(1.8, WordsScored(1.8, prepared.reply, words))
        assert sum(isinstance(command, ScoreAudio) for command in done) == asked


def test_a_new_prompt_is_read_ahead_only_while_nothing_else_is_under_way() -> None:
    call = Scenario(certain())
    assert [m.content for m in only(call.happen(0.5, SettingsChanged(0.5, None, "Be long.")), ReadAhead).messages] == [
        "Be long.",
        "I",
    ]
    call.say(1.0, 2.0, MOON)
    assert call.happen(2.3, SettingsChanged(2.3, "de", "Be short.")) == []
    assert call.conversation.messages[0].content == "Be short."


def test_who_comes_back_after_a_lost_connection_is_not_greeted_again() -> None:
    earlier = (Message("system", "Old."), Message("user", MOON), Message("assistant", "Far."))
    conversation = Conversation(ConversationSettings("New.", "Hello!"), earlier)
    assert conversation.handle(CallStarted(0.0), 0.0) == []
    assert [message.content for message in conversation.messages] == ["New.", MOON, "Far."]
