"""The jitter buffer, packet by packet: 20 ms Opus packets of 960 ticks unless a test says otherwise."""

from __future__ import annotations

import random

import pytest
from aiortc.jitterbuffer import JitterBuffer as AiortcJitterBuffer
from aiortc.rtp import RtpPacket

from voice_agent.transports.webrtc.jitter import (
    CAPACITY,
    MAX_FILL,
    Conceal,
    Decode,
    JitterBuffer,
)

RATE = 48_000
TICKS = 960
PERIOD = 0.020
T0 = 100.0


def payload(number: int) -> bytes:
    return b"%d" % number


class Feed:
    """Packet n has sequence `sequence + n` and timestamp `timestamp + 960 n`, and is sent at T0 + 20 n ms."""

    def __init__(self, sequence: int = 10, timestamp: int = 5000) -> None:
        self.buffer = JitterBuffer(RATE, lambda data: TICKS if data else 0)
        self.sequence = sequence
        self.timestamp = timestamp
        self.released: dict[int, float] = {}
        self.items: list[Decode | Conceal] = []

    def arrive(self, number: int, at: float | None = None) -> list[Decode | Conceal]:
        now = T0 + number * PERIOD if at is None else at
        self.expire(now)
        sequence, timestamp = self.sequence + number, self.timestamp + number * TICKS
        self.buffer.push(sequence & 0xFFFF, timestamp & 0xFFFFFFFF, payload(number), now)
        return self.pop(now)

    def expire(self, now: float) -> None:
        """Call `pop` at every deadline before `now`, as its user must."""
        while (deadline := self.buffer.deadline) is not None and deadline <= now:
            assert self.pop(deadline), "a deadline must release something"

    def pop(self, now: float) -> list[Decode | Conceal]:
        items = self.buffer.pop(now)
        self.items += items
        for item in items:
            if isinstance(item, Decode):
                self.released[int(item.payload)] = now
        return items

    def delay(self, number: int) -> float:
        """Seconds from when a packet was sent (= its arrival on a clean network) until its release."""
        return self.released[number] - (T0 + number * PERIOD)

    def order(self) -> list[int | str]:
        return [int(item.payload) if isinstance(item, Decode) else f"-{item.samples}" for item in self.items]


def test_packets_in_order_are_released_at_once():
    feed = Feed()
    for number in range(200):
        assert feed.arrive(number) == [Decode(payload(number), 5000 + number * TICKS)]
        assert feed.buffer.waiting == 0
    assert max(map(feed.delay, range(200))) == 0


def test_network_jitter_alone_adds_no_delay():
    feed, dice = Feed(), random.Random(1)
    for number in range(200):
        assert len(feed.arrive(number, T0 + number * PERIOD + dice.random() * 0.019)) == 1


def test_a_swapped_pair_is_put_in_order():
    feed = Feed()
    for number in (0, 1, 3):
        feed.arrive(number)
    assert feed.buffer.waiting == 1
    feed.arrive(2, T0 + 3 * PERIOD + 0.005)
    feed.arrive(4)
    assert feed.order() == [0, 1, 2, 3, 4]
    assert (feed.buffer.counters.reordered, feed.buffer.counters.lost) == (1, 0)


def test_a_lost_packet_costs_20_ms_once():
    feed = Feed()
    for number in range(100):
        if number != 50:
            feed.arrive(number)
    assert feed.order() == [*range(50), "-960", *range(51, 100)]
    assert feed.items[50] == Conceal(TICKS, 5000 + 50 * TICKS, 1)
    assert feed.delay(51) == pytest.approx(PERIOD)
    assert max(map(feed.delay, range(52, 100))) == 0
    assert feed.buffer.counters.lost == 1


