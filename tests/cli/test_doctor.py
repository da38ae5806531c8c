"""`voice-agent doctor`: exit codes, JSON, and every check's good and bad case."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from voice_agent.cli.main import main
from voice_agent.doctor import machine, setup
from voice_agent.doctor.check import Check, Verdict, lines
from voice_agent.settings import ModelSettings, ServerSettings


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow checks answer at once."""
    for name in ("packages", "bandwidth"):
        monkeypatch.setattr(machine, name, lambda *_, name=name: Check(name, Verdict.OK, "fine"))


@pytest.mark.usefixtures("quick")
def test_missing_models_are_a_problem_with_its_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"VOICE_AGENT_MODEL_DIR": str(tmp_path), "VOICE_AGENT_PORT": "0"}
    assert main(["doctor", "--json"], environ) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["models"]["verdict"] == "problem"
    assert "voice-agent models pull" in checks["models"]["advice"]
    assert checks["disk"]["figures"]["missing_bytes"] > 1e8
    assert checks["Python"]["verdict"] == "ok"
    assert {"memory", "cores", "open files", "port 0", "microphone"} <= set(checks)
    assert main(["doctor"], environ) == 1
    assert "to be mended: models" in capsys.readouterr().out


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "nonsense"], {}) == 2
    assert "no address of a server" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused, and nobody else gets the port
        assert main(["doctor", "--json", f"http://127.0.0.1:{taken.getsockname()[1]}"], {}) == 1
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert (check["name"], check["verdict"]) == ("reachable", "problem")


def test_advice_stands_under_what_was_found() -> None:
    assert lines(Check("a", Verdict.OK, "b")) == ["ok       a: b"]
    assert lines(Check("a", Verdict.WARNING, "b", "do c")) == ["warning  a: b", "         → do c"]


def test_packages_that_load_are_fine_and_one_that_does_not_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "NATIVE", ("numpy", "soxr"))
    check = machine.packages()
    assert check.verdict is Verdict.OK
    assert set(check.figures) == {"numpy", "soxr"}
    monkeypatch.setattr(machine, "NATIVE", ("numpy", "no_such_package"))
    check = machine.packages()
    assert check.verdict is Verdict.PROBLEM
    assert "no_such_package ModuleNotFoundError" in check.found


def test_a_library_that_ends_the_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], -4, "> numpy\n> ctranslate2\n", "")

    monkeypatch.setattr(subprocess, "run", killed)
    assert "ctranslate2 ends the process (status -4)" in machine.packages().found


@pytest.mark.parametrize(
    ("available", "verdict"),
    [(3e9, Verdict.OK), (1.5e9, Verdict.WARNING), (5e8, Verdict.PROBLEM), (None, Verdict.NOTE)],
)
def test_memory_is_judged_by_the_models(monkeypatch: pytest.MonkeyPatch, available: Any, verdict: Verdict) -> None:
    monkeypatch.setattr(machine, "available_memory", lambda: available)
    assert machine.memory(1_000_000_000).verdict is verdict


def test_memory_is_read_from_this_machine() -> None:
    available = machine.available_memory()
    assert available is not None
    assert available > 1e7


def test_a_full_disk_and_a_low_limit_are_problems(tmp_path: Path) -> None:
    assert machine.disk(tmp_path / "not" / "yet", 0).figures["free_bytes"] > 0
    assert machine.disk(tmp_path, 10**18).verdict is Verdict.PROBLEM
    assert machine.open_files(1).verdict is Verdict.OK
    assert machine.open_files(10**9).figures["needed"] > 10**9


@pytest.mark.parametrize(("rate", "verdict"), [(50e9, Verdict.OK), (5e9, Verdict.WARNING)])
def test_bandwidth_bounds_the_model(monkeypatch: pytest.MonkeyPatch, rate: float, verdict: Verdict) -> None:
    monkeypatch.setattr(machine, "measured_bandwidth", lambda threads: rate)
    check = machine.bandwidth(1_000_000_000)
    assert check.verdict is verdict
    assert check.figures["most_tokens_per_second"] == rate / 1e9
    assert machine.bandwidth(0).verdict is Verdict.OK, "a scripted model reads nothing"


def test_bandwidth_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "BANDWIDTH_SECONDS", 0.05)
    assert 1e8 < machine.measured_bandwidth(1) < 1e13


def test_a_taken_port_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        taken.close()
        assert setup.port(ServerSettings(port=number)).verdict is Verdict.OK
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        check = setup.port(ServerSettings(port=taken.getsockname()[1]))
    assert check.verdict is Verdict.PROBLEM
    assert "--port 0" in check.advice


def test_the_models_of_this_machine_are_whole(weights: Path) -> None:
    settings = ModelSettings(profile="small", model_dir=str(weights))
    check = setup.models(settings)
    assert check.verdict is Verdict.OK, check
    sizes = setup.sizes(settings)
    assert sizes.missing == 0
    assert 0 < sizes.language_model < sizes.all == check.figures["bytes"]


def test_a_model_of_one_s_own_is_looked_at(weights: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"no model")
    check = setup.models(ModelSettings(model_dir=str(weights), llm=str(own)))
    assert check.verdict is Verdict.PROBLEM
    assert "mine.gguf" in check.found
    assert setup.sizes(ModelSettings(model_dir=str(weights), llm=str(own))).language_model == 8
    assert setup.sizes(ModelSettings(model_dir=str(weights), llm="scripted")).language_model == 0
