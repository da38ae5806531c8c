"""A turn whose words the recogniser doubts is waited for longer than the same words heard clearly."""

from __future__ import annotations

import math

import pytest

from tests.core.scenario import Scenario, only
from voice_agent.core.caller_floor import CallerSettings
from voice_agent.core.commands import CommitTurn, PrepareReply, Recognise
from voice_agent.core.conversation import ConversationSettings
from voice_agent.core.endpointing import MISHEARD_PATIENCE, DelaySettings
from voice_agent.core.events import TranscriptReady, WordsScored

DELAYS = DelaySettings(0.3, 2.4)


def committed_after(log_probability: float) -> float:
    """Seconds from the caller's last sound to the end of their turn, for words the language model thinks are whole."""
    caller = CallerSettings(delays=DELAYS, partial_every=math.inf)
    call = Scenario(ConversationSettings(system_prompt="Be brief.", caller=caller))
    asked = only(call.speech(1.0, 2.0), Recognise)
    heard = TranscriptReady(2.2, asked.turn, asked.revision, "Soviet dresses", asked.until, log_probability)
    prepared = only(call.happen(2.2, heard), PrepareReply)
    call.happen(2.25, WordsScored(2.25, prepared.reply, 0.136))
    call.until(9.0)
    ((at, _),) = call.all(CommitTurn)
    return at - 2.0


def test_clear_words_end_the_turn_at_once_and_doubtful_ones_do_not() -> None:
    assert committed_after(-0.2) < DELAYS.min_delay + 0.1
    assert committed_after(-0.55) == pytest.approx(DELAYS.min_delay + MISHEARD_PATIENCE)
