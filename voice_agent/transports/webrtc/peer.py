"""One WebRTC call: an offer is answered, then audio and events flow until either side hangs up or is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiortc import RTCDataChannel, RTCPeerConnection, RTCRtpTransceiver, RTCSessionDescription

from voice_agent.audio.playout import Playout
from voice_agent.errors import OfferError
from voice_agent.settings import WebRtcSettings
from voice_agent.transports.ports import AudioFrame
from voice_agent.transports.webrtc import ice, seams
from voice_agent.transports.webrtc.channel import EventChannel
from voice_agent.transports.webrtc.inbound import InboundAudio
from voice_agent.transports.webrtc.liveness import Liveness, next_look
from voice_agent.transports.webrtc.offer import OPUS, Offer, read_offer
from voice_agent.transports.webrtc.outbound import PlayoutTrack

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0
"""Seconds between looks at a healthy call."""
MAX_UNASSEMBLED = 2 * 1024 * 1024
"""Bytes of unfinished data channel messages; a client that sends more is not one of ours."""
LAST_WORDS = 0.1
"""Seconds that events already sent may take to leave before the connection is closed."""
CLOSE_TIMEOUT = 0.6
"""Seconds a TURN server may take to say goodbye."""

seams.check_seams()


async def accept_offer(
    sdp: str, type: str, settings: WebRtcSettings, clock: Callable[[], float] = time.monotonic
) -> tuple[WebRtcTransport, str]:
    """Answer a client's offer: the call's transport and the SDP of the answer.

    Raises OfferError (see `read_offer`; 503 if this machine has no address to offer) and ConfigError. The transport
    closes itself if the peer does not connect, hangs up or is gone; it must be closed in the end all the same.
    """
    offer = read_offer(sdp, type)
    transport = WebRtcTransport(settings, clock)
    try:
        return transport, await transport.answer(offer)
    except BaseException:
        await transport.close("offer refused")
        raise


class WebRtcTransport:
    """Implements `voice_agent.transports.ports.Transport`. Made by `accept_offer`."""

    def __init__(self, settings: WebRtcSettings, clock: Callable[[], float]) -> None:
        self.playout = Playout()
        self.track = PlayoutTrack(self.playout, clock)
        self.inbound = InboundAudio(clock)
        self.channel = EventChannel(clock)
        self.reason: str | None = None
        """Why the call is over; None while it is not."""
        self._settings = settings
        self._clock = clock
        self._liveness = Liveness(settings.connect_timeout, settings.dead_after)
        self._pc = RTCPeerConnection(ice.configuration(settings))
        self._transceiver: RTCRtpTransceiver | None = None
        self._answered = clock()
        self._last_packet = self._answered
        self._connected = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def answer(self, offer: Offer) -> str:
        """Take the offer and give the SDP of the answer. Once only."""
        pc = self._pc
        pc.on("datachannel", self._on_datachannel)
        pc.on("connectionstatechange", self._on_state)
        try:
            await pc.setRemoteDescription(RTCSessionDescription(sdp=offer.sdp, type="offer"))
            self._arrange_media(offer)
            for connection in seams.connections(pc):
                ice.prepare(connection, self._settings)
            await pc.setLocalDescription(await pc.createAnswer())
        except Exception as error:  # aiortc meets odd offers with whatever Python makes of them
            raise OfferError(
                400, "bad_sdp", f"the offer cannot be answered ({error or type(error).__name__})"
            ) from error
        if not any(connection.local_candidates for connection in seams.connections(pc)):
            raise OfferError(503, "no_address", "this machine has no network address to offer (ice_loopback is off)")
        for connection in seams.connections(pc):
            seams.watch_arrivals(connection, self._on_packet)
        self._answered = self._last_packet = self._clock()
        self._watching = asyncio.create_task(self._watch())
        return pc.localDescription.sdp

    def frames(self) -> AsyncIterator[AudioFrame]:
        return self.inbound.frames()

    def messages(self) -> AsyncIterator[dict[str, Any]]:
        return self.channel.inbox.items()

    def send(self, message: dict[str, Any]) -> None:
        self.channel.send(message)

    async def wait_connected(self) -> bool:
        """Wait until media can flow; False if the call ended before it could."""
        await self._connected.wait()
        return self.reason is None

    def statistics(self) -> dict[str, float]:
        """Counters since the call began; times in milliseconds."""
        inbound, channel, pace = self.inbound.counters, self.channel.counters, self.track.pace
        figures: dict[str, float] = {
            "packets": inbound.packets,
            "undecodable": inbound.undecodable,
            "concealed_ms": inbound.concealed_samples / 16,
            "frames_dropped": self.inbound.queue.dropped,
            "frames_sent": self.track.frames,
            "send_late_max_ms": pace.max_behind_seen * 1000,
            "send_skips": pace.skips,
            "messages_received": channel.received,
            "messages_bad": channel.bad,
            "messages_flooded": channel.flooded,
            "messages_sent": channel.sent,
            "messages_dropped": channel.dropped + self.channel.inbox.dropped,
        }
        if (buffer := self.inbound.buffer) is not None:
            counts = buffer.counters
            figures |= {"lost": counts.lost, "late": counts.late, "duplicates": counts.duplicates}
            figures |= {"reordered": counts.reordered, "restarts": counts.restarts}
            figures |= {"waiting_packets": buffer.waiting, "hole_wait_ms": buffer.wait * 1000}
        if self._transceiver and (seconds := seams.round_trip(self._transceiver.sender)) is not None:
            figures["round_trip_ms"] = seconds * 1000
        return figures

    async def close(self, reason: str) -> None:
        await asyncio.shield(self._hang_up(reason))

    def _arrange_media(self, offer: Offer) -> None:
        """Use one audio section with Opus; everything else offered is answered as inactive."""
        for transceiver in self._pc.getTransceivers():
            if transceiver.mid == offer.audio_mid:
                self._transceiver = transceiver
                transceiver.direction = "sendrecv"
                transceiver.sender.replaceTrack(self.track)
                self.inbound.accept(seams.negotiated(transceiver, OPUS))
                seams.tap_packets(transceiver.receiver, self.inbound)
            else:
                transceiver.direction = "inactive"
        if self._pc.sctp is not None:
            seams.guard_messages(self._pc.sctp, self.channel.receive_garbled)

    def _on_packet(self) -> None:
        self._last_packet = self._clock()

    def _on_datachannel(self, channel: RTCDataChannel) -> None:
        self.channel.attach(channel)

    def _on_state(self) -> None:
        state = self._pc.connectionState
        if state == "connected":
            self._last_packet = self._clock()
            self._connected.set()
        elif state == "closed":
            self._hang_up("peer hung up")
        elif state == "failed":
            self._hang_up("connection failed")

    async def _watch(self) -> None:
        """Hang up when the peer is gone or floods us."""
        planned = self._clock()
        while True:
            now = self._clock()
            facts = {"answered": self._answered, "last_packet": self._last_packet}
            connected = self._connected.is_set()
            look = next_look(
                now, self._liveness.deadline(connected=connected, **facts), planned=planned, interval=LOOK_INTERVAL
            )
            if look <= now and (reason := self._liveness.verdict(now, connected=connected, **facts)):
                self._hang_up(reason)
                return
            if self._pc.sctp is not None and seams.unassembled_bytes(self._pc.sctp) > MAX_UNASSEMBLED:
                self._hang_up("peer floods the data channel")
                return
            planned = look
            await asyncio.sleep(look - now)

    def _hang_up(self, reason: str) -> asyncio.Task[None]:
        """Begin to close, once; gives the task that does."""
        if self._closing is None:
            self.reason = reason
            self._closing = asyncio.create_task(self._shut())
        return self._closing

    async def _shut(self) -> None:
        self._connected.set()
        if self._watching is not None:
            self._watching.cancel()
        self.inbound.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.channel.wait_idle(), LAST_WORDS)
        self.channel.close()
        self.track.stop()
        closing = asyncio.create_task(self._pc.close())
        done, _ = await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT)
        if not done:
            for connection in seams.connections(self._pc):
                seams.abort_sockets(connection)
            done, _ = await asyncio.wait({closing}, timeout=0.2)
        if not done:
            log.warning("! a peer connection did not close in time")
            closing.cancel()
        # a handshake that completed while we were closing has started what was stopped before
        for transceiver in self._pc.getTransceivers():
            await transceiver.stop()
        await asyncio.gather(closing, return_exceptions=True)
