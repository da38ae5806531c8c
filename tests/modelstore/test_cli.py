from __future__ import annotations

import io
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.modelstore.serving import FakeIndex, NoWeb
from tests.modelstore.test_store import CONFIG, WEIGHTS, WHEEL_A, WHEEL_B, WHEEL_C, manifest
from voice_agent.cli import models
from voice_agent.cli.main import main
from voice_agent.cli.models_progress import ProgressLines
from voice_agent.modelstore import ModelStore, Phase, Progress, load_manifest


@pytest.fixture
def big(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeIndex:
    """The commands with the test manifest (one model, `big`) and an index in memory."""
    index = FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)
    store = ModelStore(tmp_path, manifest(), index=index, web=NoWeb())
    monkeypatch.setattr(models, "_store", lambda _: store)
    monkeypatch.setattr(store, "wanted", lambda _: ["big"])
    return index


def run(*words: str) -> int:
    return main(["models", *words], {})


def test_pull_fetches_and_repeating_it_does_not(big: FakeIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pull") == 0
    told = capsys.readouterr().err
    assert "from part-a 1.0 (package index)" in told
    assert "big: ready" in told
    assert "1 models, 0.3 MB, ready in" in told
    asked = list(big.asked)
    assert run("pull") == 0
    assert big.asked == asked
    assert capsys.readouterr().err.startswith("1 models, 0.3 MB, ready in")


def test_pull_as_json_keeps_stdout_clean(big: FakeIndex, capsys: pytest.CaptureFixture[str]) -> None:
    for fetched in (True, False):
        assert run("pull", "big", "--json") == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["models"] == [{"name": "big", "fetched": fetched}]


def test_verify_tells_a_broken_file_and_exits_with_1(
    big: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("pull")
    capsys.readouterr()
    assert run("verify") == 0
    assert "ok          big/m.bin  300,000 bytes" in capsys.readouterr().out
    (tmp_path / "big" / "m.bin").write_bytes(WEIGHTS[:-1] + b"?")
    assert run("verify", "--json") == 1
    told = capsys.readouterr()
    assert "Run `voice-agent models pull big`" in told.err
    answer = json.loads(told.out)
    assert answer["ok"] is False
    assert {file["file"]: file["status"] for file in answer["files"]} == {"config.json": "ok", "m.bin": "corrupt"}
    assert run("pull") == 0
    assert run("verify") == 0


def test_list_shows_what_is_here(big: FakeIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    assert "no, configured" in capsys.readouterr().out
    run("pull")
    capsys.readouterr()
    assert run("list", "--json") == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["name"], model["present"], model["configured"]) == ("big", True, True)
    assert model["bytes"] == len(CONFIG) + len(WEIGHTS)


def test_trouble_is_one_line_and_exit_code_1(big: FakeIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pull", "bgi") == 1
    assert capsys.readouterr().err.startswith("voice-agent: no model is called `bgi`: did you mean `big`?")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["silero-vad", "smart-turn-v3.2", "whisper-base", "piper-joe"]),
        (["--profile", "small"], ["silero-vad", "smart-turn-v3.2", "whisper-tiny.en", "smollm2-135m", "piper-joe"]),
        (["--all"], [model.name for model in load_manifest().models]),
        (["piper-joe"], ["piper-joe"]),
    ],
)
def test_what_a_pull_is_for(
    words: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled: list[list[str]] = []
    monkeypatch.setattr(ModelStore, "ensure", lambda _, names, __: pulled.append(list(names)))
    environment = {"VOICE_AGENT_MODEL_DIR": str(tmp_path), "VOICE_AGENT_LLM": "scripted"}
    assert main(["models", "pull", *words], environment) == 0
    assert pulled == [expected]


def test_unknown_profile_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull", "--profile", "huge"], {"VOICE_AGENT_MODEL_DIR": str(tmp_path)}) == 1
    assert "known are default, small" in capsys.readouterr().err


def test_sigterm_ends_a_pull_like_ctrl_c(big: FakeIndex, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    big.before = lambda _: signal.raise_signal(signal.SIGTERM)
    assert run("pull") == 130
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("words", [["--help"], ["pull", "--help"], ["list", "--help"], ["verify", "--help"]])
def test_help_is_there(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 0
    assert "--json" in capsys.readouterr().out


# ---------------------------------------------------------------- progress


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def downloading(done: int, source: str = "part-a 1.0 (package index)", total: int = 100_000_000) -> Progress:
    return Progress(Phase.DOWNLOAD, "big", source=source, done=done, total=total)


def written(terminal: bool, steps: list[tuple[float, Any]]) -> str:
    screen, clock = Screen(terminal), Clock()
    lines = ProgressLines(screen, clock)
    for at, progress in steps:
        clock.now = at
        lines(progress)
    lines.close()
    return screen.getvalue()


def test_log_gets_a_line_every_few_seconds() -> None:
    steps = [(second / 10, downloading(second * 1_000_000)) for second in range(101)]
    lines = written(False, [*steps, (10.1, Progress(Phase.READY, "big"))]).splitlines()
    assert lines == [
        "big  0.0 of 100.0 MB  from part-a 1.0 (package index)",
        "big  50.0 of 100.0 MB  10.0 MB/s  from part-a 1.0 (package index)",
        "big  100.0 of 100.0 MB  10.0 MB/s  from part-a 1.0 (package index)",
        "big: ready",
    ]


def test_log_gets_a_line_when_the_source_changes() -> None:
    steps = [(0.0, downloading(0)), (0.1, downloading(0, "huggingface.co/them/model", 50_000_000))]
    assert written(False, steps).splitlines()[1] == "big  0.0 of 50.0 MB  0.0 MB/s  from huggingface.co/them/model"


def test_terminal_gets_one_line_that_is_rewritten_and_ends_clean() -> None:
    text = written(True, [(0.0, downloading(0)), (1.0, downloading(25_000_000)), (1.01, downloading(26_000_000))])
    assert "\n" not in text
    assert text.count("\r\x1b[K") == 3
    assert text.split("\r\x1b[K")[2].startswith("big  25.0 of 100.0 MB  25.0 MB/s")
    assert text.endswith("\r\x1b[K")


def test_line_is_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = written(True, [(0.0, downloading(0))])
    assert len(text.split("\r\x1b[K")[1]) == 39


def test_notes_do_not_tear_the_line_that_is_rewritten() -> None:
    text = written(True, [(0.0, downloading(0)), (0.1, Progress(Phase.NOTE, "big", "something"))])
    assert text.endswith("\r\x1b[Ksomething\n")


def test_models_that_were_there_get_no_line() -> None:
    assert written(False, [(0.0, Progress(Phase.CHECK, "big", "checking")), (0.1, Progress(Phase.READY, "big"))]) == ""
