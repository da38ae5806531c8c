"""axe-core, the accessibility checker, from npm: fetched once into the cache folder, run inside the page."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

VERSION = "4.14.1"


@functools.cache
def axe_source() -> str:
    """Skips the test, saying why, where npm is missing or cannot fetch it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voice-agent" / f"axe-{VERSION}"
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("accessibility is not checked: there is no npm to fetch axe-core with (apt-get install npm)")
        cache.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(cache), "--no-audit", "--no-fund", "--ignore-scripts"]
        fetched = subprocess.run([*command, f"axe-core@{VERSION}"], capture_output=True, text=True, timeout=120)
        if fetched.returncode != 0:
            pytest.skip(f"accessibility is not checked: npm could not fetch axe-core: {fetched.stderr.strip()[-300:]}")
    return script.read_text(encoding="utf-8")


def faults(page: Page) -> list[str]:
    """Serious and critical findings, one line each."""
    page.evaluate(axe_source())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert found["passes"], "axe looked at nothing"
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: {node['html'][:160]}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
