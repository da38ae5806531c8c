"""Offers from browsers and from junk generators, as text."""

from __future__ import annotations

import asyncio
import random
import re

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from aiortc.mediastreams import AudioStreamTrack

from voice_agent.errors import ConfigError, OfferError
from voice_agent.settings import WebRtcSettings
from voice_agent.transports.webrtc import accept_offer, ice, seams
from voice_agent.transports.webrtc.offer import MAX_CANDIDATES, MAX_SDP, read_offer

TRANSPORT = """a=ice-ufrag:abcd
a=ice-pwd:abcdefghijklmnopqrstuvwx
a=fingerprint:sha-256 {}
a=setup:actpass
a=rtcp-mux
""".format(":".join(["AB"] * 32))

AUDIO = f"""m=audio 9 UDP/TLS/RTP/SAVPF 111 0
c=IN IP4 0.0.0.0
a=mid:0
a=sendrecv
{TRANSPORT}a=rtpmap:111 opus/48000/2
a=rtpmap:0 PCMU/8000
"""

HEADER = """v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
t=0 0
"""


def sdp(*sections: str) -> str:
    return (HEADER + "".join(sections)).replace("\n", "\r\n")


def refusal(text: str, kind: str = "offer") -> tuple[int, str]:
    with pytest.raises(OfferError) as caught:
        read_offer(text, kind)
    assert str(caught.value)
    return caught.value.status, caught.value.code


def test_a_plain_offer_is_read():
    offer = read_offer(sdp(AUDIO), "offer")
    assert offer.audio_mid == "0"
    assert "opus/48000/2" in offer.sdp


@pytest.mark.parametrize(
    ("text", "kind", "status", "code"),
    [
        (sdp(AUDIO), "answer", 400, "not_an_offer"),
        (sdp(AUDIO), "", 400, "not_an_offer"),
        ("", "offer", 400, "bad_sdp"),
        (" \r\n ", "offer", 400, "bad_sdp"),
        ("hello", "offer", 400, "no_audio"),
        ("\x00\xff" * 50, "offer", 400, "no_audio"),
        ("v=0\r\nm=audio", "offer", 400, "bad_sdp"),
        ("v=0\r\nm=audio x y z\r\n", "offer", 400, "bad_sdp"),
        (sdp(), "offer", 400, "no_audio"),
        (sdp(AUDIO.replace("m=audio", "m=video").replace("opus/48000/2", "VP8/90000")), "offer", 400, "no_audio"),
        (sdp(AUDIO.replace("m=audio 9", "m=audio 0")), "offer", 400, "no_audio"),
        (sdp(AUDIO.replace("sendrecv", "recvonly")), "offer", 400, "audio_not_sent"),
        (sdp(AUDIO.replace("sendrecv", "inactive")), "offer", 400, "audio_not_sent"),
        (sdp(AUDIO.replace("sendrecv", "sendonly")), "offer", 400, "audio_not_received"),
        (sdp(AUDIO.replace("opus/48000/2", "telephone-event/48000")), "offer", 415, "no_opus"),
        (sdp(AUDIO, AUDIO), "offer", 400, "bad_sdp"),
        (sdp(AUDIO, AUDIO.replace("a=mid:0\n", "")), "offer", 400, "bad_sdp"),
        (sdp("a=group:BUNDLE 0 1\n", AUDIO), "offer", 400, "bad_sdp"),
        (sdp(AUDIO, AUDIO.replace("m=audio", "m=text").replace("a=mid:0", "a=mid:1")), "offer", 400, "bad_sdp"),
        (sdp(AUDIO.replace("a=ice-ufrag:abcd\n", "")), "offer", 400, "bad_sdp"),
        (sdp(AUDIO.replace("a=rtcp-mux\n", "")), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=fingerprint.*\n", "", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=fingerprint:sha-256 .*", "a=fingerprint:sha-256 nonsense", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=fingerprint:sha-256 AB", "a=fingerprint:sha-256 AG", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=fingerprint:sha-256", "a=fingerprint:md5", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=fingerprint:sha-256", "a=fingerprint:sha-512", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("UDP/TLS/RTP/SAVPF", "RTP/AVP", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=setup.*\n", "", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(re.sub("a=fingerprint.*\n|a=setup.*\n", "", AUDIO)), "offer", 400, "bad_sdp"),
        (sdp(AUDIO) + "a=x\r\n" * MAX_SDP, "offer", 413, "sdp_too_large"),
    ],
)
def test_what_cannot_be_served_is_refused(text, kind, status, code):
    assert refusal(text, kind) == (status, code)


def test_a_single_section_needs_no_mid():
    assert read_offer(sdp(AUDIO.replace("a=mid:0\n", "")), "offer").audio_mid == ""


def test_a_missing_direction_means_both_ways():
    offer = read_offer(sdp(AUDIO.replace("a=sendrecv\n", "")), "offer")
    assert offer.sdp.count("a=sendrecv") == 1


def test_the_first_usable_audio_section_is_taken():
    second = AUDIO.replace("a=mid:0", "a=mid:mic")
    offer = read_offer(sdp(AUDIO.replace("sendrecv", "recvonly"), second), "offer")
    assert offer.audio_mid == "mic"


def candidate(number: int, host: str, protocol: str = "udp") -> str:
    return f"a=candidate:{number} 1 {protocol} 2122 {host} {5000 + number} typ host\n"


def test_candidates_that_are_not_to_be_tried_are_dropped():
    good, mdns = candidate(1, "192.168.1.7"), candidate(2, "0a1b2c3d-0000-4000-8000-000000000000.local")
    tcp = candidate(3, "192.168.1.7", "tcp")
    offer = read_offer(sdp(AUDIO, good, mdns, tcp, "a=candidate:short\n", "a=end-of-candidates\n"), "offer")
    assert re.findall("a=candidate:(.*) 1 udp", offer.sdp) == ["1"]
    assert "end-of-candidates" not in offer.sdp


