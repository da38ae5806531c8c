"""Sound that was not ready in the middle of a reply."""

from __future__ import annotations

from tests.core.scenario import Scenario, only
from tests.core.test_conversation import MOON, certain
from voice_agent.core.commands import PrepareReply
from voice_agent.core.events import PlayoutStalled


def test_gaps_that_were_heard_are_counted_in_the_report() -> None:
    call = Scenario(certain())
    prepared = only(call.say(1.0, 2.0, MOON), PrepareReply)
    call.write(prepared.reply, "It is far away", 2.4, complete=False)
    call.until(2.6)
    call.begin(prepared.reply, 2.6)
    call.happen(3.0, PlayoutStalled(3.0, prepared.reply))
    call.write(prepared.reply, "and bright.", 3.2)
    call.happen(4.0, PlayoutStalled(4.0, prepared.reply))  # nothing follows: the end, not a gap
    call.drain(prepared.reply, 4.1)
    assert [report.gaps for report in call.conversation.reports] == [1]
    assert call.conversation.reports[0].as_dict()["gaps"] == 1
