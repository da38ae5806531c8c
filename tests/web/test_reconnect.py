"""Connections that are lost: the page calls again by itself, says so, and keeps the words in order."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.web.browser import open_page, wait_until
from tests.web.scripted_agent import ScriptedAgent
from tests.web.staging import report, screenshot, serving, start_call
from voice_agent.errors import OfferError

LOSSES = 10


def connection(number: int, *, continued: bool = True) -> list[dict[str, Any]]:
    """What one connection tells: a whole turn, and one that the loss cuts off. The server counts its turns from 1."""
    return [
        {"type": "session.started", "session_id": f"call-{number}", "budget_ms": 800, "continued": continued},
        {"type": "transcript.final", "turn": 1, "text": f"Question {number}"},
        {"type": "reply.text", "turn": 1, "clause": 0, "text": f"Answer {number}"},
        {"type": "turn.report", "report": report(1, 300, 100, 90, 60, 45, 0, 12)},
        {"type": "reply.done", "turn": 1, "interrupted": False, "heard_text": f"Answer {number}"},
        {"type": "transcript.partial", "turn": 2, "text": f"Begun {number}"},
    ]


def told(page: Page) -> list[str]:
    lines: list[str] = page.locator("#transcript .words").all_inner_texts()
    return [line.strip() for line in lines]


def test_ten_losses_in_a_row_keep_the_words_in_order(browser: Browser) -> None:
    agent = ScriptedAgent(scripts=[connection(number, continued=number > 1) for number in range(1, LOSSES + 2)])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        expected = ["Question 1", "Answer 1", "Begun 1"]
        for number in range(2, LOSSES + 2):
            wait_until(page, f"voiceAgent.transcript.at(-1)?.text === 'Begun {number - 1}'")
            assert told(page) == expected
            agent.drop()
            expected += ["Connected again.", f"Question {number}", f"Answer {number}", f"Begun {number}"]
        wait_until(page, f"voiceAgent.transcript.at(-1)?.text === 'Begun {LOSSES + 1}'")
        assert told(page) == expected
        assert page.evaluate("voiceAgent.state.page") == "live"
        expect(page.locator("#problem")).to_be_hidden()
        continues = [offer.get("continues") for offer in agent.offers]
        assert continues == [None, *(f"call-{number}" for number in range(1, LOSSES + 1))]
        turns = [one["turn"] for one in page.evaluate("voiceAgent.reports")]
        assert turns == [1 + 2 * number for number in range(LOSSES + 1)], "turns go on counting"
        expect(page.locator(".column")).to_have_count(LOSSES + 1)


def test_it_says_that_it_connects_again_and_waits_for_a_line(browser: Browser) -> None:
    agent = ScriptedAgent(scripts=[connection(1, continued=False), connection(2)])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        wait_until(page, "voiceAgent.transcript.length === 3")
        agent.refuse = OfferError(503, "full", "all lines are busy")
        agent.drop()
        expect(page.locator("#status")).to_have_text("Connection lost, connecting again …")
        expect(page.get_by_role("alert")).to_contain_text("Connecting again by itself")
        expect(page.get_by_role("button", name="Send")).to_be_disabled()
        screenshot(page, "reconnecting")
        agent.refuse = None
        wait_until(page, "voiceAgent.state.page === 'live'")
        expect(page.locator("#problem")).to_be_hidden()
        expect(page.locator("#transcript .line.note")).to_have_text("Connected again.")


def test_an_agent_that_forgot_is_told(browser: Browser) -> None:
    agent = ScriptedAgent(scripts=[connection(1, continued=False), connection(2, continued=False)])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        wait_until(page, "voiceAgent.transcript.length === 3")
        agent.drop()
        expect(page.locator("#transcript .line.note")).to_contain_text("does not remember")


def test_hanging_up_ends_the_attempts(browser: Browser) -> None:
    agent = ScriptedAgent(scripts=[connection(1)])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        agent.refuse = OfferError(503, "full", "all lines are busy")
        agent.drop()
        wait_until(page, "voiceAgent.state.page === 'reconnecting'")
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#status")).to_have_text("Call ended")
        agent.refuse = None
        page.wait_for_timeout(3000)  # longer than the pause before the next attempt would be
        assert page.evaluate("voiceAgent.state.page") == "ended"
        assert agent.peers == {}


def test_a_connection_that_does_not_come_back_can_be_taken_up_later(browser: Browser) -> None:
    agent = ScriptedAgent(scripts=[connection(1), connection(2)])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        wait_until(page, "voiceAgent.transcript.length === 3")
        page.route("**/api/offer", lambda route: route.abort())
        agent.drop()
        wait_until(page, "voiceAgent.state.page === 'reconnecting'")
        page.evaluate("{ const now = performance.now.bind(performance); performance.now = () => now() + 200000; }")
        expect(page.get_by_role("alert")).to_contain_text("The connection did not come back", timeout=15_000)
        assert told(page)[:3] == ["Question 1", "Answer 1", "Begun 1"]
        page.unroute("**/api/offer")
        expect(page.get_by_role("button", name="New call")).to_be_visible()
        page.get_by_role("button", name="Reconnect").click()
        wait_until(page, "voiceAgent.transcript.at(-1)?.text === 'Begun 2'")
        assert told(page)[:4] == ["Question 1", "Answer 1", "Begun 1", "Connected again."]


def test_an_agent_that_falls_silent_is_called_again_before_the_browser_notices(browser: Browser) -> None:
    agent = ScriptedAgent(scripts=[connection(1), connection(2)])
    with serving(agent) as url, open_page(browser, url) as page:
        start_call(page)
        wait_until(page, "voiceAgent.transcript.length === 3")
        agent.silent = True  # no packet comes and nobody says so, as after a power cut at the other end
        wait_until(page, "voiceAgent.state.page === 'reconnecting'")
        agent.silent = False
        wait_until(page, "voiceAgent.transcript.at(-1)?.text === 'Begun 2'")
