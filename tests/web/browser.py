"""A real Chromium for tests, with a WAV file as its microphone, and the server it talks to in a thread.

A browser launch has one microphone file; it begins to play when the page opens the microphone. 48 kHz mono PCM16 is
taken as it is. Pages that should send it undistorted are opened with `?raw=1`.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from starlette.types import ASGIApp

from voice_agent.server.runner import run_server
from voice_agent.settings import ServerSettings, Settings

_QUIET = (
    "--no-sandbox",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
)


def chromium_path() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("there is no Chromium on this machine: run `make setup` first")
    return found


def browser_arguments(
    wav: Path | None, *, microphone: Literal["granted", "denied", "absent"] = "granted", loop: bool = False
) -> list[str]:
    arguments = list(_QUIET)
    arguments.append("--use-fake-ui-for-media-stream" + ("=deny" if microphone == "denied" else ""))
    if microphone != "absent":
        arguments.append("--use-fake-device-for-media-stream")
        if wav is not None:
            tail = "" if loop else "%noloop"
            arguments.append(f"--use-file-for-fake-audio-capture={wav.resolve()}{tail}")
    return arguments


@contextmanager
def launch_browser(
    wav: Path | None = None,
    *,
    microphone: Literal["granted", "denied", "absent"] = "granted",
    loop: bool = False,
    playwright: Playwright | None = None,
) -> Iterator[Browser]:
    """Headless Chromium. Without `wav` the microphone beeps; `absent` means no microphone at all.

    A thread can have one `sync_playwright()` at a time (and no `asyncio.run` meanwhile): pass it for a second browser.
    """
    if playwright is None:
        with sync_playwright() as own, launch_browser(wav, microphone=microphone, loop=loop, playwright=own) as browser:
            yield browser
        return
    browser = playwright.chromium.launch(
        executable_path=chromium_path(),
        headless=True,
        args=browser_arguments(wav, microphone=microphone, loop=loop),
        ignore_default_args=["--mute-audio"],
    )
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def open_page(browser: Browser, url: str, **context: Any) -> Iterator[Page]:
    """The page at `url`; console errors and uncaught exceptions fail the test."""
    opened = browser.new_context(**context)
    page = opened.new_page()
    page.set_default_timeout(20_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if _is_fault(message) else None)
    try:
        page.goto(url)
        yield page
        assert not faults, faults
    finally:
        opened.close()


def wait_until(page: Page, condition: str, *, timeout: float = 20.0) -> None:
    """Wait until the JavaScript expression (awaited if it is a promise) is true in the page; seconds.

    Playwright's own `wait_for_function` evaluates text inside the page, which the page's content policy forbids.
    """
    page.evaluate(
        """async (milliseconds) => {
          const deadline = performance.now() + milliseconds;
          while (!(await (CONDITION))) {
            if (performance.now() > deadline) throw new Error('not within ' + milliseconds + ' ms');
            await new Promise((resolve) => setTimeout(resolve, 20));
          }
        }""".replace("CONDITION", condition),
        timeout * 1000,
    )


def _is_fault(message: Any) -> bool:
    # The browser itself reports every 503 as an error; whether the page handles it is what tests look at.
    return message.type == "error" and "Failed to load resource" not in message.text


@contextmanager
def serve_in_thread(
    app: ASGIApp, *, tls: ssl.SSLContext | None = None, **server: Any
) -> Iterator[tuple[str, asyncio.AbstractEventLoop]]:
    """(url, the server's loop) of the app on a free loopback port, on a loop in its own thread.

    Playwright's synchronous API needs the test's thread for itself.
    """
    settings = Settings(server=ServerSettings(**{"port": 0, **server}))
    started = threading.Event()
    told: dict[str, Any] = {}

    async def main() -> None:
        told["stop"], told["loop"] = asyncio.Event(), asyncio.get_running_loop()

        def on_started(url: str) -> None:
            told["url"] = url
            started.set()

        await run_server(app, settings, on_started=on_started, stop=told["stop"], tls=tls)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            told["error"] = error
        finally:
            started.set()

    thread = threading.Thread(target=run, name="test server")
    thread.start()
    started.wait()
    try:
        if "error" not in told:
            yield told["url"], told["loop"]
            told["loop"].call_soon_threadsafe(told["stop"].set)
    except BaseException:
        told["loop"].call_soon_threadsafe(told["stop"].set)
        raise
    finally:
        thread.join()
    if "error" in told:
        raise told["error"]
