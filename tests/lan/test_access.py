"""`--lan` as a whole: addresses, the QR code, and a real HTTPS server that lets devices in."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import zxingcpp

from tests.server.fake_calls import FakeCalls
from tests.server.helpers import make_app
from voice_agent.errors import ConfigError
from voice_agent.lan.access import LanAccess, qr_text
from voice_agent.lan.addresses import choose, machine_addresses, machine_names
from voice_agent.server import runner
from voice_agent.server.runner import run_server
from voice_agent.settings import ServerSettings, Settings

HOST = "127.0.0.2"
"""Stands for the machine's address on a network: it exists everywhere and is not where the agent listens by default."""


def v4(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(text)


def test_the_address_packets_leave_from_is_chosen_unless_it_is_public() -> None:
    home, tunnel, public = v4("192.168.1.5"), v4("10.8.0.2"), v4("8.8.4.4")
    assert choose([tunnel, home], home) == home
    assert choose([public, home], public) == home
    assert choose([public], public) == public
    assert choose([home, tunnel], None) == home
    with pytest.raises(ConfigError, match="no address"):
        choose([], None)


def test_the_machines_addresses_are_for_others() -> None:
    assert not any(one.is_loopback or one.is_link_local for one in machine_addresses())


@pytest.mark.parametrize(
    ("hostname", "names"),
    [
        ("desk", ["desk", "desk.local"]),
        ("Desk.Example.ORG", ["desk.example.org", "desk.local"]),
        ("desk.local", ["desk.local"]),
        ("localhost", []),
        ("no_name", []),
        ("", []),
        ("desk.under_score", ["desk", "desk.local"]),
    ],
)
def test_names_a_certificate_can_hold(hostname: str, names: list[str]) -> None:
    assert machine_names(hostname) == names


def test_the_default_host_becomes_an_address_of_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voice_agent.lan.access.machine_addresses", lambda: [v4("192.168.1.5")])
    monkeypatch.setattr("voice_agent.lan.access.route_address", lambda: None)
    access = LanAccess(ServerSettings(lan=True), tmp_path)
    assert access.settings.host == "192.168.1.5"
    assert "192.168.1.5" in access.entrance.names
    assert "127.0.0.1" not in access.entrance.names
    everywhere = LanAccess(ServerSettings(lan=True, host="0.0.0.0"), tmp_path)
    assert everywhere.settings.host == "0.0.0.0"
    assert {"192.168.1.5", "localhost", "127.0.0.1", "[::1]"} <= everywhere.entrance.names
    assert str(everywhere.address) == "192.168.1.5"
    with pytest.raises(ConfigError, match=r"voice\.example"):
        LanAccess(ServerSettings(lan=True, host="voice.example"), tmp_path)


def pixels(drawn: str) -> np.ndarray[Any, Any]:
    """The terminal's picture of half blocks as a grey image, 4 pixels a module, on a black terminal."""
    halves = {"█": (255, 255), "▀": (255, 0), "▄": (0, 255), " ": (0, 0)}
    rows: list[list[int]] = []
    for line in drawn.splitlines():
        bare = re.sub(r"^  |\x1b\[[\d;]*m", "", line)
        rows += [[halves[one][half] for one in bare] for half in (0, 1)] if bare else []
    picture = np.array(rows, np.uint8)
    return np.pad(np.kron(picture, np.ones((4, 4), np.uint8)), 8)


@pytest.mark.parametrize("link", ["https://192.168.1.5:8080/#join=abc-_XYZ09", "https://[fd00::2]:1/#join=" + "k" * 22])
def test_a_camera_reads_the_link_from_the_terminal(link: str) -> None:
    (code,) = zxingcpp.read_barcodes(pixels(qr_text(link)))
    assert code.text == link


@asynccontextmanager
async def lan_server(folder: Path, **server: Any) -> AsyncIterator[tuple[LanAccess, list[str], int]]:
    """(access, texts shown, port) of a real server."""
    shown: list[str] = []
    access = LanAccess(ServerSettings(lan=True, host=HOST, port=0, **server), folder, shown.append)
    app = make_app(FakeCalls(), entrance=access.entrance, lan=True, host=HOST, **server)
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    settings = Settings(server=access.settings)
    task = asyncio.create_task(
        run_server(app, settings, on_started=started.set_result, stop=stop, tls=access.context())
    )
    try:
        url = httpx.URL(await started)
        assert url.scheme == "https"
        assert url.port is not None
        access.opened(url.port)
        yield access, shown, url.port
    finally:
        stop.set()
        await task


def trusting(access: LanAccess) -> ssl.SSLContext:
    pem = access.certificate.file.read_text()
    return ssl.create_default_context(cadata=pem[pem.index("-----BEGIN CERTIFICATE") :])


def link_in(text: str) -> tuple[str, str]:
    """(base address, key) of the link shown last."""
    found = re.findall(r"(https://\S+/)#join=(\S+)", text)
    return str(found[-1][0]), str(found[-1][1])


def test_phones_join_over_real_tls_one_after_the_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with lan_server(tmp_path) as (access, shown, _):
            assert access.certificate.fingerprint in shown[0]
            for number in (0, 1):
                base, key = link_in(shown[number])
                (code,) = zxingcpp.read_barcodes(pixels("\n".join(re.findall(r"  \x1b.*", shown[number]))))
                assert code.text == f"{base}#join={key}"
                async with httpx.AsyncClient(verify=trusting(access), base_url=base) as phone:
                    assert (await phone.get("/healthz")).status_code == 200
                    assert (await phone.get("/")).status_code == 401
                    assert (await phone.post("/join", json={"key": key})).status_code == 204
                    assert (await phone.get("/")).status_code == 200
                    assert (await phone.post("/join", json={"key": key})).status_code == 401
                    assert key not in caplog.text
            assert len(shown) == 3

    with caplog.at_level("DEBUG", logger="uvicorn"):
        asyncio.run(main())


def test_the_certificate_stays_the_same_over_restarts(tmp_path: Path) -> None:
    async def main() -> str:
        async with lan_server(tmp_path) as (access, _, _):
            return access.certificate.fingerprint

    assert asyncio.run(main()) == asyncio.run(main())


def test_plain_http_and_half_handshakes_harm_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_HEAD_TIMEOUT", 0.3)

    async def main() -> None:
        async with lan_server(tmp_path) as (access, shown, port):
            for opening in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01", b""):
                reader, writer = await asyncio.open_connection(HOST, port)
                writer.write(opening)
                async with asyncio.timeout(10):  # cut by the server
                    with contextlib.suppress(ConnectionError):
                        answer = await reader.read()
                        assert b"HTTP" not in answer
                writer.close()
            async with httpx.AsyncClient(verify=trusting(access), base_url=link_in(shown[0])[0]) as phone:
                assert (await phone.get("/healthz")).status_code == 200

    asyncio.run(main())
