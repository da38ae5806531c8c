"""Caller audio: RTP packets in, 16 kHz mono frames with capture times out.

Packets are decoded on the event loop, as they arrive: an Opus packet costs about 0.06 ms and its conversion to 16 kHz
0.05 ms, less than a hop to a thread and back, and no other thread can delay it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import av
import numpy as np
from aiortc.codecs import get_decoder
from aiortc.codecs.base import Decoder
from aiortc.codecs.opus import OpusDecoder
from aiortc.jitterbuffer import JitterFrame
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtp import RtpPacket

from voice_agent.audio.resample import Resampler
from voice_agent.engines.ports import ENGINE_RATE, Pcm16
from voice_agent.transports.ports import AudioFrame
from voice_agent.transports.webrtc.conceal import Concealer
from voice_agent.transports.webrtc.jitter import Conceal, Decode, JitterBuffer
from voice_agent.transports.webrtc.mailbox import Mailbox
from voice_agent.transports.webrtc.payload import byte_samples, opus_samples

log = logging.getLogger(__name__)

QUEUE_FRAMES = 500
"""Frames kept for a slow reader: 10 s at 20 ms."""

_PIECE = ENGINE_RATE // 50  # concealed audio comes in frames of 20 ms


@dataclass(slots=True)
class InboundCounters:
    packets: int = 0
    undecodable: int = 0
    concealed_samples: int = 0
    """16 kHz samples that stand in for lost ones."""


def mono_pcm(frame: av.AudioFrame) -> Pcm16:
    """One-dimensional int16 of a decoded frame of any layout and any of s16, s16p, flt, fltp; channels averaged."""
    channels = len(frame.layout.channels)
    samples = frame.to_ndarray()
    if not frame.format.is_planar:
        samples = samples.reshape(-1, channels).T  # (channels, samples)
    if samples.dtype != np.int16:
        samples = np.clip(np.rint(samples.astype(np.float32) * 32767.0), -32768, 32767)
    if channels == 1:
        mono: Pcm16 = samples[0].astype(np.int16, copy=False)
        return mono
    averaged: Pcm16 = np.rint(samples.mean(axis=0, dtype=np.float32)).astype(np.int16)
    return averaged


def _make_decoder(codec: RTCRtpCodecParameters) -> Decoder:
    decoder = get_decoder(codec)
    if isinstance(decoder, OpusDecoder):
        decoder.codec.layout = "mono"  # libopus mixes down itself, for half the samples
    return decoder


class InboundAudio:
    """Takes RTP packets of one call, gives `AudioFrame`s. Lives on the event loop's thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.counters = InboundCounters()
        self.queue: Mailbox[AudioFrame] = Mailbox(QUEUE_FRAMES)
        self._clock = clock
        self._codecs: dict[int, RTCRtpCodecParameters] = {}
        self._payload_type: int | None = None
        self._source: int | None = None
        self._decoder: Decoder | None = None
        self._buffer: JitterBuffer | None = None
        self._resampler: Resampler | None = None
        self._resampler_rate = 0
        self._concealer = Concealer()
        self._last_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def buffer(self) -> JitterBuffer | None:
        """The jitter buffer, once the first packet has come."""
        return self._buffer

    def accept(self, codecs: list[RTCRtpCodecParameters]) -> None:
        """The codecs that were negotiated; packets of other payload types are ignored."""
        self._codecs = {codec.payloadType: codec for codec in codecs if codec.payloadType is not None}

    def packet(self, packet: RtpPacket) -> None:
        """An RTP packet arrived. Never raises for what is in it."""
        codec = self._codecs.get(packet.payload_type)
        if codec is None or self._closed:
            return
        now = self._clock()
        self.counters.packets += 1
        if self._buffer is None or packet.payload_type != self._payload_type or packet.ssrc != self._source:
            self._payload_type, self._source = packet.payload_type, packet.ssrc
            self._decoder = _make_decoder(codec)
            opus = codec.mimeType.lower() == "audio/opus"
            self._buffer = JitterBuffer(codec.clockRate, opus_samples if opus else byte_samples)
        self._buffer.push(packet.sequence_number, packet.timestamp, packet.payload, now)
        self._drain(now)

    def close(self) -> None:
        """No more frames come."""
        self._closed = True
        self.queue.close()
        if self._timer is not None:
            self._timer.cancel()

    def frames(self) -> AsyncIterator[AudioFrame]:
        return self.queue.items()

    def _drain(self, now: float) -> None:
        buffer = self._buffer
        assert buffer is not None
        for item in buffer.pop(now):
            if isinstance(item, Decode):
                self._decode(buffer, item)
            else:
                self._conceal(buffer, item)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (deadline := buffer.deadline) is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, deadline - now), self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer = None
        if not self._closed:
            self._drain(self._clock())

    def _decode(self, buffer: JitterBuffer, item: Decode) -> None:
        assert self._decoder is not None
        try:
            decoded = self._decoder.decode(JitterFrame(item.payload, item.timestamp))
        except (av.FFmpegError, ValueError) as error:
            self.counters.undecodable += 1
            log.debug("! undecodable audio packet: %s", error)
            missing = buffer.duration(item.payload)
            if missing:
                self._conceal(buffer, Conceal(missing, item.timestamp, 1))
            return
        end = item.timestamp
        for frame in decoded:
            assert isinstance(frame, av.AudioFrame)
            end += round(frame.samples * buffer.clock.rate / frame.sample_rate)
            samples = self._convert(mono_pcm(frame), frame.sample_rate)
            if len(samples):
                self._concealer.heard(samples)
                self._emit(samples, buffer.clock.at(end), concealed=False)

    def _convert(self, samples: Pcm16, rate: int) -> Pcm16:
        if self._resampler is None or self._resampler_rate != rate:
            self._resampler, self._resampler_rate = Resampler(rate, ENGINE_RATE), rate
        return self._resampler.push(samples)

    def _conceal(self, buffer: JitterBuffer, item: Conceal) -> None:
        rate = buffer.clock.rate
        total = round(item.samples * ENGINE_RATE / rate)
        if item.lost:
            self.counters.concealed_samples += total
        for begin in range(0, total, _PIECE):
            count = min(_PIECE, total - begin)
            # a sender that skips silence (lost == 0) has nothing to be continued
            samples: Pcm16 = self._concealer.fill(count) if item.lost else np.zeros(count, np.int16)
            end = item.timestamp + round((begin + count) * rate / ENGINE_RATE)
            self._emit(samples, buffer.clock.at(end), concealed=item.lost > 0)

    def _emit(self, samples: Pcm16, at: float, *, concealed: bool) -> None:
        if self._resampler is not None:
            at -= self._resampler.delay
        # an anchor that moves to an earlier arrival must not make time run backwards
        self._last_at = max(self._last_at, at)
        self.queue.put(AudioFrame(samples, self._last_at, concealed))