def test_the_delay_is_back_at_zero_within_500_ms_of_a_loss():
    """Whatever had been learnt before: here that packets come 39 ms behind their successors."""
    feed = Feed()
    for number in range(50):
        if number % 10 != 7:
            feed.arrive(number)
        if number % 10 == 9:
            feed.arrive(number - 2, T0 + number * PERIOD + 0.019)
    assert feed.buffer.wait > 0.045
    for number in range(51, 80):
        feed.arrive(number)
    late = [number for number in range(51, 80) if feed.delay(number) > 0]
    assert late
    assert T0 + max(late) * PERIOD <= T0 + 51 * PERIOD + 0.5
    assert max(map(feed.delay, range(76, 80))) == 0


def test_several_packets_lost_in_a_row_are_one_hole():
    feed = Feed()
    for number in (0, 1, 5, 6, 7):
        feed.arrive(number)
    assert feed.order() == [0, 1, "-2880", 5, 6, 7]
    assert feed.buffer.counters.lost == 3


def test_two_holes_seen_together_are_given_up_together():
    feed = Feed()
    for number, at in ((0, 0.0), (2, 0.040), (4, 0.041)):
        feed.arrive(number, T0 + at)
    feed.pop(T0 + 0.061)
    assert feed.order() == [0, "-960", 2, "-960", 4]


def test_a_packet_that_comes_after_it_was_given_up_is_dropped_and_the_next_hole_waited_for_longer():
    feed = Feed()
    for number in (0, 2, 3):
        feed.arrive(number)
    assert feed.order() == [0, "-960", 2, 3]
    assert feed.arrive(1, T0 + 0.078) == []
    assert feed.buffer.counters.late == 1
    assert feed.buffer.wait == pytest.approx(0.038 * 1.25)
    feed.arrive(4, T0 + 0.080)
    feed.arrive(6)
    assert feed.buffer.deadline == pytest.approx(T0 + 6 * PERIOD + 0.0475, abs=1e-3)


def test_learnt_lateness_is_bounded_and_forgotten():
    feed = Feed()
    for number in (0, 2, 3):
        feed.arrive(number)
    feed.arrive(1, T0 + 0.5)
    assert feed.buffer.wait == 0.060
    for number in range(100, 3000):
        feed.arrive(number)
    assert feed.buffer.wait == 0.020


def test_duplicates_are_dropped_wherever_they_come():
    feed = Feed()
    for number in (0, 1, 1, 0, 3, 3):
        feed.arrive(number, T0 + number * PERIOD)
    feed.arrive(2, T0 + 0.061)
    feed.arrive(4)
    assert feed.order() == [0, 1, 2, 3, 4]
    assert feed.buffer.counters.duplicates == 3


def test_counters_wrap_around():
    feed = Feed(sequence=65_500, timestamp=(1 << 32) - 20 * TICKS)
    for number in range(100):
        if number != 36:  # sequence 0 itself is lost
            feed.arrive(number)
    assert feed.order() == [*range(36), "-960", *range(37, 100)]
    stamps = [item.timestamp for item in feed.items]
    assert stamps == [feed.timestamp + number * TICKS for number in range(100)]


def test_a_stall_and_its_burst_stay_one_utterance():
    """H11: nothing for 600 ms, then everything at once: no audio is missing, and media time does not show the stall."""
    feed = Feed()
    for number in range(100):
        stalled = 40 <= number < 70
        feed.arrive(number, T0 + 70 * PERIOD if stalled else None)
    assert feed.order() == list(range(100))
    clock = feed.buffer.clock
    ends = [clock.at(item.timestamp + TICKS) for item in feed.items]
    assert all(end == pytest.approx(T0 + number * PERIOD) for number, end in enumerate(ends))


def test_900_ms_of_missing_packets_become_900_ms_of_silence():
    """H11: the gap keeps its length in media time."""
    feed = Feed()
    for number in [*range(50), *range(95, 120)]:
        feed.arrive(number)
    assert feed.order() == [*range(50), f"-{45 * TICKS}", *range(95, 120)]
    assert 45 * TICKS / RATE == 0.9
    after = feed.items[51]
    assert feed.buffer.clock.at(after.timestamp) == pytest.approx(T0 + 94 * PERIOD)


