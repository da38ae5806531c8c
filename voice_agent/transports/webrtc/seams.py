"""Every place where this package reaches behind the public face of aiortc and aioice.

aiortc has no hook for packets before its jitter buffer, none for extra host candidates and none for "when did
anything arrive last". The reaches are few, each replaces one attribute of one object (never of a class or module),
and `check_seams` compares what they rely on with the installed versions before the first call.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Any, Protocol

import aioice.ice
from aiortc import RTCPeerConnection, RTCRtpReceiver, RTCRtpSender, RTCRtpTransceiver
from aiortc.rtcicetransport import RTCIceGatherer, RTCIceTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtcsctptransport import RTCSctpTransport
from aiortc.rtp import RtpPacket

from voice_agent.errors import VoiceAgentError

AIORTC_VERSIONS = ">=1.16,<1.17"
"""Versions whose source was read; pyproject pins the same range."""

AIOICE_VERSIONS = ">=0.13,<0.14"

_BUFFER = "_RTCRtpReceiver__jitter_buffer"
_THREAD = "_RTCRtpReceiver__decoder_thread"
_ROUND_TRIP = "_RTCRtpSender__rtt"


class PacketSink(Protocol):
    def packet(self, packet: RtpPacket) -> None:
        """An authenticated RTP packet of a negotiated payload type, as it arrived."""


class _Tap:
    """Stands where the receiver has its jitter buffer, and never completes a frame: nothing is decoded there."""

    def __init__(self, sink: PacketSink) -> None:
        self._sink = sink

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        self._sink.packet(packet)
        return False, None


def check_seams() -> None:
    """Raise VoiceAgentError if the installed aiortc or aioice are not built as expected."""
    names = {
        "RTCRtpReceiver has no jitter buffer": _BUFFER in RTCRtpReceiver.__init__.__code__.co_names,
        "RTCRtpReceiver bypasses its buffer": _BUFFER in RTCRtpReceiver._handle_rtp_packet.__code__.co_names,
        "RTCRtpReceiver has no decoder thread": _THREAD in RTCRtpReceiver.__init__.__code__.co_names,
        "RTCRtpSender does not take encoded packets": "pack" in RTCRtpSender._next_encoded_frame.__code__.co_names,
        "RTCIceTransport hides its connection": "_connection" in RTCIceTransport.__init__.__code__.co_names,
        "RTCIceGatherer hides its connection": "_connection" in RTCIceGatherer.__init__.__code__.co_names,
        "Connection gathers candidates otherwise": {"component", "addresses", "timeout"}
        <= set(aioice.ice.Connection.get_component_candidates.__code__.co_varnames),
        "Connection hides its sockets": "_protocols" in aioice.ice.Connection.__init__.__code__.co_names,
        "Connection checks consent otherwise": {"query_consent", "_query_consent_task"}
        <= set(aioice.ice.Connection.connect.__code__.co_names),
        "StunProtocol receives otherwise": hasattr(aioice.ice.StunProtocol, "datagram_received"),
        "RTCSctpTransport receives otherwise": "_data_channel_receive" in RTCSctpTransport._receive.__code__.co_names,
    }
    if missing := [name for name, found in names.items() if not found]:
        raise VoiceAgentError(
            f"aiortc {version('aiortc')} / aioice {version('aioice')} differ from what WebRTC calls need "
            f"({'; '.join(missing)}). Install aiortc{AIORTC_VERSIONS} and aioice{AIOICE_VERSIONS}."
        )


def tap_packets(receiver: RTCRtpReceiver, sink: PacketSink) -> None:
    """Give `sink` every RTP packet of `receiver`, which then decodes nothing; its RTCP statistics stay right."""
    vars(receiver)[_BUFFER] = _Tap(sink)


def round_trip(sender: RTCRtpSender) -> float | None:
    """Seconds to the peer and back, smoothed, from RTCP; None before the first report."""
    seconds: float | None = vars(sender).get(_ROUND_TRIP)
    return seconds


def connections(pc: RTCPeerConnection) -> list[aioice.ice.Connection]:
    """The ICE connections under a peer connection: one if everything is bundled."""
    transports = [transceiver.receiver.transport for transceiver in pc.getTransceivers()]
    if pc.sctp is not None:
        transports.append(pc.sctp.transport)
    found: list[aioice.ice.Connection] = []
    for transport in transports:
        connection = transport.transport._connection
        if connection not in found:
            found.append(connection)
    return found


def gather_also(connection: aioice.ice.Connection, extra: Iterable[str], timeout: int) -> None:
    """Make this connection offer `extra` host addresses, and wait at most `timeout` seconds for STUN and TURN."""
    gather = connection.get_component_candidates

    async def with_extra(component: int, addresses: list[str], **_: Any) -> list[aioice.Candidate]:
        wanted = [*addresses, *(address for address in extra if address not in addresses)]
        return await gather(component=component, addresses=wanted, timeout=timeout)

    vars(connection)["get_component_candidates"] = with_extra


def end_consent_with_close(connection: aioice.ice.Connection) -> None:
    """Start no consent checks on a closed connection. Closed while it connects, aioice starts them all the same, and
    without a pair to check they never end."""
    query = connection.query_consent

    async def unless_closed() -> None:
        if not connection._closing:
            await query()

    vars(connection)["query_consent"] = unless_closed


def watch_arrivals(connection: aioice.ice.Connection, arrived: Callable[[], None]) -> None:
    """Call `arrived` for every datagram (RTP, RTCP, DTLS, STUN) on the connection's present sockets."""
    for protocol in connection._protocols:
        receive = protocol.datagram_received

        def received(data: bytes, addr: tuple[Any, ...], receive: Callable[..., None] = receive) -> None:
            arrived()
            receive(data, addr)

        vars(protocol)["datagram_received"] = received


def abort_sockets(connection: aioice.ice.Connection) -> None:
    """Close the connection's sockets at once, without saying goodbye to a TURN server."""
    for protocol in connection._protocols:
        abort = getattr(protocol.transport, "abort", protocol.transport.close)
        abort()


def guard_messages(sctp: RTCSctpTransport, refused: Callable[[], None]) -> None:
    """Call `refused` for data channel messages that aiortc cannot parse; unguarded, they end the connection."""
    receive: Callable[[int, int, bytes], Awaitable[None]] = sctp._data_channel_receive

    async def guarded(stream_id: int, pp_id: int, data: bytes) -> None:
        try:
            await receive(stream_id, pp_id, data)
        except (UnicodeDecodeError, AssertionError, struct.error):
            refused()

    vars(sctp)["_data_channel_receive"] = guarded


def unassembled_bytes(sctp: RTCSctpTransport) -> int:
    """Bytes of unfinished data channel messages beyond the window that was granted."""
    return max(0, -int(vars(sctp).get("_advertised_rwnd", 0)))


def negotiated(transceiver: RTCRtpTransceiver, mime_type: str) -> list[RTCRtpCodecParameters]:
    """Reduce what was negotiated to one codec, before the answer is made; gives what is left of it."""
    kept = [codec for codec in transceiver._codecs if codec.mimeType.lower() == mime_type]
    transceiver._codecs = kept
    return kept
