"""The page and the real agent: settings are taken, and a lost connection costs neither words nor memory."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from playwright.sync_api import Page

from tests.web.browser import launch_browser, open_page, wait_until
from voice_agent.bench.agent_process import AgentProcess

PATIENCE = 90.0

PEERS = """
const real = RTCPeerConnection;
window.peers = [];
window.RTCPeerConnection = class extends real {
  constructor(...given) { super(...given); window.peers.push(this); }
};
null;
"""
LOSE = """{
  const peer = window.peers.at(-1);
  Object.defineProperty(peer, "connectionState", {value: "failed"});
  peer.dispatchEvent(new Event("connectionstatechange"));
}"""


def messages(agent: AgentProcess, page: Page) -> list[dict[str, Any]]:
    session = page.evaluate("voiceAgent.state.session_id")
    with urllib.request.urlopen(f"{agent.url}/api/sessions/{session}/history") as answer:
        found: list[dict[str, Any]] = json.load(answer)["messages"]
    return found


def ask(page: Page, text: str) -> None:
    page.get_by_label("Type instead of talking").fill(text)
    page.get_by_role("button", name="Send").click()
    wait_until(
        page, "voiceAgent.transcript.at(-1)?.role === 'agent' && voiceAgent.transcript.at(-1)?.done", timeout=PATIENCE
    )


def test_settings_and_memory_survive_a_lost_connection(agent: AgentProcess) -> None:
    with launch_browser() as browser, open_page(browser, f"{agent.url}/?raw=1") as page:
        page.evaluate(PEERS)
        page.get_by_role("button", name="Start talking").click()
        wait_until(page, "voiceAgent.state.page === 'live'", timeout=PATIENCE)
        page.get_by_role("button", name="Mute").click()
        wait_until(page, "document.getElementById('prompt').value.includes('phone call')", timeout=PATIENCE)
        page.locator("#settings summary").click()
        page.get_by_label("Instructions to the agent").fill("Answer with one word.")
        page.get_by_label("Instructions to the agent").blur()
        wait_until(page, "document.getElementById('settings-told').textContent.includes('next turn')", timeout=PATIENCE)
        ask(page, "My name is Ada. Say hello.")
        first = page.evaluate("voiceAgent.state.session_id")
        before = [message["content"] for message in messages(agent, page)]
        assert before[:2] == ["Answer with one word.", "My name is Ada. Say hello."]
        page.evaluate(LOSE)
        lively = f"voiceAgent.state.page === 'live' && voiceAgent.state.session_id !== '{first}'"
        wait_until(page, lively, timeout=PATIENCE)
        assert page.evaluate("voiceAgent.state.continued")
        ask(page, "What is my name?")
        after = [message["content"] for message in messages(agent, page)]
        assert after[: len(before) + 1] == [*before, "What is my name?"]
        roles = [entry["role"] for entry in page.evaluate("voiceAgent.transcript")]
        assert roles == ["user", "agent", "note", "user", "agent"]
        page.get_by_role("button", name="Hang up").click()
        wait_until(page, "voiceAgent.state.page === 'ended'", timeout=PATIENCE)
