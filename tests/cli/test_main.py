"""The command line from its arguments to its exit code, with a command of the test's own where one is needed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from voice_agent.cli import main as cli
from voice_agent.errors import ConfigError, EngineError, ModelError


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[argparse.Namespace], int]], None]:
    """Put a function in place of the command `serve`."""

    def put(run: Callable[[argparse.Namespace], int], **defaults: object) -> None:
        module = types.ModuleType("voice_agent.cli.serve")

        def register(commands: cli.Commands) -> None:
            parser = commands.add_parser("serve")
            parser.add_argument("--port")
            parser.set_defaults(run=run, **defaults)

        module.register = register  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "voice_agent.cli.serve", module)

    return put


def _raise(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


def test_the_exit_code_is_the_command_s(command) -> None:
    command(lambda args: args.settings.server.port)
    assert cli.main(["serve", "--port", "7"], {}) == 7
    assert cli.main(["serve"], {"VOICE_AGENT_PORT": "8"}) == 8


def test_an_option_wins_over_set_and_set_over_the_environment(command) -> None:
    command(lambda args: args.settings.server.port)
    assert cli.main(["serve", "--set", "port=2"], {"VOICE_AGENT_PORT": "1"}) == 2
    assert cli.main(["serve", "--set", "port=2", "--set", "port=3"], {}) == 3
    assert cli.main(["serve", "--port", "4", "--set", "port=2"], {}) == 4


@pytest.mark.parametrize("words", [["--config", "{}", "serve"], ["serve", "--config", "{}"], ["--config={}", "serve"]])
def test_the_file_may_be_named_before_and_after_the_command(command, tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "serve"
    file.write_text("port = 9")
    command(lambda args: args.settings.server.port)
    assert cli.main([word.format(file) for word in words], {}) == 9


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no such\nsetting"), 2),
        (ModelError("no such\nsetting"), 1),
        (EngineError("stt", "broken", "no such\nsetting"), 1),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(command, capsys: pytest.CaptureFixture[str], error, code: int) -> None:
    command(_raise(error))
    assert cli.main(["serve"], {}) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("voice-agent: ")
    assert captured.err.endswith("no such setting\n")


def test_a_bug_keeps_its_traceback(command) -> None:
    command(_raise(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["serve"], {})


def test_ctrl_c_is_130(command) -> None:
    command(_raise(KeyboardInterrupt()))
    assert cli.main(["serve"], {}) == 130


def test_bad_settings_stop_the_command_before_it_runs(command, capsys: pytest.CaptureFixture[str]) -> None:
    command(_raise(AssertionError("ran")))
    assert cli.main(["serve", "--set", "prot=1"], {}) == 2
    assert "unknown setting prot (--set prot); did you mean port?" in capsys.readouterr().err
    assert cli.main(["serve", "--set", "port"], {}) == 2
    assert "KEY=VALUE" in capsys.readouterr().err


def test_a_command_may_do_without_settings(command) -> None:
    command(lambda args: int(hasattr(args, "settings")), needs_settings=False)
    assert cli.main(["serve"], {"VOICE_AGENT_NONSENSE": "1"}) == 0


def test_abbreviated_options_are_refused(command) -> None:
    command(lambda _: 0)
    assert cli.main(["serve", "--por", "1"], {}) == 2


def test_no_command_prints_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([], {}) == 2
    assert "examples:" in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"], {})
    assert caught.value.code == 0
    help_text = capsys.readouterr().out
    assert "examples:" in help_text
    assert f"voice-agent {name}" in help_text


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\nfrom voice_agent.cli.main import build_parser\nbuild_parser().format_help()\n"
        "print(*sorted({'numpy', 'av', 'aiortc', 'asyncio', 'httpx', 'onnxruntime', 'starlette'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "voice_agent", "config", "show", "--json", "--set", "port=1"],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    listing = json.loads(done.stdout)
    assert listing["port"] == {"value": 1, "origin": "flag", "where": "--set port", "group": "server"}


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -m voice_agent config show | true; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
        env={},
    )
    assert done.stderr == ""
