"""The real pip against an index on 127.0.0.1: about a second each, so few of them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.modelstore.serving import Server, noise, sha, wheel_bytes, wheel_file
from voice_agent.modelstore.manifest import Wheel
from voice_agent.modelstore.package_index import PackageIndex, _failure
from voice_agent.modelstore.progress import SourceFailed, WrongContent

DATA = wheel_bytes("some-weights", "1.0", {"some_weights/m.bin": noise(400_000)})
WHEEL = Wheel("some-weights", "1.0", len(DATA), sha(DATA))
PAGE = f"/files/{wheel_file('some-weights', '1.0')}"

Fetch = Callable[..., bytes]


def environment(**pip: str) -> dict[str, str]:
    """Ours without the machine's pip configuration."""
    clean = {name: value for name, value in os.environ.items() if not name.upper().startswith("PIP_")}
    return clean | {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", **pip}


@pytest.fixture
def fetch(tmp_path: Path, server: Server) -> Fetch:
    work = tmp_path / "work"
    work.mkdir()

    def run(seen: list[int] | None = None, **pip: str) -> bytes:
        pip.setdefault("PIP_INDEX_URL", server.url + "/simple")
        target = tmp_path / "some.whl"
        try:
            report = [] if seen is None else seen
            PackageIndex(environment(**pip)).fetch(WHEEL, target, work, report.append)
        finally:
            assert list(work.iterdir()) == []
        return target.read_bytes()

    return run


def test_archive_comes_from_the_configured_index(server: Server, fetch: Fetch) -> None:
    server.add_package("some-weights", DATA)
    seen: list[int] = []
    assert fetch(seen) == DATA
    assert seen[-1] == len(DATA)
    assert [path for path, _ in server.requests] == ["/simple/some-weights/", PAGE]


def test_archive_comes_from_a_local_folder_of_wheels_too(server: Server, fetch: Fetch, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / wheel_file("some-weights", "1.0")).write_bytes(DATA)
    assert fetch(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder)) == DATA
    assert server.requests == []


def test_constraints_of_the_machine_are_no_obstacle(server: Server, fetch: Fetch, tmp_path: Path) -> None:
    server.add_package("some-weights", DATA)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("numpy<99\ntorch<=2.0\n")
    assert fetch(PIP_CONSTRAINT=str(constraints)) == DATA


def test_broken_connection_is_mended(server: Server, fetch: Fetch) -> None:
    page = server.add_package("some-weights", DATA)
    page.drops = [150_000]
    assert fetch() == DATA
    assert len(server.ranges_of(PAGE)) == 2


def test_other_bytes_under_the_same_version_are_refused(server: Server, fetch: Fetch) -> None:
    server.add_package("some-weights", wheel_bytes("some-weights", "1.0", {"some_weights/m.bin": b"other"}))
    with pytest.raises(WrongContent, match="wrong checksum"):
        fetch()


def test_index_without_the_package_is_told_from_no_index(server: Server, fetch: Fetch) -> None:
    with pytest.raises(SourceFailed, match="the package index does not have it"):
        fetch()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/simple"
        with pytest.raises(SourceFailed, match="no connection to the package index"):
            fetch(PIP_INDEX_URL=nobody, PIP_RETRIES="1")


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("/usr/bin/python3: No module named pip", "has no pip: run .*ensurepip"),
        ("ERROR: Exception:\nurllib3.exceptions.ProtocolError: IncompleteRead(5 bytes read)", "^the connection broke$"),
        ("Looking in indexes\nERROR: Something odd happened", "^pip failed: Something odd happened$"),
        ("ERROR: Could not find an activated virtualenv (required).", "pip failed: Could not find an activated"),
        ("", "pip failed: it said nothing"),
    ],
)
def test_what_pip_says_becomes_a_reason(log: str, reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason):
        raise _failure(log)


def test_full_disk_under_pip_is_a_full_disk() -> None:
    with pytest.raises(OSError, match="No space left on device"):
        raise _failure("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
