"""`voice-agent bench` as a user runs it, against the echo agent."""

from __future__ import annotations

import contextlib
import json
import wave
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.bench.echo_agent import EchoAgent, echo_agent_in_thread
from tests.bench.sounds import RATE, tone
from tests.bench.test_lines import write_wav
from voice_agent.bench import agent_process
from voice_agent.bench.agent_process import Usage
from voice_agent.cli.main import main


@pytest.fixture
def agent() -> Iterator[EchoAgent]:
    with echo_agent_in_thread() as running:
        yield running


@pytest.fixture
def script(tmp_path: Path) -> Path:
    write_wav(tmp_path / "line.wav", tone(0.3), RATE)
    path = tmp_path / "script.toml"
    path.write_text('done = 0.3\n[[turn]]\nid = "one"\nwav = "line.wav"\nwhen = 0.1\n')
    return path


def test_an_agent_that_runs_already(
    agent: EchoAgent, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, record = tmp_path / "figures.json", tmp_path / "call.wav"
    words = ["bench", "--url", agent.url, "--script", str(script), "--out", str(out), "--record", str(record)]
    assert main([*words, "--runs", "2"], {}) == 0
    printed = capsys.readouterr()
    assert "1 of 2" in printed.err
    assert "2 calls, 2 lines" in printed.out
    figures = json.loads(out.read_text())
    assert figures["summary"]["voice_to_voice"]["n"] == 2
    assert figures["summary"]["missing"] == []
    assert figures["agent_process"] is None
    for file in (record, tmp_path / "call-2.wav"):
        with wave.open(str(file)) as recorded:
            assert (recorded.getnchannels(), recorded.getframerate()) == (2, RATE)
            assert recorded.getnframes() > RATE // 2


def test_an_agent_of_our_own_gets_our_settings_and_is_metered(
    agent: EchoAgent, script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[str] = []

    class Running:
        url = agent.url
        exit_code = 0
        cpu = 1.0

        def usage(self) -> Usage:
            self.cpu += 2.0
            return Usage(self.cpu, 5_000_000)

    @contextlib.asynccontextmanager
    async def start(arguments: Sequence[str], on_progress: Callable[[str], None]) -> AsyncIterator[Running]:
        given.extend(arguments)
        yield Running()

    monkeypatch.setattr(agent_process, "start_agent", start)
    words = ["bench", "--script", str(script), "--json", "--set", "min_delay=0.4", "--profile", "small"]
    assert main(words, {}) == 0
    assert given == ["--set=min_delay=0.4", "--profile=small"]
    figures = json.loads(capsys.readouterr().out)
    assert figures["agent_process"]["cpu_seconds"] == 2.0
    assert figures["agent_process"]["exit_code"] == 0


def test_mistakes_are_told_before_anything_starts(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--script", str(tmp_path / "none.toml")], {}) == 2
    assert "cannot read script" in capsys.readouterr().err
    (tmp_path / "line.wav").unlink()
    assert main(["bench", "--script", str(script)], {}) == 2
    assert "cannot read recording" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["bench", "--runs", "0"], {})


def test_nobody_at_the_address(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--url", "http://127.0.0.1:9", "--script", str(script)], {}) == 1
    assert "no agent answers at http://127.0.0.1:9" in capsys.readouterr().err
