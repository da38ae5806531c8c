"""Completion: what fits is read off the parsers, and bash gets it right at the Tab key."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from voice_agent.cli.completing import complete
from voice_agent.cli.completion import SCRIPTS
from voice_agent.cli.main import COMMANDS, build_parser, main


def _words(*line: str) -> list[str]:
    return [candidate.word for candidate in complete(build_parser(), line).candidates]


def test_commands_options_and_values_follow_the_parsers() -> None:
    assert _words("") == list(COMMANDS)
    assert _words("re") == ["report", "replay"]
    assert _words("config", "") == ["show", "init"]
    assert _words("serve", "--prof") == ["--profile"]
    assert _words("serve", "--profile", "") == ["default", "small"]
    assert _words("serve", "--port", "1", "--profile", "s") == ["small"]
    assert _words("serve", "--profile=s") == ["--profile=small"]
    assert _words("serve", "--nonsense", "x", "--nonsense=") == []


def test_every_option_of_every_command_is_offered() -> None:
    for name in COMMANDS:
        assert "--help" in _words(name, "--")
    assert {"--wav", "--out", "--fast", "--json"} <= set(_words("talk", "--"))


def test_settings_are_completed_with_their_values() -> None:
    assert _words("serve", "--set", "min_d") == ["min_delay="]
    assert _words("serve", "--set", "profile=") == ["profile=default", "profile=small"]
    assert _words("serve", "--set", "ice_loopback=t") == ["ice_loopback=true"]
    assert _words("serve", "--set", "min_delay=") == []


def test_where_a_file_belongs_the_shell_names_files() -> None:
    assert complete(build_parser(), ["report", ""]).files
    assert complete(build_parser(), ["report", "a.jsonl", "b"]).files
    assert complete(build_parser(), ["serve", "--config", ""]).files
    assert complete(build_parser(), ["serve", "--llm", ""]).files
    assert not complete(build_parser(), ["serve", "--port", ""]).files


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_has_a_script_that_asks_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell], {"VOICE_AGENT_NONSENSE": "1"}) == 0
    assert "completion words --" in capsys.readouterr().out


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["completion", "tcsh"], {})
    assert caught.value.code == 2
    assert "bash" in capsys.readouterr().err


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "bin" / "voice-agent"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec {sys.executable} -m voice_agent "$@"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["voice-agent", "re"], ["report", "replay"]),
        (["voice-agent", "config", ""], ["show", "init"]),
        (["voice-agent", "serve", "--set", "min_d"], ["min_delay="]),
        # what bash itself makes of `--set profile=` and of `--profile=s`
        (["voice-agent", "serve", "--set", "profile", "="], ["default", "small"]),
        (["voice-agent", "serve", "--set", "profile", "=", "s"], ["small"]),
        (["voice-agent", "serve", "--profile", "=", "s"], ["small"]),
        (["voice-agent", "report", "one tr"], ["one trace.jsonl"]),
        (["voice-agent", "serve", "nothing"], []),
    ],
)
def test_bash_completes(program: Path, tmp_path: Path, line: list[str], expected: list[str]) -> None:
    (tmp_path / "one trace.jsonl").touch()
    words = " ".join(f"'{word}'" for word in line)
    script = (
        "set -u; source <(voice-agent completion bash); complete -p voice-agent >/dev/null || exit 9\n"
        f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _voice_agent voice-agent\n"
        '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; exit 0'
    )
    environ = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == expected