def test_time_skipped_by_the_sender_is_filled_without_waiting():
    """Discontinuous transmission: the sequence goes on, the timestamp jumps."""
    feed = Feed()
    feed.arrive(0)
    feed.buffer.push(11, 5000 + 21 * TICKS, b"21", T0 + 21 * PERIOD)
    assert feed.pop(T0 + 21 * PERIOD) == [Conceal(20 * TICKS, 5000 + TICKS, 0), Decode(b"21", 5000 + 21 * TICKS)]
    assert feed.buffer.counters.lost == 0


def test_a_very_long_gap_is_cut_but_time_goes_on():
    feed = Feed()
    feed.arrive(0)
    feed.buffer.push(11, 5000 + 3000 * TICKS, b"3000", T0 + 60)
    filled, packet = feed.pop(T0 + 60)
    assert isinstance(filled, Conceal)
    assert filled.samples == MAX_FILL * RATE
    assert packet == Decode(b"3000", 5000 + 3000 * TICKS)


def test_packets_of_any_duration_follow_each_other():
    sizes = {b"a": 120, b"b": 2880, b"c": 480, b"d": 1920}
    buffer = JitterBuffer(RATE, lambda data: sizes[data])
    stamp, expected = 0, []
    for sequence, data in enumerate(b"abcdabdcacbd"):
        buffer.push(sequence, stamp, bytes([data]), T0 + stamp / RATE)
        expected.append(Decode(bytes([data]), stamp))
        stamp += sizes[bytes([data])]
        assert buffer.pop(T0 + stamp / RATE) == expected[-1:]


def test_equal_timestamps_are_laid_end_to_end():
    """aiortc stamps both packets of a 40 ms frame alike."""
    buffer = JitterBuffer(RATE, lambda _: TICKS)
    for sequence, stamp in enumerate((0, 0, 1920, 1920)):
        buffer.push(sequence, stamp, b"x", T0)
    assert buffer.pop(T0) == [Decode(b"x", stamp) for stamp in (0, 960, 1920, 2880)]


def test_an_empty_packet_is_time_without_audio():
    feed = Feed()
    feed.arrive(0)
    feed.buffer.push(11, 5000 + TICKS, b"", T0 + PERIOD)
    feed.pop(T0 + PERIOD)
    feed.arrive(2)
    assert feed.order() == [0, "-960", 2]
    assert feed.buffer.counters.lost == 0


@pytest.mark.parametrize(
    ("sequence", "timestamp"),
    [(40_000, 3_000_000_000), (40_000, 5000), (61, 3_000_000_000), (61, 1), (61, 5000 + 51 * TICKS + 2 * RATE)],
    ids=["both", "sequence", "timestamp ahead", "timestamp behind", "two seconds ahead"],
)
def test_a_restarted_sender_is_a_new_stream(sequence, timestamp):
    """Whichever counter jumps: media time goes on with the clock on the wall, 300 ms after the last packet."""
    feed = Feed()
    for number in range(50):
        feed.arrive(number)
    feed.sequence, feed.timestamp = sequence, timestamp
    began = T0 + 49 * PERIOD + 0.3
    for number in range(20):
        feed.arrive(number, began + number * PERIOD)
    assert feed.order() == [*range(50), f"-{14 * TICKS}", *range(20)]
    assert feed.buffer.counters.restarts == 1
    last = feed.items[-1]
    assert feed.buffer.clock.at(last.timestamp + TICKS) == pytest.approx(began + 19 * PERIOD)


