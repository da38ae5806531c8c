"""How a call finds its way through networks: settings to ICE configuration."""

from __future__ import annotations

from aioice.ice import Connection
from aiortc import RTCConfiguration, RTCIceServer
from aiortc.rtcicetransport import parse_stun_turn_uri

from voice_agent.errors import ConfigError
from voice_agent.settings import WebRtcSettings
from voice_agent.transports.webrtc.seams import end_consent_with_close, gather_also

LOOPBACK = "127.0.0.1"

GATHER_TIMEOUT = 2
"""Seconds a STUN or TURN server may hold up the answer; aioice would wait 5."""


def configuration(settings: WebRtcSettings) -> RTCConfiguration:
    """ICE servers from settings; none by default, not even aiortc's public one. Raises ConfigError."""
    servers = []
    for key, url in (("stun", settings.stun), ("turn", settings.turn)):
        if not url:
            continue
        try:
            scheme = parse_stun_turn_uri(url)["scheme"]
        except ValueError as error:
            raise ConfigError(f"{key} = {url!r} is not a server address: expected {key}:HOST:PORT") from error
        if scheme.removesuffix("s") != key:
            raise ConfigError(f"{key} = {url!r} must begin with {key}:")
        if key == "turn":
            servers.append(RTCIceServer(urls=url, username=settings.turn_user, credential=settings.turn_password))
        else:
            servers.append(RTCIceServer(urls=url))
    return RTCConfiguration(iceServers=servers)


def prepare(connection: Connection, settings: WebRtcSettings) -> None:
    """Before candidates are gathered: add the loopback address if wanted, bound the wait for servers, mend a leak."""
    end_consent_with_close(connection)
    gather_also(connection, [LOOPBACK] if settings.ice_loopback else [], GATHER_TIMEOUT)
