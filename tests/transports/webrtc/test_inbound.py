"""RTP packets to 16 kHz frames: real codecs, packets made by hand, virtual time."""

from __future__ import annotations

import asyncio
import fractions
from collections.abc import Callable

import av
import numpy as np
import pytest
from aiortc.codecs import G722_CODEC, PCMU_CODEC
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtp import RtpPacket

from tests.transports.webrtc.virtual_time import run_virtually
from voice_agent.audio.resample import resample
from voice_agent.transports.ports import AudioFrame
from voice_agent.transports.webrtc import inbound
from voice_agent.transports.webrtc.inbound import InboundAudio, mono_pcm
from voice_agent.transports.webrtc.payload import opus_samples

OPUS = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48_000, channels=2, payloadType=96)
PERIOD = 0.020


def tone(seconds: float, rate: int = 48_000, hertz: float = 440) -> np.ndarray:
    return (9000 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.int16)


def opus_packets(samples: np.ndarray, milliseconds: str = "20", layout: str = "mono") -> list[bytes]:
    codec = av.CodecContext.create("libopus", "w")
    codec.format, codec.layout, codec.sample_rate = "s16", layout, 48_000
    codec.bit_rate = 64_000
    codec.options = {"frame_duration": milliseconds, "application": "audio"}
    codec.open()
    step = round(float(milliseconds) * 48)
    packets = []
    for begin in range(0, len(samples) - step + 1, step):
        piece = samples[begin : begin + step]
        data = piece[None] if layout == "mono" else np.repeat(piece, 2)[None]
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(data), format="s16", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = 48_000, begin, fractions.Fraction(1, 48_000)
        packets += [bytes(packet) for packet in codec.encode(frame)]
    return packets


class Line:
    """Hands packets to an `InboundAudio` at chosen times."""

    def __init__(self, codec: RTCRtpCodecParameters = OPUS) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.codec = codec
        self.audio = InboundAudio(self.loop.time)
        self.audio.accept([codec])

    async def send(
        self, number: int, payload: bytes, *, ticks: int = 960, at: float | None = None, ssrc: int = 1
    ) -> None:
        """At the given time after the beginning, or when this packet would come if all were `ticks` long."""
        due = self.began + (number * ticks / self.codec.clockRate if at is None else at)
        await asyncio.sleep(due - self.loop.time())
        packet = RtpPacket(
            self.codec.payloadType or 0, 0, (100 + number) & 0xFFFF, (7000 + number * ticks) & 0xFFFFFFFF
        )
        packet.ssrc, packet.payload = ssrc, payload
        self.audio.packet(packet)

    async def finish(self) -> list[AudioFrame]:
        await asyncio.sleep(0.2)
        self.audio.close()
        return [frame async for frame in self.audio.frames()]


def pitch(samples: np.ndarray, rate: int = 16_000) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))


def whole(frames: list[AudioFrame]) -> np.ndarray:
    return np.concatenate([frame.samples for frame in frames])


@pytest.mark.parametrize("layout", ["mono", "stereo"])
def test_opus_becomes_16_khz_mono_of_the_same_pitch_level_and_length(layout):
    async def call() -> list[AudioFrame]:
        line = Line()
        for number, packet in enumerate(opus_packets(tone(1), layout=layout)):
            await line.send(number, packet)
        return await line.finish()

    frames = run_virtually(call())
    samples = whole(frames)
    assert samples.dtype == np.int16
    assert abs(len(samples) - 16_000) <= 17  # the resampler holds 1 ms back
    assert pitch(samples[2000:]) == pytest.approx(440, abs=2)
    assert np.std(samples[2000:]) == pytest.approx(9000 / np.sqrt(2), rel=0.05)
    assert not any(frame.concealed for frame in frames)


@pytest.mark.parametrize("milliseconds", ["2.5", "5", "10", "20", "40", "60"])
def test_packets_of_every_opus_duration(milliseconds):
    async def call() -> list[AudioFrame]:
        line = Line()
        ticks = round(float(milliseconds) * 48)
        for number, packet in enumerate(opus_packets(tone(1.2), milliseconds)):
            assert opus_samples(packet) == ticks
            await line.send(number, packet, ticks=ticks)
        return await line.finish()

    frames = run_virtually(call())
    assert abs(len(whole(frames)) - 1.2 * 16_000) <= 17
    assert pitch(whole(frames)[2000:]) == pytest.approx(440, abs=2)


