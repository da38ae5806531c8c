"""The paced track in virtual time, and what its packets sound like."""

from __future__ import annotations

import asyncio

import av
import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from tests.transports.webrtc.virtual_time import VirtualTimeLoop, run_virtually
from voice_agent.audio.playout import Playout
from voice_agent.transports.webrtc.outbound import FRAME, MAX_BEHIND, OpusEncoder, Pace, PlayoutTrack
from voice_agent.transports.webrtc.payload import opus_samples

PERIOD = 0.020


def virtual_loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def test_frames_leave_every_20_ms_with_continuous_time_stamps():
    async def call() -> tuple[list[float], list[av.Packet]]:
        loop = virtual_loop()
        track = PlayoutTrack(Playout(), loop.time)
        began, times, packets = loop.time(), [], []
        for _ in range(100):
            packets.append(await track.recv())
            times.append(loop.time() - began)
        return times, packets

    times, packets = run_virtually(call())
    assert times == pytest.approx([number * PERIOD for number in range(100)], abs=1e-6)
    assert [packet.pts for packet in packets] == [number * FRAME for number in range(100)]
    assert {packet.time_base.denominator for packet in packets} == {48_000}
    assert {opus_samples(bytes(packet)) for packet in packets} == {FRAME}


@pytest.mark.parametrize(("late", "skips"), [(0.019, 0), (MAX_BEHIND - 0.001, 0), (0.25, 1), (10.0, 1)])
def test_a_late_wake_up_is_caught_up_without_drift_or_a_long_burst(late, skips):
    async def call() -> tuple[list[float], PlayoutTrack]:
        loop = virtual_loop()
        track = PlayoutTrack(Playout(), loop.time)
        began, times = loop.time(), []
        for number in range(60):
            await track.recv()
            times.append(loop.time() - began)
            if number == 20:
                loop.spend(PERIOD + late)
        return times, track

    times, track = run_virtually(call())
    burst = sum(1 for step in np.diff(times) if step < PERIOD / 2)
    assert burst <= MAX_BEHIND / PERIOD + 1
    assert track.pace.skips == skips
    assert track.pace.max_behind_seen == pytest.approx(late, abs=1e-6)
    if skips:
        assert times[-1] == pytest.approx(times[21] + 38 * PERIOD, abs=1e-6)
    else:
        assert times[-1] == pytest.approx(59 * PERIOD, abs=1e-6)


def test_pace_needs_no_loop():
    pace = Pace(PERIOD, MAX_BEHIND)
    assert pace.wait(5.0) == 0
    pace.take(5.0)
    assert pace.wait(5.005) == pytest.approx(0.015)
    assert pace.wait(5.030) == 0


def test_what_is_played_out_arrives_at_the_listener():
    """A tone through playout, encoder and decoder keeps pitch, level and length."""

    async def call() -> np.ndarray:
        loop = virtual_loop()
        playout = Playout()
        track = PlayoutTrack(playout, loop.time)
        playout.open_reply(1, held=False)
        tone = (9000 * np.sin(2 * np.pi * 500 * np.arange(48_000) / 48_000)).astype(np.int16)
        playout.append(1, 0, tone)
        decoder = av.CodecContext.create("libopus", "r")
        decoder.format, decoder.layout, decoder.sample_rate = "s16", "mono", 48_000
        heard = []
        for _ in range(75):
            packet = await track.recv()
            heard += [frame.to_ndarray()[0] for frame in decoder.decode(av.Packet(bytes(packet)))]
        return np.concatenate(heard)

    heard = run_virtually(call())
    loud = np.flatnonzero(np.abs(heard) > 3000)
    assert loud[0] < 0.004 * 48_000  # encoder and decoder delay
    assert loud[-1] - loud[0] == pytest.approx(48_000, abs=300)
    spectrum = np.abs(np.fft.rfft(heard[:48_000]))
    assert np.argmax(spectrum) == pytest.approx(500, abs=1)
    assert np.std(heard[4800:43_200]) == pytest.approx(9000 / np.sqrt(2), rel=0.05)


def decoded(packets: list[bytes]) -> np.ndarray:
    decoder = av.CodecContext.create("libopus", "r")
    decoder.format, decoder.layout, decoder.sample_rate = "s16", "mono", 48_000
    return np.concatenate([frame.to_ndarray()[0] for data in packets for frame in decoder.decode(av.Packet(data))])


def test_repeated_silence_is_silent_and_does_not_change_what_follows():
    """Speech-like noise, two seconds of zeros, noise again: as if every frame had been encoded."""
    noise = (4000 * np.random.default_rng(2).standard_normal((40, FRAME))).astype(np.int16)
    frames = [*noise[:20], *np.zeros((100, FRAME), np.int16), *noise[20:]]
    encoder, packets = OpusEncoder(), []
    for number, frame in enumerate(frames):
        packets.append(bytes(encoder.encode(frame, number * FRAME)))
    assert len(set(packets[50:120])) == 1
    assert len(packets[60]) == 3
    heard = decoded(packets)
    assert not heard[50 * FRAME : 120 * FRAME].any()

    always, reference = OpusEncoder(), []
    for number, frame in enumerate(frames):
        always._silent = 0
        always._last = b""
        reference.append(bytes(always.encode(frame, number * FRAME)))
    wanted = decoded(reference)
    for begin, end in ((0, 20), (120, 160)):
        part = slice(begin * FRAME, end * FRAME)
        assert np.std(heard[part]) == pytest.approx(np.std(wanted[part]), rel=0.02)


def test_the_first_frame_of_each_reply_is_noted():
    async def call() -> tuple[float, PlayoutTrack]:
        loop = virtual_loop()
        playout = Playout()
        track = PlayoutTrack(playout, loop.time)
        began = loop.time()
        for _ in range(3):
            await track.recv()
        playout.open_reply(7, held=True)
        playout.append(7, 0, np.ones(9600, np.int16))
        await track.recv()
        assert track.first_frame_at(7) is None
        playout.release(7)
        for _ in range(4):
            await track.recv()
        for reply in range(8, 40):
            playout.open_reply(reply, held=False)
            playout.append(reply, 0, np.ones(960, np.int16))
            await track.recv()
            assert track.first_frame_at(reply) == loop.time()
            if reply == 10:
                assert track.first_frame_at(7) == pytest.approx(began + 4 * PERIOD)
        return began, track

    _, track = run_virtually(call())
    assert track.first_frame_at(7) is None  # long ago: memory is bounded


def test_a_stopped_track_ends():
    async def call() -> None:
        track = PlayoutTrack(Playout(), virtual_loop().time)
        await track.recv()
        track.stop()
        with pytest.raises(MediaStreamError):
            await track.recv()

    run_virtually(call())


def test_the_playout_must_fit_the_network():
    async def call() -> None:
        with pytest.raises(ValueError, match="48000 Hz"):
            PlayoutTrack(Playout(rate=8000, frame=160), virtual_loop().time)

    run_virtually(call())
