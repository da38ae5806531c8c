"""A phone's way in, with a real Chromium: scan the code, pass the warning, join, call; and a link that was used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.lan.test_access import HOST, link_in
from tests.server.helpers import WEB
from tests.web.browser import launch_browser, open_page, serve_in_thread, wait_until
from tests.web.scripted_agent import ScriptedAgent, use_loopback
from voice_agent.lan.access import LanAccess
from voice_agent.server.app import create_app
from voice_agent.server.joining import COOKIE
from voice_agent.server.metrics import Metrics
from voice_agent.settings import ServerSettings, Settings


def test_a_phone_scans_joins_and_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    shown: list[str] = []
    server = ServerSettings(lan=True, host=HOST, port=0)
    access = LanAccess(server, tmp_path, shown.append)
    agent = ScriptedAgent(
        script=[{"type": "session.started", "session_id": "call-1", "greeting": "", "budget_ms": 800}]
    )
    app = create_app(agent, Settings(server=server), Metrics(), WEB, entrance=access.entrance)
    with (
        serve_in_thread(app, tls=access.context(), lan=True, host=HOST) as (url, loop),
        launch_browser() as browser,
    ):
        try:
            access.opened(int(url.rstrip("/").rpartition(":")[2]))
            base, key = link_in(shown[0])
            assert base == url
            join_and_call(browser, base, key)
            a_spent_link_says_so_and_the_next_one_works(browser, base, key, shown)
        finally:
            asyncio.run_coroutine_threadsafe(agent.close(), loop).result(10)


def join_and_call(browser: Browser, base: str, key: str) -> None:
    with open_page(browser, f"{base}#join={key}", ignore_https_errors=True) as page:
        button = page.get_by_role("button", name="Start talking")
        expect(button).to_be_visible()
        assert page.url == base  # the key is gone from the address and so from bookmarks
        assert page.evaluate("document.cookie") == ""
        assert cookie_of(page.context)["httpOnly"]
        wait_until(page, "window.voiceAgent !== undefined")
        button.click()
        wait_until(page, "voiceAgent.state.page === 'live'")
        page.reload()
        expect(button).to_be_visible()


def a_spent_link_says_so_and_the_next_one_works(browser: Browser, base: str, key: str, shown: list[str]) -> None:
    with open_page(browser, f"{base}#join={key}", ignore_https_errors=True) as page:
        expect(page.get_by_text("used already")).to_be_visible()
        _, fresh = link_in(shown[-1])
        page.goto(f"{base}#join={fresh}")  # only the fragment changes: the same document goes on
        expect(page.get_by_role("button", name="Start talking")).to_be_visible()
    with open_page(browser, base, ignore_https_errors=True) as page:
        expect(page.get_by_text("Scan the QR code")).to_be_visible()


def cookie_of(context: BrowserContext) -> dict[str, object]:
    (cookie,) = context.cookies()
    assert cookie.get("name") == COOKIE
    assert (cookie.get("secure"), cookie.get("sameSite")) == (True, "Strict")
    return dict(cookie)
