"""Checks of a running server, as a client sees it: reachable, ready, how fast it takes a call and streams text."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

import httpx
from aiortc import RTCPeerConnection

from voice_agent.config import is_loopback
from voice_agent.doctor.check import Check, Verdict
from voice_agent.doctor.stream import Arrivals, EventReader, buffering_hints, held_back, piece_of_text
from voice_agent.errors import ConfigError
from voice_agent.report.figures import percentile

PROBES = 5
TIMEOUT = 30.0
STREAM_PATH = "/v1/chat/completions"
QUESTION = "Count from one to thirty in words."
MOST_TOKENS = 64
NGINX = "in nginx: proxy_buffering off; gzip off; for that path"


async def check_server(url: str, api_key: str) -> list[Check]:
    """All checks that still make sense after the ones before. Raises ConfigError for what is no address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no address of a server; it looks like http://127.0.0.1:8080")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    # A proxy named by the environment is on the way to other machines, not to this one.
    through_proxies = not is_loopback(parts.hostname)
    async with httpx.AsyncClient(
        base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT, trust_env=through_proxies
    ) as client:
        checks = [await reachable(client)]
        if checks[0].verdict is Verdict.PROBLEM:
            return checks
        checks.append(await ready(client))
        checks.append(await offer(client))
        checks.append(await text_stream(client))
    return checks


async def reachable(client: httpx.AsyncClient) -> Check:
    """GET /healthz a few times on one connection; the first pays for opening it."""
    times: list[float] = []
    try:
        for _ in range(PROBES + 1):
            began = time.perf_counter()
            answer = await client.get("/healthz")
            times.append((time.perf_counter() - began) * 1e3)
    except httpx.HTTPError as error:
        found = f"no answer: {str(error) or type(error).__name__}"
        return Check("reachable", Verdict.PROBLEM, found, "is the server running, and is the address right?")
    if answer.status_code != 200:
        return Check(
            "reachable",
            Verdict.PROBLEM,
            f"/healthz answers {answer.status_code}",
            f"is this a voice-agent? {_why(answer)}",
        )
    connect, trips = times[0], times[1:]
    middle = percentile(trips, 0.5)
    figures = {"first_ms": round(connect, 1), "round_trip_p50_ms": round(middle or 0, 1), "n": len(trips)}
    return Check("reachable", Verdict.OK, f"round trip {middle:.1f} ms, first {connect:.1f} ms", figures=figures)


async def ready(client: httpx.AsyncClient) -> Check:
    try:
        answer = await client.get("/readyz")
    except httpx.HTTPError as error:
        return _broken("ready", error)
    if answer.status_code == 200:
        return Check("ready", Verdict.OK, "accepts calls")
    progress = _json(answer).get("progress", {})
    waiting = ", ".join(map(str, progress.get("loading", []))) if isinstance(progress, dict) else ""
    found = f"not yet, still loading {waiting}" if waiting else f"/readyz answers {answer.status_code}"
    return Check("ready", Verdict.WARNING, found, "wait until it is ready and run this again; figures below suffer")


async def offer(client: httpx.AsyncClient) -> Check:
    """A real offer, so it takes one line of the server for a moment; the call is hung up at once."""
    connection = RTCPeerConnection()
    try:
        connection.addTransceiver("audio")
        connection.createDataChannel("events")
        await connection.setLocalDescription(await connection.createOffer())
        body = {"sdp": connection.localDescription.sdp, "type": "offer"}
        began = time.perf_counter()
        answer = await client.post("/api/offer", json=body)
        spent = (time.perf_counter() - began) * 1e3
        if answer.status_code == 200:
            await client.delete(f"/api/sessions/{_json(answer).get('session_id', '')}")
    except httpx.HTTPError as error:
        return _broken("offer", error)
    finally:
        await connection.close()
    match answer.status_code:
        case 200:
            return Check("offer", Verdict.OK, f"answered in {spent:.0f} ms", figures={"answer_ms": round(spent, 1)})
        case 503:
            return Check("offer", Verdict.WARNING, f"refused: {_why(answer)}", "try again when a line is free")
        case 401:
            return _no_key("offer")
        case status:
            return Check("offer", Verdict.PROBLEM, f"answered with {status}: {_why(answer)}", "see the server's log")


