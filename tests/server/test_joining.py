"""One-time keys and cookies: the exchange by itself, then on every route."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.server.fake_calls import FakeCalls
from tests.server.helpers import OFFER, error_code, make_app
from tests.server.test_security import ROUTES
from voice_agent.server.joining import COOKIE, MAX_BODY, Devices, Entrance

OWN = "https://192.168.1.5:8080"
NAMES = frozenset({"192.168.1.5", "desk.local"})


class Lan:
    """An app of the local network and what it announced."""

    def __init__(self, **server: Any) -> None:
        self.keys: list[str] = []
        self.devices = Devices(self.keys.append)
        self.devices.invite()
        entrance = Entrance(NAMES, self.devices)
        self.app = make_app(FakeCalls(), entrance=entrance, lan=True, host="192.168.1.5", **server)

    def client(self, base_url: str = OWN) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=base_url)


def story(check: Callable[[Lan, httpx.AsyncClient], Awaitable[None]], **server: Any) -> None:
    async def main() -> None:
        lan = Lan(**server)
        async with lan.client() as client:
            await check(lan, client)

    asyncio.run(main())


async def join(client: httpx.AsyncClient, key: str, **options: Any) -> httpx.Response:
    return await client.post("/join", json={"key": key}, **options)


def test_a_key_lets_one_device_in_and_the_next_key_is_announced() -> None:
    keys: list[str] = []
    devices = Devices(keys.append)
    assert devices.join("") is None  # nothing announced yet: no key fits
    devices.invite()
    cookie = devices.join(keys[0])
    assert cookie is not None
    assert devices.know([cookie])
    assert len(keys) == 2
    assert devices.join(keys[0]) is None
    other = devices.join(keys[1])
    assert other is not None
    assert other != cookie
    assert devices.know(["wrong", other])
    assert devices.know([cookie])
    assert not devices.know([])
    assert not devices.know(["", cookie[:-1], keys[0], keys[2]])


def test_a_key_asked_for_replaces_the_unused_one() -> None:
    keys: list[str] = []
    devices = Devices(keys.append)
    devices.invite()
    devices.invite()
    assert devices.join(keys[0]) is None
    assert devices.join(keys[1]) is not None


def test_wrong_keys_spend_nothing() -> None:
    keys: list[str] = []
    devices = Devices(keys.append)
    devices.invite()
    for wrong in ("", "x", keys[0] + "x", keys[0].swapcase(), "\udcff"):
        assert devices.join(wrong) is None
    assert len(keys) == 1
    assert devices.join(keys[0]) is not None


def test_devices_are_bounded_and_the_oldest_leaves() -> None:
    keys: list[str] = []
    devices = Devices(keys.append, limit=2)
    devices.invite()
    cookies = [devices.join(keys[-1]) or "" for _ in range(3)]
    assert [devices.know([cookie]) for cookie in cookies] == [False, True, True]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_without_key_or_cookie_only_healthz_answers(method: str, path: str) -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        bare = await client.request(method, path)
        assert (bare.status_code == 401) == (path != "/healthz")
        if path != "/healthz":
            assert error_code(bare) == "unauthorized"
            assert "link" in bare.json()["error"]["message"]
        wrong = await client.request(method, path, headers={"Cookie": f"{COOKIE}=x", "Authorization": "Bearer x"})
        assert (wrong.status_code == 401) == (path != "/healthz")
        assert (await join(client, lan.keys[0])).status_code == 204
        assert (await client.request(method, path)).status_code != 401

    story(check)


def test_the_cookie_is_for_this_server_alone_and_out_of_reach_of_scripts() -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        answer = await join(client, lan.keys[0], headers={"Origin": OWN})
        (cookie,) = answer.headers.get_list("set-cookie")
        name, _, rest = cookie.partition("=")
        assert name.startswith("__Host-")
        attributes = {part.strip().lower() for part in rest.split(";")[1:]}
        assert {"httponly", "secure", "samesite=strict", "path=/"} <= attributes
        assert not any(part.startswith("domain") for part in attributes)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert lan.keys[0] not in str(answer.headers)
        assert (await client.post("/api/offer", json=OFFER, headers={"Origin": OWN})).status_code == 200

    story(check)


def test_a_replayed_key_is_refused_and_the_new_one_lets_a_second_device_in() -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        assert (await join(client, lan.keys[0])).status_code == 204
        async with lan.client() as second:
            replayed = await join(second, lan.keys[0])
            assert replayed.status_code == 401
            assert error_code(replayed) == "key_spent"
            assert "set-cookie" not in replayed.headers
            assert (await second.get("/readyz")).status_code == 401
            assert (await join(second, lan.keys[1])).status_code == 204
            assert (await second.get("/readyz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200

    story(check)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"key": 1}', b"\xff", b"[" * 1000, b'{"key": "' + b"x" * MAX_BODY]
)
def test_bodies_that_hold_no_key(body: bytes) -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        answer = await client.post("/join", content=body)
        assert (answer.status_code, error_code(answer)) == (400, "bad_key")
        assert len(lan.keys) == 1

    story(check)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "foreign_host"),
        ({"Host": "192.168.1.6:8080"}, "foreign_host"),
        ({"Host": "localhost:8080"}, "foreign_host"),
        ({"Origin": "https://evil.example"}, "foreign_origin"),
        ({"Origin": "http://192.168.1.5:8080"}, "foreign_origin"),
        ({"Origin": "https://192.168.1.5:9000"}, "foreign_origin"),
        ({"Origin": "https://desk.local:8080"}, "foreign_origin"),
        ({"Origin": "null"}, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "foreign_site"),
    ],
    ids=str,
)
def test_neither_key_nor_cookie_excuses_a_foreign_host_or_origin(headers: dict[str, str], code: str) -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        assert error_code(await join(client, lan.keys[0], headers=headers)) == code
        assert len(lan.keys) == 1
        assert (await join(client, lan.keys[0])).status_code == 204
        assert error_code(await client.post("/api/offer", json=OFFER, headers=headers)) == code

    story(check)


def test_the_machines_names_are_hosts_with_origins_of_their_own() -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        async with lan.client("https://desk.local:8080") as by_name:
            answer = await join(by_name, lan.keys[0], headers={"Origin": "https://desk.local:8080"})
            assert answer.status_code == 204

    story(check)


def test_static_keys_work_for_scripts_besides() -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        right = {"Authorization": "Bearer script"}
        assert (await client.get("/metrics", headers=right)).status_code == 200
        assert (await client.post("/api/offer", json=OFFER, headers=right)).status_code == 200
        assert (await client.get("/metrics", headers={"Authorization": "Bearer scrip"})).status_code == 401
        assert (await join(client, "script")).status_code == 401

    story(check, api_keys=("script",))


@pytest.mark.parametrize(
    "headers",
    [{"Accept": "text/html,*/*"}, {"Accept": "*/*", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}],
    ids=["by Accept", "by Sec-Fetch-Dest"],
)
def test_a_person_gets_a_page_that_may_run_nothing_but_itself(headers: dict[str, str]) -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        answer = await client.get("/", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["content-type"].startswith("text/html")
        assert "Scan the QR code" in answer.text
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        for tag in ("script", "style"):
            (inline,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy
        script = await client.get("/app.js", headers={"Accept": "*/*", "Sec-Fetch-Dest": "script"})
        assert error_code(script) == "unauthorized"

    story(check)


def test_without_lan_there_is_nothing_to_join() -> None:
    async def main() -> None:
        transport = httpx.ASGITransport(make_app(api_keys=("k",)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
            assert (await join(client, "k")).status_code == 401
            assert (await join(client, "k", headers={"Authorization": "Bearer k"})).status_code == 404

    asyncio.run(main())


def test_lan_without_an_entrance_is_closed_not_open() -> None:
    async def main() -> None:
        transport = httpx.ASGITransport(make_app(lan=True))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
            assert (await client.get("/")).status_code == 401
            assert (await client.post("/api/offer", json=OFFER)).status_code == 401

    asyncio.run(main())


def test_no_key_or_cookie_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def check(lan: Lan, client: httpx.AsyncClient) -> None:
        answer = await join(client, lan.keys[0])
        await join(client, lan.keys[0])
        secrets = [*lan.keys, answer.cookies[COOKIE]]
        assert "a device has joined" in caplog.text
        assert not any(secret in caplog.text for secret in secrets)

    with caplog.at_level(logging.DEBUG):
        story(check)
