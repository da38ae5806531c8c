"""The page in a real browser against a scripted agent on a real WebRTC connection."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Browser, expect

from tests.web.browser import open_page, wait_until
from tests.web.scripted_agent import ScriptedAgent
from tests.web.staging import INTERRUPTED, SCRIPT, screenshot, serving, start_call


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
        page.get_by_role("button", name="New call").click()
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


def test_junk_from_the_server_is_survived(browser: Browser) -> None:
    odd: list[Any] = [None, 7, [], {}, {"type": 7}, {"type": "state"}, {"type": "reply.done", "turn": 9}]
    with serving(ScriptedAgent(script=[*odd, *SCRIPT])) as url, open_page(browser, url) as page:
        start_call(page)
        expect(page.locator("#transcript .line")).to_have_count(5)


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