async def _first_model(client: httpx.AsyncClient) -> str:
    """A model the server says it has; a made-up name where it does not say."""
    try:
        match _json(await client.get("/v1/models")):
            case {"data": [{"id": str(name)}, *_]}:
                return name
    except httpx.HTTPError:
        pass  # the request that follows will say what is wrong
    return "default"


async def text_stream(client: httpx.AsyncClient) -> Check:
    """Ask for a streamed text and note when each piece of it arrives."""
    question = {
        "model": await _first_model(client),
        "stream": True,
        "max_tokens": MOST_TOKENS,
        "messages": [{"role": "user", "content": QUESTION}],
    }
    asked = time.perf_counter()
    pieces: list[float] = []
    try:
        async with client.stream("POST", STREAM_PATH, json=question) as answer:
            if answer.status_code != 200:
                await answer.aread()
                return _no_stream(answer)
            reader = EventReader()
            async for data in answer.aiter_bytes():
                now = time.perf_counter()
                pieces += [now for event in reader.feed(data) if piece_of_text(event)]
    except httpx.HTTPError as error:
        return _broken("text streaming", error)
    except ValueError as error:
        return Check("text streaming", Verdict.PROBLEM, f"broke off: {error}", "see the server's log")
    return judge(Arrivals(asked, pieces), dict(answer.headers))


def judge(arrivals: Arrivals, headers: dict[str, str]) -> Check:
    """What the arrivals mean. Pure."""
    name, figures, hints = "text streaming", arrivals.figures(), buffering_hints(headers)
    if not arrivals.pieces:
        return Check(name, Verdict.PROBLEM, "no text came", "; ".join(hints) or "see the server's log", figures)
    found = f"first token after {figures['first_piece_ms']:.0f} ms, {figures['pieces']} pieces of text"
    if len(arrivals.pieces) > 1:
        gap, worst = figures["gap_p50_ms"], figures["gap_max_ms"]
        found += f", gaps {gap:.0f} ms in the middle, {figures['gap_p95_ms']:.0f} ms at p95, {worst:.0f} ms at most"
    held = held_back(arrivals)
    figures = {**figures, "held_back": held}
    if held:
        found += f"; they came at {figures['moments']} moments, up to {figures['largest_burst']} at once"
        why = f" ({'; '.join(hints)})" if hints else ""
        advice = f"something on the way, or the server itself, collects the text before it passes it on{why}; {NGINX}"
        return Check(name, Verdict.WARNING, found, advice, figures)
    if held is None:
        return Check(name, Verdict.NOTE, f"{found}; too few or too quick to tell whether anything buffers", "", figures)
    return Check(name, Verdict.OK, f"{found}; nothing on the way buffers", figures=figures)


def _no_stream(answer: httpx.Response) -> Check:
    error = _json(answer).get("error")
    unknown_model = isinstance(error, dict) and error.get("code") == "model_not_found"
    if answer.status_code in (404, 405) and not unknown_model:
        found = f"this server has no text streaming (POST {STREAM_PATH} answers {answer.status_code})"
        return Check(
            "text streaming", Verdict.NOTE, found, "calls do not need it; gaps between tokens were not measured"
        )
    if answer.status_code == 401:
        return _no_key("text streaming")
    return Check(
        "text streaming", Verdict.PROBLEM, f"answered with {answer.status_code}: {_why(answer)}", "see the server's log"
    )


def _no_key(name: str) -> Check:
    return Check(name, Verdict.PROBLEM, "this server wants a key", "set VOICE_AGENT_API_KEYS=KEY for this command, too")


def _broken(name: str, error: Exception) -> Check:
    return Check(name, Verdict.PROBLEM, f"no answer: {str(error) or type(error).__name__}", "see the server's log")


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _why(answer: httpx.Response) -> str:
    error = _json(answer).get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or answer.text[:100] or "no reason given")
