"""A browser for all tests of the page, with a tone as its microphone."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.web.browser import launch_browser
from tests.web.scripted_agent import use_loopback


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds of a 300 Hz tone at a quarter of full scale."""
    file = tmp_path_factory.mktemp("microphone") / "tone.wav"
    samples = (8192 * np.sin(2 * np.pi * 300 * np.arange(5 * 48_000) / 48_000)).astype("<i2")
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, 48_000, len(samples), "NONE", ""))
        out.writeframes(samples.tobytes())
    return file


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def browser(microphone: Path, playwright: Playwright) -> Iterator[Browser]:
    with launch_browser(microphone, loop=True, playwright=playwright) as launched:
        yield launched


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
