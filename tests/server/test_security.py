"""Who is let in: the decision as a table, then on every route and on websockets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests.server.helpers import ask, error_code, make_app
from voice_agent.server.security import (
    RESPONSE_HEADERS,
    RequestFacts,
    SecurityMiddleware,
    exposure,
    policy_for,
    refusal,
)
from voice_agent.settings import ServerSettings

OWN = RequestFacts(path="/api/offer", method="POST", hosts=("127.0.0.1:8080",))
NAVIGATION: dict[str, Any] = {"fetch_mode": "navigate", "fetch_dest": "document"}


def verdict(facts: RequestFacts, **server: Any) -> str | None:
    refused = refusal(facts, policy_for(ServerSettings(**server), ["/", "/healthz", "/readyz", "/app.js"]))
    return refused.code if refused else None


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8080", "127.0.0.1", "localhost:8080", "LOCALHOST:1", "localhost.", "[::1]:8080", "[::1]"],
)
def test_loopback_hosts_are_let_in(host: str) -> None:
    assert verdict(replace(OWN, hosts=(host,))) is None


@pytest.mark.parametrize(
    "hosts",
    [
        ("evil.example",),
        ("evil.example:8080",),
        ("127.0.0.1.evil.example:8080",),
        ("localhost.evil.example",),
        ("evil.example#localhost",),
        ("localhost@evil.example",),
        ("evil.example/localhost",),
        ("localhost:8080:9",),
        ("localhost:port",),
        ("localhost:65536",),
        ("localhost, evil.example",),
        ("[::1",),
        ("::1",),
        ("127.1",),
        ("0.0.0.0:8080",),
        ("",),
        (),
        ("localhost", "evil.example"),
        ("localhost", "localhost"),
    ],
)
def test_other_hosts_are_refused(hosts: tuple[str, ...]) -> None:
    assert verdict(replace(OWN, hosts=hosts)) == "foreign_host"


def test_settings_name_more_hosts() -> None:
    facts = replace(OWN, hosts=("voice.example:8443",))
    assert verdict(facts, allowed_hosts=("Voice.Example",)) is None
    assert verdict(facts, host="voice.example") is None
    assert verdict(replace(OWN, hosts=("[fe80::1]:80",)), host="FE80:0::1") is None
    assert verdict(replace(OWN, hosts=("sub.voice.example",)), allowed_hosts=("voice.example",)) == "foreign_host"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://127.0.0.1:8080", None),
        ("HTTP://127.0.0.1:8080", None),
        ("http://127.0.0.1:8081", "foreign_origin"),
        ("http://127.0.0.1", "foreign_origin"),
        ("https://127.0.0.1:8080", "foreign_origin"),
        ("http://localhost:8080", "foreign_origin"),
        ("http://evil.example", "foreign_origin"),
        ("http://evil.example:8080", "foreign_origin"),
        ("http://127.0.0.1:8080.evil.example", "foreign_origin"),
        ("http://127.0.0.1:8080@evil.example", "foreign_origin"),
        ("http://127.0.0.1:8080/", "foreign_origin"),
        ("ftp://127.0.0.1:8080", "foreign_origin"),
        ("chrome-extension://abcdef", "foreign_origin"),
        ("file://", "foreign_origin"),
        ("null", "foreign_origin"),
        ("", "foreign_origin"),
    ],
)
def test_only_the_own_origin_is_let_in(origin: str, expected: str | None) -> None:
    assert verdict(replace(OWN, origins=(origin,))) == expected


def test_default_ports_count_as_written() -> None:
    assert verdict(replace(OWN, hosts=("localhost",), origins=("http://localhost:80",))) is None
    assert verdict(replace(OWN, hosts=("localhost:80",), origins=("http://localhost",))) is None
    tls = replace(OWN, scheme="https", hosts=("localhost",), origins=("https://localhost:443",))
    assert verdict(tls) is None


def test_an_allowed_origin_may_come_from_another_site() -> None:
    facts = replace(OWN, origins=("https://app.example",), fetch_site="cross-site")
    assert verdict(facts) == "foreign_origin"
    assert verdict(facts, allowed_hosts=("app.example",)) is None
    assert verdict(facts, allowed_hosts=("app.example:443",)) is None
    assert verdict(facts, allowed_hosts=("app.example:8443",)) == "foreign_origin"
    assert verdict(replace(facts, origins=(*facts.origins, "null")), allowed_hosts=("app.example",)) == "foreign_origin"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (RequestFacts("/", fetch_site="cross-site", **NAVIGATION), None),
        (RequestFacts("/", fetch_site="same-site", **NAVIGATION), None),
        (RequestFacts("/", fetch_site="none", **NAVIGATION), None),
        (RequestFacts("/api/sessions/x/report", fetch_site="same-origin"), None),
        (RequestFacts("/api/sessions/x/report", fetch_site=""), None),
        (RequestFacts("/", fetch_site="cross-site", fetch_mode="navigate", fetch_dest="iframe"), "foreign_site"),
        (RequestFacts("/", fetch_site="cross-site", fetch_mode="no-cors", fetch_dest="image"), "foreign_site"),
        (RequestFacts("/", "POST", fetch_site="cross-site", **NAVIGATION), "foreign_site"),
        (RequestFacts("/metrics", fetch_site="cross-site", **NAVIGATION), "foreign_site"),
        (RequestFacts("/app.js", fetch_site="cross-site", fetch_mode="no-cors"), "foreign_site"),
        (RequestFacts("/healthz", fetch_site="same-site"), "foreign_site"),
    ],
)
def test_other_sites_may_only_link_to_the_page(facts: RequestFacts, expected: str | None) -> None:
    assert verdict(replace(facts, hosts=OWN.hosts)) == expected


@pytest.mark.parametrize(
    ("path", "keys", "expected"),
    [
        ("/api/offer", (), "unauthorized"),
        ("/api/offer", ("wrong",), "unauthorized"),
        ("/api/offer", ("",), "unauthorized"),
        ("/api/offer", ("key-on",), "unauthorized"),
        ("/api/offer", ("key-one ",), "unauthorized"),
        ("/api/offer", ("schlüssel\udcff",), "unauthorized"),
        ("/api/offer", ("key-one",), None),
        ("/api/offer", ("wrong", "kéy-two"), None),
        ("/metrics", (), "unauthorized"),
        ("/nowhere", (), "unauthorized"),
        ("/app.js/", (), "unauthorized"),
        ("/", (), None),
        ("/app.js", (), None),
        ("/healthz", (), None),
        ("/readyz", (), None),
    ],
)
def test_keys(path: str, keys: tuple[str, ...], expected: str | None) -> None:
    facts = RequestFacts(path, hosts=OWN.hosts, keys=keys)
    assert verdict(facts, api_keys=("key-one", "kéy-two")) == expected
    assert verdict(facts) is None  # no keys set: none needed


def test_an_empty_key_setting_opens_nothing() -> None:
    assert verdict(replace(OWN, keys=("",)), api_keys=("",)) == "unauthorized"


def test_a_key_does_not_excuse_a_foreign_host() -> None:
    assert verdict(replace(OWN, hosts=("evil.example",), keys=("k",)), api_keys=("k",)) == "foreign_host"


def test_listening_beyond_loopback_needs_keys_or_a_word() -> None:
    assert exposure(ServerSettings(), ["127.0.0.1"]) is None
    assert exposure(ServerSettings(), ["127.8.9.1", "::1"]) is None
    for address in ("0.0.0.0", "::", "192.168.1.5", "fe80::1%eth0"):
        problem = exposure(ServerSettings(host=address), ["127.0.0.1", address])
        assert problem is not None
        assert address in problem
        assert "allow_open" in problem
        assert exposure(ServerSettings(host=address, allow_open=True), [address]) is None
        assert exposure(ServerSettings(host=address, api_keys=("k",)), [address]) is None


ROUTES = [
    ("GET", "/"),
    ("GET", "/app.js"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("POST", "/api/offer"),
    ("OPTIONS", "/api/offer"),
    ("GET", "/api/sessions/x/report"),
    ("GET", "/api/sessions/x/history"),
    ("DELETE", "/api/sessions/x"),
    ("GET", "/nowhere"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}], ids=str
)
def test_every_route_refuses_foreigners(method: str, path: str, headers: dict[str, str]) -> None:
    response = ask(make_app(), method, path, headers=headers, json={"sdp": "v=0", "type": "offer"})
    assert response.status_code == 403
    assert error_code(response) in ("foreign_host", "foreign_origin")
    assert "access-control-allow-origin" not in response.headers
    for name, value in RESPONSE_HEADERS.items():
        assert response.headers[name] == value


def test_the_list_of_routes_above_is_complete() -> None:
    listed = {path for _, path in ROUTES}
    for route in make_app().routes:
        assert isinstance(route, Route)
        is_file = "." in route.path
        assert is_file or route.path.replace("{session_id}", "x") in listed, route.path


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_keys_guard_all_but_page_and_probes(method: str, path: str) -> None:
    app = make_app(api_keys=("secret",))
    public = path in ("/", "/app.js", "/healthz", "/readyz")
    bare = ask(app, method, path)
    assert (bare.status_code == 401) != public
    if not public:
        assert error_code(bare) == "unauthorized"
        assert bare.headers["WWW-Authenticate"] == "Bearer"
    assert ask(app, method, path, headers={"Authorization": "bearer secret"}).status_code != 401
    assert ask(app, method, f"{path}?key=secret").status_code != 401


def websocket_sent(headers: dict[str, str], *, extension: bool, **server: Any) -> list[dict[str, Any]]:
    """What the app sends on a websocket handshake with these headers."""
    accepted = []

    async def endpoint(socket: WebSocket) -> None:
        accepted.append(socket)
        await socket.accept()
        await socket.close()

    route = WebSocketRoute("/ws", endpoint)
    app = SecurityMiddleware(route.app, policy_for(ServerSettings(**server), []))
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "websocket",
        "path": "/ws",
        "scheme": "ws",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "extensions": {"websocket.http.response": {}} if extension else {},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert bool(accepted) == any(message["type"] == "websocket.accept" for message in sent)
    return sent


def test_websockets_are_refused_before_they_are_accepted() -> None:
    own = {"Host": "localhost:8080"}
    cases: list[tuple[dict[str, str], dict[str, Any], int]] = [
        ({"Host": "evil.example"}, {}, 403),
        ({**own, "Origin": "http://evil.example"}, {}, 403),
        ({**own, "Origin": "null"}, {}, 403),
        (own, {"api_keys": ("k",)}, 401),
    ]
    for headers, server, status in cases:
        (close,) = websocket_sent(headers, extension=False, **server)
        assert close["type"] == "websocket.close"
        start = websocket_sent(headers, extension=True, **server)[0]
        assert (start["type"], start["status"]) == ("websocket.http.response.start", status)


def test_own_pages_and_programs_may_open_websockets() -> None:
    for headers in ({}, {"Origin": "http://localhost:8080"}, {"Authorization": "Bearer k"}):
        sent = websocket_sent({"Host": "localhost:8080", **headers}, extension=True)
        assert sent[0]["type"] == "websocket.accept"
