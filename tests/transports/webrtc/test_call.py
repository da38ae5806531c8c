"""Whole calls over 127.0.0.1: an aiortc client and our transport in one process, with real codecs and encryption."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time

import numpy as np
import pytest

from tests.transports.webrtc.caller import Caller, Send, calling, is_rtp
from voice_agent.settings import WebRtcSettings
from voice_agent.transports.ports import AudioFrame, Transport
from voice_agent.transports.webrtc import WebRtcTransport, accept_offer, seams


def tone(hertz: float, seconds: float) -> np.ndarray:
    return (9000 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * 48_000)) / 48_000)).astype(np.int16)


def pitch(samples: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))


async def frames_of(transport: Transport, seconds: float) -> list[AudioFrame]:
    """Caller audio up to that length."""
    frames, wanted = [], seconds * 16_000
    async for frame in transport.frames():
        frames.append(frame)
        wanted -= len(frame.samples)
        if wanted <= 0:
            break
    return frames


async def event(caller: Caller, kind: str) -> dict:
    """The next message of that type."""
    while True:
        message = json.loads(await asyncio.wait_for(caller.messages.get(), 5))
        if message["type"] == kind:
            return message


async def ended(transport: WebRtcTransport) -> str | None:
    """Wait until the call is over; both iterators must end by themselves."""

    async def read() -> None:
        async for _ in transport.frames():
            pass
        async for _ in transport.messages():
            pass

    await asyncio.wait_for(read(), 5)
    return transport.reason


def test_audio_goes_both_ways_with_right_pitch_and_length():
    async def call() -> tuple[list[AudioFrame], np.ndarray, list[object], float | None]:
        caller = Caller(hertz=440)
        async with calling(caller) as transport:
            notices: list[object] = []
            transport.playout.listener = notices.append
            transport.playout.open_reply(1, held=False)
            transport.playout.append(1, 0, tone(880, 0.6))
            transport.playout.finish(1)
            frames, heard = await asyncio.gather(frames_of(transport, 1.2), caller.hear(1.2))
            return frames, heard, notices, transport.track.first_frame_at(1)

    frames, heard, notices, first = asyncio.run(call())
    samples = np.concatenate([frame.samples for frame in frames])
    assert pitch(samples[3200:], 16_000) == pytest.approx(440, abs=3)
    assert np.std(samples[3200:]) == pytest.approx(9000 / 2, rel=0.1)  # aiortc's client lowers mono to stereo by 3 dB
    loud = np.flatnonzero(np.abs(heard) > 3000)
    assert loud[-1] - loud[0] == pytest.approx(0.6 * 48_000, abs=480)
    assert pitch(heard[loud[0] : loud[-1]], 48_000) == pytest.approx(880, abs=5)
    assert len(notices) == 2
    assert first is not None


def dropping(lost: set[int], counter: list[int]):
    """Lose the RTP packets with these numbers, counted from the first."""

    def wrap(send: Send) -> Send:
        async def lossy(data: bytes) -> None:
            if is_rtp(data):
                counter[0] += 1
                if counter[0] in lost:
                    return
            await send(data)

        return lossy

    return wrap


@pytest.mark.parametrize("lost", [{30}, set(random.Random(5).sample(range(20, 80), 6))], ids=["one", "some"])
def test_lost_packets_are_bridged_and_cost_no_lasting_delay(lost):
    async def call() -> tuple[list[AudioFrame], dict[str, float], list[float]]:
        caller = Caller()
        caller.send_through(dropping(lost, [0]))
        async with calling(caller) as transport:
            frames, delays = [], []
            async for frame in transport.frames():
                frames.append(frame)
                delays.append(time.monotonic() - frame.at)
                if len(frames) == 100:
                    break
            return frames, transport.statistics(), delays

    frames, statistics, delays = asyncio.run(call())
    assert statistics["lost"] == len(lost)
    assert sum(len(frame.samples) for frame in frames if frame.concealed) == 320 * len(lost)
    steps = np.diff([frame.at for frame in frames[1:]])
    assert steps.min() >= 0
    assert steps.max() < 0.0201  # media time has no gap; it may only be corrected towards an earlier arrival
    assert min(delays[-15:]) < 0.015  # aiortc's own buffer would be 280 ms behind by now


def test_swapped_packets_are_put_in_order():
    def swapping(send: Send) -> Send:
        held: list[bytes] = []
        count = [0]

        async def swapped(data: bytes) -> None:
            count[0] += is_rtp(data)
            if is_rtp(data) and count[0] % 10 == 5:
                held.append(data)
                return
            await send(data)
            while held and is_rtp(data):
                await send(held.pop())

        return swapped

    async def call() -> tuple[list[AudioFrame], dict[str, float]]:
        caller = Caller()
        caller.send_through(swapping)
        async with calling(caller) as transport:
            return await frames_of(transport, 1.2), transport.statistics()

    frames, statistics = asyncio.run(call())
    assert statistics["reordered"] >= 4
    samples = np.concatenate([frame.samples for frame in frames])
    assert pitch(samples[3200:], 16_000) == pytest.approx(440, abs=3)


def test_a_peer_that_vanishes_is_noticed():
    async def call() -> tuple[str | None, float]:
        caller = Caller()
        async with calling(caller, dead_after=0.5) as transport:
            await frames_of(transport, 0.1)
            caller.vanish()
            began = time.monotonic()
            return await ended(transport), time.monotonic() - began

    reason, seconds = asyncio.run(call())
    assert reason == "peer is gone"
    assert 0.4 < seconds < 2.5


def test_a_peer_that_never_connects_is_given_up():
    async def call() -> str | None:
        caller = Caller()
        await caller.pc.setLocalDescription(await caller.pc.createOffer())
        settings = WebRtcSettings(ice_loopback=True, connect_timeout=0.2)
        transport, _ = await accept_offer(caller.pc.localDescription.sdp, "offer", settings)
        reason = await ended(transport)
        assert not await transport.wait_connected()
        await transport.close("again")
        await caller.hang_up()
        return reason

    assert asyncio.run(call()) == "peer did not connect"


def test_hanging_up_ends_the_call_at_once():
    async def call() -> tuple[str | None, float]:
        caller = Caller()
        async with calling(caller) as transport:
            await frames_of(transport, 0.1)
            began = time.monotonic()
            await caller.hang_up()
            return await ended(transport), time.monotonic() - began

    reason, seconds = asyncio.run(call())
    assert reason == "peer hung up"
    assert seconds < 1


def test_events_go_both_ways_and_the_last_words_arrive():
    async def call() -> None:
        caller = Caller()
        transport = await caller.call(WebRtcSettings(ice_loopback=True))
        transport.send({"type": "session.started", "session_id": "s"})  # long before the channel is open
        assert (await event(caller, "session.started"))["seq"] == 1
        assert caller.channel is not None
        caller.channel.send('{"type": "text", "text": "hello"}')
        async for message in transport.messages():
            assert message == {"type": "text", "text": "hello"}
            break
        transport.send({"type": "session.ended", "reason": "test"})
        began = time.monotonic()
        await asyncio.gather(transport.close("test"), transport.close("twice"))
        assert time.monotonic() - began < 1
        assert transport.reason == "test"
        assert (await event(caller, "session.ended"))["seq"] == 2
        await caller.hang_up()

    asyncio.run(call())


def test_junk_and_floods_on_the_data_channel_leave_the_call_alone():
    async def call() -> tuple[list[dict], dict[str, float], list[AudioFrame]]:
        caller = Caller()
        async with calling(caller) as transport:
            await asyncio.wait_for(caller.opened.wait(), 5)
            channel = caller.channel
            assert channel is not None
            channel.send(b"\x00\xff" * 500)
            channel.send("x" * 60_000)
            channel.send("")
            send_text_that_is_not_utf8(caller)
            for _ in range(300):
                channel.send("junk")
            frames = await frames_of(transport, 0.5)
            channel.send('{"type": "ping", "id": 1}')
            while channel.bufferedAmount:
                assert await frames_of(transport, 0.02), "the call has ended"
            await frames_of(transport, 0.3)
            errors = [json.loads(caller.messages.get_nowait()) for _ in range(caller.messages.qsize())]
            return errors, transport.statistics(), frames

    errors, statistics, frames = asyncio.run(call())
    assert 1 <= len(errors) <= 6
    assert {(error["type"], error["code"]) for error in errors} == {("error", "bad_message")}
    assert statistics["messages_bad"] > 90
    assert statistics["messages_flooded"] > 100
    assert np.std(np.concatenate([frame.samples for frame in frames])) > 4000


def send_text_that_is_not_utf8(caller: Caller) -> None:
    """As a text message (payload protocol 51), which aiortc's interface would not let through."""
    assert caller.pc.sctp is not None
    assert caller.channel is not None
    caller.channel._addBufferedAmount(3)
    caller.pc.sctp._data_channel_queue.append((caller.channel, 51, b"\xff\xfe\xfd"))


