"""Settings, devices, mute and volume; and what can be kept of a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.web.browser import open_page, wait_until
from tests.web.scripted_agent import ScriptedAgent
from tests.web.staging import INTERRUPTED, SCRIPT, serving, start_call
from voice_agent.report import read_report

SERVER = {"voice": "en_US-joe-medium", "speed": 1.0, "language": "en", "prompt": "Be friendly."}
STARTED: dict[str, Any] = {**SCRIPT[0], "settings": SERVER}
TAKEN: list[dict[str, Any]] = [{"type": "settings", "speed": None, "language": None, "prompt": None}]


def choices(agent: ScriptedAgent) -> list[dict[str, Any]]:
    return [message for message in agent.received if message["type"] == "settings"]


def open_settings(page: Page) -> None:
    page.locator("#settings summary").click()


def test_what_the_server_has_is_shown_and_only_own_choices_are_sent(browser: Browser) -> None:
    agent = ScriptedAgent(script=[STARTED], replies={"settings": TAKEN})
    with serving(agent) as url, open_page(browser, url) as page:
        open_settings(page)
        start_call(page)
        expect(page.get_by_label("Instructions to the agent")).to_have_value("Be friendly.")
        expect(page.get_by_label("You speak")).to_have_value("en")
        expect(page.locator("#voice")).to_have_text("en_US-joe-medium (this server has no other)")
        assert choices(agent) == []
        page.get_by_label("You speak").select_option("de")
        expect(page.locator("#settings-told")).to_contain_text("from the next turn on")
        page.get_by_label("Instructions to the agent").fill("Speak like a pirate.")
        page.get_by_label("Instructions to the agent").blur()
        wait_until(page, "document.getElementById('settings-told').textContent.includes('next turn')")
        page.get_by_role("button", name="Hang up").click()
        assert choices(agent) == [
            {"type": "settings", "language": "de"},
            {"type": "settings", "prompt": "Speak like a pirate."},
        ]

        page.reload()  # choices are kept in the browser and sent as soon as a call begins
        open_settings(page)
        expect(page.get_by_label("You speak")).to_have_value("de")
        start_call(page)
        wait_until(page, "document.getElementById('settings-told').textContent.includes('next turn')")
        assert choices(agent)[2] == {"type": "settings", "language": "de", "prompt": "Speak like a pirate."}
        page.get_by_role("button", name="Back to the server's own").click()
        expect(page.get_by_label("You speak")).to_have_value("en")
        expect(page.locator("#settings-told")).to_contain_text("from the next turn on")
        assert choices(agent)[3] == {"type": "settings", "speed": 1.0, "language": "en", "prompt": "Be friendly."}


def test_a_refused_choice_is_told(browser: Browser) -> None:
    refused = [{"type": "error", "code": "bad_message", "message": "`speed` must be a number"}]
    agent = ScriptedAgent(script=[STARTED], replies={"settings": refused})
    with serving(agent) as url, open_page(browser, url) as page:
        open_settings(page)
        start_call(page)
        page.get_by_label("Speaking speed").fill("2")
        page.get_by_label("Speaking speed").dispatch_event("change")
        expect(page.locator("#settings-told")).to_have_text("Not taken: `speed` must be a number")


def test_muting_volume_and_another_microphone(browser: Browser) -> None:
    agent = ScriptedAgent(script=[STARTED])
    with serving(agent) as url, open_page(browser, f"{url}?raw=1") as page:
        open_settings(page)
        start_call(page)
        wait_until(page, "document.getElementById('user-level').style.transform > 'scaleX(0.2'")
        page.get_by_role("button", name="Mute").click()
        expect(page.get_by_role("button", name="Mute")).to_have_attribute("aria-pressed", "true")
        page.wait_for_timeout(500)  # what was on its way has arrived
        agent.loudest = 0
        page.wait_for_timeout(500)
        assert agent.loudest < 100, "the agent hears nothing"

        names = page.get_by_label("Microphone").locator("option").all_inner_texts()
        assert len(names) > 1
        page.get_by_label("Microphone").select_option(index=1)
        page.wait_for_timeout(500)
        assert agent.loudest < 100, "the other microphone is muted, too"
        page.get_by_role("button", name="Mute").click()
        wait_until(page, "document.getElementById('user-level').style.transform > 'scaleX(0.2'")
        expect(page.get_by_label("Microphone")).to_have_js_property("selectedIndex", 1)

        page.get_by_label("Volume").fill("40")
        assert page.evaluate("document.getElementById('speaker').volume") == 0.4
        expect(page.locator("#volume-value")).to_have_text("40 %")
        page.get_by_label("Speaker", exact=True).select_option(index=1)
        wait_until(page, "document.getElementById('speaker').sinkId !== ''")


def test_the_transcript_the_report_and_the_trace_can_be_kept(browser: Browser, tmp_path: Path) -> None:
    agent = ScriptedAgent(script=SCRIPT, replies={"interrupt": INTERRUPTED})
    agent.records["call-1"] = {"session_id": "call-1", "turns": [], "messages": []}
    permitted = {"permissions": ["microphone", "clipboard-read", "clipboard-write"]}
    with serving(agent) as url, open_page(browser, url, **permitted) as page:
        page.locator("#save summary").click()
        expect(page.get_by_role("button", name="Copy transcript")).to_be_disabled()
        start_call(page)
        page.get_by_role("button", name="Interrupt").click()
        expect(page.locator("#transcript span.note")).to_have_count(1)
        page.get_by_role("button", name="Hang up").click()

        def download(name: str) -> str:
            with page.expect_download() as downloading:
                page.get_by_role("button", name=f"Download {name}").click()
            file = tmp_path / downloading.value.suggested_filename
            downloading.value.save_as(file)
            assert file.name.startswith("voice-agent-call-1-")
            return file.read_text(encoding="utf-8")

        page.get_by_role("button", name="Copy transcript").click()
        expect(page.locator("#save-told")).to_have_text("Transcript copied.")
        transcript = page.evaluate("navigator.clipboard.readText()")
        assert transcript == download("transcript")
        assert transcript.splitlines()[2:4] == [
            "You: And what can I see there in three days?",
            "Agent: Start with the Louvre, then walk [not heard: along the Seine to the Eiffel Tower.]",
        ]
        assert json.loads(download("report")) == {"calls": [agent.records["call-1"]]}
        lines = [json.loads(line) for line in download("trace").splitlines()]
        assert [line["message"] for line in lines if line["kind"] == "message"] == [*SCRIPT, *INTERRUPTED]
        assert {"kind": "history", "history": agent.records["call-1"]} in lines
        read = read_report(tmp_path / "voice-agent-call-1-trace.jsonl")
        assert [turn["voice_to_voice_ms"] for turn in read.turns] == [652.6, 870]
        agent.records.clear()
        assert [turn["turn"] for turn in json.loads(download("report"))["calls"][0]["turns"]] == [1, 2]
