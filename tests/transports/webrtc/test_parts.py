"""The small pure parts: media clock, payload lengths, concealment, mailbox, liveness."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.transports.webrtc.virtual_time import run_virtually
from voice_agent.transports.webrtc.conceal import Concealer
from voice_agent.transports.webrtc.liveness import GRACE, Liveness, next_look
from voice_agent.transports.webrtc.mailbox import Mailbox
from voice_agent.transports.webrtc.media_clock import MediaClock
from voice_agent.transports.webrtc.payload import byte_samples, opus_samples


def test_media_time_is_anchored_to_the_earliest_arrival():
    clock = MediaClock(1000)
    for timestamp, arrival in ((20, 5.030), (40, 5.041), (60, 5.090), (80, 5.095)):
        clock.observe(timestamp, arrival)
    assert clock.at(80) == pytest.approx(5.081)
    assert clock.ahead(100, 5.0) == pytest.approx(0.101)


def test_a_slow_or_fast_sound_card_is_followed():
    """200 parts per million for ten minutes: never off by more than what the window allows."""
    for drift in (-2e-4, 2e-4):
        clock = MediaClock(48_000)
        for number in range(30_000):
            now = 50 + number * 0.02 * (1 + drift)
            clock.observe(number * 960, now)
            assert -1e-9 <= now - clock.at(number * 960) < 0.0025


def test_a_clock_without_packets_knows_nothing():
    clock = MediaClock(48_000)
    assert clock.ahead(5, 5.0) == 0
    with pytest.raises(ValueError, match="no packet"):
        clock.at(5)


def test_the_anchor_outlives_a_long_silence():
    clock = MediaClock(1000)
    clock.observe(0, 5.0)
    clock.observe(60_000, 65.2)
    assert clock.at(60_000) == pytest.approx(65.2)


@pytest.mark.parametrize(
    ("payload", "samples"),
    [
        (bytes([0b00001_0_00, 1]), 960),  # SILK 20 ms, one frame
        (bytes([0b00011_1_00, 1]), 2880),  # SILK 60 ms
        (bytes([0b01100_0_01, 1, 1]), 960),  # hybrid 10 ms, two equal frames
        (bytes([0b11100_0_00]), 120),  # CELT 2.5 ms
        (bytes([0b11111_0_10, 1, 1]), 1920),  # CELT 20 ms, two frames
        (bytes([0b11101_0_11, 24]), 5760),  # CELT 5 ms, 24 frames
        (bytes([0b11111_0_11, 7]), 0),  # 140 ms: not allowed
        (bytes([0b11111_0_11]), 0),  # the count is missing
        (bytes([0b11111_0_11, 0]), 0),
        (b"", 0),
    ],
)
def test_opus_durations(payload, samples):
    assert opus_samples(payload) == samples


def test_byte_codecs_have_one_tick_per_byte():
    assert byte_samples(bytes(160)) == 160


def test_a_concealed_sound_goes_on_fades_and_falls_silent():
    concealer = Concealer()
    sound = (8000 * np.sin(2 * np.pi * 200 * np.arange(1600) / 16_000)).astype(np.int16)
    concealer.heard(sound)
    filled = np.concatenate([concealer.fill(320), concealer.fill(100), concealer.fill(2000)])
    assert abs(int(filled[0]) - int(sound[-1])) < 700  # continuous
    assert np.abs(np.diff(filled[:960].astype(int))).max() < 1300
    energies = [float(np.std(filled[begin : begin + 160])) for begin in range(0, 960, 160)]
    assert energies == sorted(energies, reverse=True)
    assert not filled[960:].any()


def test_concealment_begins_anew_after_real_audio_in_small_pieces():
    concealer = Concealer()
    concealer.fill(5000)
    for _ in range(20):
        concealer.heard(np.full(40, 5000, np.int16))
    assert concealer.fill(320).min() > 3000


def test_concealing_before_anything_was_heard_is_silence():
    assert not Concealer().fill(640).any()


def test_a_full_mailbox_drops_the_oldest():
    async def use() -> list[int]:
        box: Mailbox[int] = Mailbox(3)
        for item in range(5):
            box.put(item)
        box.close()
        box.put(9)
        assert box.dropped == 2
        return [item async for item in box.items()]

    assert asyncio.run(use()) == [2, 3, 4]


def test_a_cancelled_reader_loses_nothing():
    async def use() -> list[int]:
        box: Mailbox[int] = Mailbox(3)
        items = box.items()
        reader = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        reader.cancel()
        box.put(1)
        box.put(2)
        box.close()
        return [item async for item in box.items()]

    assert asyncio.run(use()) == [1, 2]


def test_a_waiting_reader_gets_items_as_they_come():
    async def use() -> list[int]:
        box: Mailbox[int] = Mailbox(3)
        got: list[int] = []

        async def read() -> None:
            async for item in box.items():
                got.append(item)

        reader = asyncio.create_task(read())
        for item in range(10):
            box.put(item)
            await asyncio.sleep(1)
            assert got == list(range(item + 1))
        box.close()
        await reader
        return got

    assert len(run_virtually(use())) == 10


LIMITS = Liveness(connect_timeout=20, dead_after=5)


@pytest.mark.parametrize(
    ("now", "connected", "last_packet", "verdict"),
    [
        (119.9, False, 100, None),
        (120.0, False, 119, "peer did not connect"),
        (119.9, True, 115, None),
        (120.0, True, 115, "peer is gone"),
        (500.0, True, 499, None),
    ],
)
def test_who_is_gone(now, connected, last_packet, verdict):
    assert LIMITS.verdict(now, answered=100, connected=connected, last_packet=last_packet) == verdict


def test_looks_are_regular_and_exact():
    assert next_look(10, 50, planned=10, interval=1) == 11
    assert next_look(10, 10.4, planned=10, interval=1) == 10.4
    assert next_look(10, 9, planned=9.9, interval=1) == 10


def test_nobody_is_declared_gone_while_their_packets_are_unread():
    """The loop was blocked for six seconds: look again when the sockets have been read."""
    assert next_look(16, 15, planned=10, interval=1) == 16 + GRACE