@pytest.mark.parametrize("label", ["chat", ""])
def test_a_client_with_another_channel_or_none_is_served(label):
    async def call() -> list[AudioFrame]:
        caller = Caller(label=label)
        async with calling(caller) as transport:
            transport.send({"type": "state"})
            return await frames_of(transport, 0.3)

    assert len(asyncio.run(call())) >= 15


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_calls_leave_no_task_thread_or_socket_behind():
    """H01: 30 calls, some hung up by the client, some by us, some while they were still connecting."""

    async def one(number: int) -> None:
        caller = Caller()
        transport = await caller.call(WebRtcSettings(ice_loopback=True))
        if number % 3:
            assert await asyncio.wait_for(transport.wait_connected(), 10)
            await frames_of(transport, 0.04)
        else:
            for _ in range(number * 2):
                await asyncio.sleep(0)  # somewhere in the middle of ICE and DTLS
        if number % 2:
            await caller.hang_up()
            await transport.close("test")
        else:
            await transport.close("test")
            await caller.hang_up()

    async def census() -> tuple[int, int, int]:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        pending = (await asyncio.wait(others, timeout=2))[1] if others else set()
        return len(pending), threading.active_count(), open_descriptors()

    async def calls() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        for number in range(3):
            await one(number)
        before = await census()
        for number in range(30):
            await one(number)
        return before, await census()

    before, after = asyncio.run(calls())
    assert before[0] == 0
    tasks, threads, descriptors = after
    assert tasks == 0
    assert descriptors <= before[2]
    # aiortc's client encodes in the loop's pool, which grows to its limit and no further
    assert threads <= before[1] + (os.cpu_count() or 1) + 4
    assert not [thread for thread in threading.enumerate() if "decoder" in thread.name]


def test_closing_does_not_wait_for_a_silent_turn_server(monkeypatch):
    async def call() -> float:
        caller = Caller()
        transport = await caller.call(WebRtcSettings(ice_loopback=True))
        assert await asyncio.wait_for(transport.wait_connected(), 10)
        (connection,) = seams.connections(transport._pc)
        monkeypatch.setattr(connection, "close", asyncio.Event().wait)  # never comes back
        sockets = [protocol.transport for protocol in connection._protocols]
        began = time.monotonic()
        await transport.close("test")
        seconds = time.monotonic() - began
        assert all(socket.is_closing() for socket in sockets)
        await caller.hang_up()
        return seconds

    assert asyncio.run(call()) < 1.2
