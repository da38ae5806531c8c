"""The page stands alone, shows what the figures say, and lets nothing of a trace become markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.report.calls import turn
from voice_agent.report import CallReport, page

NASTY = "<script>alert(1)</script>&\"'><img src=x onerror=alert(1)>"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [], "every element is closed"
    return reader


def _calls() -> list[CallReport]:
    turns = [turn(1, each=40.0), turn(2, each=200.0, interrupted=True), turn(3, each=None)]
    return [CallReport("first", turns, "hang-up", 1.75e9)]


def test_every_turn_is_there_with_its_time_and_words() -> None:
    text = _read(page(_calls())).text
    assert "Turn 1 280 ms of 800" in text
    assert "Turn 2 1400 ms of 800" in text
    assert "not answered aloud" in text
    assert "cut off" in text
    assert text.count("How far is the moon?") == 3
    assert "2025-06-15 15:06:40 UTC" in text


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = page(_calls())
    reader = _read(text)
    assert not {"script", "link", "img", "iframe", "object", "form", "a", "base"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "href")]
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src 'none'" in text
    assert "prefers-color-scheme:dark" in text


def test_text_of_a_trace_stays_text() -> None:
    nasty = turn(1, user_text=NASTY, heard_text=NASTY, generated_text=NASTY)
    reader = _read(page([CallReport(NASTY, [nasty], NASTY)]))
    assert not {"script", "img"} & set(reader.tags)
    assert reader.text.count(NASTY) == 4, "caller, agent, call and why it ended"


def test_bars_follow_one_another_on_one_scale() -> None:
    text = page(_calls())
    bars = re.findall(r"<i class=(\w+) style='left:([\d.]+)%;width:([\d.]+)%'>", text)
    assert len(bars) == 14
    first, second = bars[:7], bars[7:]
    assert [float(left) for _, left, _ in first] == [round(n * 40 / 1400 * 100, 2) for n in range(7)]
    assert float(second[-1][1]) + float(second[-1][2]) == 100
    assert set(re.findall(r"<u style='left:([\d.]+)%'>", text)) == {f"{800 / 1400 * 100:.2f}"}


def test_a_page_without_turns_says_so() -> None:
    assert "No turns." in _read(page([CallReport("empty", [], None)])).text
    assert "0 calls" in _read(page([])).text
