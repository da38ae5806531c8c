from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.modelstore.serving import Page, Server, noise
from voice_agent.modelstore.progress import SourceFailed, WrongContent
from voice_agent.modelstore.web import WebFetcher

DATA = noise(300_000)
PATH = "/m.bin"


class Download:
    def __init__(self, server: Server, tmp_path: Path) -> None:
        self.url = server.url + PATH
        self.partial = tmp_path / ".m.bin.partial"
        self.pauses: list[float] = []
        self.seen: list[int] = []

    def run(self, size: int = len(DATA)) -> bytes:
        WebFetcher(self.pauses.append).fetch(self.url, size, self.partial, self.seen.append)
        return self.partial.read_bytes()


@pytest.fixture
def download(server: Server, tmp_path: Path) -> Download:
    return Download(server, tmp_path)


def test_file_arrives_whole_and_progress_ends_at_its_size(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA)
    assert download.run() == DATA
    assert download.seen == sorted(download.seen)
    assert download.seen[-1] == len(DATA)
    assert download.pauses == []


def test_beginning_from_an_earlier_run_is_continued(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA)
    download.partial.write_bytes(DATA[:123_456])
    assert download.run() == DATA
    assert server.ranges_of(PATH) == ["bytes=123456-"]


def test_complete_beginning_needs_no_connection(server: Server, download: Download) -> None:
    download.partial.write_bytes(DATA)
    assert download.run() == DATA
    assert server.requests == []


def test_dropped_connections_are_continued_where_they_broke(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA, drops=[100_000, 50_000, 70_000])
    assert download.run() == DATA
    assert server.ranges_of(PATH) == ["", "bytes=100000-", "bytes=150000-", "bytes=220000-"]
    assert download.pauses == []


def test_server_without_ranges_starts_again(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA, ranges=False, drops=[100_000])
    assert download.run() == DATA
    assert server.ranges_of(PATH) == ["", "bytes=100000-"]


def test_server_that_always_breaks_at_the_same_place_is_given_up(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA, ranges=False, drops=[100_000] * 20)
    with pytest.raises(SourceFailed, match="delivers nothing more"):
        download.run()
    assert len(server.requests) == 5
    assert download.pauses == [1.0, 2.0, 4.0]
    assert download.partial.read_bytes() == DATA[:100_000]


def test_answer_with_another_range_than_asked_leaves_no_hole(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA, content_range="bytes 5-9/10")
    download.partial.write_bytes(DATA[:1000])
    assert download.run() == DATA
    assert server.ranges_of(PATH) == ["bytes=1000-", ""]


def test_longer_beginning_than_the_server_has_starts_again(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA[:1000])
    download.partial.write_bytes(noise(2000))
    with pytest.raises(SourceFailed, match="delivers nothing more"):
        download.run()
    assert server.ranges_of(PATH)[:2] == ["bytes=2000-", ""]
    assert download.partial.read_bytes() == DATA[:1000]


def test_file_longer_than_promised_is_refused_and_removed(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA)
    with pytest.raises(WrongContent, match="more than 1,000 bytes"):
        download.run(1000)
    assert not download.partial.exists()


def test_overloaded_server_is_asked_again(server: Server, download: Download) -> None:
    server.pages[PATH] = Page(DATA, statuses=[503, 429])
    assert download.run() == DATA
    assert download.pauses == [1.0, 2.0]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusal_is_final_and_says_what_was_answered(server: Server, download: Download, status: int) -> None:
    server.pages[PATH] = Page(DATA, statuses=[status])
    with pytest.raises(SourceFailed, match=f"127.0.0.1 answers {status}"):
        download.run()
    assert len(server.requests) == 1


def test_no_network_fails_at_once_and_names_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/m.bin"
        pauses: list[float] = []
        with pytest.raises(SourceFailed, match=r"no connection to 127\.0\.0\.1"):
            WebFetcher(pauses.append).fetch(url, 10, tmp_path / "partial", lambda _: None)
    assert pauses == []
