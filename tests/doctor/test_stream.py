"""What arrival times say: a writing model, a collecting proxy, and what cannot be told."""

from __future__ import annotations

import json

import pytest

from voice_agent.doctor.check import Verdict
from voice_agent.doctor.remote import judge
from voice_agent.doctor.stream import Arrivals, EventReader, buffering_hints, held_back, piece_of_text

SSE = {"content-type": "text/event-stream"}


def _steady(count: int, gap: float, first: float = 0.3) -> Arrivals:
    return Arrivals(100.0, [100.0 + first + number * gap for number in range(count)])


def _bursts(sizes: list[int], wait: float) -> Arrivals:
    """Bursts of pieces 0.1 ms apart, each after a wait."""
    at, pieces = 100.0, []
    for size in sizes:
        at += wait
        pieces += [at + number * 1e-4 for number in range(size)]
    return Arrivals(100.0, pieces)


@pytest.mark.parametrize(
    ("arrivals", "verdict"),
    [
        (_steady(30, 0.05), False),
        (_steady(30, 0.004), False),
        (_steady(30, 0.0001, first=1.5), True),  # everything after a second and a half, at once
        (_bursts([10, 10, 10], 0.5), True),
        (_bursts([2] * 15, 0.1), True),
        (_bursts([1, 2] * 10, 0.1), False),  # now and then two: a busy machine
        (_steady(7, 0.05), None),
        (_steady(30, 0.0005, first=0.02), None),  # a scripted model may be that quick
        (Arrivals(0.0, []), None),
    ],
)
def test_what_the_arrivals_say(arrivals: Arrivals, verdict: bool | None) -> None:
    assert held_back(arrivals) is verdict


def test_figures_are_those_a_client_sees() -> None:
    figures = Arrivals(10.0, [10.25, 10.30, 10.3001, 10.5]).figures()
    assert figures == {
        "pieces": 4,
        "first_piece_ms": 250.0,
        "gap_p50_ms": 50.0,
        "gap_p95_ms": 199.9,
        "gap_max_ms": 199.9,
        "moments": 3,
        "largest_burst": 2,
    }
    assert Arrivals(1.0, []).figures()["first_piece_ms"] is None


def test_a_verdict_names_the_suspect_and_the_remedy() -> None:
    good = judge(_steady(30, 0.05), SSE)
    assert (good.verdict, good.advice) == (Verdict.OK, "")
    bad = judge(_bursts([30], 2.0), {**SSE, "content-encoding": "gzip", "via": "1.1 front"})
    assert bad.verdict is Verdict.WARNING
    assert "30 at once" in bad.found
    assert "gzip" in bad.advice
    assert "1.1 front" in bad.advice
    assert "proxy_buffering off" in bad.advice
    assert judge(_steady(3, 0.1), SSE).verdict is Verdict.NOTE
    assert judge(Arrivals(0.0, []), {"content-type": "text/html"}).verdict is Verdict.PROBLEM


def test_headers_that_give_a_buffer_away() -> None:
    assert buffering_hints(SSE) == []
    assert any("collected before" in hint for hint in buffering_hints({**SSE, "content-length": "9"}))
    assert any("text/html" in hint for hint in buffering_hints({"content-type": "text/html"}))


def test_events_are_read_however_they_were_cut() -> None:
    body = b'data: {"a": 1}\r\n\r\n: comment\n\ndata: z\xc3\xa9\n\nevent: x\ndata:last\n\n'
    for size in range(1, len(body) + 1):
        reader = EventReader()
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        assert [data for piece in pieces for data in reader.feed(piece)] == ['{"a": 1}', "zé", "last"]


def test_a_line_without_end_is_refused() -> None:
    reader = EventReader(limit=100)
    with pytest.raises(ValueError, match="no line ends"):
        list(reader.feed(b"x" * 101))


@pytest.mark.parametrize(
    "data", ["[DONE]", "{}", "[]", "7", '{"choices": []}', '{"choices": [{"delta": {"role": "assistant"}}]}']
)
def test_events_without_text_are_no_pieces(data: str) -> None:
    assert piece_of_text(data) == ""


def test_text_and_errors_are_told_apart() -> None:
    assert piece_of_text(json.dumps({"choices": [{"delta": {"content": " hi"}}]})) == " hi"
    with pytest.raises(ValueError, match="out of memory"):
        piece_of_text('{"error": {"message": "out of memory"}}')
