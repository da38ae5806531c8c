"""Routes, bodies and error shapes, in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.fake_calls import FakeCalls
from tests.server.helpers import OFFER, WEB, ask, client_for, error_code, make_app
from voice_agent.errors import EngineError, OfferError
from voice_agent.server.metrics import Metrics
from voice_agent.server.offers import MAX_OFFER_BYTES


def test_the_page_is_served_and_may_not_run_foreign_or_inline_code() -> None:
    response = ask(make_app(), "GET", "/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cross-origin-opener-policy"] == "same-origin"


def test_every_file_of_the_page_has_its_type_and_can_be_revalidated() -> None:
    app = make_app()
    types = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
    files = [file for file in WEB.rglob("*") if file.suffix in types]
    assert files
    for file in files:
        response = ask(app, "GET", f"/{file.relative_to(WEB).as_posix()}")
        assert response.status_code == 200
        assert response.content == file.read_bytes()
        assert response.headers["content-type"] == types[file.suffix]
        again = ask(app, "GET", response.url.path, headers={"If-None-Match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2fpyproject.toml",
        "/%2e%2e/pyproject.toml",
        "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd",
        "/..%5cpyproject.toml",
        "//etc/passwd",
        "/app.js/../../README.md",
        "/app.js%00.html",
        "/index.html/",
        "/.git/config",
        "/APP.JS",
        "/voice_agent/settings.py",
    ],
)
def test_nothing_but_the_page_can_be_read(path: str) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    for raw in (path, path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\").replace("%00", "\0")):
        scope = {
            "type": "http",
            "method": "GET",
            "path": raw,
            "scheme": "http",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        asyncio.run(make_app()(scope, receive, send))
    assert [message["status"] for message in sent if "status" in message] == [404, 404]


def test_probes() -> None:
    calls = FakeCalls(ready=False)
    app = make_app(calls)
    assert ask(app, "GET", "/healthz").json() == {"status": "ok"}
    loading = ask(app, "GET", "/readyz")
    assert loading.status_code == 503
    assert loading.json() == {"ready": False, "progress": {"loading": ["speech recognition"]}}
    assert int(loading.headers["retry-after"]) > 0
    calls.ready = True
    assert (ask(app, "GET", "/readyz").status_code, ask(app, "GET", "/readyz").json()) == (200, {"ready": True})


def test_an_offer_is_answered() -> None:
    calls = FakeCalls()
    response = ask(make_app(calls), "POST", "/api/offer", json={**OFFER, "label": "x", "later": {"n": 1}})
    assert response.status_code == 200
    assert response.json() == {"sdp": "answer to v=0", "type": "answer", "session_id": "call-1"}
    assert response.headers["cache-control"] == "no-store"
    assert calls.live["call-1"]["fields"] == {"label": "x", "later": {"n": 1}}


def test_the_content_type_does_not_matter() -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        content = json.dumps(OFFER)
        response = ask(make_app(), "POST", "/api/offer", content=content, headers={"Content-Type": content_type})
        assert response.status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b"sdp=v%3D0&type=offer", "bad_json"),
        (b"\xff\xfe", "bad_json"),
        (b"\x00" * 100, "bad_json"),
        (b"[" * 60_000, "bad_json"),
        (b'{"sdp": ' + b"9" * 10_000 + b"}", "bad_json"),
        (b"[]", "bad_json"),
        (b'"offer"', "bad_json"),
        (b"null", "bad_json"),
        (b"{}", "bad_offer"),
        (b'{"sdp": "v=0"}', "bad_offer"),
        (b'{"type": "offer"}', "bad_offer"),
        (b'{"sdp": null, "type": "offer"}', "bad_offer"),
        (b'{"sdp": 7, "type": "offer"}', "bad_offer"),
        (b'{"sdp": "", "type": "offer"}', "bad_offer"),
        (b'{"sdp": "\\ud800", "type": "offer"}', "bad_offer"),
        (b'{"sdp": ["v=0"], "type": "offer"}', "bad_offer"),
        (b'{"sdp": "v=0", "type": {}}', "bad_offer"),
        (b'{"sdp": "v=0", "type": "answer"}', "bad_offer"),
    ],
    ids=lambda value: repr(value[:40]),
)
def test_bad_offers_are_named_and_never_reach_a_call(body: bytes, code: str) -> None:
    calls, metrics = FakeCalls(), Metrics()
    response = ask(make_app(calls, metrics=metrics), "POST", "/api/offer", content=body)
    assert response.status_code == 400
    assert error_code(response) == code
    assert calls.entered == 0
    assert f'voice_agent_offers_refused_total{{code="{code}"}} 1.0'.encode() in metrics.exposition()[0]


def test_the_size_of_an_offer_is_bounded_to_the_byte() -> None:
    frame = len(json.dumps({**OFFER, "sdp": ""}))
    fits = json.dumps({**OFFER, "sdp": "x" * (MAX_OFFER_BYTES - frame)}).encode()
    assert len(fits) == MAX_OFFER_BYTES
    assert ask(make_app(), "POST", "/api/offer", content=fits).status_code == 200
    response = ask(make_app(), "POST", "/api/offer", content=fits + b" ")
    assert (response.status_code, error_code(response)) == (413, "too_large")


def test_a_body_without_end_is_cut_off_at_the_bound() -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < 100 * MAX_OFFER_BYTES:
            taken += 1024
            yield b" " * 1024

    response = ask(make_app(), "POST", "/api/offer", content=endless())
    assert (response.status_code, error_code(response)) == (413, "too_large")
    assert taken <= MAX_OFFER_BYTES + 2048


def test_a_body_that_does_not_come_is_given_up() -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b'{"sdp":'
        await asyncio.Event().wait()

    response = ask(make_app(body_timeout=0.01), "POST", "/api/offer", content=silent())
    assert (response.status_code, error_code(response)) == (408, "slow_body")


def test_while_models_load_offers_are_put_off() -> None:
    calls = FakeCalls(ready=False)
    response = ask(make_app(calls), "POST", "/api/offer", json=OFFER)
    assert (response.status_code, error_code(response)) == (503, "loading")
    assert int(response.headers["retry-after"]) > 0
    assert calls.entered == 0


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (OfferError(400, "no_audio", "the offer has no audio"), 400, "no_audio"),
        (OfferError(503, "busy", "all lines are taken"), 503, "busy"),
        (EngineError("llm", "broken", "the model is gone"), 500, "internal"),
        (RuntimeError("secret detail"), 500, "internal"),
    ],
    ids=repr,
)
def test_what_a_call_raises_becomes_an_answer(raised: Exception, status: int, code: str) -> None:
    response = ask(make_app(FakeCalls(raises=raised)), "POST", "/api/offer", json=OFFER)
    assert (response.status_code, error_code(response)) == (status, code)
    assert ("retry-after" in response.headers) == (status == 503)
    assert "secret detail" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/offer", "POST"),
        ("PUT", "/api/offer", "POST"),
        ("POST", "/", "GET"),
        ("DELETE", "/app.js", "GET"),
        ("POST", "/healthz", "GET"),
        ("POST", "/api/sessions/x", "DELETE"),
        ("DELETE", "/api/sessions/x/report", "GET"),
        ("BREW", "/api/offer", "POST"),
    ],
)
def test_wrong_methods_are_told_the_right_one(method: str, path: str, allowed: str) -> None:
    response = ask(make_app(), method, path)
    assert (response.status_code, error_code(response)) == (405, "method_not_allowed")
    assert allowed in response.headers["allow"]


def test_unknown_paths() -> None:
    for path in ("/api", "/api/offer/", "/api/sessions", "/api/sessions/", "/api/sessions/x/y", "/favicon.xyz"):
        response = ask(make_app(), "GET", path)
        assert (response.status_code, error_code(response)) == (404, "not_found")


def test_a_call_can_be_read_and_hung_up_and_read_again() -> None:
    calls = FakeCalls()
    app = make_app(calls)
    path = f"/api/sessions/{ask(app, 'POST', '/api/offer', json=OFFER).json()['session_id']}"
    assert ask(app, "GET", f"{path}/report").json() == {"turns": []}
    assert ask(app, "GET", f"{path}/history").json() == {"messages": []}
    for _ in range(2):
        assert ask(app, "DELETE", path).status_code == 204
    assert calls.live == {}
    assert ask(app, "GET", f"{path}/report").status_code == 200


def test_unknown_calls() -> None:
    app = make_app()
    for method, tail in (("GET", "/report"), ("GET", "/history"), ("DELETE", "")):
        response = ask(app, method, f"/api/sessions/nobody{tail}")
        assert (response.status_code, error_code(response)) == (404, "no_such_session")


def test_many_offers_at_once_fill_the_slots_and_no_more_and_slots_come_back() -> None:
    async def rounds() -> None:
        calls = FakeCalls(limit=3)
        async with client_for(make_app(calls)) as client:
            for _ in range(10):
                calls.gate = asyncio.Event()
                calls.entered = 0
                offers = [asyncio.create_task(client.post("/api/offer", json=OFFER)) for _ in range(100)]
                await calls.until(lambda seen: seen.entered == 100)
                calls.gate.set()
                responses = [await one for one in offers]
                accepted = [one for one in responses if one.status_code == 200]
                refused = [one for one in responses if one.status_code == 503]
                assert (len(accepted), len(refused)) == (3, 97)
                assert all(error_code(one) == "busy" and "retry-after" in one.headers for one in refused)
                for one in accepted:
                    assert (await client.delete(f"/api/sessions/{one.json()['session_id']}")).status_code == 204

    asyncio.run(rounds())


def test_a_client_that_left_before_the_answer_keeps_no_slot() -> None:
    calls = FakeCalls()
    sent: list[Any] = []
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": json.dumps(OFFER).encode(), "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/offer",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(make_app(calls)(scope, receive, send))
    assert calls.entered == 1
    assert (calls.live, calls.ended) == ({}, {"call-1"})


def test_metrics() -> None:
    metrics = Metrics()
    metrics.session_started()
    metrics.session_started()
    metrics.session_ended("hangup")
    metrics.turn_ended()
    metrics.barge_in()
    metrics.first_audio(0.45, {"endpointing": 0.3, "recognition": 0.15})
    metrics.audio_dropped(5)
    metrics.messages_dropped(2)
    metrics.call_error("llm")
    metrics.playout_starved()
    app = make_app(metrics=metrics)
    ask(app, "POST", "/api/offer", content=b"{")
    response = ask(app, "GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = response.text.splitlines()
    for line in (
        "voice_agent_sessions_active 1.0",
        'voice_agent_sessions_total{reason="hangup"} 1.0',
        "voice_agent_turns_total 1.0",
        "voice_agent_barge_ins_total 1.0",
        'voice_agent_voice_to_voice_seconds_bucket{le="0.4"} 0.0',
        'voice_agent_voice_to_voice_seconds_bucket{le="0.5"} 1.0',
        'voice_agent_stage_seconds_sum{stage="endpointing"} 0.3',
        "voice_agent_audio_dropped_frames_total 5.0",
        "voice_agent_messages_dropped_total 2.0",
        'voice_agent_call_errors_total{code="llm"} 1.0',
        "voice_agent_playout_starved_total 1.0",
        'voice_agent_offers_refused_total{code="bad_json"} 1.0',
    ):
        assert line in lines
