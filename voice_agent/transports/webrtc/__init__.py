"""Calls from browsers: audio and events over WebRTC. `accept_offer` is the only way in."""

from voice_agent.transports.webrtc.peer import WebRtcTransport, accept_offer

__all__ = ["WebRtcTransport", "accept_offer"]