@pytest.mark.parametrize("codec", [PCMU_CODEC, G722_CODEC], ids=["pcmu", "g722"])
def test_other_codecs_are_read_too(codec):
    async def call() -> list[AudioFrame]:
        line = Line(codec)
        rate = 16_000 if codec is G722_CODEC else 8_000
        encoder = av.CodecContext.create("g722" if codec is G722_CODEC else "pcm_mulaw", "w")
        encoder.format, encoder.layout, encoder.sample_rate = "s16", "mono", rate
        for number, piece in enumerate(np.split(tone(1, rate), 50)):
            frame = av.AudioFrame.from_ndarray(piece[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts = rate, number * len(piece)
            (packet,) = encoder.encode(frame)
            await line.send(number, bytes(packet), ticks=160)
        return await line.finish()

    samples = whole(run_virtually(call()))
    assert abs(len(samples) - 16_000) <= 33
    assert pitch(samples[2000:]) == pytest.approx(440, abs=2)


def test_capture_times_do_not_show_network_jitter():
    async def call() -> list[AudioFrame]:
        line = Line()
        for number, packet in enumerate(opus_packets(tone(2))):
            # the end of packet n is captured at (n + 1) * 20 ms and arrives 3 to 12 ms later
            await line.send(number, packet, at=(number + 1) * PERIOD + 0.003 + (number * 7 % 10) / 1000)
        frames = await line.finish()
        return [AudioFrame(frame.samples, frame.at - line.began) for frame in frames]

    frames = run_virtually(call())
    for number, frame in enumerate(frames[10:], 10):
        assert frame.at == pytest.approx((number + 1) * PERIOD + 0.003 - 0.001, abs=1e-6)  # resampler: 1 ms


def test_time_does_not_run_backwards():
    """Ten packets are 100 ms late, then the network clears, and packet 10 comes after 11 to 14: the anchor has moved
    to an earlier arrival by the time the held packets are released."""

    async def call() -> tuple[float, list[AudioFrame]]:
        line = Line()
        packets = opus_packets(tone(1))
        for number in [*range(10), 11, 12, 13, 14, 10, *range(15, 50)]:
            await line.send(
                number, packets[number], at=max((number + 1) * PERIOD, 0.3) if number > 9 else (number + 6) * PERIOD
            )
        return line.began, await line.finish()

    began, frames = run_virtually(call())
    assert len(frames) == 50
    assert np.diff([frame.at for frame in frames]).min() >= 0
    assert frames[-1].at - began == pytest.approx(1.0 - 0.001, abs=1e-6)


def test_a_stall_is_not_heard_as_silence():
    """H11: 600 ms without packets in the middle of a sound, then all of them: one sound, evenly timed."""

    async def call() -> list[AudioFrame]:
        line = Line()
        for number, packet in enumerate(opus_packets(tone(2))):
            await line.send(number, packet, at=max(number, 60 if 30 <= number < 60 else 0) * PERIOD)
        return await line.finish()

    frames = run_virtually(call())
    assert not any(frame.concealed for frame in frames)
    steps = np.diff([frame.at for frame in frames[1:]])
    assert np.allclose(steps, PERIOD, atol=1e-6)
    assert min(np.std(frame.samples) for frame in frames[2:-1]) > 5000


def test_a_900_ms_gap_keeps_its_length():
    """H11: what was lost is given as a short fade, then silence, in frames of 20 ms with right times."""

    async def call() -> list[AudioFrame]:
        line = Line()
        packets = opus_packets(tone(2))
        for number in [*range(30), *range(75, 100)]:
            await line.send(number, packets[number])
        return await line.finish()

    frames = run_virtually(call())
    concealed = [frame for frame in frames if frame.concealed]
    assert sum(len(frame.samples) for frame in concealed) == 0.9 * 16_000
    assert {len(frame.samples) for frame in concealed} == {320}
    assert not whole(concealed)[960:].any()
    assert np.std(whole(concealed)[:320]) > 3000
    assert np.allclose(np.diff([frame.at for frame in frames[1:]]), PERIOD, atol=1e-6)
    assert abs(len(whole(frames)) - 32_000) <= 17


def test_one_lost_packet_is_bridged_after_20_ms():
    async def call() -> tuple[list[AudioFrame], InboundAudio]:
        line = Line()
        packets = opus_packets(tone(1))
        for number in [*range(25), *range(26, 50)]:
            await line.send(number, packets[number])
        return await line.finish(), line.audio

    frames, audio = run_virtually(call())
    assert [frame.concealed for frame in frames].count(True) == 1
    assert np.std(whole(frames)[25 * 320 - 160 : 26 * 320 + 160]) > 3000  # no hole for a voice activity detector
    assert audio.counters.concealed_samples == 320
    assert audio.buffer is not None
    assert audio.buffer.counters.lost == 1


def test_a_hole_is_given_up_even_if_nothing_more_comes():
    async def call() -> list[AudioFrame]:
        line = Line()
        packets = opus_packets(tone(1))
        for number in (0, 1, 3):
            await line.send(number, packets[number])
        return await line.finish()

    assert [frame.concealed for frame in run_virtually(call())] == [False, False, True, False]


def test_silence_skipped_by_the_sender_is_silence():
    async def call() -> list[AudioFrame]:
        line = Line()
        packets = opus_packets(tone(1))
        for number in range(5):
            await line.send(number, packets[number])
        packet = RtpPacket(96, 0, 105, 7000 + 25 * 960)
        packet.ssrc, packet.payload = 1, packets[25]
        await asyncio.sleep(0.4)
        line.audio.packet(packet)
        return await line.finish()

    frames = run_virtually(call())
    assert len(frames) == 26
    assert not whole(frames[5:25]).any()
    assert not any(frame.concealed for frame in frames)


JUNK: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "one byte": lambda good: b"\xff",
    "text": lambda good: b"GET / HTTP/1.1\r\n\r\n",
    "cut short": lambda good: good[: len(good) // 2],
    "bits flipped": lambda good: bytes(byte ^ 0x55 for byte in good),
    "long": lambda good: good * 30,
}


@pytest.mark.parametrize("spoil", JUNK.values(), ids=JUNK.keys())
def test_junk_payloads_do_no_harm(spoil):
    async def call() -> list[AudioFrame]:
        line = Line()
        for number, packet in enumerate(opus_packets(tone(1))):
            await line.send(number, spoil(packet) if number % 3 == 1 and number < 40 else packet)
        return await line.finish()

    samples = whole(run_virtually(call()))
    assert len(samples) > 12_000
    assert pitch(samples[-2000:]) == pytest.approx(440, abs=10)


def test_another_source_is_a_new_stream():
    async def call() -> list[AudioFrame]:
        line = Line()
        packets = opus_packets(tone(1))
        for number in range(50):
            await line.send(
                number if number < 25 else number + 9000, packets[number], at=number * PERIOD, ssrc=1 + number // 25
            )
        return await line.finish()

    frames = run_virtually(call())
    assert len(frames) == 50
    assert np.all(np.diff([frame.at for frame in frames]) >= 0)


def test_unknown_payload_types_are_ignored():
    async def call() -> list[AudioFrame]:
        line = Line()
        line.audio.packet(RtpPacket(13, 0, 1, 1))
        return await line.finish()

    assert run_virtually(call()) == []


def test_a_reader_that_is_too_slow_loses_the_oldest():
    async def call() -> tuple[list[AudioFrame], int]:
        line = Line()
        packets = opus_packets(tone(1))
        for number in range(inbound.QUEUE_FRAMES + 70):
            await line.send(number, packets[number % 50])
        return await line.finish(), line.audio.queue.dropped

    frames, dropped = run_virtually(call())
    assert (len(frames), dropped) == (inbound.QUEUE_FRAMES, 70)
    assert np.allclose(np.diff([frame.at for frame in frames]), PERIOD, atol=1e-6)


def test_closing_ends_waiting_readers():
    async def call() -> list[list[AudioFrame]]:
        line = Line()

        async def read() -> list[AudioFrame]:
            return [frame async for frame in line.audio.frames()]

        readers = [asyncio.create_task(read()) for _ in range(2)]
        await asyncio.sleep(1)
        line.audio.close()
        line.audio.close()
        return await asyncio.gather(*readers)

    assert run_virtually(call()) == [[], []]


@pytest.mark.parametrize("kind", ["s16", "s16p", "flt", "fltp"])
@pytest.mark.parametrize("layout", ["mono", "stereo"])
def test_every_sample_layout_becomes_mono(kind, layout):
    """H06: stereo is averaged, interleaved or planar, never taken for twice as much mono."""
    left = tone(0.1)
    channels = np.stack([left, left // 2]) if layout == "stereo" else left[None]
    wanted = channels.mean(axis=0)
    data = channels.astype(np.float32) / 32767 if kind.startswith("flt") else channels
    data = data if kind.endswith("p") else data.T.reshape(1, -1)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(data), format=kind, layout=layout)
    frame.sample_rate = 48_000
    mono = mono_pcm(frame)
    assert mono.dtype == np.int16
    assert mono.shape == (4800,)
    assert np.abs(mono - wanted).max() <= 1
    assert pitch(resample(mono, 48_000, 16_000)) == pytest.approx(440, abs=10)
