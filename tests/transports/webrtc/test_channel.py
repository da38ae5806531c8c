"""The events channel against clients that send junk, flood, or never read; aiortc's channel is a stand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from voice_agent.transports.webrtc.channel import (
    HIGH_WATER,
    MAX_MESSAGE,
    MAX_PENDING,
    MAX_PENDING_BYTES,
    Allowance,
    BadMessage,
    EventChannel,
    read_message,
)


class Now:
    def __init__(self) -> None:
        self.seconds = 500.0

    def __call__(self) -> float:
        return self.seconds


class StandIn:
    """What EventChannel uses of RTCDataChannel. `reads` False: nothing ever leaves."""

    def __init__(self, label: str = "events", *, reads: bool = True, largest: int = 65_536) -> None:
        self.label, self.reads, self.largest = label, reads, largest
        self.readyState = "open"
        self.bufferedAmount = 0
        self.sent: list[dict[str, Any]] = []
        self.handlers: dict[str, Callable[..., None]] = {}

    def on(self, event: str, handler: Callable[..., None]) -> None:
        self.handlers[event] = handler

    def send(self, text: str) -> None:
        if len(text) > self.largest:
            raise ValueError("too large")
        self.sent.append(json.loads(text))
        if not self.reads:
            self.bufferedAmount += len(text.encode())

    def read_everything(self) -> None:
        self.bufferedAmount = 0
        self.handlers["bufferedamountlow"]()


def opened(**options: Any) -> tuple[EventChannel, StandIn, Now]:
    now = Now()
    channel, stand_in = EventChannel(now), StandIn(**options)
    channel.attach(stand_in)  # type: ignore[arg-type]
    return channel, stand_in, now


def inbox(channel: EventChannel) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        channel.close()
        return [message async for message in channel.inbox.items()]

    return asyncio.run(read())


def test_messages_are_numbered_and_stamped():
    channel, stand_in, now = opened()
    channel.send({"type": "state", "user": "silent"})
    now.seconds += 1.5
    channel.send({"type": "state", "user": "speaking", "seq": 70, "at_ms": 1234})
    now.seconds += 0.25
    channel.send({"type": "pong"})
    assert stand_in.sent == [
        {"type": "state", "user": "silent", "seq": 1, "at_ms": 0},
        {"type": "state", "user": "speaking", "seq": 2, "at_ms": 1234},
        {"type": "pong", "seq": 3, "at_ms": 1750},
    ]


def test_messages_wait_for_the_channel_to_open():
    channel = EventChannel(Now())
    for number in range(3):
        channel.send({"type": "state", "n": number})
    assert channel.pending == 3
    stand_in = StandIn()
    channel.attach(stand_in)  # type: ignore[arg-type]
    assert [message["n"] for message in stand_in.sent] == [0, 1, 2]


def test_what_waits_is_bounded_and_the_oldest_is_dropped():
    channel = EventChannel(Now())
    for number in range(MAX_PENDING + 40):
        channel.send({"type": "state", "n": number})
    stand_in = StandIn()
    channel.attach(stand_in)  # type: ignore[arg-type]
    assert [message["n"] for message in stand_in.sent] == list(range(40, MAX_PENDING + 40))
    assert channel.counters.dropped == 40


def test_what_waits_is_bounded_in_bytes_too():
    channel = EventChannel(Now())
    for _ in range(100):
        channel.send({"type": "turn.report", "report": "x" * 20_000})
    assert channel.pending * 20_000 <= MAX_PENDING_BYTES
    assert channel.counters.dropped == 100 - channel.pending


def test_a_client_that_never_reads_holds_a_bounded_amount():
    channel, stand_in, _ = opened(reads=False)
    for number in range(20_000):
        channel.send({"type": "transcript.partial", "text": "word " * 20, "n": number})
    assert stand_in.bufferedAmount < HIGH_WATER + 1000
    assert channel.pending <= MAX_PENDING
    assert channel.busy
    # it wakes up: the newest messages come, and the numbering shows what was lost
    before = len(stand_in.sent)
    while stand_in.bufferedAmount:
        stand_in.read_everything()
    assert stand_in.sent[-1]["n"] == 19_999
    assert stand_in.sent[before]["seq"] - stand_in.sent[before - 1]["seq"] > 1000
    assert len(stand_in.sent) + channel.counters.dropped == 20_000


def test_a_message_the_client_cannot_take_is_dropped():
    channel, stand_in, _ = opened(largest=1000)
    channel.send({"type": "turn.report", "report": "x" * 2000})
    channel.send({"type": "state"})
    assert [message["type"] for message in stand_in.sent] == ["state"]
    assert channel.counters.dropped == 1


def test_channels_of_other_labels_are_ignored():
    channel, stand_in, _ = opened(label="chat")
    channel.send({"type": "state"})
    assert stand_in.sent == []
    assert stand_in.handlers == {}


def test_a_channel_opened_again_takes_over():
    channel, first, _ = opened()
    channel.send({"type": "state"})
    first.readyState = "closed"
    channel.send({"type": "pong"})
    second = StandIn()
    channel.attach(second)  # type: ignore[arg-type]
    assert [message["type"] for message in second.sent] == ["pong"]


def test_good_messages_are_passed_on():
    channel, _, _ = opened()
    good = [
        {"type": "ping", "id": 7},
        {"type": "text", "text": "Grüße, 你好"},
        {"type": "interrupt", "more": None},
        {"type": "settings", "speed": 1.2, "prompt": "Be brief."},
        {"type": "hangup"},
    ]
    for message in good:
        channel.receive(json.dumps(message, ensure_ascii=False))
    assert inbox(channel) == good


JUNK: dict[str, str | bytes] = {
    "infinity": '{"type": "ping", "id": 1e999}',
    "not a number": '{"type": "ping", "id": NaN}',
    "half a surrogate pair": '{"type": "text", "text": "\\ud800"}',
    "empty": "",
    "no JSON": "ping: 1700000000000",
    "half": '{"type": "ping"',
    "number": "17",
    "null": "null",
    "list": '[{"type": "ping"}]',
    "no type": '{"id": 1}',
    "odd type": '{"type": ["ping"]}',
    "unknown type": '{"type": "shutdown"}',
    "text without text": '{"type": "text"}',
    "text that is none": '{"type": "text", "text": {"a": 1}}',
    "binary": b'{"type": "ping"}',
    "large": json.dumps({"type": "text", "text": "x" * MAX_MESSAGE}),
    "large in UTF-8": json.dumps({"type": "text", "text": "é" * (MAX_MESSAGE // 2)}, ensure_ascii=False),
    "deep": "[" * 16_000,
    "deep object": '{"type":' * 2000,
    "long number": "1" * 16_000,
    "lone surrogate": "\ud800",
    "NUL": "\x00" * 100,
}


@pytest.mark.parametrize("raw", JUNK.values(), ids=JUNK.keys())
def test_junk_is_answered_with_one_error(raw):
    channel, stand_in, _ = opened()
    channel.receive(raw)
    assert [(message["type"], message["code"]) for message in stand_in.sent] == [("error", "bad_message")]
    assert inbox(channel) == []
    with pytest.raises(BadMessage):
        read_message(raw)


def test_the_largest_message_is_taken():
    frame = len('{"type":"text","text":""}')
    raw = '{"type":"text","text":"%s"}' % ("x" * (MAX_MESSAGE - frame))
    assert len(read_message(raw)["text"]) == MAX_MESSAGE - frame


def test_complaints_are_rare_however_much_junk_comes():
    channel, stand_in, now = opened()
    for _ in range(10_000):
        channel.receive("junk")
        now.seconds += 0.001
    assert 3 <= len(stand_in.sent) <= 3 + 10 * 2
    assert channel.counters.flooded > 9000  # not even read
    assert inbox(channel) == []


def test_a_flood_of_good_messages_is_thinned():
    channel, _, now = opened()
    for _ in range(5_000):
        channel.receive('{"type": "interrupt"}')
        now.seconds += 0.001
    assert channel.counters.received <= 100 + 5 * 50 + 1
    assert len(channel.inbox) <= channel.inbox.capacity
    now.seconds += 10
    channel.receive('{"type": "hangup"}')
    assert inbox(channel)[-1] == {"type": "hangup"}


def test_garbled_text_counts_as_bad():
    channel, stand_in, _ = opened()
    channel.receive_garbled()
    assert stand_in.sent[0]["code"] == "bad_message"
    assert channel.counters.bad == 1


def test_waiting_until_everything_has_left():
    async def use() -> None:
        channel, stand_in, _ = opened(reads=False)
        channel.send({"type": "session.ended"})
        waiting = asyncio.create_task(channel.wait_idle())
        await asyncio.sleep(0)
        assert not waiting.done()
        stand_in.read_everything()
        await waiting

    asyncio.run(use())


def test_a_closed_channel_neither_sends_nor_keeps():
    channel, stand_in, _ = opened()
    channel.close()
    channel.send({"type": "state"})
    assert stand_in.sent == []
    assert not channel.busy


def test_an_allowance_refills():
    allowance = Allowance(rate=2, burst=3)
    assert [allowance.take(1.0) for _ in range(5)] == [True, True, True, False, False]
    assert [allowance.take(1.5) for _ in range(2)] == [True, False]
    assert [allowance.take(99.0) for _ in range(5)] == [True, True, True, False, False]
