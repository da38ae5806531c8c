"""The wheel is complete: built here, installed elsewhere, it runs without the checkout."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel in it; its dependencies are those of this interpreter."""
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    return folder


def environment(installed: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOICE_AGENT_")}
    if model_dir := os.environ.get("VOICE_AGENT_MODEL_DIR"):
        kept["VOICE_AGENT_MODEL_DIR"] = model_dir
    return {**kept, "PYTHONPATH": str(installed)}


def run(installed: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=installed.parent, env=environment(installed), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_holds_the_page_the_manifest_and_nothing_that_is_not_needed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "voice_agent/_web/index.html" in names
    assert "voice_agent/_models/manifest.toml" in names
    assert "voice_agent/py.typed" in names, "the annotations are for those who use the library, too"
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"voice_agent"}
    page = {str(path.relative_to(ROOT / "web")) for path in (ROOT / "web").rglob("*") if path.is_file()}
    assert page <= {name.removeprefix("voice_agent/_web/") for name in names}


def test_it_is_the_wheel_that_runs_and_not_the_checkout(installed: Path) -> None:
    where = run(installed, sys.executable, "-c", "import voice_agent; print(voice_agent.__file__)")
    assert Path(where.strip()).is_relative_to(installed)


def test_the_command_tells_its_version(installed: Path, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    assert run(installed, str(installed / "bin" / "voice-agent"), "--version") == f"voice-agent {version}\n"


def test_it_lists_its_models(installed: Path) -> None:
    listing = run(installed, str(installed / "bin" / "voice-agent"), "models", "list")
    assert "silero-vad" in listing


def test_an_agent_can_be_made_from_it(installed: Path) -> None:
    script = "from voice_agent import Agent; print(Agent('Be brief.', port=9000).settings.server.port)"
    assert run(installed, sys.executable, "-c", script) == "9000\n"


@contextmanager
def serving(installed: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The installed agent on a free port: its process and its address."""
    command = [str(installed / "bin" / "voice-agent"), "serve", "--port", "0", "--profile", "small"]
    process = subprocess.Popen(
        [*command, "--llm", "scripted"],
        cwd=installed.parent,
        env=environment(installed),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def test_it_serves_its_page(installed: Path, weights: Path) -> None:
    with serving(installed) as (process, url), httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        assert client.get("/").text == (ROOT / "web" / "index.html").read_text()
        assert client.get("/app.js").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
