"""Each failure on the page: its own words, and a way out."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, expect

from tests.web.browser import launch_browser, open_page, wait_until
from tests.web.scripted_agent import ScriptedAgent
from tests.web.staging import SCRIPT, screenshot, serving, start_call
from voice_agent.errors import OfferError

# Lets a test unplug what the page opened, and decides what it may open next.
DEVICES = """
window.opened = [];
window.plugged = true;
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (constraints) => {
  if (!window.plugged) throw new DOMException("none", window.refusal ?? "NotFoundError");
  const stream = await open(constraints);
  window.opened.push(stream.getAudioTracks()[0]);
  return stream;
};
window.unplug = () => {
  const track = window.opened.at(-1);
  track.stop();
  track.dispatchEvent(new Event("ended"));
};
null;  // a function as the last value would be called
"""


def start(page: Page) -> None:
    page.get_by_role("button", name="Start talking").click()


def test_a_full_server_says_when_to_come_back(browser: Browser) -> None:
    agent = ScriptedAgent(refuse=OfferError(503, "busy", "all lines are taken"))
    with serving(agent) as url, open_page(browser, url) as page:
        page.get_by_role("button", name="Start talking").click()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("All lines are taken")
        expect(alert).to_contain_text(re.compile(r"Please try again in [12] s\."))
        screenshot(page, "busy")
        expect(alert).to_contain_text("You can try again now.")
        assert page.evaluate("voiceAgent.state.page") == "failed", "nobody is put on the air without asking"
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
        expect(page.get_by_role("progressbar")).to_have_js_property("value", 0)
        agent.loading = ["voice"]
        expect(page.locator("#status")).to_have_text("Loading voice …")
        expect(page.get_by_role("progressbar")).to_have_js_property("value", 1)
        expect(page.get_by_role("progressbar")).to_have_js_property("max", 2)
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


def test_without_a_microphone_one_can_type(browser: Browser) -> None:
    answer = [{"type": "transcript.final", "turn": 1, "text": "Hello"}]
    agent = ScriptedAgent(script=SCRIPT[:1], replies={"text": answer})
    with serving(agent) as url, open_page(browser, url) as page:
        page.evaluate(DEVICES)
        page.evaluate("window.plugged = false")
        start(page)
        expect(page.get_by_role("alert")).to_contain_text("No microphone found")
        page.get_by_role("button", name="Type instead").click()
        expect(page.locator("#activity")).to_have_text("Waiting for your text")
        page.get_by_label("Type instead of talking").fill("Hello")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#transcript .line")).to_contain_text("Hello")
        wait_until(page, "voiceAgent.statistics().then((one) => one && one.totalAudioEnergy > 0.01)")


def test_a_microphone_that_is_in_use_elsewhere_is_told(browser: Browser) -> None:
    with serving(ScriptedAgent()) as url, open_page(browser, url) as page:
        page.evaluate(DEVICES)
        page.evaluate("window.plugged = false; window.refusal = 'NotReadableError'")
        start(page)
        expect(page.get_by_role("alert")).to_contain_text("Another program may be using it")
        page.evaluate("window.plugged = true")
        page.get_by_role("button", name="Try again").click()
        wait_until(page, "voiceAgent.state.page === 'live'")


def test_an_unplugged_microphone_is_replaced_by_another(browser: Browser) -> None:
    agent = ScriptedAgent(script=SCRIPT[:1])
    with serving(agent) as url, open_page(browser, f"{url}?raw=1") as page:
        page.evaluate(DEVICES)
        start_call(page)
        page.evaluate("window.unplug()")
        expect(page.get_by_role("alert")).to_contain_text("The agent now hears another one")
        agent.loudest = 0
        wait_until(page, "document.getElementById('user-level').style.transform > 'scaleX(0.2'")
        page.wait_for_timeout(500)
        assert agent.loudest > 6000, "the other microphone is heard"
        assert page.evaluate("voiceAgent.state.page") == "live"


def test_an_unplugged_microphone_without_another_is_waited_for(browser: Browser) -> None:
    with serving(ScriptedAgent(script=SCRIPT[:1])) as url, open_page(browser, url) as page:
        page.evaluate(DEVICES)
        start_call(page)
        page.evaluate("window.plugged = false; window.unplug()")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The microphone was unplugged")
        expect(alert).to_contain_text("until then you can type")
        screenshot(page, "unplugged")
        assert page.evaluate("voiceAgent.state.page") == "live", "the call goes on"
        page.evaluate("window.plugged = true; navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
        expect(page.locator("#problem")).to_be_hidden()
        expect(page.locator("#activity")).to_have_text("Listening")


def test_blocked_sound_needs_one_click(browser: Browser) -> None:
    with serving(ScriptedAgent(script=SCRIPT[:1])) as url, open_page(browser, url) as page:
        page.evaluate("""
          const play = HTMLMediaElement.prototype.play;
          HTMLMediaElement.prototype.play = function () {
            HTMLMediaElement.prototype.play = play;
            return Promise.reject(new DOMException("no gesture", "NotAllowedError"));
          };
          null;""")
        start_call(page)
        expect(page.get_by_role("alert")).to_contain_text("The browser blocks the sound")
        page.get_by_role("button", name="Play the sound").click()
        expect(page.locator("#problem")).to_be_hidden()
        assert page.evaluate("voiceAgent.state.page") == "live"


def test_a_browser_without_calls_and_a_server_that_breaks_are_told(browser: Browser) -> None:
    with serving(ScriptedAgent()) as url:
        with open_page(browser, url) as page:
            page.evaluate("delete window.RTCPeerConnection")
            start(page)
            expect(page.get_by_role("alert")).to_contain_text("This browser cannot make calls")
        with open_page(browser, url) as page:
            page.route("**/api/offer", lambda route: route.fulfill(status=500, body="<h1>Oops</h1>"))
            start(page)
            expect(page.get_by_role("alert")).to_contain_text("The server answered 500.")
            expect(page.get_by_role("button", name="Reload the page")).to_be_visible()


def test_an_agent_that_breaks_is_told(browser: Browser) -> None:
    ending = [{"type": "session.ended", "reason": "error"}]
    with serving(ScriptedAgent(script=SCRIPT[:1], replies={"text": ending})) as url, open_page(browser, url) as page:
        start_call(page)
        page.get_by_label("Type instead of talking").fill("Break")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("The agent ended the call")
        expect(page.get_by_role("button", name="New call")).to_be_enabled()


def test_a_network_without_a_path_for_sound_is_told(browser: Browser) -> None:
    with serving(ScriptedAgent()) as url, open_page(browser, url) as page:
        page.evaluate("""
          const real = RTCPeerConnection;
          window.RTCPeerConnection = class extends real {
            get connectionState() { return "failed"; }
            setRemoteDescription() { this.dispatchEvent(new Event("connectionstatechange")); return Promise.resolve(); }
          };
          null;""")
        start(page)
        expect(page.get_by_role("alert")).to_contain_text("The sound does not get through")


def test_cancelling_while_the_browser_asks_leaves_no_microphone_open(browser: Browser) -> None:
    agent = ScriptedAgent()
    with serving(agent) as url, open_page(browser, url) as page:
        page.evaluate(DEVICES)
        page.evaluate("""
          const ask = navigator.mediaDevices.getUserMedia;
          window.answer = null;
          navigator.mediaDevices.getUserMedia = (constraints) =>
            new Promise((resolve) => { window.answer = () => resolve(ask(constraints)); });
          null;""")
        start(page)
        wait_until(page, "window.answer !== null")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#status")).to_have_text("Call ended")
        page.evaluate("window.answer()")
        wait_until(page, "window.opened.length === 1 && window.opened[0].readyState === 'ended'")
        assert agent.offers == []
