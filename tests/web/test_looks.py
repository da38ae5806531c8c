"""A long call on screens of all sizes: nothing scrolls sideways, nothing is cut off. Also makes docs/screenshots:

PAGE_SCREENSHOTS=docs/screenshots pytest tests/web/test_looks.py
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import open_page, wait_until
from tests.web.scripted_agent import ScriptedAgent
from tests.web.staging import report, screenshot, serving, start_call
from voice_agent.errors import OfferError

SERVER = {
    "voice": "en_US-joe-medium",
    "speed": 1.0,
    "language": "en",
    "prompt": "You are a friendly voice assistant on a live call. Answer in one or two short spoken sentences.",
}
TALK = [
    ("What is the capital of France?", "It is Paris."),
    ("Is it worth a visit in November?", "Yes. It is cool and quiet then, and the museums are less crowded."),
    (
        "And what can I see there in three days?",
        "Start with the Louvre, then walk along the Seine to the Eiffel Tower.",
    ),
]
STAGES = [
    (300, 95, 80, 60, 55, 0, 13),
    (300, 140, 110, 85, 60, 0, 12),
    (305, 130, 95, 40, 70, 0, 11),
    (210, 0, 0, 0, 0, 480, 14),
    (300, 150, 240, 130, 75, 0, 12),
    (300, 120, 90, 60, 50, 0, 12),
    (305, 110, 85, 55, 45, 0, 13),
    (300, 125, 100, 62, 48, 0, 12),
    (302, 260, 110, 95, 60, 0, 15),
]


def long_call() -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "session.started", "session_id": "call-1", "budget_ms": 800, "settings": SERVER}
    ]
    for turn, stages in enumerate(STAGES, 1):
        question, answer = TALK[(turn - 1) % len(TALK)]
        last = turn == len(STAGES)
        heard = "Start with the Louvre, then walk" if last else answer
        events += [
            {"type": "transcript.final", "turn": turn, "text": question},
            {"type": "reply.text", "turn": turn, "clause": 0, "text": answer},
            {"type": "turn.report", "report": report(turn, *stages, interrupted=turn == 4)},
            {"type": "reply.heard", "turn": turn, "text": heard},
        ]
        if not last:
            events.append({"type": "reply.done", "turn": turn, "interrupted": turn == 4, "heard_text": heard})
    return [*events, {"type": "state", "user": "silent", "agent": "speaking"}]


def beyond_the_edge(page: Page) -> list[str]:
    """Controls that are cut off, and `page` if it scrolls sideways."""
    found: list[str] = page.evaluate(
        """[...document.querySelectorAll('button, input, select, textarea, summary')].filter((one) => {
             const box = one.getBoundingClientRect();
             return box.width > 0 && (box.left < 0 || box.right > innerWidth + 0.5);
           }).map((one) => one.outerHTML.slice(0, 80))
           .concat(document.documentElement.scrollWidth > innerWidth ? ['page'] : [])"""
    )
    return found


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("wide-light", 1280, False), ("wide-dark", 1280, True), ("narrow-light", 390, False), ("narrow-dark", 390, True)],
)
def test_a_long_call_fits_the_screen(browser: Browser, name: str, width: int, dark: bool) -> None:
    look: dict[str, Any] = {
        "viewport": {"width": width, "height": 860},
        "color_scheme": "dark" if dark else "light",
        "reduced_motion": "reduce",
    }
    with serving(ScriptedAgent(script=long_call())) as url, open_page(browser, url, **look) as page:
        start_call(page)
        expect(page.locator(".column")).to_have_count(len(STAGES))
        wait_until(page, "voiceAgent.state.agent === 'speaking'")
        wait_until(page, "document.getElementById('agent-level').style.transform > 'scaleX(0.2'")
        page.evaluate("document.activeElement.blur()")
        assert beyond_the_edge(page) == []
        screenshot(page, f"call-{name}")
        page.locator("#settings summary").click()
        page.locator("#save summary").click()
        page.evaluate("scrollTo(0, 0)")
        screenshot(page, f"settings-{name}")
        for smaller in (width, 900, 768, 320):
            page.set_viewport_size({"width": smaller, "height": 860})
            assert beyond_the_edge(page) == [], f"{smaller} pixels are too few"


def test_the_line_of_the_budget_lies_where_the_columns_say(browser: Browser) -> None:
    with serving(ScriptedAgent(script=long_call())) as url, open_page(browser, url) as page:
        start_call(page)
        expect(page.locator(".column")).to_have_count(len(STAGES))
        base = page.locator("#strip").evaluate("(strip) => strip.getBoundingClientRect().bottom - 1")
        line = page.locator(".budget-line").evaluate("(line) => line.getBoundingClientRect().bottom")
        for column, stages in zip(page.locator(".column").all(), STAGES, strict=True):
            top = column.evaluate("(column) => column.firstElementChild.getBoundingClientRect().top")
            assert (base - top) / (base - line) == pytest.approx(sum(stages) / 800, rel=0.05)
        expect(page.locator("#trend-text")).to_have_text("Median 651 ms over 9 turns; 2 over the budget of 800 ms.")


def test_a_lost_connection_on_a_phone(browser: Browser) -> None:
    agent = ScriptedAgent(script=long_call())
    with serving(agent) as url, open_page(browser, url, viewport={"width": 390, "height": 844}) as page:
        start_call(page)
        expect(page.locator(".column")).to_have_count(len(STAGES))
        agent.refuse = OfferError(503, "full", "all lines are busy")
        agent.drop()
        expect(page.get_by_role("alert")).to_contain_text("Connecting again by itself")
        assert beyond_the_edge(page) == []
        screenshot(page, "reconnecting-narrow-light", whole=False)


def test_the_page_before_a_call(browser: Browser) -> None:
    with serving(ScriptedAgent()) as url, open_page(browser, url, viewport={"width": 390, "height": 844}) as page:
        assert beyond_the_edge(page) == []
        screenshot(page, "before-narrow-light")
