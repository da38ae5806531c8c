"""Senders that stop sending: muted, or saving bandwidth."""

from __future__ import annotations

import pytest

from tests.transports.webrtc.test_jitter import PERIOD, RATE, T0, TICKS, Feed
from voice_agent.transports.webrtc.jitter import MAX_FILL, QUIET_AFTER, QUIET_LAG, Conceal, Decode


def silence(items: list[Decode | Conceal]) -> float:
    return sum(item.samples for item in items if isinstance(item, Conceal)) / RATE


def test_a_sender_that_stops_sending_is_heard_as_silence():
    """Muted by sending nothing, or saving bandwidth: the turn must be able to end."""
    feed = Feed()
    for number in range(10):
        feed.arrive(number)
    feed.expire(T0 + 9 * PERIOD + QUIET_AFTER - 0.01)
    assert silence(feed.items) == 0, "it may be a stall"
    feed.expire(T0 + 9 * PERIOD + 1.5)
    assert silence(feed.items) == pytest.approx(1.5 - QUIET_LAG, abs=0.11)
    feed.expire(T0 + 60)
    assert silence(feed.items) == pytest.approx(MAX_FILL)
    assert feed.buffer.deadline is None


def test_after_made_silence_time_and_words_go_on():
    feed = Feed()
    feed.arrive(0)
    feed.arrive(100, at=T0 + 2.0)
    feed.expire(T0 + 2.1)
    assert silence(feed.items) == pytest.approx(99 * TICKS / RATE)
    assert feed.order()[-1] == 100
    for number in range(101, 105):
        feed.arrive(number)
    assert feed.order()[-4:] == [101, 102, 103, 104]


def test_a_very_late_burst_loses_only_what_was_filled_already():
    feed = Feed()
    feed.arrive(0)
    for number in range(1, 100):
        feed.arrive(number, at=T0 + 2.0)
    heard = [number for number in feed.order() if isinstance(number, int)]
    assert heard[0] == 0
    assert heard[1:] == list(range(heard[1], 100))
    assert heard[1] * PERIOD == pytest.approx(2.0 - QUIET_LAG, abs=0.15)
    assert feed.buffer.counters.late == heard[1] - 1


def test_a_stall_of_our_own_is_not_taken_for_a_silent_sender():
    feed = Feed()
    feed.arrive(0)
    late = T0 + 3.0
    assert feed.pop(late) == []
    for number in range(1, 150):
        feed.arrive(number, at=late + 0.01)
    assert feed.order() == list(range(150))
    assert feed.buffer.counters.late == 0
