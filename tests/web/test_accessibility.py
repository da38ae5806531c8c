"""The page for everybody: wide and on a phone, light and dark, before, during and after a call."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.axe import faults
from tests.web.browser import open_page, wait_until
from tests.web.scripted_agent import ScriptedAgent
from tests.web.staging import INTERRUPTED, SCRIPT, screenshot, serving, start_call
from voice_agent.errors import OfferError

WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def open_all(page: Page) -> None:
    """Nothing hidden may be wrong either."""
    for pane in page.locator("details").all():
        if pane.get_attribute("open") is None:
            pane.locator("summary").click()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_serious_is_found_before_during_and_after_a_call(
    browser: Browser, size: dict[str, Any], dark: bool
) -> None:
    agent = ScriptedAgent(script=SCRIPT, replies={"interrupt": INTERRUPTED})
    look = {**size, "color_scheme": "dark" if dark else "light", "reduced_motion": "reduce"}
    name = f"{'phone' if size is PHONE else 'wide'}-{'dark' if dark else 'light'}"
    with serving(agent) as url, open_page(browser, f"{url}?raw=1", **look) as page:
        screenshot(page, f"{name}-before")
        open_all(page)
        assert faults(page) == []
        start_call(page)
        expect(page.locator("#transcript .line")).to_have_count(5)
        wait_until(page, "voiceAgent.state.agent === 'speaking'")
        open_all(page)
        assert faults(page) == []
        screenshot(page, f"{name}-during")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        page.get_by_role("button", name="Interrupt").click()
        page.get_by_role("button", name="Mute").click()
        assert faults(page) == []
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#status")).to_have_text("Call ended")
        open_all(page)
        assert faults(page) == []
        screenshot(page, f"{name}-after")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_serious_is_found_beside_a_problem(browser: Browser, dark: bool) -> None:
    agent = ScriptedAgent(refuse=OfferError(503, "full", "all lines are busy"))
    look: dict[str, Any] = {**PHONE, "color_scheme": "dark" if dark else "light"}
    with serving(agent) as url, open_page(browser, url, **look) as page:
        page.get_by_role("button", name="Start talking").click()
        expect(page.get_by_role("alert")).to_contain_text("All lines are taken")
        assert faults(page) == []


def test_the_check_finds_what_is_wrong(browser: Browser) -> None:
    with serving(ScriptedAgent()) as url, open_page(browser, url) as page:
        page.evaluate(
            "document.getElementById('text').labels[0].remove(); document.getElementById('text').placeholder = ''"
        )
        assert any(fault.startswith("label (critical)") for fault in faults(page))


def test_people_who_want_less_motion_get_it(browser: Browser) -> None:
    agent = ScriptedAgent(script=[*SCRIPT[:4], {"type": "state", "user": "silent", "agent": "thinking"}])
    moving = "getComputedStyle(document.querySelector('.orb')).animationName"
    with serving(agent) as url:
        for motion, animation in (("reduce", "none"), ("no-preference", "breathe")):
            with open_page(browser, url, reduced_motion=motion) as page:
                start_call(page)
                expect(page.locator("#activity")).to_have_text("Thinking")
                assert page.evaluate(moving) == animation
