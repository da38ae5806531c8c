"""Reads a client's SDP offer: refuses what cannot be served, and drops what must not be acted upon. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aiortc.sdp import MediaDescription, SessionDescription

from voice_agent.errors import OfferError

MAX_SDP = 64 * 1024
MAX_CANDIDATES = 32
"""Every candidate makes the server send packets to the address in it."""

OPUS = "audio/opus"

DIGEST_BYTES = {"sha-256": 32, "sha-384": 48, "sha-512": 64}
"""Hash functions a certificate can be checked with, and how long their values are."""

FINGERPRINT = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2})*")
SECURE_PROFILES = ("SAVP", "SAVPF", "SCTP")
"""How the transport of a media section ends if it is encrypted."""


@dataclass(frozen=True, slots=True)
class Offer:
    sdp: str
    """The offer without the candidates that are not to be tried."""
    audio_mid: str
    """Which media section carries the call's audio."""


def read_offer(sdp: str, kind: str) -> Offer:
    """Raises OfferError: 400 malformed or without audio both ways, 413 too large, 415 without Opus."""
    if kind != "offer":
        raise OfferError(400, "not_an_offer", f"the type must be 'offer', not {kind!r}")
    if not isinstance(sdp, str) or not sdp.strip():
        raise OfferError(400, "bad_sdp", "the SDP is empty")
    if len(sdp) > MAX_SDP:
        raise OfferError(413, "sdp_too_large", f"the SDP is longer than {MAX_SDP} characters")
    sdp = _without_unwanted_candidates(sdp)
    try:
        description = SessionDescription.parse(sdp)
    except Exception as error:  # aiortc's parser fails in every way junk can make Python fail
        raise OfferError(400, "bad_sdp", f"the SDP cannot be read ({type(error).__name__})") from error
    if not description.media:
        raise OfferError(400, "no_audio", "the offer has no media at all")
    _check_structure(description)
    for media in description.media:
        _check_transport(media)
    audio = _audio(description.media)
    return Offer(_with_directions(sdp, description.media), audio.rtp.muxId)


def _check_structure(description: SessionDescription) -> None:
    """Sections and how they share a transport; aiortc takes both for granted and breaks in the background."""
    mids = [media.rtp.muxId for media in description.media]
    if len(set(mids)) < len(mids) or (len(mids) > 1 and not all(mids)):
        raise OfferError(400, "bad_sdp", "every media section needs a mid of its own")
    kinds = [media.kind for media in description.media]
    if unknown := set(kinds) - {"audio", "video", "application"}:
        raise OfferError(400, "bad_sdp", f"unknown kind of media section: {', '.join(sorted(unknown))}")
    if kinds.count("application") > 1:
        raise OfferError(400, "bad_sdp", "more than one section for data channels")
    for group in description.group:
        if group.semantic == "BUNDLE" and not set(group.items) <= set(mids):
            raise OfferError(400, "bad_sdp", "the BUNDLE group names a section that is not there")


def _check_transport(media: MediaDescription) -> None:
    if media.ice is None or not media.ice.usernameFragment or not media.ice.password:
        raise OfferError(400, "bad_sdp", f"the {media.kind} section has no ICE credentials")
    if not media.profile.upper().endswith(SECURE_PROFILES):
        raise OfferError(400, "bad_sdp", f"the {media.kind} section is not encrypted ({media.profile[:40]})")
    if media.dtls is None or not media.dtls.fingerprints:
        raise OfferError(400, "bad_sdp", f"the {media.kind} section has no DTLS fingerprint, or no a=setup")
    if not any(_checkable(print_.algorithm, print_.value) for print_ in media.dtls.fingerprints):
        known = ", ".join(DIGEST_BYTES)
        raise OfferError(400, "bad_sdp", f"the {media.kind} section has no fingerprint that can be checked ({known})")
    if media.kind in ("audio", "video") and not media.rtcp_mux:
        raise OfferError(400, "bad_sdp", f"the {media.kind} section does not multiplex RTCP")


def _checkable(algorithm: str, value: str) -> bool:
    """Otherwise the handshake is bound to fail, after having held a line for as long as a connection may take."""
    size = DIGEST_BYTES.get(algorithm.lower())
    return size is not None and len(value) == 3 * size - 1 and FINGERPRINT.fullmatch(value) is not None


def _audio(sections: list[MediaDescription]) -> MediaDescription:
    """The first audio section that goes both ways and can carry Opus."""
    audio = [media for media in sections if media.kind == "audio" and media.port != 0]
    if not audio:
        raise OfferError(400, "no_audio", "the offer has no audio section")
    sending = [media for media in audio if (media.direction or "sendrecv") in ("sendrecv", "sendonly")]
    if not sending:
        raise OfferError(400, "audio_not_sent", "the offer's audio is not sent (recvonly or inactive): no microphone?")
    both = [media for media in sending if (media.direction or "sendrecv") == "sendrecv"]
    if not both:
        raise OfferError(400, "audio_not_received", "the offer's audio is sendonly: the agent could not be heard")
    for media in both:
        if any(codec.mimeType.lower() == OPUS and codec.clockRate == 48_000 for codec in media.rtp.codecs):
            return media
    raise OfferError(415, "no_opus", "the offer's audio does not include Opus at 48 kHz")


def _with_directions(sdp: str, sections: list[MediaDescription]) -> str:
    """Write out the default direction (RFC 8866, section 6.7), which aiortc does not assume."""
    lines, section = [], -1
    for line in sdp.splitlines():
        lines.append(line)
        if line.startswith("m="):
            section += 1
            media = sections[section] if section < len(sections) else None
            if media is not None and media.kind in ("audio", "video") and media.direction is None:
                lines.append("a=sendrecv")
    return "\r\n".join(lines) + "\r\n"


def _without_unwanted_candidates(sdp: str) -> str:
    """Drop mDNS candidates, TCP ones, those beyond the limit, and the end of candidates.

    A browser that hides its address behind an mDNS name reaches us from it anyway and is learnt from its first packet
    (RFC 8445, section 7.3.1.3); looking the name up would hold up the answer and needs multicast. ICE waits for such a
    packet only while more candidates may come, so it is not told that there are no more: `connect_timeout` ends that.
    """
    kept, candidates = [], 0
    for line in sdp.splitlines():
        if line.startswith("a=candidate:"):
            fields = line.split()
            if len(fields) < 8 or fields[2].lower() != "udp" or fields[4].lower().endswith(".local"):
                continue
            if not (fields[5].isdecimal() and 0 < int(fields[5]) < 65536):
                continue
            candidates += 1
            if candidates > MAX_CANDIDATES:
                continue
        elif line == "a=end-of-candidates":
            continue
        kept.append(line)
    return "\r\n".join(kept) + "\r\n"
