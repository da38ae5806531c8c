"""The probe against a server that streams, with and without a proxy that collects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.doctor.sse import EVERY, PIECES, collecting_proxy, event, streaming_server
from voice_agent.doctor.check import Check, Verdict
from voice_agent.doctor.remote import check_server, reachable, text_stream
from voice_agent.errors import ConfigError


async def _ask(url: str, probe: Callable[[httpx.AsyncClient], Awaitable[Check]] = text_stream) -> Check:
    async with httpx.AsyncClient(base_url=url, timeout=20, trust_env=False) as client:
        return await probe(client)


def test_a_server_that_streams_is_seen_to_stream() -> None:
    async def go() -> Check:
        async with streaming_server() as url:
            return await _ask(url)

    check = asyncio.run(go())
    assert check.verdict is Verdict.OK, check
    assert check.figures["pieces"] == PIECES
    assert check.figures["first_piece_ms"] >= EVERY * 1e3 * 0.9
    assert check.figures["held_back"] is False


@pytest.mark.parametrize("size", [0, 700])
def test_a_proxy_that_collects_is_found(size: int) -> None:
    async def go() -> Check:
        async with streaming_server() as url, collecting_proxy(url, size) as proxy:
            return await _ask(proxy)

    check = asyncio.run(go())
    assert check.verdict is Verdict.WARNING, check
    assert check.figures["pieces"] == PIECES, "all of it comes, only late"
    assert check.figures["held_back"] is True
    assert "proxy_buffering off" in check.advice


@pytest.mark.parametrize(
    ("status", "verdict", "words"),
    [
        ("404 Not Found", Verdict.NOTE, "this server has no text streaming"),
        ("405 Method Not Allowed", Verdict.NOTE, "this server has no text streaming"),
        ("401 Unauthorized", Verdict.PROBLEM, "wants a key"),
        ("500 Oops", Verdict.PROBLEM, "500: no reason"),
    ],
)
def test_an_answer_that_is_no_stream_is_said_plainly(status: str, verdict: Verdict, words: str) -> None:
    async def go() -> Check:
        async with streaming_server(status=status) as url:
            return await _ask(url)

    check = asyncio.run(go())
    assert check.verdict is verdict
    assert words in check.found


def test_the_question_names_a_model_the_server_has() -> None:
    asked: list[dict[str, Any]] = []

    async def go() -> None:
        async with streaming_server(asked=asked) as url:
            await _ask(url)

    asyncio.run(go())
    assert [(body["model"], body["stream"]) for body in asked] == [("small-talker", True)]


def test_a_model_the_server_does_not_have_is_no_missing_route() -> None:
    async def go() -> Check:
        async with streaming_server(status="404 Not Found", code="model_not_found") as url:
            return await _ask(url)

    assert asyncio.run(go()).verdict is Verdict.PROBLEM


def test_an_error_in_the_stream_is_a_problem() -> None:
    async def go() -> Check:
        broken = [event("a"), b'data: {"error": {"message": "out of memory"}}\n\n']
        async with streaming_server(events=broken) as url:
            return await _ask(url)

    check = asyncio.run(go())
    assert check.verdict is Verdict.PROBLEM
    assert "out of memory" in check.found


def test_a_server_that_is_not_there_ends_the_checks() -> None:
    async def go() -> list[Check]:
        async with streaming_server() as url:
            pass
        return await check_server(url, "")

    (check,) = asyncio.run(go())
    assert check.verdict is Verdict.PROBLEM
    assert "no answer" in check.found


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "nonsense"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no address of a server"):
        asyncio.run(check_server(url, ""))


def test_a_server_of_another_kind_is_told() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, text="<html>nothing here")

    async def go() -> Check:
        async with httpx.AsyncClient(base_url="http://x", transport=httpx.MockTransport(answer)) as client:
            return await reachable(client)

    check = asyncio.run(go())
    assert check.verdict is Verdict.PROBLEM
    assert "is this a voice-agent?" in check.advice
