"""A clause that comes in pieces: what counts as shown, heard and said."""

from __future__ import annotations

from voice_agent.core.events import ClauseQueued, WordMark
from voice_agent.core.latency import Budget, LatencyBook
from voice_agent.core.reply import Reply

TEXT = "It is late."


def begun() -> Reply:
    reply = Reply(1, 1, LatencyBook(Budget()), generated=TEXT)
    reply.queue(ClauseQueued(0.0, 1, 0, len(TEXT), 100, (WordMark(2, 60), WordMark(5, 100)), last=False))
    return reply


def test_the_clause_is_shown_once_and_whole():
    reply = begun()
    assert reply.clauses == [TEXT]
    reply.queue(ClauseQueued(0.1, 1, 0, len(TEXT), 50, (WordMark(11, 150),), last=True))
    assert reply.clauses == [TEXT]


def test_words_count_as_they_are_played_whatever_is_still_to_come():
    reply = begun()
    reply.move_playhead(1000)
    assert (reply.played, reply.heard) == (100, "It is")
    reply.queue(ClauseQueued(0.1, 1, 0, len(TEXT), 50, (WordMark(11, 150),), last=True))
    assert reply.heard == "It is"
    reply.move_playhead(150)
    assert reply.heard == TEXT


def test_a_clause_that_broke_off_is_not_remembered_whole():
    reply = begun()
    reply.failed = reply.complete = True
    reply.move_playhead(100)
    assert reply.drained
    assert reply.heard == "It is"
