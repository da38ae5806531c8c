"""The page in a real browser against a scripted agent on a real WebRTC connection."""

from __future__ import annotations

import asyncio
import os
import re
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.server.helpers import WEB
from tests.web.browser import launch_browser, open_page, serve_in_thread, wait_until
from tests.web.scripted_agent import ScriptedAgent, use_loopback
from voice_agent.errors import OfferError
from voice_agent.server.app import create_app
from voice_agent.server.metrics import Metrics
from voice_agent.settings import ServerSettings, Settings

BUDGETS = {
    "endpointing": 300,
    "recognition": 150,
    "first_token": 120,
    "first_clause": 100,
    "synthesis": 80,
    "hold": 0,
    "send": 50,
}


def report(turn: int, *stages: float, interrupted: bool = False) -> dict[str, Any]:
    return {
        "turn": turn,
        "interrupted": interrupted,
        "user_text": "",
        "heard_text": "",
        "generated_text": "",
        "voice_to_voice_ms": sum(stages),
        "budget_ms": 800,
        "stages_ms": dict(zip(BUDGETS, stages, strict=True)),
        "budget_stages_ms": BUDGETS,
        "stamps_ms": {},
    }


SCRIPT: list[dict[str, Any]] = [
    {"type": "session.started", "session_id": "call-1", "greeting": "", "budget_ms": 800},
    {"type": "state", "user": "speaking", "agent": "idle"},
    {"type": "transcript.partial", "turn": 1, "text": "what is"},
    {"type": "transcript.final", "turn": 1, "text": "What is the capital of France?"},
    {"type": "state", "user": "silent", "agent": "thinking"},
    {"type": "reply.text", "turn": 1, "clause": 0, "text": "It is Paris."},
    {"type": "turn.report", "report": report(1, 305.2, 140.4, 90, 60, 45, 0, 12)},
    {"type": "reply.heard", "turn": 1, "text": "It is Paris."},
    {"type": "reply.done", "turn": 1, "interrupted": False, "heard_text": "It is Paris."},
    {"type": "something.new", "turn": 1},
    {"type": "transcript.final", "turn": 2, "text": "And what can I see there in three days?"},
    {"type": "reply.text", "turn": 2, "clause": 0, "text": "Start with the Louvre,"},
    {"type": "reply.text", "turn": 2, "clause": 1, "text": "then walk along the Seine to the Eiffel Tower."},
    {"type": "turn.report", "report": report(2, 310, 260, 110, 95, 60, 20, 15)},
    {"type": "reply.heard", "turn": 2, "text": "Start with the Louvre, then walk"},
    {"type": "state", "user": "silent", "agent": "speaking"},
    {"type": "transcript.partial", "turn": 3, "text": "no wait"},
]
INTERRUPTED: list[dict[str, Any]] = [
    {"type": "reply.done", "turn": 2, "interrupted": True, "heard_text": "Start with the Louvre, then walk"},
    {"type": "state", "user": "silent", "agent": "idle"},
]


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds of a 300 Hz tone at a quarter of full scale."""
    file = tmp_path_factory.mktemp("microphone") / "tone.wav"
    samples = (8192 * np.sin(2 * np.pi * 300 * np.arange(5 * 48_000) / 48_000)).astype("<i2")
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, 48_000, len(samples), "NONE", ""))
        out.writeframes(samples.tobytes())
    return file


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def browser(microphone: Path, playwright: Playwright) -> Iterator[Browser]:
    with launch_browser(microphone, loop=True, playwright=playwright) as launched:
        yield launched


@contextmanager
def serving(agent: ScriptedAgent, **server: Any) -> Iterator[str]:
    app = create_app(agent, Settings(server=ServerSettings(**server)), Metrics(), WEB)
    with serve_in_thread(app, **server) as (url, loop):
        try:
            yield url
        finally:
            asyncio.run_coroutine_threadsafe(agent.close(), loop).result(10)


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


def start_call(page: Page) -> None:
    page.get_by_role("button", name="Start talking").click()
    wait_until(page, "voiceAgent.state.page === 'live'")


def screenshot(page: Page, name: str) -> None:
    """Kept only where somebody wants to look: VOICE_AGENT_SCREENSHOTS=DIR."""
    if folder := os.environ.get("VOICE_AGENT_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_a_call_shows_words_states_and_timing_and_carries_sound_both_ways(browser: Browser) -> None:
    typed: list[dict[str, Any]] = [{"type": "transcript.final", "turn": 4, "text": "Thank you!"}]
    agent = ScriptedAgent(script=SCRIPT, replies={"interrupt": INTERRUPTED, "text": typed})
    with serving(agent) as url, open_page(browser, f"{url}?raw=1", viewport={"width": 1200, "height": 850}) as page:
        start_call(page)
        expect(page.locator("#agent-state")).to_have_text("speaking")
        expect(page.locator("#status")).to_have_text("On the call")
        lines = page.locator("#transcript .line")
        expect(lines).to_have_count(5)
        expect(lines.nth(0)).to_contain_text("What is the capital of France?")
        expect(lines.nth(3).locator(".unheard").nth(0)).to_have_text("")
        expect(lines.nth(3).locator(".heard").nth(1)).to_have_text("then walk")
        expect(lines.nth(3).locator(".unheard").nth(1)).to_have_text(" along the Seine to the Eiffel Tower.")
        expect(lines.nth(4)).to_have_class(re.compile("partial"))

        newest = page.locator(".turn").nth(0)
        expect(newest.locator("summary")).to_contain_text("870 ms")
        expect(newest.locator(".total")).to_have_class("total over")
        expect(newest.locator("[data-stage=recognition]")).to_have_class(re.compile("over"))
        expect(newest.locator(".stage-row")).to_have_count(7)
        expect(page.locator(".turn").nth(1).locator(".stage-row")).to_have_count(6)  # nothing was held back

        wait_until(page, "voiceAgent.statistics().then((one) => one && one.totalAudioEnergy > 0.01)")
        wait_until(page, "document.getElementById('agent-level').style.transform > 'scaleX(0.2'")
        wait_until(page, "document.getElementById('user-level').style.transform > 'scaleX(0.2'")
        screenshot(page, "live-wide")
        page.get_by_role("button", name="Interrupt").click()
        expect(lines.nth(3).locator(".note")).to_have_text("interrupted")
        expect(page.get_by_role("button", name="Interrupt")).to_be_disabled()
        page.get_by_label("Type instead of talking").fill("Thank you!")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Type instead of talking")).to_have_value("")
        expect(lines.nth(5)).to_contain_text("Thank you!")
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#status")).to_have_text("Call ended")
        types = [message["type"] for message in agent.received]
        assert types[:2] == ["interrupt", "text"]
        assert agent.received[1]["text"] == "Thank you!"
        assert 6000 < agent.loudest < 11000  # the microphone's 8192, through Opus


def test_the_page_on_a_phone_in_the_dark(browser: Browser) -> None:
    agent = ScriptedAgent(script=SCRIPT)
    look: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    with serving(agent) as url, open_page(browser, f"{url}?raw=1", **look) as page:
        start_call(page)
        expect(page.locator("#transcript .line")).to_have_count(5)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        screenshot(page, "live-narrow-dark")


def test_the_keyboard_is_enough(browser: Browser) -> None:
    agent = ScriptedAgent(script=SCRIPT, replies={"interrupt": INTERRUPTED})
    with serving(agent) as url, open_page(browser, url) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        wait_until(page, "voiceAgent.state.agent === 'speaking'")
        page.keyboard.press("Escape")
        wait_until(page, "voiceAgent.state.agent === 'idle'")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Call ended")


def test_leaving_the_page_hangs_up(browser: Browser) -> None:
    agent = ScriptedAgent(script=SCRIPT[:1])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        page.goto(f"{url}healthz")
        assert agent.hang_ups.get(timeout=10) == "call-1"
        page.goto(url)
        start_call(page)
        page.reload()
        assert agent.hang_ups.get(timeout=10) == "call-2"


def test_two_calls_after_each_other(browser: Browser) -> None:
    agent = ScriptedAgent(script=SCRIPT)
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        expect(page.locator("#transcript .line")).to_have_count(5)
        with page.expect_response(lambda response: response.request.method == "DELETE"):
            page.get_by_role("button", name="Hang up").click()
        page.get_by_role("button", name="Start again").click()
        wait_until(page, "voiceAgent.state.page === 'live'")
        expect(page.locator("#transcript .line")).to_have_count(5)
        assert agent.hung_up == ["call-1"]


def test_the_server_ends_the_call(browser: Browser) -> None:
    ending: list[dict[str, Any]] = [{"type": "session.ended", "reason": "hangup"}]
    agent = ScriptedAgent(script=SCRIPT[:1], replies={"text": ending})
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        page.get_by_label("Type instead of talking").fill("Goodbye")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#status")).to_have_text("Call ended")
        expect(page.locator("#problem")).to_be_hidden()


def test_a_lost_connection_is_told(browser: Browser) -> None:
    agent = ScriptedAgent(script=SCRIPT[:1])
    app = create_app(agent, Settings(), Metrics(), WEB)
    with serve_in_thread(app) as (url, loop), open_page(browser, url) as page:
        start_call(page)
        asyncio.run_coroutine_threadsafe(agent.close(), loop).result(10)
        expect(page.locator("#problem")).to_contain_text("The connection was lost")
        expect(page.get_by_role("button", name="Try again")).to_be_enabled()


def test_junk_from_the_server_is_survived(browser: Browser) -> None:
    odd: list[Any] = [None, 7, [], {}, {"type": 7}, {"type": "state"}, {"type": "reply.done", "turn": 9}]
    with serving(ScriptedAgent(script=[*odd, *SCRIPT])) as url, open_page(browser, url) as page:
        start_call(page)
        expect(page.locator("#transcript .line")).to_have_count(5)


def test_a_full_server_is_told(browser: Browser) -> None:
    agent = ScriptedAgent(refuse=OfferError(503, "busy", "all lines are taken"))
    with serving(agent) as url, open_page(browser, url) as page:
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("All lines are taken")
        screenshot(page, "busy")
        agent.refuse = None
        page.get_by_role("button", name="Try again").click()
        wait_until(page, "voiceAgent.state.page === 'live'")
        expect(page.locator("#problem")).to_be_hidden()


def test_loading_models_are_told_and_waited_for(browser: Browser) -> None:
    agent = ScriptedAgent(ready=False, loading=["speech recognition", "voice"])
    with serving(agent) as url, open_page(browser, url) as page:
        expect(page.locator("#status")).to_have_text("Loading speech recognition, voice …")
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("The models are still loading")
        screenshot(page, "loading")
        agent.loading = ["voice"]
        expect(page.locator("#status")).to_have_text("Loading voice …")
        agent.ready = True
        expect(page.locator("#status")).to_have_text("Ready")
        expect(page.locator("#problem")).to_be_hidden()
        start_call(page)


def test_keys_are_asked_for_and_used(browser: Browser) -> None:
    with serving(ScriptedAgent(), api_keys=("s3cret&+",)) as url:
        with open_page(browser, url) as page:
            page.get_by_role("button", name="Start talking").click()
            expect(page.get_by_role("alert")).to_contain_text("This server needs a key")
        with open_page(browser, f"{url}?key=s3cret%26%2B") as page:
            start_call(page)


def test_a_refused_microphone_is_told(microphone: Path, playwright: Playwright) -> None:
    with (
        serving(ScriptedAgent()) as url,
        launch_browser(microphone, microphone="denied", playwright=playwright) as browser,
        open_page(browser, url) as page,
    ):
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("The microphone is not allowed")
        screenshot(page, "denied")


def test_a_missing_microphone_is_told(playwright: Playwright) -> None:
    with (
        serving(ScriptedAgent()) as url,
        launch_browser(microphone="absent", playwright=playwright) as browser,
        open_page(browser, url) as page,
    ):
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("No microphone found")


def test_a_page_that_is_not_secure_and_a_server_that_is_gone_are_told(browser: Browser) -> None:
    with serving(ScriptedAgent()) as url, open_page(browser, url) as page:
        page.evaluate("Object.defineProperty(window, 'isSecureContext', {value: false})")
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("may not use the microphone")
    with serving(ScriptedAgent()) as url, open_page(browser, url) as page:
        page.route("**/api/offer", lambda route: route.abort())
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("The server does not answer")


def test_heard_text_is_cut_by_letters_not_by_positions(browser: Browser) -> None:
    cases: list[tuple[list[str], str, list[list[str]]]] = [
        (["One two.", "Three."], "", [["", "One two."], ["", "Three."]]),
        (["One two.", "Three."], "One two. Thr", [["One two.", ""], ["Thr", "ee."]]),
        (["One  two."], "One two", [["One  two", "."]]),
        (["One"], "One and more", [["One", ""]]),
        ([], "heard", [["heard", ""]]),
        ([], "", []),
    ]
    with serving(ScriptedAgent()) as url, open_page(browser, url) as page:
        for clauses, heard, expected in cases:
            got = page.evaluate(
                "async (entry) => (await import('/conversation.js')).heardParts(entry)",
                {"clauses": clauses, "heard": heard},
            )
            assert got == expected