def test_an_offer_cannot_make_us_send_everywhere():
    many = [candidate(number, f"10.0.{number // 250}.{number % 250}") for number in range(600)]
    assert read_offer(sdp(AUDIO, *many), "offer").sdp.count("a=candidate") == MAX_CANDIDATES


async def _tasks_left() -> list[str]:
    """Tasks that do not end within a second of their own accord."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    pending = (await asyncio.wait(others, timeout=1))[1] if others else set()
    return [str(task) for task in pending]


async def client_offer() -> str:
    client = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    client.addTrack(AudioStreamTrack())
    client.createDataChannel("events")
    await client.setLocalDescription(await client.createOffer())
    text = client.localDescription.sdp
    await client.close()
    return text


def damage(lines: list[str], dice: random.Random) -> str:
    """Leave out, double, swap, cut or scramble one to three lines."""
    damaged = list(lines)
    for _ in range(dice.randrange(1, 4)):
        place, other = dice.randrange(len(damaged)), dice.randrange(len(damaged))
        line = damaged[place]
        match dice.randrange(5):
            case 0:
                del damaged[place]
            case 1:
                damaged.insert(place, damaged[other])
            case 2:
                damaged[place], damaged[other] = damaged[other], line
            case 3:
                damaged[place] = line[: dice.randrange(len(line) + 1)]
            case 4:
                damaged[place] = "".join(dice.sample(line, len(line)))
    return "\r\n".join(damaged)


def test_damaged_offers_are_refused_or_answered_but_never_break():
    """OfferError (a client's fault, said with 4xx) or an answer, and nothing is left of either."""

    async def attack() -> tuple[list[int], int]:
        lines = (await client_offer()).split("\r\n")
        dice, refused, answered = random.Random(11), [], 0
        for _ in range(60):
            try:
                transport, answer = await accept_offer(damage(lines, dice), "offer", WebRtcSettings(ice_loopback=True))
            except OfferError as error:
                refused.append(error.status)
            else:
                answered += "m=audio" in answer
                await transport.close("test")
        assert await _tasks_left() == []
        return refused, answered

    refused, answered = asyncio.run(attack())
    assert len(refused) + answered == 60
    assert set(refused) <= {400, 415}
    assert len(refused) > 5
    assert answered > 5


def test_video_is_answered_as_inactive():
    video = AUDIO.replace("m=audio 9 UDP/TLS/RTP/SAVPF 111 0", "m=video 9 UDP/TLS/RTP/SAVPF 96")
    video = video.replace("a=mid:0", "a=mid:1").replace(
        "a=rtpmap:111 opus/48000/2\na=rtpmap:0 PCMU/8000", "a=rtpmap:96 VP8/90000"
    )

    async def call() -> str:
        transport, answer = await accept_offer(sdp(AUDIO, video), "offer", WebRtcSettings(ice_loopback=True))
        await transport.close("test")
        return answer

    answer = asyncio.run(call())
    audio_part, video_part = answer.split("m=video")
    assert "a=sendrecv" in audio_part
    assert "a=inactive" in video_part
    assert re.findall("a=rtpmap:(.*)", audio_part) == ["111 opus/48000/2\r"]


def test_the_loopback_address_is_offered_only_on_request():
    async def candidates(settings: WebRtcSettings) -> list[str]:
        try:
            transport, answer = await accept_offer(sdp(AUDIO), "offer", settings)
        except OfferError as error:
            return [error.code]  # a machine without a network
        await transport.close("test")
        return re.findall(r"a=candidate:\S+ 1 udp \d+ (\S+)", answer)

    assert "127.0.0.1" not in asyncio.run(candidates(WebRtcSettings()))
    assert asyncio.run(candidates(WebRtcSettings(ice_loopback=True))).count("127.0.0.1") == 1


def test_a_machine_with_loopback_only(monkeypatch):
    monkeypatch.setattr("aioice.ice.get_host_addresses", lambda use_ipv4, use_ipv6: [])

    async def call(settings: WebRtcSettings) -> str:
        transport, answer = await accept_offer(sdp(AUDIO), "offer", settings)
        await transport.close("test")
        return answer

    assert " 127.0.0.1 " in asyncio.run(call(WebRtcSettings(ice_loopback=True)))
    with pytest.raises(OfferError) as caught:
        asyncio.run(call(WebRtcSettings()))
    assert caught.value.status == 503


def test_ice_servers_come_from_settings_only():
    assert ice.configuration(WebRtcSettings()).iceServers == []
    settings = WebRtcSettings(
        stun="stun:stun.example:3478", turn="turn:turn.example:3478?transport=udp", turn_user="u", turn_password="p"
    )
    stun, turn = ice.configuration(settings).iceServers or []
    assert stun.urls == "stun:stun.example:3478"
    assert (turn.urls, turn.username, turn.credential) == ("turn:turn.example:3478?transport=udp", "u", "p")


@pytest.mark.parametrize("settings", [{"stun": "stun.example"}, {"stun": "turn:x:1"}, {"turn": "turn:"}])
def test_bad_server_addresses_name_the_setting(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        ice.configuration(WebRtcSettings(**settings))


def test_another_aiortc_is_noticed_at_start_up(monkeypatch):
    seams.check_seams()
    monkeypatch.setattr("aiortc.RTCRtpReceiver.__init__", lambda self, kind, transport: None)
    with pytest.raises(Exception, match="Install aiortc"):
        seams.check_seams()
