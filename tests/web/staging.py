"""What the page's tests share: a scripted call, and the server in front of a scripted agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.server.helpers import WEB
from tests.web.browser import serve_in_thread, wait_until
from tests.web.scripted_agent import ScriptedAgent
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


@contextmanager
def serving(agent: ScriptedAgent, **server: Any) -> Iterator[str]:
    app = create_app(agent, Settings(server=ServerSettings(**server)), Metrics(), WEB)
    with serve_in_thread(app, **server) as (url, loop):
        agent.loop = loop
        try:
            yield url
        finally:
            asyncio.run_coroutine_threadsafe(agent.close(), loop).result(10)


def start_call(page: Page) -> None:
    page.get_by_role("button", name="Start talking").click()
    wait_until(page, "voiceAgent.state.page === 'live'")


def screenshot(page: Page, name: str, *, whole: bool = True) -> None:
    """Kept only where somebody wants to look: PAGE_SCREENSHOTS=DIR."""
    if folder := os.environ.get("PAGE_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)