def test_a_restart_does_not_wait_for_holes_of_the_old_stream():
    feed = Feed()
    for number in (0, 1, 3):
        feed.arrive(number)
    feed.sequence, feed.timestamp = 40_000, 3_000_000_000
    feed.arrive(0, T0 + 3 * PERIOD + 0.005)
    assert feed.order() == [0, 1, "-960", 3, 0]
    assert feed.buffer.waiting == 0


def test_a_sender_that_repeats_its_numbers_is_heard_again():
    """The sequence starts again a little below: nothing tells it from stragglers but that they go on coming."""
    feed = Feed(sequence=200)
    for number in range(100):
        feed.arrive(number)
    feed.sequence = 100
    feed.timestamp = 5000
    for number in range(100, 200):
        feed.arrive(number)
    assert feed.buffer.counters.restarts == 1
    assert feed.released[199] == T0 + 199 * PERIOD


def test_memory_is_bounded_whatever_comes():
    """A hole that is never waited out, because time stands still."""
    feed = Feed()
    feed.arrive(0)
    for number in range(2, 2000):
        feed.arrive(number, T0 + PERIOD)
        assert feed.buffer.waiting <= CAPACITY
    assert len(feed.items) > 1800


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_keep_order_and_time(seed):
    """Loss, reordering, duplicates and stalls: items cover media time once, in order, with nothing left over."""
    dice = random.Random(seed)
    feed = Feed(sequence=dice.randrange(1 << 16), timestamp=dice.randrange(1 << 32))
    events = []
    for number in range(1000):
        if dice.random() < 0.1 and number:
            continue
        arrival = T0 + number * PERIOD + dice.random() * dice.choice([0.005, 0.03, 0.15])
        events.append((arrival, number))
        if dice.random() < 0.05:
            events.append((arrival + dice.random() * 0.1, number))
    events.sort()
    if events[0][1] != 0:
        events.insert(0, (T0, 0))
    for arrival, number in events:
        feed.arrive(number, arrival)
    feed.expire(T0 + 60)
    assert feed.buffer.waiting == 0
    end = feed.timestamp
    for item in feed.items:
        assert item.timestamp == end
        end += item.samples if isinstance(item, Conceal) else TICKS
    heard = [int(item.payload) for item in feed.items if isinstance(item, Decode)]
    assert heard == sorted(set(heard))
    counters = feed.buffer.counters
    first_seen = {number for _, number in events}
    assert len(heard) + counters.late == len(first_seen)


def aiortc_delays(lost: set[int], count: int) -> dict[int, float]:
    """Seconds each packet waits in aiortc's own buffer, by number; packets that never come out are missing."""
    buffer = AiortcJitterBuffer(capacity=16, prefetch=4)
    delays = {}
    for number in range(count):
        if number in lost:
            continue
        packet = RtpPacket(payload_type=96, sequence_number=10 + number, timestamp=5000 + number * TICKS)
        packet._data = b""  # type: ignore[attr-defined]
        _, frame = buffer.add(packet)
        if frame is not None:
            out = (frame.timestamp - 5000) // TICKS
            delays[out] = (number - out) * PERIOD
    return delays


def test_what_replacing_aiortcs_buffer_gains():
    """Median delay on a clean network, and in the 2 s from one second after a single loss."""
    feed = Feed()
    for number in range(300):
        if number != 100:
            feed.arrive(number)
    theirs = aiortc_delays({100}, 300)
    ours = [feed.delay(number) for number in [*range(50, 100), *range(150, 250)]]
    before = [theirs[number] for number in range(50, 100) if number in theirs]
    after = [theirs[number] for number in range(150, 250)]
    print(
        f"aiortc: {before[0] * 1000:.0f} ms, {after[0] * 1000:.0f} ms after one loss; ours: {max(ours) * 1000:.0f} ms"
    )
    assert min(before) == pytest.approx(0.080)
    assert min(after) == pytest.approx(0.280)
    assert max(ours) == 0
    assert len([number for number in range(200) if number not in theirs]) == 5  # one was lost, four thrown away
    assert len(feed.released) == 299
